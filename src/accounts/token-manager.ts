/** Gives out the session of one account, and another one after the model host has refused it. */
import { asProxyError, type ProxyError } from "../errors";
import type { Mode } from "./hosts";
import { openSessionCache, type SessionCacheOptions } from "./session-cache";
import type { Session } from "./session-source";

export interface TokenManager {
  /** `direct` once GitHub has declined to exchange the token. */
  readonly mode: Mode;
  /**
   * A valid session; none while any account is suspended.
   * @throws ProxyError `no_account` with the reason, or `permission` after a suspension.
   */
  session(): Promise<Session>;
  /** The session, if it is known; undefined if GitHub has to be asked, or the account cannot serve. */
  presentSession(): Session | undefined;
  /**
   * After a 401: another session, by one exchange however many requests ask. The same object is returned if there is no
   * other one (direct mode, or three forced exchanges within 30 s): a retry is useless then.
   * @throws as {@link session}
   */
  refresh(rejected: Session): Promise<Session>;
  /**
   * After a 403, which also a stale token, another plan's host or a single replica of the model host may cause: the session
   * to try again with. In direct mode GitHub is asked for the host, until it has named one. @throws as {@link session}
   */
  renew(rejected: Session): Promise<Session>;
  /** After a 421: a session for the host that GitHub names now; the account fails if there is none. @throws as {@link session} */
  relearnHost(rejected: Session): Promise<Session>;
}

export interface TokenManagerOptions extends SessionCacheOptions {
  /** The error for every request while any account is suspended. */
  stopped(): ProxyError | undefined;
}

/** A 401 may fetch a new token this often, in this many milliseconds. */
const maxForced = 3;
const forcedWindowMs = 30_000;

export function openTokenManager(options: TokenManagerOptions): TokenManager {
  const { mode, caller, status, stopped, id, logger, monotonic } = options;
  const cache = openSessionCache(options);
  /** Times of the forced exchanges, by the monotonic clock. */
  let forced: number[] = [];
  /** Whether GitHub has named the host after a 403 in direct mode. */
  let hasAskedForHost = false;

  async function session(): Promise<Session> {
    refuseIfSuspended();
    const session = await cache.get();
    // Another account may have been suspended meanwhile.
    refuseIfSuspended();
    return session;
  }

  function presentSession(): Session | undefined {
    const session = cache.present();
    return session && status.state.name !== "failed" && !stopped() ? session : undefined;
  }

  function refuseIfSuspended(): void {
    const error = status.state.suspended ? status.unusableError() : stopped();
    if (error) throw error;
  }

  async function refresh(rejected: Session): Promise<Session> {
    if (cache.cached !== rejected) return session();
    forced = forced.filter((at) => monotonic() - at < forcedWindowMs);
    if (mode === "direct" || forced.length === maxForced) return rejected;
    forced.push(monotonic());
    logger.debug(`${id()}: its Copilot token was refused; fetching a new one.`);
    cache.forget();
    const next = await session();
    return next.token === rejected.token && next.baseUrl === rejected.baseUrl ? rejected : next;
  }

  async function renew(rejected: Session): Promise<Session> {
    if (rejected.mode !== "direct" || cache.cached !== rejected || hasAskedForHost) return refresh(rejected);
    try {
      await cache.relearnDirectHost();
      hasAskedForHost = true;
    } catch (thrown) {
      if (status.state.suspended) throw thrown;
      logger.debug(`${id()}: GitHub was not asked for the model host after a 403. ${asProxyError(thrown).message}`);
    }
    return session();
  }

  async function relearnHost(rejected: Session): Promise<Session> {
    const { baseUrl } = rejected;
    if (cache.cached === rejected && rejected.mode === "direct") await cache.relearnDirectHost();
    const next = cache.cached === rejected ? await refresh(rejected) : await session();
    if (next.baseUrl !== baseUrl) return next;
    const why = caller.hosts.copilotOverride ? "DRAGOMAN_COPILOT_API_URL names it" : "GitHub names no other";
    status.enter({ name: "failed", reason: `The model host ${baseUrl} does not serve this account, and ${why}.` });
    throw status.unusableError();
  }

  return {
    get mode() {
      return cache.cached?.mode ?? mode;
    },
    session,
    presentSession,
    refresh,
    renew,
    relearnHost,
  };
}
