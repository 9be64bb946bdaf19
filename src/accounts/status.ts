/** Whether an account can serve, and until when not: any model, or one of them. Every change is a line in the log. */
import { asProxyError, ProxyError } from "../errors";
import type { Logger } from "../logger";
import { isSuspension, suspensionError } from "./suspension";

export interface AccountState {
  /** `failed`: a person must act. `cooling` and `exhausted` end by themselves. */
  name: "ready" | "cooling" | "exhausted" | "failed";
  /** ms timestamp; for `failed` the next time GitHub is asked again. */
  until?: number;
  /** A sentence or two. */
  reason?: string;
  /** `exhausted` for free models as well; otherwise those go on. */
  alsoFree?: boolean;
  /** `cooling` of models that cost quota: nobody said that the limit holds for the others, and they go on. */
  premiumOnly?: boolean;
  /** The answer named an end that nobody can have meant: a good answer about the quota ends it earlier. */
  doubtful?: boolean;
  /** `cooling` because GitHub cannot be asked for a token, not because of a limit. */
  outage?: boolean;
  /** `failed` because GitHub speaks of abuse or suspension: no account is used until a person has acted. */
  suspended?: boolean;
}

/** Whether an account in this state serves a model, by whether that costs quota. */
export function goesOn({ name, alsoFree, premiumOnly }: AccountState, premium: boolean): boolean {
  if (name === "ready") return true;
  return !premium && (name === "exhausted" ? !alsoFree : name === "cooling" && premiumOnly === true);
}

export interface AccountStatus {
  /** As it is now: cooling and exhaustion are over when their time is, failure is not. */
  readonly state: AccountState;
  /** As it is for one model, which may have to rest while the others go on; `premium` unless it costs no quota. */
  stateFor(model: string | undefined, premium?: boolean): AccountState;
  /** Failed, and it is too early to ask GitHub again. */
  readonly isBackingOff: boolean;
  /** A missing `until` becomes a usual one. Nothing follows a suspension: only a person ends it. */
  enter(next: AccountState, cause?: unknown): void;
  /** This model rests, the account does not. */
  coolDownModel(model: string, next: AccountState): void;
  /** What GitHub said of the account itself holds, whichever endpoint said it: a block, or a sign-in it does not accept. */
  heard(thrown: unknown): void;
  /** Why the account cannot serve, as an error. */
  unusableError(): ProxyError;
}

export interface AccountStatusOptions {
  id(): string;
  logger: Logger;
  /** ms */
  now(): number;
  /** What is true when a rest is over. */
  afterCooldown(): AccountState;
}

const minute = 60_000;
const usual = { cooling: minute, exhausted: 60 * minute, failed: 5 * minute };
const never = Number.POSITIVE_INFINITY;
const sayings = { cooling: "rests", exhausted: "is exhausted", failed: "has failed" };

export function openAccountStatus({ id, logger, now, afterCooldown: afterRest }: AccountStatusOptions): AccountStatus {
  let state: AccountState = { name: "ready" };
  const models = new Map<string, AccountState>();

  function settled(): AccountState {
    if (state.until === undefined || state.until > now()) return state;
    if (state.name === "cooling") enter(afterRest());
    else if (state.name === "exhausted") enter({ name: "ready" });
    return state;
  }

  function enter(next: AccountState, cause?: unknown): void {
    const before = state;
    if (before.suspended) return;
    const reason = next.reason && logger.scrub(next.reason);
    if (next.name === "ready") state = { name: "ready" };
    else state = { ...next, reason, until: next.until ?? (next.suspended ? never : now() + usual[next.name]) };
    if (before.name !== state.name || before.reason !== state.reason || state.suspended) say(cause);
  }

  function rest(model: string, next: AccountState): void {
    const resting = restOf(model) !== undefined;
    const until = next.until ?? now() + usual.cooling;
    const reason = next.reason && logger.scrub(next.reason);
    models.set(model, { name: "cooling", until, reason });
    if (!resting) logger.warn(`${id()} rests for ${model} until ${new Date(until).toISOString()}: ${reason ?? ""}`);
  }

  function restOf(model: string): AccountState | undefined {
    const state = models.get(model);
    if (state && state.until! > now()) return state;
    models.delete(model);
    return undefined;
  }

  function say(cause: unknown): void {
    const { name, reason, until, suspended } = state;
    if (name === "ready") {
      logger.info(`${id()} is ready again.`);
      return;
    }
    const end = name === "failed" ? "" : ` until ${new Date(until!).toISOString()}`;
    const why = `${id()} ${sayings[name]}${end}: ${reason ?? "no reason was given."}`;
    const line = suspended ? `${why.slice(0, 400)} EVERYTHING HAS STOPPED: no account is used until you act.` : why;
    if (name === "failed") logger.error(line, cause);
    else logger.warn(line, cause);
  }

  return {
    get state() {
      return settled();
    },
    stateFor(model, premium = true) {
      const whole = settled();
      const rest = model === undefined || whole.name === "failed" ? undefined : restOf(model);
      return rest && (goesOn(whole, premium) || rest.until! > (whole.until ?? 0)) ? rest : whole;
    },
    get isBackingOff() {
      return state.name === "failed" && now() < state.until!;
    },
    enter,
    coolDownModel: rest,
    heard(thrown) {
      const { details, message } = asProxyError(thrown);
      const suspended = isSuspension(thrown);
      if (suspended || details.code === "sign_in_revoked") enter({ name: "failed", reason: message, suspended });
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
