/** One active account: its sessions, its quota, and whether it can serve. GitHub is asked only when something is needed. */
import { asProxyError, type ProxyError } from "../errors";
import type { Logger } from "../logger";
import { type AccountShare, type FoundOut, type SharedSignIn, signInOf } from "./account-share";
import type { ShownState } from "./account-state";
import { accountKeyOf, type SavedAccount } from "./account-store";
import { CopilotSession } from "./copilot-session";
import { fetchLogin, type GithubCaller } from "./github";
import type { Hosts, Mode } from "./hosts";
import { isUsedUp, type Quota, type QuotaForm } from "./quota";
import { openQuotaTracker } from "./quota-tracker";
import type { Session } from "./session";
import { type AccountState, type LimitedModel, openAccountStatus } from "./status";

// Types of the interface below.
export type { AccountState, Session, ShownState };

export interface Account extends Pick<CopilotSession, "refresh" | "renew" | "refreshModelHost"> {
  /** A valid session. @throws ProxyError as {@link CopilotSession.get} */
  session(): Promise<Session>;
  /** The session, if it is known; undefined if GitHub has to be asked, or the account cannot serve. */
  presentSession(): Session | undefined;
  /** The login; `temporary` until the login of a temporary account is known. */
  readonly id: string;
  /**
   * Identifies the account for good: `github.com/octo`, or `github.com/(temporary)`. The same login on another host is
   * another person. A temporary account is counted apart, even after its login is known.
   */
  readonly key: string;
  /** `github.com`, or a tenant's domain. */
  readonly host: string;
  /** The name of the sign-in app, or a client id; null for a temporary account. */
  readonly app: string | null;
  readonly temporary: boolean;
  /** The id of the member who signed it in; null for the owner's. Only this person's requests may use it. */
  readonly member: string | null;
  readonly state: ShownState;
  /** The state for one model, which may be cooling down by itself. @param premium Whether the model costs quota; true by default. */
  stateFor(model: string | undefined, premium?: boolean): ShownState;
  /** The models that cool down by themselves. */
  readonly limitedModels: LimitedModel[];
  /**
   * At most 45 s old; the last known numbers, marked stale, if GitHub cannot be asked.
   * @throws ProxyError if GitHub cannot be asked and no numbers are known
   */
  quota(): Promise<Quota>;
  /** The last known quota, without asking GitHub. */
  readonly knownQuota: Quota | undefined;
  /** From the headers of a model's answer. */
  learnQuota(headers: Headers): void;
  /** From `copilot_quota_snapshots` of a stream. */
  learnQuotaSnapshots(snapshots: unknown): void;
  /**
   * Sets the state that an answer of the upstream implies. A missing `until` becomes the quota's reset or the default of
   * the state. `exhausted` ends at a known reset at the latest.
   * @param model With `cooling`: only this model cools down.
   */
  mark(state: AccountState, model?: string): void;
  /** Takes what another server has found out with the same sign-in. */
  adopt(account: SharedSignIn, found: FoundOut): void;
  /** As other servers know it. */
  readonly identity: SharedSignIn;
}

/** A token given at start. Its login is not known yet, and nothing is saved. */
export interface TemporaryAccount {
  temporary: true;
  githubToken: string;
}

export type InspectedAnswer = "token" | "user" | QuotaForm;

export interface AccountOptions {
  hosts: Hosts;
  version: string;
  logger: Logger;
  /** Wall clock, ms. */
  now?: () => number;
  /** Monotonic clock, ms. */
  monotonic?: () => number;
  /** 0 … 1, for jitter. */
  random?: () => number;
  /** The error for every request while an account of the same person is suspended. */
  stopped?: () => ProxyError | undefined;
  /** Whether paid overage may be used even if GitHub permits it; read at each use. */
  neverOverage?: () => boolean;
  /** Whether the owner has paused the account of this key; read at each use. */
  paused?: (key: string) => boolean;
  /** Milliseconds one call to GitHub may take; 15 s. */
  timeoutMs?: number;
  /** Called with each answer that numbers are read from: with its kind, and the account's key. */
  inspect?(where: InspectedAnswer, key: string, answer: unknown): void;
  /** The other servers of a team; they do not know a temporary account. */
  share?: AccountShare;
}

/** Makes no call yet. */
export function openAccount(saved: SavedAccount | TemporaryAccount, options: AccountOptions): Account {
  const { hosts, version, logger, now = Date.now, monotonic = () => performance.now(), random = Math.random } = options;
  const { githubToken } = saved;
  const temporary = "temporary" in saved;
  // The kind of a temporary token is unknown: an exchange is tried, and the token is used directly if GitHub declines.
  const mode: Mode = temporary ? "exchange" : saved.mode;
  logger.conceal(githubToken);
  const key = temporary ? `${hosts.name}/(temporary)` : accountKeyOf({ host: hosts.name, login: saved.login });
  const share = temporary ? undefined : options.share;
  const inspect = (where: InspectedAnswer, answer: unknown) => options.inspect?.(where, key, answer);
  const caller: GithubCaller = { hosts, version, timeoutMs: options.timeoutMs, answered: inspect };
  const identity = { key, signIn: share ? signInOf(githubToken) : "" };

  const login = openLogin({
    known: temporary ? undefined : saved.login,
    fetch: () => fetchLogin(caller, githubToken, mode),
    failed: (thrown) => status.noteError(thrown),
    logger,
    monotonic,
  });
  const id = () => login.known ?? "temporary";
  const changed = () => share?.publish(identity, { state: status.shared });
  const status = openAccountStatus({
    id,
    logger,
    now,
    afterCooldown: () => quota.state(),
    changed,
    isTemporary: temporary,
  });
  const stopped = options.stopped ?? (() => undefined);
  const copilot: CopilotSession = new CopilotSession({
    identity,
    share,
    githubToken,
    mode,
    caller,
    copilotUser: () => quota.user(),
    status,
    stopped,
    id,
    logger,
    now,
    monotonic,
    random,
  });

  const quota = openQuotaTracker({
    caller,
    githubToken,
    mode: () => copilot.mode,
    status,
    id,
    now,
    fetched: (user) => login.learn(user.login),
    inspect,
    learned: (found) => share?.publish(identity, { quota: found }),
  });

  const asConfigured = (state: AccountState): ShownState => {
    // A suspension stops all accounts: a pause must not hide it.
    if (options.paused?.(key) && !state.suspended) return pausedState;
    return (options.neverOverage?.() && overageState(state, quota.known, now())) || state;
  };

  function session(): Promise<Session> {
    login.fetchInBackground(); // beside the first exchange, which does not wait for it
    return copilot.get();
  }

  const presentSession = () => (login.known === undefined ? undefined : copilot.present());

  function mark(next: AccountState, model?: string): void {
    // A late answer to an earlier request does not end a failure that a person must resolve.
    if (status.isBackingOff && (next.name !== "failed" || status.state.suspended)) return;
    const resetAt = quota.known?.resetAt ?? 0;
    const endsAtReset = next.name === "exhausted" && !next.untilRaised;
    const reset = endsAtReset && resetAt > now() ? resetAt : undefined;
    if (model !== undefined && next.name === "cooling") status.coolDownModel(model, next);
    // The quota is available again at its reset, whatever the answer says.
    else status.enter({ ...next, until: reset === undefined ? next.until : Math.min(next.until ?? reset, reset) });
  }

  return {
    get id() {
      return id();
    },
    key,
    host: hosts.name,
    app: temporary ? null : saved.app,
    temporary,
    member: (temporary ? undefined : saved.member) ?? null,
    get state() {
      return asConfigured(status.state);
    },
    get limitedModels() {
      return status.limitedModels;
    },
    stateFor: (model, premium) => asConfigured(status.stateFor(model, premium)),
    session,
    presentSession,
    refresh: (rejected) => copilot.refresh(rejected),
    renew: (rejected) => copilot.renew(rejected),
    refreshModelHost: (rejected) => copilot.refreshModelHost(rejected),
    quota: quota.current,
    get knownQuota() {
      return quota.known;
    },
    learnQuota: quota.learnHeaders,
    learnQuotaSnapshots: quota.learnSnapshots,
    mark,
    identity,
    adopt({ signIn }, { state, quota: numbers }) {
      if (signIn !== identity.signIn) return;
      if (numbers) quota.adopt(numbers);
      if (state) status.adopt(state);
    },
  };
}

interface LoginOptions {
  known: string | undefined;
  fetch(): Promise<string>;
  failed(thrown: unknown): void;
  logger: Logger;
  /** ms */
  monotonic(): number;
}

/** The login of an account; that of a temporary one is fetched, once a minute at most. */
function openLogin({ known, fetch, failed, logger, monotonic }: LoginOptions) {
  let nextAttempt = Number.NEGATIVE_INFINITY;

  async function fetchNow(): Promise<void> {
    nextAttempt = monotonic() + 60_000;
    try {
      known ??= await fetch();
      logger.info(`The temporary account is ${known}.`);
    } catch (thrown) {
      failed(thrown);
      logger.debug(`The login of the temporary account is not known yet. ${asProxyError(thrown).message}`);
    }
  }

  return {
    get known() {
      return known;
    },
    learn(login: string | undefined): void {
      known ??= login;
    },
    fetchInBackground(): void {
      if (known === undefined && monotonic() >= nextAttempt) void fetchNow();
    },
  };
}

export const pausedState: ShownState = {
  name: "paused",
  reason: "It is paused, in the config or on the page Accounts.",
};

/** With `neverOverage`, an account in overage counts as exhausted. Undefined if it is not in overage. */
function overageState(state: AccountState, quota: Quota | undefined, now: number): AccountState | undefined {
  if (state.name !== "ready" || !quota?.overage || !isUsedUp(quota)) return undefined;
  if (quota.resetAt !== null && quota.resetAt <= now) return undefined;
  return {
    name: "exhausted",
    until: quota.resetAt ?? undefined,
    reason: "Its included quota is used up, and the config forbids paid overage (neverOverage).",
    alsoFree: quota.unit === "chat",
  };
}
