/** Reads what was sent by a schema. */
import { z } from "zod";
import { ProxyError } from "./errors";
import { lazy } from "./lazy";
import { explain, formatPath } from "./schema-errors";

/** @throws ProxyError `invalid_request` that names the parameter. */
export function parseInput<Schema extends z.ZodType>(sent: object, schema: Schema): z.output<Schema> {
  const result = schema.safeParse(sent);
  if (result.success) return result.data;
  throw invalidInput(result.error);
}

/** The error for an input that its schema refuses. It names the parameter. */
export const invalidInput = (error: z.ZodError): ProxyError =>
  invalid(formatPath(error.issues[0]?.path ?? []), explain(error));

/** Digits, or the form `1e9`. Documents describe it as an integer; in a URL it is a text. */
export const wholeNumber = lazy(() =>
  z
    .string()
    .regex(/^\d{1,30}(?:e\d{1,2})?$/i, "must be a whole number")
    .transform(Number)
    .meta({ type: "integer", minimum: 0 }),
);

/** The error for a parameter. */
export const invalid = (param: string, message: string): ProxyError =>
  new ProxyError("invalid_request", message, { param });
