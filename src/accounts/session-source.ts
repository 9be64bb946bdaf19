/** Sessions from GitHub: an exchanged Copilot token, or in direct mode the GitHub token itself. */

import { asProxyError, ProxyError } from "../errors";
import type { Logger } from "../logger";
import { withTimeLimit } from "../net/time-limit";
import type { AccountShare, SharedSignIn } from "./account-share";
import { type CopilotUser, fetchCopilotUser, type GithubCaller } from "./github";
import { allowedModelHost, type Mode } from "./hosts";
import type { FreshSession, Session, Unavailable } from "./session";
import type { AccountStatus } from "./status";
import { type CopilotToken, exchangeToken } from "./token-exchange";

export type { FreshSession, Session, Unavailable } from "./session";

export interface SessionSource {
  /**
   * @param refused The token that the model host has refused.
   * @throws ProxyError `no_account` or `permission` after GitHub has refused the account; its status is then `failed`.
   */
  fetch(refused?: string): Promise<FreshSession | Unavailable>;
  /** Asks GitHub for the model host of a direct session. @throws ProxyError if GitHub cannot be asked. */
  relearnDirectHost(): Promise<FreshSession>;
}

export interface SessionSourceOptions {
  githubToken: string;
  mode: Mode;
  caller: GithubCaller;
  /** The answer of the quota endpoint, which may be some seconds old. @throws ProxyError if GitHub cannot be asked */
  copilotUser(): Promise<CopilotUser>;
  status: AccountStatus;
  id(): string;
  logger: Logger;
  /** Wall clock, ms. */
  now(): number;
  /** Where the session is shared with other servers. */
  share?: Pick<AccountShare, "session">;
  /** As other servers know the account. */
  identity: SharedSignIn;
}

/** Milliseconds that a request waits for the name of the host, and for which the general host then serves. */
const hostTimeoutMs = 5_000;
const unknownHostMs = 5 * 60_000;

export function openSessionSource(options: SessionSourceOptions): SessionSource {
  const { githubToken, mode, caller, copilotUser, status, id, logger, now, share, identity } = options;
  const { hosts } = caller;
  const warnOfDrift = driftWarning(logger);
  /** The model host that GitHub named in direct mode. */
  let directHost: string | undefined;

  function direct(): FreshSession {
    const baseUrl = hosts.copilotOverride ?? directHost ?? hosts.copilot;
    const forever = Number.POSITIVE_INFINITY;
    return { session: { token: githubToken, baseUrl, mode: "direct" }, freshFor: forever, lifetime: forever };
  }

  /**
   * The quota endpoint names the host of the account's plan: a Business seat gets 403 for every model at the general one
   * (opencode, 2026-09). While GitHub cannot be asked, the general host is tried.
   */
  async function atOwnHost(): Promise<FreshSession> {
    if (hosts.copilotOverride !== undefined || directHost !== undefined) return direct();
    try {
      const { endpoint } = await withTimeLimit(copilotUser(), hostTimeoutMs, throwSlowHost);
      directHost = endpoint ?? hosts.copilot;
      return direct();
    } catch (thrown) {
      if (status.state.name === "failed") throw status.unusableError();
      logger.debug(`${id()}: GitHub did not name its model host. ${asProxyError(thrown).message}`);
      return { ...direct(), freshFor: unknownHostMs };
    }
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

  async function exchange(): Promise<FreshSession | Unavailable> {
    const result = await exchangeToken(caller, githubToken);
    if (result.outcome === "token") return exchanged(result.copilot);
    if (result.outcome === "retry") return result;
    if (result.outcome === "direct") {
      logger.info(`${id()}: GitHub does not exchange the token of this sign-in; it is used directly.`);
      return atOwnHost();
    }
    status.enter({ name: "failed", reason: result.reason, suspended: result.abuse });
    throw status.unusableError();
  }

  /** Others can write to what servers share, and a token goes to no host that GitHub could not have named. */
  const hostOf = ({ baseUrl }: Session): string | undefined =>
    hosts.copilotOverride ?? (baseUrl === hosts.copilot ? baseUrl : allowedModelHost(baseUrl, hosts));

  return {
    async fetch(refused) {
      if (mode === "direct") return atOwnHost();
      if (!share) return exchange();
      const fresh = await share.session(identity, refused, exchange);
      if (!("session" in fresh)) return fresh;
      logger.conceal(fresh.session.token);
      const baseUrl = hostOf(fresh.session);
      if (baseUrl !== undefined) return { ...fresh, session: { ...fresh.session, baseUrl } };
      const stated = fresh.session.baseUrl.slice(0, 200);
      logger.warn(
        `${id()}: The database names ${stated} as the model host; tokens are not sent there, and a new one is used.`,
      );
      return exchange();
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

function throwSlowHost(): never {
  throw new ProxyError("timeout", `It took longer than ${hostTimeoutMs / 1000} s.`);
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
