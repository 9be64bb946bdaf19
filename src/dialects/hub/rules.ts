/** Rules for what an upstream refuses in a request: each rule replaces one thing that is refused. */
import type { RequestFixup } from "../codec";
import type { JsonObject } from "./conversation";
import { omitUndefined } from "./json";

/** Returns the top-level fields to set (undefined: remove); returns undefined if nothing has to change. */
export type Rule<Given extends unknown[]> = (body: JsonObject, ...given: Given) => JsonObject | undefined;

interface RuleResult {
  /** The request after all rules. */
  body: JsonObject;
  /** The top-level fields that changed; undefined ones are to be removed. */
  changes: JsonObject;
  /** The names of the rules that changed something. */
  fixups: string[];
  /** What was removed or added, for the client. */
  notes: string[];
}

/**
 * Applies the rules in the order of the table; each sees the result of those before it.
 * @param notes What a rule removed or added, for the client to know. Rules without an entry change nothing for the client.
 */
export function applyInOrder<Given extends unknown[]>(
  rules: Record<string, Rule<Given>>,
  notes: Record<string, (before: JsonObject, after: JsonObject) => string[]> = {},
): (body: JsonObject, ...given: Given) => RuleResult {
  const named = Object.entries(rules);
  return (body, ...given) => {
    const ruled: RuleResult = { body, changes: {}, fixups: [], notes: [] };
    for (const [name, rule] of named) {
      const changes = rule(ruled.body, ...given);
      if (!changes) continue;
      const before = ruled.body;
      ruled.body = omitUndefined({ ...before, ...changes });
      Object.assign(ruled.changes, changes);
      ruled.fixups.push(name);
      ruled.notes.push(...(notes[name]?.(before, ruled.body) ?? []));
    }
    return ruled;
  };
}

/** Some of the rules, in their order. */
export const rulesNamed = <R>(rules: Record<string, R>, names: readonly string[]): Record<string, R> =>
  Object.fromEntries(Object.entries(rules).filter(([name]) => names.includes(name)));

/** The result as edits of the client's JSON. */
export function asFixup(before: JsonObject, { changes, fixups, notes }: RuleResult): RequestFixup {
  if (fixups.length === 0) return { set: {}, remove: [], fixups };
  const remove = Object.keys(changes).filter((key) => changes[key] === undefined && key in before);
  return { set: omitUndefined(changes), remove, fixups, ...(notes.length > 0 ? { dropped: notes } : {}) };
}
