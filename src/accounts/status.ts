/** The state of an account, for all models or for one, and when it ends. Each change is logged. */
import { asProxyError, ProxyError } from "../errors";
import type { Logger } from "../logger";
import type { SharedState } from "./account-share";
import { type AccountState, canServe } from "./account-state";
import { revoked } from "./github";
import { isSuspension, suspensionError } from "./suspension";

/** A model that GitHub does not let this account use for now. */
export interface LimitedModel {
  model: string;
  /** ms timestamp */
  until: number;
  /** As in the error that a request gets. */
  reason: string;
}

export interface AccountStatusOptions {
  id(): string;
  logger: Logger;
  /** Wall clock, ms. */
  now(): number;
  /** Monotonic clock, ms. */
  monotonic(): number;
  /** The state to enter when `cooling` ends. */
  afterCooldown(): AccountState;
  /** Called when this server has found out another state. */
  changed?(): void;
  /** Its token was given at the start: nobody signed in. */
  isTemporary?: boolean;
}

type CoolingModel = AccountState & { until: number };

const ready: AccountState = { name: "ready" };

const minute = 60_000;
const defaultMs = { cooling: minute, exhausted: 60 * minute, failed: 5 * minute };
/** A refused request costs nothing, so that it may tell whether a budget was raised. */
const untilRaisedMs = 10 * minute;
const neverEnds = Number.POSITIVE_INFINITY;
const descriptions = { cooling: "is cooling down", exhausted: "is exhausted", failed: "has failed" };

const tokenRefused =
  "GitHub does not accept the token that was given at the start, with --github-token or DRAGOMAN_GITHUB_TOKEN: it is wrong, expired or revoked. Start again with another token.";

const noReason = "no reason was given.";

export class AccountStatus {
  readonly #options: AccountStatusOptions;
  #entered: AccountState = ready;
  /** When a cooldown ends by the monotonic clock: a wall clock that is set back does not prolong it. */
  #coolUntil = 0;
  readonly #models = new Map<string, CoolingModel>();

  constructor(options: AccountStatusOptions) {
    this.#options = options;
  }

  /** The current state. `cooling` and `exhausted` end when their time is over, `failed` does not. */
  get state(): AccountState {
    const { name, until } = this.#entered;
    const { now, monotonic, afterCooldown } = this.#options;
    if (until === undefined || name === "ready" || name === "failed") return this.#entered;
    if (name === "cooling") return until <= now() || this.#coolUntil <= monotonic() ? afterCooldown() : this.#entered;
    return until <= now() ? ready : this.#entered;
  }

  /** The state for one model, which may be cooling down by itself. @param premium Whether the model costs quota; true by default. */
  stateFor(model: string | undefined, premium = true): AccountState {
    const account = this.state;
    const cooling = model === undefined || account.name === "failed" ? undefined : this.#coolingOf(model);
    return cooling && (canServe(account, premium) || cooling.until > (account.until ?? 0)) ? cooling : account;
  }

  /** The models that cool down by themselves. */
  get limitedModels(): LimitedModel[] {
    return this.#cooling().map(([model, { until, reason = noReason }]) => ({ model, until, reason }));
  }

  /** The account has failed, and it is too early to ask GitHub again. */
  get isBackingOff(): boolean {
    return this.#entered.name === "failed" && this.#options.now() < (this.#entered.until ?? 0);
  }

  /** As others are to know it. */
  get shared(): SharedState {
    return { account: this.state, models: Object.fromEntries(this.#cooling()) };
  }

  /** Logs that a state has ended by itself. Others know its end too, so it is not reported. */
  settle(): void {
    if (this.state !== this.#entered) this.#become(this.state);
  }

  /** A missing `until` gets the default of the state. A suspended account never leaves its state: only a person ends that. */
  enter(next: AccountState, cause?: unknown): void {
    const before = this.#entered;
    this.#become(next, cause);
    const state = this.#entered;
    // Whether GitHub can be reached may differ between servers.
    if (state !== before && !state.outage && !(before.outage && state.name === "ready")) this.#options.changed?.();
  }

  /** Only this model cools down; the account serves the others. */
  coolDownModel(model: string, next: AccountState): void {
    this.#becomeCooling(model, next);
    this.#options.changed?.();
  }

  /** Fails the account if the error concerns the account itself: a suspension, or a sign-in that GitHub no longer accepts. */
  noteError(thrown: unknown): void {
    const { details, message } = asProxyError(thrown);
    const suspended = isSuspension(thrown);
    if (suspended || details.code === "sign_in_revoked") this.enter({ name: "failed", reason: message, suspended });
  }

  /** Enters what another server has found out. */
  applyRemote({ account, models }: SharedState): void {
    const now = this.#options.now();
    const isOver = account.until !== undefined && account.until <= now && account.name !== "failed";
    if (!isOver && !Bun.deepEquals(account, this.#entered)) this.#become(account);
    for (const [model, cooling] of Object.entries(models))
      if ((cooling.until ?? 0) > now) this.#becomeCooling(model, cooling);
  }

  /** Why the account cannot serve, as an error. */
  unusableError(): ProxyError {
    const { suspended, reason, until = 0, outage } = this.#entered;
    const id = this.#options.id();
    if (suspended) return suspensionError(`${id} is blocked: ${reason}`);
    const wait = Math.max(1, Math.ceil((until - this.#options.now()) / 1000));
    return new ProxyError("no_account", `${id} cannot serve: ${reason ?? "no reason is known."}`, {
      headers: outage ? { "retry-after": String(wait) } : {},
    });
  }

  #become(next: AccountState, cause?: unknown): void {
    const before = this.#entered;
    if (before.suspended) return;
    const { logger, isTemporary, now, monotonic } = this.#options;
    const given = isTemporary && next.reason === revoked ? tokenRefused : next.reason;
    const reason = given && logger.scrub(given);
    const until = next.name === "ready" ? undefined : (next.until ?? this.#endOf(next.name, next));
    const state: AccountState = until === undefined ? ready : { ...next, reason, until };
    this.#entered = state;
    this.#coolUntil = monotonic() + (until ?? 0) - now();
    if (before.name !== state.name || before.reason !== state.reason || state.suspended) this.#log(cause);
  }

  #endOf(name: keyof typeof defaultMs, { suspended, untilRaised }: AccountState): number {
    if (suspended) return neverEnds;
    return this.#options.now() + (untilRaised ? untilRaisedMs : defaultMs[name]);
  }

  #becomeCooling(model: string, next: AccountState): void {
    const { id, logger, now } = this.#options;
    const isCooling = this.#coolingOf(model) !== undefined;
    const until = next.until ?? now() + defaultMs.cooling;
    const reason = next.reason && logger.scrub(next.reason);
    this.#models.set(model, { name: "cooling", until, reason });
    if (!isCooling)
      logger.warn(`${id()} is cooling down for ${model} until ${new Date(until).toISOString()}: ${reason ?? noReason}`);
  }

  #coolingOf(model: string): CoolingModel | undefined {
    const cooling = this.#models.get(model);
    return cooling && cooling.until > this.#options.now() ? cooling : undefined;
  }

  #cooling(): [string, CoolingModel][] {
    return [...this.#models].filter(([, { until }]) => until > this.#options.now());
  }

  #log(cause: unknown): void {
    const { id, logger } = this.#options;
    const { name, reason, until, suspended, untilRaised } = this.#entered;
    if (name === "ready") {
      logger.info(`${id()} is ready again.`);
      return;
    }
    const hasEnd = name !== "failed" && !untilRaised && until !== undefined;
    const end = hasEnd ? ` until ${new Date(until).toISOString()}` : "";
    const sentence = `${id()} ${descriptions[name]}${end}: ${reason ?? noReason}`;
    const line = suspended
      ? `${sentence.slice(0, 400)} EVERYTHING HAS STOPPED: no account is used until you act.`
      : sentence;
    if (name === "failed") logger.error(line, cause);
    else logger.warn(line, cause);
  }
}
