/** Explains what a schema found wrong, by path, without the values. */
import type { z } from "zod";
import { nearestName } from "./edit-distance";
import { ProxyError } from "./errors";

/**
 * All errors of a schema as one sentence: the path of each and what is expected there, never the value.
 * @param keys The outermost keys that there are, and those inside of them as `auth.apiKeys`: one may be meant by an outermost key
 * that there is not.
 */
export function explain(error: z.ZodError, keys: readonly string[] = []): string {
  const faults = faultsOf(error, keys);
  const shown = faults.slice(0, 5).map(({ path, message }) => (path ? `${path}: ${message}` : message));
  const more = faults.length - shown.length;
  return `${shown.join("; ")}${more > 0 ? `; and ${more} more` : ""}.`;
}

type Issue = z.core.$ZodIssue;

/** Each error with its path. @param keys As in {@link explain}. */
export function faultsOf(error: z.ZodError, keys: readonly string[] = []): { path: string; message: string }[] {
  return error.issues.flatMap(meantIssues).flatMap((issue) => {
    if (issue.code === "unrecognized_keys")
      return issue.keys.map((name) => {
        const meant = issue.path.length === 0 ? meantBy(name, keys) : undefined;
        const hint = meant === undefined ? "" : ` (did you mean ${meant}?)`;
        return { path: formatPath([...issue.path, name]), message: `not a known key${hint}` };
      });
    const message = issue.code === "invalid_key" ? issue.issues[0]!.message : issue.message;
    return [{ path: formatPath(issue.path), message: message.replace(/^Invalid \w+: |^Too \w+: /, "") }];
  });
}

/** The key that is called so inside of another one, or whose name is nearest. */
const meantBy = (name: string, keys: readonly string[]): string | undefined =>
  keys.find((key) => key.endsWith(`.${name}`)) ??
  nearestName(
    name,
    keys.filter((key) => !key.includes(".")),
  );

/** For a value that may have several forms, without a message of its own: the issues of the form whose type it has, else of the first one. */
function meantIssues(issue: Issue): Issue[] {
  if (issue.code !== "invalid_union" || issue.message !== "Invalid input" || issue.errors.length === 0) return [issue];
  const ofType = issue.errors.find(
    (issues) => !issues.some(({ code, path }) => code === "invalid_type" && path.length === 0),
  );
  return (ofType ?? issue.errors[0]!).map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }));
}

/** A path in the usual notation: `auth.apiKeys[1]`. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part).slice(0, 100)}`))
    .join("")
    .replace(/^\./, "");
}

/** Names that every object inherits are not config keys, and a record would drop or shadow them. No known key is deeper than 8. */
export function refuseInherited(value: unknown, path: PropertyKey[] = []): void {
  if (typeof value !== "object" || value === null || path.length > 8) return;
  for (const [name, inner] of Object.entries(value)) {
    const inside = [...path, Array.isArray(value) ? Number(name) : name];
    if (["__proto__", "constructor", "prototype"].includes(name))
      throw new ProxyError("invalid_request", `${formatPath(inside)}: not a known key.`, { param: formatPath(inside) });
    refuseInherited(inner, inside);
  }
}
