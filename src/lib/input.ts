/** Reads what was sent by a schema. */
import { z } from "zod";
import { ProxyError } from "./errors";
import { lazy } from "./lazy";
import { explain, formatPath } from "./schema-errors";

/**
 * The query of an address. An empty parameter counts as absent: a form sends its empty fields too.
 * @throws ProxyError `invalid_request` that names the parameter, also when it is given twice.
 */
export function readQuery<Schema extends z.ZodObject>(url: string, schema: Schema): z.output<Schema> {
  const sent: Record<string, string> = {};
  for (const [name, value] of new URL(url).searchParams) {
    if (value === "" || !Object.hasOwn(schema.shape, name)) continue;
    if (Object.hasOwn(sent, name)) throw invalid(name, `${name}: is given twice.`);
    sent[name] = value;
  }
  return parseInput(sent, schema);
}

/** Reads a client's query: the first of equal parameters counts, and an empty one is an empty text. */
export function readClientQuery<Schema extends z.ZodObject>(url: string, schema: Schema): z.output<Schema> {
  const sent = new URL(url).searchParams;
  const names = Object.keys(schema.shape).filter((name) => sent.has(name));
  return parseInput(Object.fromEntries(names.map((name) => [name, sent.get(name)])), schema);
}

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
