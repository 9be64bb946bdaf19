/** Sessions from GitHub: an exchanged Copilot token, or in direct mode the GitHub token itself. */
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
  /** ms timestamp by GitHub's clock, for display; missing if GitHub did not state it. */
  readonly expiresAt?: number;
}

/** A session and its lifetime, in ms from now. */
export interface FreshSession {
  session: Session;
  /** Certainly accepted until then; some tokens are refused afterwards, long before their stated end. */
  freshFor: number;
  lifetime: number;
}

/** GitHub cannot issue a session now. `after`: ms to wait, if GitHub says so. */
export interface Unavailable {
  reason: string;
  after?: number;
  cause?: unknown;
}

export interface SessionSource {
  /** @throws ProxyError `no_account` or `permission` after GitHub has refused the account; its status is then `failed`. */
  fetch(): Promise<FreshSession | Unavailable>;
  /** Asks GitHub for the model host of a direct session. @throws ProxyError if GitHub cannot be asked. */
  relearnDirectHost(): Promise<FreshSession>;
}

export interface SessionSourceOptions {
  githubToken: string;
  mode: Mode;
  caller: GithubCaller;
  status: AccountStatus;
  id(): string;
  logger: Logger;
  /** Wall clock, ms. */
  now(): number;
}

export function openSessionSource(options: SessionSourceOptions): SessionSource {
  const { githubToken, mode, caller, status, id, logger, now } = options;
  const { hosts } = caller;
  const warnOfDrift = driftWarning(logger);
  /** The model host that GitHub named after a 421 in direct mode. */
  let directHost: string | undefined;

  function direct(): FreshSession {
    const baseUrl = hosts.copilotOverride ?? directHost ?? hosts.copilot;
    const forever = Number.POSITIVE_INFINITY;
    return { session: { token: githubToken, baseUrl, mode: "direct" }, freshFor: forever, lifetime: forever };
  }

  function exchanged({
    token,
    expiresAt,
    refreshIn,
    lifetime,
    endpoint,
    warning,
    statedAt,
  }: CopilotToken): FreshSession {
    logger.conceal(token);
    if (warning) logger.warn(`${id()}: ${warning}`);
    warnOfDrift(now() - statedAt);
    const baseUrl = hosts.copilotOverride ?? endpoint ?? hosts.copilot;
    return { session: { token, baseUrl, mode: "exchange", expiresAt }, freshFor: refreshIn, lifetime };
  }

  return {
    async fetch() {
      if (mode === "direct") return direct();
      const result = await exchangeToken(caller, githubToken);
      if (result.outcome === "token") return exchanged(result.copilot);
      if (result.outcome === "retry") return result;
      if (result.outcome === "direct") {
        logger.info(`${id()}: GitHub does not exchange the token of this sign-in; it is used directly.`);
        return direct();
      }
      status.enter({ name: "failed", reason: result.reason, suspended: result.abuse });
      throw status.unusableError();
    },
    async relearnDirectHost() {
      const { endpoint } = await fetchCopilotUser(caller, githubToken, "direct").catch((thrown) => {
        status.noteError(thrown);
        throw thrown;
      });
      directHost = endpoint;
      return direct();
    },
  };
}

/** Warns when this machine's clock is wrong. Token lifetimes are unaffected, but displayed times and the log are wrong then. */
function driftWarning(logger: Logger): (driftMs: number) => void {
  /** Minutes of the last warning. */
  let warnedMinutes = 0;
  return (driftMs) => {
    const rounded = Math.round(driftMs / 60_000);
    const minutes = Math.abs(rounded) < 5 ? 0 : rounded;
    if (Number.isNaN(driftMs) || Math.abs(minutes - warnedMinutes) < 5) return;
    warnedMinutes = minutes;
    const state = minutes === 0 ? "right again" : `${Math.abs(minutes)} minutes ${minutes > 0 ? "ahead" : "behind"}`;
    logger.warn(`This machine's clock is ${state}, by GitHub's.`);
  };
}
