/** What an answer of Auto says, and the errors of one that says nothing of use. */
import { countIn } from "../../../dialects/hub/json";
import { inBoth, ProxyError, retryHeaders, type Words, words } from "../../../lib/errors";
import { withoutFullStop } from "../../../lib/format";
import { isObject } from "../../../lib/json";
import { type Model, readModel } from "../models/model";

/** For how many of the person's turns GitHub lets a choice stand, and what it wants to see at the next question. */
export interface TurnPlan {
  /** Opaque. It belongs to the account and the conversation, and is never written down. */
  state: string;
  /** Turns of the person that need no new question. */
  skip: number;
}

/** The protocol's greatest number of turns without a question (notes of VS Code's client, 2026-10). */
const maxSkip = 7;

/** Undefined where the account's routing has no such plan: then the choice stands for the conversation. */
export function turnPlanOf({ hydra_rl_multi_turn: plan }: Record<string, unknown>): TurnPlan | undefined {
  if (!isObject(plan) || typeof plan.state_token !== "string" || !/^[!-~]{1,8192}$/.test(plan.state_token)) return;
  const skip = plan.skip_turns === undefined ? 0 : countIn(plan.skip_turns);
  return skip === undefined || skip > maxSkip ? undefined : { state: plan.state_token, skip };
}

export function tokenOf(json: Record<string, unknown>): string {
  const token = json.session_token;
  if (typeof token === "string" && /^[!-~]{1,8192}$/.test(token)) return token;
  throw unavailable("GitHub Copilot's answer has no session token");
}

/** The model as the account lists it, or as the choice describes it. @param chosen Its id, or an item of the model list. */
export function modelOf(chosen: unknown, listed: readonly Model[]): Model {
  const id = isObject(chosen) ? chosen.id : chosen;
  const model = listed.find((each) => each.id === id) ?? readModel(isObject(chosen) ? chosen : { id });
  if (model) return { ...model, enabled: true };
  throw unavailable("GitHub Copilot's answer names no model");
}

/** The ability that the prompt needs most: `code_gen 0.82`. */
export function strongest(scores: unknown): string | null {
  if (!isObject(scores)) return null;
  const [most] = Object.entries(scores)
    .filter((each): each is [string, number] => typeof each[1] === "number" && labelOf(each[0]) !== null)
    .sort(([, one], [, other]) => other - one);
  return most ? most.join(" ") : null;
}

/** A name, never a text: it could repeat the prompt. */
export const labelOf = (label: unknown): string | null =>
  typeof label === "string" && /^[a-z][\w-]{0,63}$/i.test(label) ? label : null;

/** Whether a request without a model may still be served after this failure. */
export const mayOmitAfter = ({ kind, details }: ProxyError): boolean =>
  details.code === unavailableCode || kind === "timeout" || kind === "upstream";

const unavailableCode = "auto_unavailable";

/** @param why Without a full stop. */
export const unavailable = (why: string | Words, kind: "no_account" | "permission" = "no_account"): ProxyError =>
  new ProxyError(kind, words`Auto could not choose a model now: ${why}. Try again in a moment, or name a model.`, {
    code: unavailableCode,
    headers: kind === "permission" ? {} : retryHeaders(10),
  });

/** A call that timed out or broke. */
export const asUnavailable = (failure: ProxyError): ProxyError =>
  failure.details.code === unavailableCode ? failure : unavailable(inBoth(failure.words, withoutFullStop));
