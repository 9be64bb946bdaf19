/**
 * A token that is always good. It is fetched when first needed, renewed when due by either of two clocks, by one
 * exchange however many wait; and while GitHub is down the old one goes on as long as it lives.
 */
import type { ProxyError } from "../errors";
import type { Logger } from "../logger";
import { fetchCopilotUser, type GithubCaller } from "./github";
import type { Mode } from "./hosts";
import type { AccountStatus } from "./status";
import { type CopilotToken, exchangeToken } from "./token-exchange";

/** What the model host wants to see. Compared by identity: another object is another session. */
export interface Session {
  /** The bearer: a Copilot token, or the GitHub token itself in direct mode. */
  readonly token: string;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly mode: Mode;
  /** ms timestamp by GitHub's clock, for show; missing when nobody said. */
  readonly expiresAt?: number;
}

export interface TokenManager {
  /** Direct once GitHub has declined to exchange the token. */
  readonly mode: Mode;
  /** A session that is good now; none while any account is blocked. @throws ProxyError `no_account` with the reason, or `permission` when GitHub speaks of abuse. */
  session(): Promise<Session>;
  /**
   * After a 401: another session, by one exchange however many ask. The same object comes back when there is no other to
   * be had (direct mode, or three forced exchanges within 30 s): sending again is useless then.
   * @throws as {@link session}
   */
  refresh(rejected: Session): Promise<Session>;
  /** After a 421: a session for the host GitHub now names, or the account has failed. @throws as {@link session} */
  relearnHost(rejected: Session): Promise<Session>;
}

export interface TokenManagerOptions {
  githubToken: string;
  mode: Mode;
  caller: GithubCaller;
  status: AccountStatus;
  /** Why no account may be used at all now, where one of them is blocked. */
  stopped(): ProxyError | undefined;
  id(): string;
  logger: Logger;
  /** Wall clock, ms. */
  now(): number;
  /** A clock that never jumps, ms; it may stand still while the machine sleeps. */
  monotonic(): number;
  /** 0 … 1 */
  random(): number;
}

const second = 1000;

export function openTokenManager(parts: TokenManagerOptions): TokenManager {
  const { githubToken, mode, caller, status: standing, stopped, id, logger, now, monotonic, random } = parts;
  const { hosts } = caller;
  let held: Held | undefined;
  let renewal: Promise<Session> | undefined;
  /** GitHub is not asked again before this time of the monotonic clock. */
  let quietUntil = Number.NEGATIVE_INFINITY;
  let outages = 0;
  let outageReason = "";
  let forced: number[] = [];
  /** Minutes by which the wall clock was wrong when that was last said. */
  let toldDrift = 0;
  /** The model host GitHub named after a 421 in direct mode. */
  let relearnt: string | undefined;

  async function session(): Promise<Session> {
    refuseWhileBlocked();
    const session = await currentSession();
    // Another endpoint may have said so meanwhile.
    refuseWhileBlocked();
    return session;
  }

  function refuseWhileBlocked(): void {
    const error = standing.state.suspended ? standing.unusableError() : stopped();
    if (error) throw error;
  }

  async function currentSession(): Promise<Session> {
    if (standing.isBackingOff) throw standing.unusableError();
    if (standing.state.name === "failed") forget(); // its rest is over: ask GitHub what holds now
    const quiet = monotonic() < quietUntil;
    if (!held || (outages > 0 && ageOf(held) >= held.lifetime)) {
      if (quiet) throw outOfTokens();
      return renew();
    }
    const age = ageOf(held);
    if (age < held.refreshAfter || quiet) return held.session;
    // Nobody waits while the token is surely good, nor a second time while GitHub is down.
    if (age >= held.freshFor && outages === 0) return renew();
    const { session } = held;
    renew().catch(() => {}); // the standing has said it in the log
    return session;
  }

  async function refresh(rejected: Session): Promise<Session> {
    if (held?.session !== rejected) return session();
    forced = forced.filter((at) => monotonic() - at < 30 * second);
    if (mode === "direct" || forced.length === 3) return rejected;
    forced.push(monotonic());
    logger.debug(`${id()}: its Copilot token was refused; a new one is fetched.`);
    forget();
    const next = await session();
    return next.token === rejected.token && next.baseUrl === rejected.baseUrl ? rejected : next;
  }

  function forget(): void {
    held = undefined;
    quietUntil = Number.NEGATIVE_INFINITY;
  }

  async function relearnHost(rejected: Session): Promise<Session> {
    const before = rejected.baseUrl;
    if (held?.session === rejected && rejected.mode === "direct") await singly(relearnDirectHost);
    const next = held?.session === rejected ? await refresh(rejected) : await session();
    if (next.baseUrl !== before) return next;
    const choice = hosts.copilotOverride ? "DRAGOMAN_COPILOT_API_URL names it" : "GitHub names no other";
    standing.enter({ name: "failed", reason: `The model host ${before} does not serve this account, and ${choice}.` });
    throw standing.unusableError();
  }

  const renew = () => singly(exchange);

  function singly(work: () => Promise<Session>): Promise<Session> {
    renewal ??= work().finally(() => {
      renewal = undefined;
    });
    return renewal;
  }

  async function exchange(): Promise<Session> {
    if (mode === "direct") return holdDirect();
    const exchanged = await exchangeToken(caller, githubToken);
    if (exchanged.outcome === "token") return hold(exchanged.copilot);
    if (exchanged.outcome === "direct") {
      logger.info(`${id()}: GitHub exchanges no token of this sign-in; it is used directly.`);
      return holdDirect();
    }
    if (exchanged.outcome === "retry") return outlast(exchanged.reason, exchanged.after, exchanged.cause);
    standing.enter({ name: "failed", reason: exchanged.reason, suspended: exchanged.abuse });
    throw standing.unusableError();
  }

  function hold(copilot: CopilotToken): Session {
    logger.conceal(copilot.token);
    if (copilot.warning) logger.warn(`${id()}: ${copilot.warning}`);
    noteDrift(now() - copilot.saidAt);
    const { token, expiresAt, refreshIn, lifetime } = copilot;
    const baseUrl = hosts.copilotOverride ?? copilot.endpoint ?? hosts.copilot;
    // A wall clock that jumps about must not lead to a storm.
    quietUntil = monotonic() + 30 * second;
    return keep({ token, baseUrl, mode: "exchange", expiresAt }, refreshIn, lifetime);
  }

  /** Tokens are counted by both clocks, so that a wrong one does no harm; but resets are shown, and logs are read, by it. */
  function noteDrift(drift: number): void {
    const exact = Math.round(drift / 60_000);
    const minutes = Math.abs(exact) < 5 ? 0 : exact;
    if (Number.isNaN(drift) || Math.abs(minutes - toldDrift) < 5) return;
    toldDrift = minutes;
    const how = minutes === 0 ? "right again" : `${Math.abs(minutes)} minutes ${minutes > 0 ? "ahead" : "behind"}`;
    logger.warn(`This machine's clock is ${how}, by GitHub's.`);
  }

  function holdDirect(): Session {
    const baseUrl = hosts.copilotOverride ?? relearnt ?? hosts.copilot;
    const forever = Number.POSITIVE_INFINITY;
    return keep({ token: githubToken, baseUrl, mode: "direct" }, forever, forever);
  }

  function keep(session: Session, freshFor: number, lifetime: number): Session {
    const refreshAfter = Math.max(30 * second, freshFor - 60 * second);
    held = { session, wallAt: now(), monotonicAt: monotonic(), refreshAfter, freshFor, lifetime };
    outages = 0;
    const { state } = standing;
    if (state.outage || (state.name === "failed" && !standing.isBackingOff)) standing.enter({ name: "ready" });
    return session;
  }

  /** GitHub cannot be asked now: 1, 2, 4 … 60 s of patience, with the old token as long as it lives. */
  function outlast(reason: string, after = 0, cause?: unknown): Session {
    const timeoutMs = Math.min(60, 2 ** outages) * second * (0.8 + 0.4 * random());
    outages = Math.min(outages + 1, 10);
    outageReason = reason;
    quietUntil = monotonic() + Math.max(timeoutMs, after);
    if (!held || ageOf(held) >= held.lifetime) throw outOfTokens(cause);
    logger.warn(`${id()}: ${reason} Its present Copilot token goes on for now.`, cause);
    return held.session;
  }

  function outOfTokens(cause?: unknown): ProxyError {
    held = undefined;
    const until = now() + Math.max(0, quietUntil - monotonic());
    standing.enter({ name: "cooling", until, reason: outageReason, outage: true }, cause);
    return standing.unusableError();
  }

  async function relearnDirectHost(): Promise<Session> {
    const { endpoint } = await fetchCopilotUser(caller, githubToken, "direct").catch((thrown) => {
      standing.noteError(thrown);
      throw thrown;
    });
    relearnt = endpoint;
    return holdDirect();
  }

  /** Milliseconds by the clock that says more: the wall's notices sleep, the other one that the wall's was set back. */
  const ageOf = ({ wallAt, monotonicAt }: Held) => Math.max(now() - wallAt, monotonic() - monotonicAt);

  return {
    get mode() {
      return held?.session.mode ?? mode;
    },
    session,
    refresh,
    relearnHost,
  };
}

/** A session with what is known of its end: durations in ms, counted from both clocks' readings. */
interface Held {
  session: Session;
  wallAt: number;
  monotonicAt: number;
  /** Time for a new one. */
  refreshAfter: number;
  /** Surely accepted until here; some tokens are refused from then on, long before their stated end. */
  freshFor: number;
  lifetime: number;
}
