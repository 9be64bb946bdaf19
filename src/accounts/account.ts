/** One account awake: its sessions, what is left of its quota, and whether it can serve. Nothing is asked before it is needed. */
import { asProxyError, ProxyError } from "../errors";
import type { Logger } from "../logger";
import type { SavedAccount } from "./account-store";
import { fetchCopilotUser, fetchLogin, type GithubCaller } from "./github";
import type { Hosts, Mode } from "./hosts";
import { learnFromHeaders, learnFromStream, type Quota, readQuota } from "./quota";
import type { Session } from "./session-source";
import { type AccountState, openAccountStatus } from "./status";
import { openTokenManager, type TokenManager } from "./token-manager";

// The two types an account's face is made of.
export type { AccountState, Session };

export interface Account extends Pick<TokenManager, "session" | "refresh" | "relearnHost"> {
  /** The login; `temporary` until the login of a temporary account is known. */
  readonly id: string;
  /**
   * Which account it is, whatever happens meanwhile: `github.com/octo`, or `github.com/(temporary)`. The same login is another
   * person on another host, and a temporary account is booked apart, also before its login is known.
   */
  readonly key: string;
  /** `github.com`, or a tenant's domain. */
  readonly host: string;
  readonly temporary: boolean;
  readonly state: AccountState;
  /** As it is for one model, which may have to rest while the others go on; `premium` unless it costs no quota. */
  stateFor(model: string | undefined, premium?: boolean): AccountState;
  /**
   * What is left, at most 45 s old; the last known numbers, marked stale, when GitHub cannot be asked.
   * @throws ProxyError when it cannot be asked and nothing is known
   */
  quota(): Promise<Quota>;
  /** What is left as far as we know, without asking. */
  readonly knownQuota: Quota | undefined;
  /** From the headers of a model's answer. */
  learnQuota(headers: Headers): void;
  /** From `copilot_quota_snapshots` of a stream. */
  learnQuotaSnapshots(snapshots: unknown): void;
  /**
   * What an answer said about the account. A missing `until` is filled in: the quota's reset, or a usual time. No
   * `exhausted` outlasts a known reset.
   * @param model With `cooling`: only this model rests.
   */
  mark(state: AccountState, model?: string): void;
}

/** A token given at start: its owner is not known yet, and nothing of it is saved. */
export interface TemporaryAccount {
  temporary: true;
  githubToken: string;
}

export interface AccountOptions {
  hosts: Hosts;
  version: string;
  logger: Logger;
  /** Wall clock, ms. */
  now?: () => number;
  /** A clock that never jumps, ms. */
  monotonic?: () => number;
  /** 0 … 1, for jitter. */
  random?: () => number;
  /** Why no account may be used at all now, where one of them is blocked. */
  stopped?: () => ProxyError | undefined;
  /** Milliseconds one call to GitHub may take; 15 s. */
  timeoutMs?: number;
}

/** Asks nobody anything yet. */
export function openAccount(saved: SavedAccount | TemporaryAccount, options: AccountOptions): Account {
  const { hosts, version, logger, now = Date.now, monotonic = () => performance.now(), random = Math.random } = options;
  const { githubToken } = saved;
  const temporary = "temporary" in saved;
  // A token of unknown origin is offered for exchange; where GitHub declines, it is used as it is.
  const mode: Mode = temporary ? "exchange" : saved.mode;
  const caller: GithubCaller = { hosts, version, timeoutMs: options.timeoutMs };
  logger.conceal(githubToken);

  let login: string | undefined = temporary ? undefined : saved.login;
  let nextNaming = Number.NEGATIVE_INFINITY;
  let quota: Quota | undefined;
  let asked: { at: number; answer: Promise<void> } | undefined;

  const id = () => login ?? "temporary";
  const status = openAccountStatus({ id, logger, now, afterCooldown: () => quotaState(quota) });
  const stopped = options.stopped ?? (() => undefined);
  const tokenManager = openTokenManager({
    githubToken,
    mode,
    caller,
    status: status,
    stopped,
    id,
    logger,
    now,
    monotonic,
    random,
  });

  function session(): Promise<Session> {
    if (login === undefined && monotonic() >= nextNaming) void learnLogin();
    return tokenManager.session();
  }

  /** Beside the first exchange, which does not wait for it. */
  async function learnLogin(): Promise<void> {
    nextNaming = monotonic() + 60_000;
    try {
      login ??= await fetchLogin(caller, githubToken, mode);
      logger.info(`The temporary account is ${login}.`);
    } catch (thrown) {
      status.noteError(thrown);
      logger.debug(`The login of the temporary account is not known yet. ${asProxyError(thrown).message}`);
    }
  }

  async function currentQuota(): Promise<Quota> {
    if (status.isBackingOff && quota) return { ...quota, stale: true };
    if (status.isBackingOff) throw status.unusableError();
    if (!asked || Math.abs(now() - asked.at) >= 45_000) asked = { at: now(), answer: askQuota() };
    try {
      await asked.answer;
      return quota!;
    } catch (thrown) {
      asked = undefined;
      const error = asProxyError(thrown);
      status.noteError(error);
      if (quota) return { ...quota, stale: true };
      throw new ProxyError(error.kind, `${id()}: ${error.message}`, error.details);
    }
  }

  async function askQuota(): Promise<void> {
    const user = await fetchCopilotUser(caller, githubToken, tokenManager.mode);
    login ??= user.login;
    learn(readQuota(user.answer, now()), true);
  }

  function learn(fresh: Quota | undefined, authoritative = false): void {
    if (!fresh) return;
    const { state } = status;
    const before = quotaState(quota);
    const next = quotaState(fresh);
    quota = fresh;
    if (state.name === "ready" && next.name === "exhausted") status.enter(next);
    // Only the quota endpoint overrules what a refusal said, and only when it counts something.
    const counted = fresh.unlimited || fresh.overage || (fresh.remaining ?? 0) > 0;
    if (state.name === "exhausted" && counted && (authoritative || state.reason === before.reason)) status.enter(next);
    if (state.name === "cooling" && state.doubtful && authoritative) status.enter(next);
  }

  /** What the quota alone makes of the account. */
  function quotaState(known: Quota | undefined): AccountState {
    if (!known?.exhausted || (known.resetAt !== null && known.resetAt <= now())) return { name: "ready" };
    const { unit, resetAt } = known;
    return {
      name: "exhausted",
      until: resetAt ?? undefined,
      reason: `Its ${quotaNames[unit]} used up.`,
      alsoFree: unit === "chat",
    };
  }

  function mark(next: AccountState, model?: string): void {
    // A late answer to an earlier request does not heal what a person must mend.
    if (status.isBackingOff && (next.name !== "failed" || status.state.suspended)) return;
    const reset = next.name === "exhausted" && quota?.resetAt && quota.resetAt > now() ? quota.resetAt : undefined;
    if (model !== undefined && next.name === "cooling") status.coolDownModel(model, next);
    // A quota is whole again at its reset, whatever an answer said.
    else status.enter({ ...next, until: reset === undefined ? next.until : Math.min(next.until ?? reset, reset) });
  }

  return {
    get id() {
      return id();
    },
    key: `${hosts.name}/${temporary ? "(temporary)" : saved.login.toLowerCase()}`,
    host: hosts.name,
    temporary,
    get state() {
      return status.state;
    },
    stateFor: status.stateFor,
    session,
    refresh: tokenManager.refresh,
    relearnHost: tokenManager.relearnHost,
    quota: currentQuota,
    get knownQuota() {
      return quota;
    },
    learnQuota: (headers) => learn(learnFromHeaders(quota, headers, now())),
    learnQuotaSnapshots: (snapshots) => learn(learnFromStream(quota, snapshots, now())),
    mark,
  };
}

const quotaNames = {
  premium: "premium requests are",
  credits: "AI credits are",
  chat: "chat messages are",
  unknown: "quota is",
};
