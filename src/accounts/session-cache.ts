/**
 * The current session of an account. It is fetched when first needed and renewed when due, by one exchange however many
 * requests wait. While GitHub cannot be reached, the old token stays in use until it expires.
 */
import type { ProxyError } from "../errors";
import { renewBefore } from "./account-share";
import { openBackoff } from "./backoff";
import {
  type FreshSession,
  openSessionSource,
  type Session,
  type SessionSourceOptions,
  type Unavailable,
} from "./session-source";

export interface SessionCache {
  /** The cached session, whether it is still valid or not. */
  readonly cached: Session | undefined;
  /** A valid session. @throws ProxyError `no_account` with the reason */
  get(): Promise<Session>;
  /** The cached session if it is valid and no renewal is due. */
  present(): Session | undefined;
  /** The next use fetches a new session. */
  forget(): void;
  /** Direct mode: asks GitHub for the model host. @throws ProxyError if GitHub cannot be asked */
  relearnDirectHost(): Promise<void>;
}

export interface SessionCacheOptions extends SessionSourceOptions {
  /** Monotonic clock, ms; it may stop while the machine sleeps. */
  monotonic(): number;
  /** 0 … 1 */
  random(): number;
}

const second = 1000;

export function openSessionCache(options: SessionCacheOptions): SessionCache {
  const { status, id, logger, now } = options;
  const source = openSessionSource(options);
  const backoff = openBackoff(options);
  let current: HeldSession | undefined;
  /** The token that was forgotten last. */
  let refused: string | undefined;
  let renewal: Promise<Session> | undefined;

  async function get(): Promise<Session> {
    if (status.isBackingOff) throw status.unusableError();
    if (status.state.name === "failed") forget(); // the time to ask GitHub again has come
    if (!current || (backoff.failing && current.age() >= current.lifetime)) {
      if (backoff.waiting) throw outOfTokens();
      return renew();
    }
    const age = current.age();
    if (age < current.refreshAfter || backoff.waiting) return current.session;
    // Requests wait only if the token may be refused, and only once while GitHub cannot be reached.
    if (age >= current.freshFor && !backoff.failing) return renew();
    const { session } = current;
    renew().catch(() => {}); // already in the log
    return session;
  }

  function forget(): void {
    refused = current?.session.token ?? refused;
    current = undefined;
    backoff.endWait();
  }

  const renew = () =>
    singleFlight(async () => {
      const fetched = await source.fetch(refused);
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

  function keep(fetched: FreshSession): Session {
    current = holdSession(fetched, options);
    backoff.succeeded();
    const { state } = status;
    if (state.outage || (state.name === "failed" && !status.isBackingOff)) status.enter({ name: "ready" });
    return fetched.session;
  }

  /** While GitHub cannot issue a token, the old one stays in use until it expires. */
  function keepOld({ reason, after, cause }: Unavailable): Session {
    backoff.failed(reason, after);
    if (!current || current.age() >= current.lifetime) throw outOfTokens(cause);
    logger.warn(`${id()}: ${reason} Its present Copilot token stays in use for now.`, cause);
    return current.session;
  }

  function outOfTokens(cause?: unknown): ProxyError {
    current = undefined;
    status.enter({ name: "cooling", until: now() + backoff.left, reason: backoff.reason, outage: true }, cause);
    return status.unusableError();
  }

  return {
    get cached() {
      return current?.session;
    },
    get,
    present: () => (current && !backoff.failing && current.age() < current.refreshAfter ? current.session : undefined),
    forget,
    async relearnDirectHost() {
      await singleFlight(async () => keep(await source.relearnDirectHost()));
    },
  };
}

interface HeldSession extends FreshSession {
  /** A new token is fetched from this age on, in ms. */
  refreshAfter: number;
  /** In ms, by the clock that shows more: the monotonic one may stop during sleep, the wall clock may be set back. */
  age(): number;
}

function holdSession(
  fetched: FreshSession,
  { now, monotonic }: Pick<SessionCacheOptions, "now" | "monotonic">,
): HeldSession {
  const [wallAt, monotonicAt] = [now(), monotonic()];
  return {
    ...fetched,
    refreshAfter: Math.max(30 * second, fetched.freshFor - renewBefore),
    age: () => Math.max(now() - wallAt, monotonic() - monotonicAt),
  };
}
