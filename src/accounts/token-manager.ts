/**
 * Keeps one valid token per account. It is fetched when first needed and renewed when due, by one exchange however many
 * requests wait. While GitHub cannot be reached, the old token stays in use until it expires.
 */
import type { ProxyError } from "../errors";
import { openBackoff } from "./backoff";
import type { Mode } from "./hosts";
import {
  type FreshSession,
  openSessionSource,
  type Session,
  type SessionSourceOptions,
  type Unavailable,
} from "./session-source";

export interface TokenManager {
  /** `direct` once GitHub has declined to exchange the token. */
  readonly mode: Mode;
  /**
   * A valid session; none while any account is suspended.
   * @throws ProxyError `no_account` with the reason, or `permission` after a suspension.
   */
  session(): Promise<Session>;
  /** The same where it is known already; undefined where GitHub has to be asked, or the account cannot serve. */
  presentSession(): Session | undefined;
  /**
   * After a 401: another session, by one exchange however many requests ask. The same object is returned if there is no
   * other one (direct mode, or three forced exchanges within 30 s): a retry is useless then.
   * @throws as {@link session}
   */
  refresh(rejected: Session): Promise<Session>;
  /** After a 421: a session for the host that GitHub names now; the account fails if there is none. @throws as {@link session} */
  relearnHost(rejected: Session): Promise<Session>;
}

export interface TokenManagerOptions extends SessionSourceOptions {
  /** The error for every request while any account is suspended. */
  stopped(): ProxyError | undefined;
  /** Monotonic clock, ms; it may stop while the machine sleeps. */
  monotonic(): number;
  /** 0 … 1 */
  random(): number;
}

const second = 1000;

export function openTokenManager(options: TokenManagerOptions): TokenManager {
  const { mode, caller, status, stopped, id, logger, now, monotonic } = options;
  const source = openSessionSource(options);
  const backoff = openBackoff(options);
  let current: CurrentSession | undefined;
  let renewal: Promise<Session> | undefined;
  /** Times of the forced exchanges, by the monotonic clock. */
  let forced: number[] = [];

  async function session(): Promise<Session> {
    refuseIfSuspended();
    const session = await currentSession();
    // Another call may have been told of a suspension meanwhile.
    refuseIfSuspended();
    return session;
  }

  function presentSession(): Session | undefined {
    if (!current || backoff.failing || ageOf(current) >= current.refreshAfter) return undefined;
    const { name } = status.state;
    return name === "failed" || stopped() ? undefined : current.session;
  }

  function refuseIfSuspended(): void {
    const error = status.state.suspended ? status.unusableError() : stopped();
    if (error) throw error;
  }

  async function currentSession(): Promise<Session> {
    if (status.isBackingOff) throw status.unusableError();
    if (status.state.name === "failed") forget(); // the time to ask GitHub again has come
    if (!current || (backoff.failing && ageOf(current) >= current.lifetime)) {
      if (backoff.waiting) throw outOfTokens();
      return renew();
    }
    const age = ageOf(current);
    if (age < current.refreshAfter || backoff.waiting) return current.session;
    // Requests wait only if the token may be refused, and only once while GitHub cannot be reached.
    if (age >= current.freshFor && !backoff.failing) return renew();
    const { session } = current;
    renew().catch(() => {}); // already in the log
    return session;
  }

  async function refresh(rejected: Session): Promise<Session> {
    if (current?.session !== rejected) return session();
    forced = forced.filter((at) => monotonic() - at < 30 * second);
    if (mode === "direct" || forced.length === 3) return rejected;
    forced.push(monotonic());
    logger.debug(`${id()}: its Copilot token was refused; fetching a new one.`);
    forget();
    const next = await session();
    return next.token === rejected.token && next.baseUrl === rejected.baseUrl ? rejected : next;
  }

  function forget(): void {
    current = undefined;
    backoff.endWait();
  }

  async function relearnHost(rejected: Session): Promise<Session> {
    const { baseUrl } = rejected;
    if (current?.session === rejected && rejected.mode === "direct")
      await singleFlight(async () => keep(await source.relearnDirectHost()));
    const next = current?.session === rejected ? await refresh(rejected) : await session();
    if (next.baseUrl !== baseUrl) return next;
    const why = caller.hosts.copilotOverride ? "DRAGOMAN_COPILOT_API_URL names it" : "GitHub names no other";
    status.enter({ name: "failed", reason: `The model host ${baseUrl} does not serve this account, and ${why}.` });
    throw status.unusableError();
  }

  const renew = () =>
    singleFlight(async () => {
      const fetched = await source.fetch();
      if ("reason" in fetched) return keepOld(fetched);
      // A wall clock that jumps must not cause a series of exchanges.
      backoff.waitFor(30 * second);
      return keep(fetched);
    });

  function singleFlight(work: () => Promise<Session>): Promise<Session> {
    renewal ??= work().finally(() => {
      renewal = undefined;
    });
    return renewal;
  }

  function keep({ session, freshFor, lifetime }: FreshSession): Session {
    const refreshAfter = Math.max(30 * second, freshFor - 60 * second);
    current = { session, wallAt: now(), monotonicAt: monotonic(), refreshAfter, freshFor, lifetime };
    backoff.succeeded();
    const { state } = status;
    if (state.outage || (state.name === "failed" && !status.isBackingOff)) status.enter({ name: "ready" });
    return session;
  }

  /** While GitHub cannot issue a token, the old one stays in use until it expires. */
  function keepOld({ reason, after, cause }: Unavailable): Session {
    backoff.failed(reason, after);
    if (!current || ageOf(current) >= current.lifetime) throw outOfTokens(cause);
    logger.warn(`${id()}: ${reason} Its present Copilot token stays in use for now.`, cause);
    return current.session;
  }

  function outOfTokens(cause?: unknown): ProxyError {
    current = undefined;
    status.enter({ name: "cooling", until: now() + backoff.left, reason: backoff.reason, outage: true }, cause);
    return status.unusableError();
  }

  /** In ms, by the clock that shows more: the monotonic one may stop during sleep, the wall clock may be set back. */
  const ageOf = ({ wallAt, monotonicAt }: CurrentSession) => Math.max(now() - wallAt, monotonic() - monotonicAt);

  return {
    get mode() {
      return current?.session.mode ?? mode;
    },
    session,
    presentSession,
    refresh,
    relearnHost,
  };
}

/** When it was fetched, by both clocks in ms. Durations count from then. */
interface CurrentSession extends FreshSession {
  wallAt: number;
  monotonicAt: number;
  /** From then on a new token is fetched. */
  refreshAfter: number;
}
