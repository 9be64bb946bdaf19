/** The state of an account, for all models or for one, and when it ends. Each change is logged. */
import { asProxyError, ProxyError } from "../../lib/errors";
import { minuteMs } from "../../lib/format";
import type { Logger } from "../../lib/logger";
import {
  type AccountState,
  type Cooling,
  canServe,
  endOf,
  isSuspended,
  type NewState,
  needsPerson,
  reasonOf,
} from "./account-state";
import type { SharedState } from "./account-sync";
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

interface AccountStatusOptions {
  id(): string;
  logger: Logger;
  /** Wall clock, ms. */
  now(): number;
  /** Monotonic clock, ms. */
  monotonic(): number;
  /** The state to enter when `cooling` ends. */
  afterCooldown(): NewState;
  /** Called when this server has found out another state. */
  changed?(): void;
  /** Where its token is from, which says what to do if GitHub does not accept it any more. */
  refused?: keyof typeof refusedTokens;
}

const ready = { name: "ready" } as const;

const defaultMs = { cooling: minuteMs, exhausted: 60 * minuteMs, failed: 5 * minuteMs };
/** A refused request costs nothing, so that it may tell whether a budget was raised. */
const untilRaisedMs = 10 * minuteMs;
const neverEnds = Number.POSITIVE_INFINITY;
const descriptions = { cooling: "is cooling down", exhausted: "is exhausted", failed: "has failed" };

const refusedTokens = {
  "sign-in": revoked,
  start:
    "GitHub does not accept the token that was given at the start, with --github-token or DRAGOMAN_GITHUB_TOKEN: it is wrong, expired or revoked. Start again with another token.",
  cli: "GitHub no longer accepts the sign-in of the Copilot CLI: run `copilot login`.",
};

const noReason = "no reason was given.";

type Untimed = Extract<NewState, { name: "cooling" }>;

const isOutage = (state: AccountState): boolean => state.name === "cooling" && state.outage === true;

export class AccountStatus {
  readonly #options: AccountStatusOptions;
  #entered: AccountState = ready;
  #enteredAt = 0;
  /** When a cooldown ends by the monotonic clock: a wall clock that is set back does not prolong it. */
  #coolUntil = 0;
  readonly #models = new Map<string, { cooling: Cooling; coolUntil: number }>();

  constructor(options: AccountStatusOptions) {
    this.#options = options;
  }

  /** The current state. `cooling` and `exhausted` end when their time is over, `failed` does not. */
  get state(): AccountState {
    const state = this.#entered;
    if (state.name === "ready") return state;
    const { now, afterCooldown } = this.#options;
    if (state.name === "cooling" && this.#isCooling(state, this.#coolUntil))
      return this.#ending(state, this.#coolUntil);
    const next = state.name === "cooling" ? this.#timed(afterCooldown(), state.until) : state;
    return next.name === "exhausted" && next.until <= now() ? ready : next;
  }

  /** When the account or one of its models was last given a state, by the wall clock, ms; 0 if that was never. */
  get enteredAt(): number {
    return this.#enteredAt;
  }

  /** The state for one model, which may be cooling down by itself. @param premium Whether the model costs quota; true by default. */
  stateFor(model: string | undefined, premium = true): AccountState {
    const account = this.state;
    const cooling = model === undefined ? undefined : this.#coolingOf(model);
    if (!cooling || account.name === "failed") return account;
    const until = "until" in account ? account.until : 0;
    return canServe(account, premium) || cooling.until > until ? cooling : account;
  }

  /** The models that cool down by themselves. */
  get limitedModels(): LimitedModel[] {
    return this.#cooling().map(([model, { until, reason = noReason }]) => ({ model, until, reason }));
  }

  /** The account has failed, and it is too early to ask GitHub again. */
  get isBackingOff(): boolean {
    return this.#entered.name === "failed" && this.#options.now() < this.#entered.retryAt;
  }

  /** As others are to know it. */
  get shared(): SharedState {
    return { account: this.state, models: Object.fromEntries(this.#cooling()) };
  }

  /** Logs that a state has ended by itself. Others know its end too, so it is not reported. */
  settle(): void {
    if (this.state.name !== this.#entered.name) this.#become(this.state);
  }

  /** A suspended account never leaves its state: only a person ends that. */
  enter(next: NewState, cause?: unknown): void {
    const before = this.#entered;
    this.#become(next, cause);
    const state = this.#entered;
    // Whether GitHub can be reached may differ between servers.
    if (state !== before && !isOutage(state) && !(isOutage(before) && state.name === "ready"))
      this.#options.changed?.();
  }

  /** Only this model cools down; the account serves the others. */
  coolDownModel(model: string, next: Untimed): void {
    this.#becomeCooling(model, next);
    this.#options.changed?.();
  }

  /** The models whose limit was to end implausibly late are tried again. */
  endDoubtfulModels(): void {
    for (const [model, { cooling }] of this.#models) if (cooling.doubtful) this.#models.delete(model);
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
    const isOver = "until" in account && account.until <= now;
    if (!isOver && !Bun.deepEquals(account, this.#entered)) this.#become(account);
    for (const [model, cooling] of Object.entries(models)) if (cooling.until > now) this.#becomeCooling(model, cooling);
  }

  /** Why the account cannot serve, as an error. */
  unusableError(): ProxyError {
    const state = this.#entered;
    const [id, reason] = [this.#options.id(), reasonOf(state)];
    if (isSuspended(state)) return suspensionError(`${id} is blocked: ${reason}`);
    const wait = Math.max(1, Math.ceil(((endOf(state) ?? 0) - this.#options.now()) / 1000));
    return new ProxyError("no_account", `${id} cannot serve: ${reason ?? "no reason is known."}`, {
      headers: isOutage(state) ? { "retry-after": String(wait) } : {},
    });
  }

  #become(next: NewState, cause?: unknown): void {
    const before = this.#entered;
    if (isSuspended(before)) return;
    const state = this.#timed(next);
    this.#entered = state;
    this.#enteredAt = this.#options.now();
    if (state.name === "cooling") this.#coolUntil = this.#byMonotonic(state.until);
    if (before.name !== state.name || reasonOf(before) !== reasonOf(state) || isSuspended(state)) this.#log(cause);
  }

  /** The state with its time, and without a secret in its reason. @param from When it begins, ms. */
  #timed(next: NewState, from = this.#options.now()): AccountState {
    if (next.name === "ready") return ready;
    const { logger, refused = "sign-in" } = this.#options;
    const given = next.reason === revoked ? refusedTokens[refused] : next.reason;
    const reason = given && logger.scrub(given);
    const after = (ms: number) => from + ms;
    if (next.name === "cooling") return { ...next, reason, until: next.until ?? after(defaultMs.cooling) };
    if (next.name === "failed")
      return { ...next, reason, retryAt: next.suspended ? neverEnds : (next.retryAt ?? after(defaultMs.failed)) };
    return { ...next, reason, until: next.until ?? after(next.untilRaised ? untilRaisedMs : defaultMs.exhausted) };
  }

  #becomeCooling(model: string, next: Untimed): void {
    const { id, logger, now } = this.#options;
    const isCooling = this.#coolingOf(model) !== undefined;
    const until = next.until ?? now() + defaultMs.cooling;
    const reason = next.reason && logger.scrub(next.reason);
    const cooling: Cooling = { name: "cooling", until, reason, ...(next.doubtful && { doubtful: true }) };
    this.#models.set(model, { cooling, coolUntil: this.#byMonotonic(until) });
    this.#enteredAt = now();
    if (!isCooling)
      logger.warn(`${id()} is cooling down for ${model} until ${new Date(until).toISOString()}: ${reason ?? noReason}`);
  }

  #coolingOf(model: string): Cooling | undefined {
    const { cooling, coolUntil } = this.#models.get(model) ?? {};
    return cooling && this.#isCooling(cooling, coolUntil!) ? this.#ending(cooling, coolUntil!) : undefined;
  }

  #cooling(): [string, Cooling][] {
    return [...this.#models].flatMap(([model, { cooling, coolUntil }]) =>
      this.#isCooling(cooling, coolUntil) ? [[model, this.#ending(cooling, coolUntil)]] : [],
    );
  }

  #isCooling({ until }: Cooling, coolUntil: number): boolean {
    return until > this.#options.now() && coolUntil > this.#options.monotonic();
  }

  /** With its end by the wall clock as it is now, if that was set back. */
  #ending(cooling: Cooling, coolUntil: number): Cooling {
    const until = Math.ceil(this.#options.now() + coolUntil - this.#options.monotonic());
    return cooling.until - until > 1_000 ? { ...cooling, until } : cooling;
  }

  /** The same time by the monotonic clock. */
  #byMonotonic(wall: number): number {
    return this.#options.monotonic() + wall - this.#options.now();
  }

  #log(cause: unknown): void {
    const { id, logger } = this.#options;
    const state = this.#entered;
    if (state.name === "ready") {
      logger.info(`${id()} is ready again.`);
      return;
    }
    const until = endOf(state);
    const end = until === undefined ? "" : ` until ${new Date(until).toISOString()}`;
    const sentence = `${id()} ${descriptions[state.name]}${end}: ${state.reason ?? noReason}`;
    const line = isSuspended(state)
      ? `${sentence.slice(0, 400)} EVERYTHING HAS STOPPED: no account is used until you act.`
      : sentence;
    if (needsPerson(state)) logger.error(line, cause);
    else logger.warn(line, cause);
  }
}
