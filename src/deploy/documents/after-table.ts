/** What follows after each kind of answer, as the table of `proxy/relay/after.ts` and the table of failures say it together. */
import { modelTrouble, type Step, steps, type Trouble, table } from "../../proxy/relay/after";
import { type Failure, readFailure } from "../../proxy/upstream/copilot/failure";
import { examples } from "./failure-examples";

const inOrder = (then: readonly Step[]) => (then.length === 0 ? "end" : [...new Set(then)].join(" → "));

const troubleOfRemedy: Record<Failure["remedy"], Trouble> = {
  "next-account": "unable",
  none: "refused",
  // The request is sent again.
  "renew-token": "mended",
  "renew-token-or-host": "mended",
  "relearn-host": "mended",
  repair: "mended",
  "fit-tools": "mended",
  "fit-effort": "mended",
  "free-choice": "mended",
  "fold-system": "mended",
  "drop-tools": "mended",
  "drop-param": "mended",
};

/** The troubles that an answer to a call is, from the most particular to the most general. */
function troublesOf([status, code, message, param]: (typeof examples)[number]): Trouble[] {
  const body = JSON.stringify({ error: { code, message, param } });
  const failure = readFailure(status, new Headers(), body, 0);
  const { account, error, remedy } = failure;
  if (error.details.code === "account_suspended") return ["blocked"];
  const first = error.details.code === "auto_token_refused" ? "choiceRefused" : troubleOfRemedy[remedy];
  // A fresh token that is refused as well is the account's failure.
  const ofAccount = first === "unable" || remedy === "renew-token" || remedy === "renew-token-or-host";
  const isLimit = account !== undefined || remedy === "renew-token";
  const ofModel = isLimit ? "limited" : modelTrouble(error, { hasBegun: false, isBlocked: false, isUnasked: false });
  const ends = account && account.name !== "failed";
  return [first, ...(ofAccount ? (["unable"] as const) : []), ofModel, ...(ends ? (["ending"] as const) : [])];
}

/** Rows of answers that are followed by the same. */
export function rowsOfAnswers(): string[][] {
  const byThen = Map.groupBy(examples, (example) =>
    inOrder(troublesOf(example).flatMap((trouble) => table[trouble].then)),
  );
  return [...byThen].map(([then, alike]) => [alike.map(nameOf).join(", "), then]);
}

const nameOf = ([status, code, message]: (typeof examples)[number]) =>
  `${status} ${code === "" ? `“${message.length > 60 ? `${message.slice(0, 60)}…` : message}”` : `\`${code}\``}`;

/** Rows of everything that may come of a try. */
export const rowsOfTroubles = (): string[][] => Object.values(table).map(({ what, then }) => [what, inOrder(then)]);

export const rowsOfSteps = (): string[][] => Object.entries(steps);
