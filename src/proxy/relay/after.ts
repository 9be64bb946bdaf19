/**
 * What follows after a try, decided in one table. A try is a call to an account or a provider, Auto's choice of a model, or all
 * that a model could be asked. Whoever has tried says what came of it and what is left; nothing here asks, waits or remembers.
 */

import type { ProxyError } from "../../lib/errors";

/** What may follow. */
export const steps = {
  again: "the same account or provider is asked again, with what was changed",
  "next account": "the next account is asked",
  pause: "after two seconds at most, the accounts are asked anew, if one of them is ready by then",
  "in words": "the same model is asked for a summary in words",
  "new choice": "Auto chooses again for the account",
  "next choice": "Auto chooses for the next account",
  Auto: "Auto serves in place of the model that was named, if the owner wants that",
  "next model": "the next model of the chain that can take the request is asked",
  "put-off model":
    "after a fallback, a model of the chain is asked that was put off because its provider fails all the time",
  wait: "the request waits for the limit to end, if the owner wants that, and everything begins anew",
  end: "the client gets the error",
} as const;

export type Step = keyof typeof steps;

/** Whether another model of the chain is asked. */
export const asksNextModel = (step: Step): boolean => step === "next model" || step === "put-off model";

interface Row {
  /** What came of the try: a sentence. */
  what: string;
  /** What follows: the first of these that is left. */
  then: readonly Step[];
  /** It concerns the request as a whole: the client gets this error, whichever model was asked for. */
  isOfRequest?: true;
}

/** Why a try did not serve. */
const rows = {
  stopped: { what: "Nobody wants the answer any more.", then: [], isOfRequest: true },
  fault: { what: "dragoman itself failed.", then: [], isOfRequest: true },
  blocked: {
    what: "GitHub has suspended an account: whatever serves in its place would evade that.",
    then: [],
    isOfRequest: true,
  },
  begun: { what: "A part of a reply was made, and billed.", then: [] },
  mended: {
    what: "The upstream refused a part of the body, the token or the host, and that was changed.",
    then: ["again"],
  },
  unable: {
    what: "The account has no quota, is limited, has no token or not the model, or its budget is used up.",
    then: ["next account", "pause", "next choice"],
  },
  refused: { what: "The answer is about the model or the request: every account would get it.", then: [] },
  noSummary: { what: "The upstream does not make the summary that a client asks for.", then: ["in words"] },
  choiceRefused: { what: "The upstream refuses what Auto chose for the account.", then: ["new choice"] },
  noChoice: { what: "Auto could not choose for the account.", then: ["next choice"] },
  onlyAuto: { what: "The accounts have nothing but Auto.", then: ["Auto"] },
  limited: {
    what: "Nobody can serve the model now: 402, 429, 503 or 529, or a budget after which the owner wants another model.",
    then: ["next model"],
  },
  unfit: { what: "A model of the chain cannot take the request, and was not asked.", then: ["next model"] },
  failed: { what: "The model was asked, and failed in another way.", then: ["put-off model"] },
  ending: { what: "It is known when the limit ends.", then: ["wait"] },
} as const satisfies Record<string, Row>;

export type Trouble = keyof typeof rows;

export const table: Readonly<Record<Trouble, Row>> = rows;

/**
 * @param troubles What is wrong, from the most particular to the most general: the first one after which something is left decides.
 * @param left Knows whether a step could follow.
 */
export function after(troubles: readonly Trouble[], left: { isLeft(step: Step): boolean }): Step {
  for (const trouble of troubles) for (const step of table[trouble].then) if (left.isLeft(step)) return step;
  return "end";
}

/** The statuses after which another model may serve: no quota, limited, unavailable, overloaded. */
const statusesOfLimits: ReadonlySet<number> = new Set([402, 429, 503, 529]);

/**
 * What an error of one model means for the others.
 * @param facts Whether a part of a reply was made, GitHub has suspended an account, and a model that was to serve in place of
 * another one was not even asked.
 */
export function modelTrouble(
  { kind, status, details }: Pick<ProxyError, "kind" | "status" | "details">,
  facts: Record<"hasBegun" | "isBlocked" | "isUnasked", boolean>,
): Trouble {
  const { hasBegun, isBlocked, isUnasked } = facts;
  if (isUnasked && kind === "invalid_request") return "unfit";
  if (kind === "internal") return "fault";
  if (isBlocked) return "blocked";
  if (hasBegun) return "begun";
  if (details.code === "budget_exceeded") return details.mayFallBack === true ? "limited" : "failed";
  return statusesOfLimits.has(status) ? "limited" : "failed";
}
