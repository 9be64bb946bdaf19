/** The state of an account, for all models or for one, and when it ends. Each change is logged. */
import { asProxyError, ProxyError } from "../errors";
import type { Logger } from "../logger";
import type { SharedState } from "./account-share";
import { type AccountState, canServe } from "./account-state";
import { revoked } from "./github";
import { isSuspension, suspensionError } from "./suspension";

export { type AccountState, canServe } from "./account-state";

export interface AccountStatus {
  /** The current state. `cooling` and `exhausted` end when their time is over, `failed` does not. */
  readonly state: AccountState;
  /** The state for one model, which may be cooling down by itself. @param premium Whether the model costs quota; true by default. */
  stateFor(model: string | undefined, premium?: boolean): AccountState;
  /** The models that cool down by themselves. */
  readonly limitedModels: LimitedModel[];
  /** The account has failed, and it is too early to ask GitHub again. */
  readonly isBackingOff: boolean;
  /** A missing `until` gets the default of the state. A suspended account never leaves its state: only a person ends that. */
  enter(next: AccountState, cause?: unknown): void;
  /** Only this model cools down; the account serves the others. */
  coolDownModel(model: string, next: AccountState): void;
  /** Fails the account if the error concerns the account itself: a suspension, or a sign-in that GitHub no longer accepts. */
  noteError(thrown: unknown): void;
  /** Why the account cannot serve, as an error. */
  unusableError(): ProxyError;
  /** As others are to know it. */
  readonly shared: SharedState;
  /** Enters what another server has found out. */
  adopt(found: SharedState): void;
}

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
  /** ms */
  now(): number;
  /** The state to enter when `cooling` ends. */
  afterCooldown(): AccountState;
  /** Called when this server has found out another state. */
  changed?(): void;
  /** Its token was given at the start: nobody signed in. */
  isTemporary?: boolean;
}

type CoolingModel = AccountState & { until: number };

const minute = 60_000;
const defaultMs = { cooling: minute, exhausted: 60 * minute, failed: 5 * minute };
/** A refused request costs nothing, so that it may tell whether a budget was raised. */
const untilRaisedMs = 10 * minute;
const neverEnds = Number.POSITIVE_INFINITY;
const descriptions = { cooling: "is cooling down", exhausted: "is exhausted", failed: "has failed" };

const tokenRefused =
  "GitHub does not accept the token that was given at the start, with --github-token or DRAGOMAN_GITHUB_TOKEN: it is wrong, expired or revoked. Start again with another token.";

const noReason = "no reason was given.";

export function openAccountStatus(options: AccountStatusOptions): AccountStatus {
  const { id, logger, now, afterCooldown, changed = () => {}, isTemporary = false } = options;
  let state: AccountState = { name: "ready" };
  const models = new Map<string, CoolingModel>();

  function currentState(): AccountState {
    if (state.until === undefined || state.until > now()) return state;
    // Others know the end too, so it is not reported.
    if (state.name === "cooling") become(afterCooldown());
    else if (state.name === "exhausted") become({ name: "ready" });
    return state;
  }

  function enter(next: AccountState, cause?: unknown): void {
    const before = state;
    become(next, cause);
    // Whether GitHub can be reached may differ between servers.
    if (state !== before && !state.outage && !(before.outage && state.name === "ready")) changed();
  }

  function become(next: AccountState, cause?: unknown): void {
    const before = state;
    if (before.suspended) return;
    const given = isTemporary && next.reason === revoked ? tokenRefused : next.reason;
    const reason = given && logger.scrub(given);
    if (next.name === "ready") state = { name: "ready" };
    else state = { ...next, reason, until: next.until ?? endOf(next.name, next) };
    if (before.name !== state.name || before.reason !== state.reason || state.suspended) log(cause);
  }

  function endOf(name: keyof typeof defaultMs, { suspended, untilRaised }: AccountState): number {
    if (suspended) return neverEnds;
    return now() + (untilRaised ? untilRaisedMs : defaultMs[name]);
  }

  function coolDownModel(model: string, next: AccountState): void {
    becomeCooling(model, next);
    changed();
  }

  function becomeCooling(model: string, next: AccountState): void {
    const isCooling = coolingOf(model) !== undefined;
    const until = next.until ?? now() + defaultMs.cooling;
    const reason = next.reason && logger.scrub(next.reason);
    models.set(model, { name: "cooling", until, reason });
    if (!isCooling)
      logger.warn(`${id()} is cooling down for ${model} until ${new Date(until).toISOString()}: ${reason ?? noReason}`);
  }

  function coolingOf(model: string): CoolingModel | undefined {
    const cooling = models.get(model);
    if (cooling && cooling.until > now()) return cooling;
    models.delete(model);
    return undefined;
  }

  function log(cause: unknown): void {
    const { name, reason, until, suspended, untilRaised } = state;
    if (name === "ready") {
      logger.info(`${id()} is ready again.`);
      return;
    }
    const end =
      name === "failed" || untilRaised || until === undefined ? "" : ` until ${new Date(until).toISOString()}`;
    const sentence = `${id()} ${descriptions[name]}${end}: ${reason ?? noReason}`;
    const line = suspended
      ? `${sentence.slice(0, 400)} EVERYTHING HAS STOPPED: no account is used until you act.`
      : sentence;
    if (name === "failed") logger.error(line, cause);
    else logger.warn(line, cause);
  }

  return {
    get state() {
      return currentState();
    },
    stateFor(model, premium = true) {
      const account = currentState();
      const cooling = model === undefined || account.name === "failed" ? undefined : coolingOf(model);
      return cooling && (canServe(account, premium) || cooling.until > (account.until ?? 0)) ? cooling : account;
    },
    get limitedModels() {
      const cooling = [...models].filter(([, { until }]) => until > now());
      return cooling.map(([model, { until, reason = noReason }]) => ({ model, until, reason }));
    },
    get isBackingOff() {
      return state.name === "failed" && now() < (state.until ?? 0);
    },
    enter,
    coolDownModel,
    noteError(thrown) {
      const { details, message } = asProxyError(thrown);
      const suspended = isSuspension(thrown);
      if (suspended || details.code === "sign_in_revoked") enter({ name: "failed", reason: message, suspended });
    },
    get shared() {
      const cooling = [...models].filter(([, { until }]) => until > now());
      return { account: currentState(), models: Object.fromEntries(cooling) };
    },
    adopt(found) {
      const { name, until } = found.account;
      const isOver = until !== undefined && until <= now() && name !== "failed";
      if (!isOver && !Bun.deepEquals(found.account, state)) become(found.account);
      for (const [model, cooling] of Object.entries(found.models))
        if ((cooling.until ?? 0) > now()) becomeCooling(model, cooling);
    },
    unusableError() {
      if (state.suspended) return suspensionError(`${id()} is blocked: ${state.reason}`);
      const wait = Math.max(1, Math.ceil(((state.until ?? 0) - now()) / 1000));
      return new ProxyError("no_account", `${id()} cannot serve: ${state.reason ?? "no reason is known."}`, {
        headers: state.outage ? { "retry-after": String(wait) } : {},
      });
    },
  };
}
