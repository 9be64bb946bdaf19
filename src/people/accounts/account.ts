/** One active account: its Copilot token, its quota, and whether it can serve. GitHub is asked only when something is needed. */
import { asProxyError, type ProxyError } from "../../lib/errors";
import type { Logger } from "../../lib/logger";
import { type AccountState, isSuspended, type NewState, type ShownState } from "./account-state";
import {
  type AccountKind,
  accountKeyOf,
  kindOf,
  type SavedAccount,
  secretOf,
  type TemporaryAccount,
} from "./account-store";
import { type AccountSync, type AccountUpdate, type SharedSignIn, signInOf } from "./account-sync";
import type { CopilotToken } from "./copilot-token";
import { fetchLogin, type GithubAnswer, type GithubCaller, getFromGithub } from "./github";
import { type GithubTokens, openGithubTokens } from "./github-tokens";
import type { Hosts, Mode } from "./hosts";
import { isUsedUp, type Quota, snapshotHeaders } from "./quota";
import { QuotaTracker } from "./quota-tracker";
import { AccountStatus, type LimitedModel } from "./status";
import { TokenSource } from "./token-source";

export type InspectedAnswer = "token" | "user" | "answers" | "quota headers";

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
  /** The error for every request of a person while an account of theirs is suspended. @param member Null for the owner. */
  suspensionError?: (member: string | null) => ProxyError | undefined;
  /** Whether paid overage may be used even if GitHub permits it; read at each use. */
  neverOverage?: () => boolean;
  /** Whether its person has paused the account of this key; read at each use. @param member Null for the owner's. */
  paused?: (key: string, member: string | null) => boolean;
  /** Milliseconds one call to GitHub may take; 15 s. */
  timeoutMs?: number;
  /** Called with each answer that numbers are read from: with its kind, and the account's key. */
  inspect?(where: InspectedAnswer, key: string, answer: unknown): void;
  /** The other servers of a team; they do not know a temporary account. */
  sync?: AccountSync;
}

const ready: AccountState = { name: "ready" };

export class Account {
  /**
   * Identifies the account for good: `github.com/octo`, or `github.com/(temporary)`. The same login on another host is
   * another person. A temporary account is counted apart, even after its login is known.
   */
  readonly key: string;
  /** The id of the member who signed it in; null for the owner's. Only this person's requests may use it. */
  readonly member: string | null;
  readonly #saved: SavedAccount | TemporaryAccount;
  readonly #options: AccountOptions;
  /** Made at the first use: most accounts of a large team are only listed on this server. */
  #parts: AccountParts | undefined;
  #signIn: string | undefined;

  /** Makes no call yet. @param options The same object may serve all accounts of a host. */
  constructor(saved: SavedAccount | TemporaryAccount, options: AccountOptions) {
    this.#saved = saved;
    this.#options = options;
    const host = options.hosts.name;
    this.member = "temporary" in saved ? null : (saved.member ?? null);
    // A team has thousands of members: what hides their tokens is made at the first use too.
    if (this.member === null && this.kind !== "copilot-cli") options.logger.conceal(secretOf(saved));
    this.key = "temporary" in saved ? `${host}/(temporary)` : accountKeyOf({ host, login: saved.login });
  }

  /** The login; `temporary` until the login of a temporary account is known. */
  get id(): string {
    return "temporary" in this.#saved ? (this.#parts?.login.known ?? "temporary") : this.#saved.login;
  }
  /** `github.com`, or a tenant's domain. */
  get host(): string {
    return this.#options.hosts.name;
  }
  /** The name of the sign-in app, or a client id; of an App's installation, its id; null for a temporary account of a token. */
  get app(): string | null {
    return "app" in this.#saved ? this.#saved.app : null;
  }
  get kind(): AccountKind {
    return kindOf(this.#saved);
  }
  get temporary(): boolean {
    return "temporary" in this.#saved;
  }
  /** As other servers know it. */
  get identity(): SharedSignIn {
    this.#signIn ??= this.#sync ? signInOf(secretOf(this.#saved)) : "";
    return { key: this.key, signIn: this.#signIn };
  }

  get state(): ShownState {
    return this.#asConfigured(this.#parts?.status.state ?? ready);
  }
  /** The state for one model, which may be cooling down by itself. @param premium Whether the model costs quota; true by default. */
  stateFor(model: string | undefined, premium?: boolean): ShownState {
    return this.#asConfigured(this.#parts?.status.stateFor(model, premium) ?? ready);
  }
  /** GitHub has suspended it. */
  get isSuspended(): boolean {
    return this.#parts !== undefined && isSuspended(this.#parts.status.state);
  }
  /** Its person has paused it. A suspension stops all accounts: a pause does not hide it. */
  get isPaused(): boolean {
    return this.#options.paused?.(this.key, this.member) === true && !this.isSuspended;
  }
  /** The models that cool down by themselves. */
  get limitedModels(): LimitedModel[] {
    return this.#parts?.status.limitedModels ?? [];
  }

  /** A valid token. @throws ProxyError as {@link TokenSource.get} */
  copilotToken(): Promise<CopilotToken> {
    const { login, tokens, status } = this.#open();
    status.settle();
    login.fetchInBackground(); // beside the first exchange, which does not wait for it
    return tokens.get();
  }
  /** The token, if it is known; undefined if GitHub has to be asked, or the account cannot serve. */
  presentCopilotToken(): CopilotToken | undefined {
    return this.#parts?.login.isSettled ? this.#parts.tokens.present() : undefined;
  }
  /** As {@link TokenSource.renew} */
  renewToken(rejected: CopilotToken): Promise<CopilotToken> {
    return this.#open().tokens.renew(rejected);
  }
  /** As {@link TokenSource.renewOrAskHost} */
  renewTokenOrHost(rejected: CopilotToken): Promise<CopilotToken> {
    return this.#open().tokens.renewOrAskHost(rejected);
  }
  /** As {@link TokenSource.relearnHost} */
  relearnHost(rejected: CopilotToken): Promise<CopilotToken> {
    return this.#open().tokens.relearnHost(rejected);
  }

  /**
   * At most 45 s old; the last known numbers, marked stale, if GitHub cannot be asked.
   * @throws ProxyError if GitHub cannot be asked and no numbers are known
   */
  quota(): Promise<Quota> {
    return this.#open().quota.current();
  }
  /** As {@link QuotaTracker.lookAgain} */
  lookAgain(): Promise<void> {
    return this.#open().quota.lookAgain();
  }
  /** The last known quota, without asking GitHub. */
  get knownQuota(): Quota | undefined {
    return this.#parts ? this.#parts.quota.known : this.#sync?.cached(this.identity).quota;
  }
  /** From the headers of a model's answer. */
  learnQuota(headers: Headers): void {
    this.#open().quota.learnHeaders(headers);
  }

  /**
   * A GET of GitHub's REST host, beside all that the account's state follows from.
   * @param token Instead of the account's own sign-in. @throws ProxyError `upstream`, `timeout`; as {@link GithubTokens.get}
   */
  async askGithub(path: string, apiVersion: string, token?: string): Promise<GithubAnswer> {
    const { hosts, version, timeoutMs } = this.#options;
    const shown = token ?? (await this.#open().github.get()).token;
    return getFromGithub({ hosts, version, timeoutMs }, path, shown, "direct", apiVersion);
  }

  /**
   * Sets the state that an answer of the upstream implies. A missing `until` becomes the quota's reset or the default of
   * the state. `exhausted` ends at a known reset at the latest.
   * @param model With `cooling`: only this model cools down.
   */
  setState(next: NewState, model?: string): void {
    const { status, quota, now } = this.#open();
    // A late answer to an earlier request does not end a failure that a person must resolve.
    if (status.isBackingOff && (next.name !== "failed" || this.isSuspended)) return;
    if (model !== undefined && next.name === "cooling") status.coolDownModel(model, next);
    else if (next.name !== "exhausted" || next.untilRaised) status.enter(next);
    else {
      // The quota is available again at its reset, whatever the answer says.
      const resetAt = quota.known?.resetAt ?? 0;
      const until = resetAt > now() ? Math.min(next.until ?? resetAt, resetAt) : next.until;
      status.enter({ ...next, until });
    }
  }

  /** Takes what another server has found out with the same sign-in. */
  applyRemote({ signIn }: SharedSignIn, { state, quota }: AccountUpdate): void {
    if (signIn !== this.identity.signIn) return;
    // Numbers of a quota are looked up when somebody asks. What keeps requests off it counts at once.
    if (!this.#parts && !state && !(quota && isUsedUp(quota))) return;
    const parts = this.#open();
    if (quota) parts.quota.applyRemote(quota);
    if (state) parts.status.applyRemote(state);
  }

  /** A temporary account is not known to other servers. */
  get #sync(): AccountSync | undefined {
    return this.temporary ? undefined : this.#options.sync;
  }

  #asConfigured(state: AccountState): ShownState {
    if (this.isPaused) return pausedState;
    const { neverOverage, now = Date.now } = this.#options;
    return (neverOverage?.() && overageState(state, this.#parts?.quota.known, now())) || state;
  }

  #open(): AccountParts {
    if (this.#parts) return this.#parts;
    const sync = this.#sync;
    this.#parts = openParts(this, this.#saved, { ...this.#options, sync });
    if (sync) this.applyRemote(this.identity, sync.cached(this.identity));
    return this.#parts;
  }
}

/** What an account has once it is used. */
interface AccountParts {
  github: GithubTokens;
  login: ReturnType<typeof openLogin>;
  status: AccountStatus;
  tokens: TokenSource;
  quota: QuotaTracker;
  now(): number;
}

function openParts(
  { key, identity, member }: Account,
  saved: SavedAccount | TemporaryAccount,
  { sync, ...options }: AccountOptions,
): AccountParts {
  const { hosts, version, logger, now = Date.now, monotonic = () => performance.now(), random = Math.random } = options;
  const isTemporary = "temporary" in saved;
  // The kind of a temporary token is unknown: an exchange is tried, and the token is used directly if GitHub declines.
  const mode: Mode = isTemporary ? "exchange" : saved.mode;
  const inspect = (where: InspectedAnswer, answer: unknown) => options.inspect?.(where, key, answer);
  const caller: GithubCaller = { hosts, version, timeoutMs: options.timeoutMs, answered: inspect };
  const github = openGithubTokens(saved, caller, { logger, now, monotonic });
  const login = openLogin({
    known: isTemporary ? undefined : saved.login,
    // An installation is nobody that GitHub's endpoint for the person behind a token knows.
    fetch: github.kind === "person" ? async () => fetchLogin(caller, (await github.get()).token, mode) : undefined,
    failed: (thrown) => status.noteError(thrown),
    logger,
    monotonic,
  });
  const id = () => login.known ?? "temporary";
  const clocks = { now, monotonic, random };
  const status: AccountStatus = new AccountStatus({
    id,
    logger,
    ...clocks,
    refused: isTemporary ? "start" : github.kind === "copilot-cli" ? "cli" : "sign-in",
    afterCooldown: () => quota.state,
    changed: () => sync?.publish(identity, { state: status.shared }),
  });
  const tokens: TokenSource = new TokenSource({
    identity,
    sync,
    github,
    mode,
    caller,
    status,
    id,
    logger,
    ...clocks,
    copilotUser: () => quota.user(),
    suspensionError: () => options.suspensionError?.(member),
  });
  const quota = new QuotaTracker({
    caller,
    github,
    status,
    id,
    now,
    inspect(sent) {
      inspect("answers", { [snapshotHeaders]: sent });
      if (sent !== undefined) inspect("quota headers", sent);
    },
    mode: () => tokens.mode,
    fetched: (user) => login.learn(user.login),
    learned: sync && ((found) => sync.publish(identity, { quota: found })),
  });
  return { github, login, status, tokens, quota, now };
}

interface LoginOptions {
  known: string | undefined;
  /** Missing where there is none to be asked for. */
  fetch: (() => Promise<string>) | undefined;
  failed(thrown: unknown): void;
  logger: Logger;
  /** ms */
  monotonic(): number;
}

/** The login of an account; that of a temporary one is fetched, once a minute at most. */
function openLogin({ known, fetch, failed, logger, monotonic }: LoginOptions) {
  let nextAttempt = Number.NEGATIVE_INFINITY;

  async function fetchNow(fetch: () => Promise<string>): Promise<void> {
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
    /** It is known, or never will be. */
    get isSettled() {
      return known !== undefined || fetch === undefined;
    },
    learn(login: string | undefined): void {
      known ??= login;
    },
    fetchInBackground(): void {
      if (fetch && known === undefined && monotonic() >= nextAttempt) void fetchNow(fetch);
    },
  };
}

const pausedState: ShownState = {
  name: "paused",
  reason: "It is paused, in the config or on the page Accounts.",
};

/** With `neverOverage`, an account in overage counts as exhausted. Undefined if it is not in overage. */
function overageState(state: AccountState, quota: Quota | undefined, now: number): ShownState | undefined {
  if (state.name !== "ready" || !quota?.overage || !isUsedUp(quota)) return undefined;
  if (quota.resetAt !== null && quota.resetAt <= now) return undefined;
  return {
    name: "exhausted",
    until: quota.resetAt ?? undefined,
    reason: "Its included quota is used up, and the config forbids paid overage (neverOverage).",
    alsoFree: quota.unit === "chat",
  };
}
