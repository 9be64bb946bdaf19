/** Parts of descriptions that several endpoints share. */
import { z } from "zod";
import type { ErrorKind } from "../lib/errors";
import { lazy } from "../lib/lazy";
import type { Description } from "../web/described";

/** Errors of every call that needs an account or a provider. A retry does not help after `unable`. */
export const upstreamErrors = [
  "unable",
  "rate_limit",
  "upstream",
  "no_account",
  "timeout",
] as const satisfies ErrorKind[];

/** The answer of a dialect. Its members are the vendor's, whose reference the definition links. */
const dialectAnswer = lazy(() => ({
  "application/json": z.looseObject({}).describe("In the dialect's own form."),
  "text/event-stream": z.string().describe("With `stream`: the dialect's own events."),
}));

/** The members of a dialect's request that dragoman reads; the others are the vendor's. */
export const dialectBody = lazy(() =>
  z.looseObject({ model: z.string().min(1), stream: z.boolean().nullish() }).describe("In the dialect's own form."),
);

export const countSchema = lazy(() => z.object({ input_tokens: z.int() }));

/** A request in a dialect's own form, and its answer. */
export const relayed = {
  reads: dialectBody,
  answers: dialectAnswer,
  errors: upstreamErrors,
} satisfies Partial<Description>;
