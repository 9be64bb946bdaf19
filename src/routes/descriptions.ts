/** Parts of descriptions that several endpoints share. */
import type { ErrorKind } from "../lib/errors";
import type { Description } from "../web/described";
import { dialectAnswer, dialectBody } from "./schemas";

/** Errors of every call that needs an account or a provider. A retry does not help after `unable`. */
export const upstreamErrors = [
  "unable",
  "rate_limit",
  "upstream",
  "no_account",
  "timeout",
] as const satisfies ErrorKind[];

/** A request in a dialect's own form, and its answer. */
export const relayed = {
  reads: dialectBody,
  answers: dialectAnswer,
  errors: upstreamErrors,
} satisfies Partial<Description>;
