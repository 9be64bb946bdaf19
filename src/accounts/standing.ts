/** Whether an account can serve, since when not, and until when. Every change is a line in the log. */
import { ProxyError } from "../errors";
import type { Logger } from "../logger";

export interface AccountState {
  /** `failed`: a person must act. `cooling` and `exhausted` end by themselves. */
  name: "ready" | "cooling" | "exhausted" | "failed";
  /** ms timestamp; for `failed` the next time GitHub is asked again. */
  until?: number;
  /** A sentence or two. */
  reason?: string;
  /** `exhausted` for free models as well; otherwise those go on. */
  alsoFree?: boolean;
  /** `cooling` because GitHub cannot be asked for a token, not because of a limit. */
  outage?: boolean;
}

export interface Standing {
  /** As it is now: cooling and exhaustion are over when their time is, failure is not. */
  readonly state: AccountState;
  /** Failed, and it is too early to ask GitHub again. */
  readonly resting: boolean;
  /** A missing `until` becomes a usual one. */
  enter(next: AccountState, cause?: unknown): void;
  /** Why the account cannot serve, as an error. */
  unusable(): ProxyError;
}

export interface StandingParts {
  id(): string;
  logger: Logger;
  /** ms */
  now(): number;
  /** What is true when a rest is over. */
  afterRest(): AccountState;
}

const minute = 60_000;
const usual = { cooling: minute, exhausted: 60 * minute, failed: 5 * minute };
const sayings = { cooling: "rests", exhausted: "is exhausted", failed: "has failed" };

export function openStanding({ id, logger, now, afterRest }: StandingParts): Standing {
  let state: AccountState = { name: "ready" };

  function settled(): AccountState {
    if (state.until === undefined || state.until > now()) return state;
    if (state.name === "cooling") enter(afterRest());
    else if (state.name === "exhausted") enter({ name: "ready" });
    return state;
  }

  function enter(next: AccountState, cause?: unknown): void {
    const before = state;
    const reason = next.reason && logger.scrub(next.reason);
    if (next.name === "ready") state = { name: "ready" };
    else state = { ...next, reason, until: next.until ?? now() + usual[next.name] };
    if (before.name !== state.name || before.reason !== state.reason) say(cause);
  }

  function say(cause: unknown): void {
    const { name, reason, until } = state;
    if (name === "ready") {
      logger.info(`${id()} is ready again.`);
      return;
    }
    const end = name === "failed" ? "" : ` until ${new Date(until!).toISOString()}`;
    const line = `${id()} ${sayings[name]}${end}: ${reason ?? "no reason was given."}`;
    if (name === "failed") logger.error(line, cause);
    else logger.warn(line, cause);
  }

  return {
    get state() {
      return settled();
    },
    get resting() {
      return state.name === "failed" && now() < state.until!;
    },
    enter,
    unusable() {
      const wait = Math.max(1, Math.ceil(((state.until ?? 0) - now()) / 1000));
      return new ProxyError("no_account", `${id()} cannot serve: ${state.reason ?? "no reason is known."}`, {
        headers: state.outage ? { "retry-after": String(wait) } : {},
      });
    },
  };
}
