/**
 * Gives the Copilot token of one account: an exchanged Copilot token, or in direct mode the GitHub token itself. It is fetched
 * when first needed and renewed when due, by one exchange however many requests wait. While GitHub cannot be reached, the old token
 * stays in use until it expires.
 */
import { asProxyError, ProxyError } from "../../lib/errors";
import type { Logger } from "../../lib/logger";
import { withTimeLimit } from "../../lib/net/time-limit";
import { isSuspended } from "./account-state";
import { type AccountSync, renewBefore, type SharedSignIn } from "./account-sync";
import { openBackoff } from "./backoff";
import type { CopilotToken, FreshToken, Unavailable } from "./copilot-token";
import { type CopilotUser, fetchCopilotUser, type GithubCaller, type GithubToken } from "./github";
import type { GithubTokens } from "./github-tokens";
import { allowedModelHost, type Mode } from "./hosts";
import type { AccountStatus } from "./status";
import { exchangeToken, type IssuedToken } from "./token-exchange";

interface TokenSourceOptions {
  github: GithubTokens;
  mode: Mode;
  caller: GithubCaller;
  /** The answer of the quota endpoint, which may be some seconds old. @throws ProxyError if GitHub cannot be asked */
  copilotUser(): Promise<CopilotUser>;
  status: AccountStatus;
  id(): string;
  logger: Logger;
  /** The error for every request while any account is suspended. */
  suspensionError(): ProxyError | undefined;
  /** Wall clock, ms. */
  now(): number;
  /** Monotonic clock, ms; it may stop while the machine sleeps. */
  monotonic(): number;
  /** 0 … 1 */
  random(): number;
  /** Where the token is shared with other servers. */
  sync?: Pick<AccountSync, "copilotToken">;
  /** As other servers know the account. */
  identity: SharedSignIn;
}

const second = 1000;
/** Milliseconds that a request waits for the name of the host, and for which the general host then serves. */
const [hostTimeoutMs, unknownHostMs] = [5 * second, 300 * second];
/** A 401 may fetch a new token this often, in this many milliseconds. */
const [maxForced, forcedWindowMs] = [3, 30 * second];
/** Milliseconds after an exchange without another one: a wall clock that jumps must not cause a series of them. */
const exchangePauseMs = 30 * second;

export class TokenSource {
  readonly #options: TokenSourceOptions;
  readonly #backoff: ReturnType<typeof openBackoff>;
  #held: HeldToken | undefined;
  /** The token that was forgotten last. */
  #refused: string | undefined;
  #renewal: Promise<CopilotToken> | undefined;
  /** The model host that GitHub named in direct mode. */
  #directHost: string | undefined;
  /** Whether GitHub has named the host after a 403 in direct mode. */
  #hasAskedForHost = false;
  /** Times of the forced exchanges, by the monotonic clock. */
  #forced: number[] = [];
  /** How far off this machine's clock was in the last warning, in minutes. */
  #warnedMinutes = 0;

  constructor(options: TokenSourceOptions) {
    this.#options = options;
    this.#backoff = openBackoff(options);
  }

  /** `direct` once GitHub has declined to exchange the token. */
  get mode(): Mode {
    return this.#held?.token.mode ?? this.#options.mode;
  }

  /**
   * A valid token; none while any account is suspended.
   * @throws ProxyError `no_account` with the reason, or `permission` after a suspension.
   */
  async get(): Promise<CopilotToken> {
    this.#refuseIfSuspended();
    const token = await this.#current();
    // Another account may have been suspended meanwhile.
    this.#refuseIfSuspended();
    return token;
  }

  /** The token, if it is known; undefined if GitHub has to be asked, or the account cannot serve. */
  present(): CopilotToken | undefined {
    const { status, suspensionError } = this.#options;
    const held = this.#held;
    if (!held || this.#backoff.failing || held.age() >= held.refreshAfter) return undefined;
    return status.state.name !== "failed" && !suspensionError() ? held.token : undefined;
  }

  /**
   * After a 401: another token, by one exchange however many requests ask. The same object is returned if there is no
   * other one (direct mode, or three forced exchanges within 30 s): a retry is useless then.
   * @throws as {@link get}
   */
  async renew(rejected: CopilotToken): Promise<CopilotToken> {
    const { mode, github, monotonic, id, logger } = this.#options;
    if (this.#held?.token !== rejected) return this.get();
    this.#forced = this.#forced.filter((at) => monotonic() - at < forcedWindowMs);
    // The token of a person who signed in here is the only one there is.
    const isOnly = mode === "direct" && github.kind === "person";
    if (isOnly || this.#forced.length === maxForced) return rejected;
    this.#forced.push(monotonic());
    logger.debug(`${id()}: its Copilot token was refused; fetching a new one.`);
    this.#forget();
    const next = await this.get();
    return next.bearer === rejected.bearer && next.baseUrl === rejected.baseUrl ? rejected : next;
  }

  /**
   * After a 403, which also a stale token, another plan's host or a single replica of the model host may cause: the token
   * to try again with. In direct mode GitHub is asked for the host, until it has named one. @throws as {@link get}
   */
  async renewOrAskHost(rejected: CopilotToken): Promise<CopilotToken> {
    const { github, status, id, logger } = this.#options;
    const mayAsk = rejected.mode === "direct" && github.kind === "person" && !this.#hasAskedForHost;
    if (!mayAsk || this.#held?.token !== rejected) return this.renew(rejected);
    try {
      await this.#askForHost();
      this.#hasAskedForHost = true;
    } catch (thrown) {
      if (isSuspended(status.state)) throw thrown;
      logger.debug(`${id()}: GitHub was not asked for the model host after a 403. ${asProxyError(thrown).message}`);
    }
    return this.get();
  }

  /** After a 421: a token for the host that GitHub names now; the account fails if there is none. @throws as {@link get} */
  async relearnHost(rejected: CopilotToken): Promise<CopilotToken> {
    const { caller, github, status } = this.#options;
    const isCurrent = () => this.#held?.token === rejected;
    if (isCurrent() && rejected.mode === "direct" && github.kind === "person") await this.#askForHost();
    const next = isCurrent() ? await this.renew(rejected) : await this.get();
    if (next.baseUrl !== rejected.baseUrl) return next;
    const why = caller.hosts.copilotOverride ? "DRAGOMAN_COPILOT_API_URL names it" : "GitHub names no other";
    const reason = `The model host ${rejected.baseUrl} does not serve this account, and ${why}.`;
    status.enter({ name: "failed", reason });
    throw status.unusableError();
  }

  #refuseIfSuspended(): void {
    const { status, suspensionError } = this.#options;
    const error = isSuspended(status.state) ? status.unusableError() : suspensionError();
    if (error) throw error;
  }

  async #current(): Promise<CopilotToken> {
    const { status } = this.#options;
    const backoff = this.#backoff;
    if (status.isBackingOff) throw status.unusableError();
    if (status.state.name === "failed") this.#forget(); // the time to ask GitHub again has come
    const held = this.#held;
    if (!held || (backoff.failing && held.age() >= held.lifetime)) {
      if (backoff.waiting) throw this.#withoutToken();
      return this.#fetch();
    }
    const age = held.age();
    if (age < held.refreshAfter || backoff.waiting) return held.token;
    // Requests wait only if the token may be refused, and only once while GitHub cannot be reached.
    if (age >= held.freshFor && !backoff.failing) return this.#fetch();
    this.#fetch().catch(() => {}); // already in the log
    return held.token;
  }

  /** The next use fetches a new token. */
  #forget(): void {
    this.#options.github.forget();
    this.#refused = this.#held?.token.bearer ?? this.#refused;
    this.#held = undefined;
    this.#backoff.endWait();
  }

  #fetch = () =>
    this.#once(async () => {
      const fetched = await this.#fromGithubOrShare();
      if ("reason" in fetched) return this.#keepOld(fetched);
      this.#backoff.waitFor(exchangePauseMs);
      return this.#keep(fetched);
    });

  #once(work: () => Promise<CopilotToken>): Promise<CopilotToken> {
    this.#renewal ??= work().finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  #keep(fetched: FreshToken): CopilotToken {
    const { status } = this.#options;
    this.#held = holdToken(fetched, this.#options);
    this.#backoff.succeeded();
    const { state } = status;
    if ((state.name === "cooling" && state.outage) || (state.name === "failed" && !status.isBackingOff))
      status.enter({ name: "ready" });
    return fetched.token;
  }

  #keepOld({ reason, after, cause }: Unavailable): CopilotToken {
    const { id, logger } = this.#options;
    this.#backoff.failed(reason, after);
    const held = this.#held;
    if (!held || held.age() >= held.lifetime) throw this.#withoutToken(cause);
    logger.warn(`${id()}: ${reason} Its present Copilot token stays in use for now.`, cause);
    return held.token;
  }

  #withoutToken(cause?: unknown): ProxyError {
    const { status, now } = this.#options;
    const { left, reason } = this.#backoff;
    this.#held = undefined;
    status.enter({ name: "cooling", until: now() + left, reason, outage: true }, cause);
    return status.unusableError();
  }

  /** @throws ProxyError `no_account` or `permission` after GitHub has refused the account; its status is then `failed`. */
  async #fromGithubOrShare(): Promise<FreshToken | Unavailable> {
    const { mode, sync, identity, logger, id } = this.#options;
    if (mode === "direct") return this.#atOwnHost();
    if (!sync) return this.#exchange();
    const fresh = await sync.copilotToken(identity, this.#refused, () => this.#exchange());
    if (!("token" in fresh)) return fresh;
    logger.conceal(fresh.token.bearer);
    const baseUrl = this.#allowedHost(fresh.token);
    if (baseUrl !== undefined) return { ...fresh, token: { ...fresh.token, baseUrl } };
    const stated = fresh.token.baseUrl.slice(0, 200);
    logger.warn(
      `${id()}: The database names ${stated} as the model host; tokens are not sent there, and a new one is used.`,
    );
    return this.#exchange();
  }

  /** Others can write to what servers sync, and a token goes to no host that GitHub could not have named. */
  #allowedHost({ baseUrl }: CopilotToken): string | undefined {
    const { hosts } = this.#options.caller;
    return hosts.copilotOverride ?? (baseUrl === hosts.copilot ? baseUrl : allowedModelHost(baseUrl, hosts));
  }

  async #exchange(): Promise<FreshToken | Unavailable> {
    const { caller, github, status, logger, id } = this.#options;
    const given = await this.#githubToken();
    if ("reason" in given) return given;
    const result = await exchangeToken(caller, given.token, github.kind);
    if (result.outcome === "token") return this.#exchanged(result.copilot);
    if (result.outcome === "retry") return result;
    if (result.outcome === "direct") {
      logger.info(`${id()}: GitHub does not exchange the token of this sign-in; it is used directly.`);
      return this.#atOwnHost();
    }
    status.enter({ name: "failed", reason: result.reason, suspended: result.abuse });
    throw status.unusableError();
  }

  /** @throws ProxyError `no_account` after the account has failed, because a person has to act */
  async #githubToken(): Promise<GithubToken | Unavailable> {
    const { github, status } = this.#options;
    try {
      return await github.get();
    } catch (thrown) {
      const { kind, message } = asProxyError(thrown);
      if (kind === "upstream" || kind === "timeout") return { reason: message, cause: thrown };
      status.enter({ name: "failed", reason: message });
      throw status.unusableError();
    }
  }

  #exchanged({ token, expiresAt, refreshIn, lifetime, endpoint, warning, statedAt }: IssuedToken): FreshToken {
    const { caller, logger, id, now } = this.#options;
    logger.conceal(token);
    if (warning) logger.warn(`${id()}: ${warning}`);
    this.#warnOfClock(now() - statedAt);
    const baseUrl = caller.hosts.copilotOverride ?? endpoint ?? caller.hosts.copilot;
    return { token: { bearer: token, baseUrl, mode: "exchange", expiresAt }, freshFor: refreshIn, lifetime };
  }

  /** Warns when this machine's clock is wrong. Token lifetimes are unaffected, but displayed times and the log are wrong then. */
  #warnOfClock(aheadMs: number): void {
    const rounded = Math.round(aheadMs / 60_000);
    const minutes = Math.abs(rounded) < 5 ? 0 : rounded;
    if (Number.isNaN(aheadMs) || Math.abs(minutes - this.#warnedMinutes) < 5) return;
    this.#warnedMinutes = minutes;
    const state = minutes === 0 ? "right again" : `${Math.abs(minutes)} minutes ${minutes > 0 ? "ahead" : "behind"}`;
    this.#options.logger.warn(`This machine's clock is ${state}, by GitHub's.`);
  }

  async #direct(): Promise<FreshToken | Unavailable> {
    const { hosts } = this.#options.caller;
    const given = await this.#githubToken();
    if ("reason" in given) return given;
    const { token: bearer, lifetime, endpoint } = given;
    const baseUrl = hosts.copilotOverride ?? endpoint?.baseUrl ?? this.#directHost ?? hosts.copilot;
    return { token: { bearer, baseUrl, mode: "direct", headers: endpoint?.headers }, freshFor: lifetime, lifetime };
  }

  /**
   * The quota endpoint names the host of the account's plan: a Business seat gets 403 for every model at the general one
   * (opencode, 2026-09). While GitHub cannot be asked, the general host is tried.
   */
  async #atOwnHost(): Promise<FreshToken | Unavailable> {
    const { caller, copilotUser, github, status, logger, id } = this.#options;
    // Of an installation GitHub names none, and the CLI its own.
    const isKnown = caller.hosts.copilotOverride !== undefined || this.#directHost !== undefined;
    if (isKnown || github.kind !== "person") return this.#direct();
    try {
      const { endpoint } = await withTimeLimit(copilotUser(), hostTimeoutMs, throwSlowHost);
      this.#directHost = endpoint ?? caller.hosts.copilot;
      return await this.#direct();
    } catch (thrown) {
      if (status.state.name === "failed") throw status.unusableError();
      logger.debug(`${id()}: GitHub did not name its model host. ${asProxyError(thrown).message}`);
      return { ...(await this.#direct()), freshFor: unknownHostMs };
    }
  }

  /** Asks GitHub for the model host in direct mode. @throws ProxyError if GitHub cannot be asked */
  async #askForHost(): Promise<void> {
    const { caller, github, status } = this.#options;
    await this.#once(async () => {
      const { token } = await github.get();
      const { endpoint } = await fetchCopilotUser(caller, token, "direct").catch((thrown) => {
        status.noteError(thrown);
        throw thrown;
      });
      this.#directHost = endpoint;
      const fetched = await this.#direct();
      return "reason" in fetched ? this.#keepOld(fetched) : this.#keep(fetched);
    });
  }
}

function throwSlowHost(): never {
  throw new ProxyError("timeout", `It took longer than ${hostTimeoutMs / second} s.`);
}

interface HeldToken extends FreshToken {
  /** A new token is fetched from this age on, in ms. */
  refreshAfter: number;
  /** In ms, by the clock that shows more: the monotonic one may stop during sleep, the wall clock may be set back. */
  age(): number;
}

function holdToken(fetched: FreshToken, { now, monotonic }: Pick<TokenSourceOptions, "now" | "monotonic">): HeldToken {
  const [wallAt, monotonicAt] = [now(), monotonic()];
  return {
    ...fetched,
    refreshAfter: Math.max(30 * second, fetched.freshFor - renewBefore),
    age: () => Math.max(now() - wallAt, monotonic() - monotonicAt),
  };
}
