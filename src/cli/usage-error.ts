/** Mistakes in the command line, and how they are found. */
import type { z } from "zod";
import { ProxyError } from "../lib/errors";

/** A mistake in the command line or the environment, explained in a sentence; exit code 2. */
export class UsageError extends Error {}

/**
 * What options say, as a schema reads it.
 * @param options The members that come from something else than an option of their name.
 * @throws UsageError that names the option
 */
export function readOptions<Schema extends z.ZodType>(
  schema: Schema,
  given: unknown,
  options: Readonly<Record<string, string>> = {},
): z.output<Schema> {
  const read = schema.safeParse(given);
  if (read.success) return read.data;
  const issue = read.error.issues[0]!;
  const { path } = issue;
  const message = inWords(issue);
  const option = options[String(path[0])] ?? `--${String(path.findLast((part) => typeof part === "string"))}`;
  throw new UsageError(`${option}${message.startsWith("must ") ? "" : ":"} ${message}.`);
}

/** What the library of schemas says of choices and bounds, as everything else here is said. A schema's own words stay. */
function inWords(issue: z.core.$ZodIssue): string {
  if (!/^(?:Invalid|Too) \w+: /.test(issue.message)) return issue.message;
  if (issue.code === "invalid_value") return `must be one of: ${issue.values.join(", ")}`;
  if (issue.code === "too_small" && issue.origin === "number")
    return `must be ${issue.inclusive ? "at least" : "above"} ${issue.minimum}`;
  if (issue.code === "too_big" && issue.origin === "number") return `must be at most ${issue.maximum}`;
  return issue.message;
}

/** @throws UsageError in place of a ProxyError of what was given */
export function asUsage<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (thrown) {
    throw thrown instanceof ProxyError ? new UsageError(thrown.message) : thrown;
  }
}
