/** Rules for what an upstream refuses in a request: each rule replaces one thing that is refused. */
import type { RequestFixup } from "../codec";
import type { Changes } from "./changes";
import type { JsonObject } from "./conversation";
import { omitUndefined } from "./json";

/** Returns the top-level fields to set (undefined: remove); returns undefined if nothing has to change. */
export type Rule<Given extends unknown[]> = (body: JsonObject, ...given: Given) => JsonObject | undefined;

interface RuleResult extends Changes {
  /** The request after all rules. */
  body: JsonObject;
  /** The top-level fields that changed; undefined ones are to be removed. */
  set: JsonObject;
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
    const ruled: RuleResult = { body, set: {}, fixups: [], dropped: [] };
    for (const [name, rule] of named) {
      const changes = rule(ruled.body, ...given);
      if (!changes) continue;
      const before = ruled.body;
      ruled.body = omitUndefined({ ...before, ...changes });
      Object.assign(ruled.set, changes);
      ruled.fixups.push(name);
      ruled.dropped.push(...(notes[name]?.(before, ruled.body) ?? []));
    }
    return ruled;
  };
}

/** Some of the rules, in their order. */
export const rulesNamed = <R>(rules: Record<string, R>, names: readonly string[]): Record<string, R> =>
  Object.fromEntries(Object.entries(rules).filter(([name]) => names.includes(name)));

/** The result as edits of the client's JSON. */
export function asFixup(before: JsonObject, { set, fixups, dropped }: RuleResult): RequestFixup {
  const remove = Object.keys(set).filter((key) => set[key] === undefined && key in before);
  return { set: omitUndefined(set), remove, fixups, dropped };
}
