/**
 * The texts of an address's query as they were sent. For a Standard Schema, Elysia 1.4.30 makes a list of a text with a comma,
 * and parses a text that looks like JSON: names of models and accounts may have both. So schemas are given these texts.
 */
import type { z } from "zod";
import type { ProxyError } from "../lib/errors";
import { invalid, invalidInput } from "../lib/input";
import { explain } from "../lib/schema-errors";

/** A client's query: the first of equal parameters counts, and an empty one is an empty text. */
export function clientQuery(url: string): Record<string, string> {
  const sent = new URL(url).searchParams;
  return Object.fromEntries([...new Set(sent.keys())].map((name) => [name, sent.get(name)!]));
}

/** Equal parameters become a list, which no schema takes. */
export type FormQuery = Record<string, string | string[]>;

/** The query of a form, which sends its empty fields too: an empty text counts as absent. */
export function formQuery(url: string): FormQuery {
  if (!url.includes("?")) return {};
  const sent = new URL(url).searchParams;
  const given = [...new Set(sent.keys())].flatMap((name) => {
    const texts = sent.getAll(name).filter((text) => text !== "");
    return texts.length === 0 ? [] : [[name, texts.length === 1 ? texts[0]! : texts] as const];
  });
  return Object.fromEntries(given);
}

/** Reads the query of a page, which may have parameters of its own beside those of the schema. @throws ProxyError `invalid_request` that names the parameter. */
export function readQuery<Schema extends z.ZodObject>(url: string, schema: Schema): z.output<Schema> {
  const query = formQuery(url);
  const { data, error } = schema.strip().safeParse(query);
  if (error) throw invalidQuery(error, query);
  return data as z.output<Schema>;
}

/** The error for a query that its schema refuses. It names the parameter. */
export function invalidQuery(error: z.ZodError, query: FormQuery): ProxyError {
  const [issue] = error.issues;
  if (issue?.code === "unrecognized_keys") return invalid(issue.keys[0]!, explain(error));
  const name = issue?.path[0];
  if (typeof name === "string" && Array.isArray(query[name])) return invalid(name, `${name}: is given twice.`);
  return invalidInput(error);
}
