/** What an upstream refuses of a request, as a list of rules: each one a refusal, and what is sent instead. */
import type { RequestFixup } from "../codec";
import type { JsonObject } from "./conversation";
import { omitUndefined } from "./json";

/** The top-level members to set, undefined for those to remove; no answer when the request is well as it is. */
export type Rule<Given extends unknown[]> = (body: JsonObject, ...given: Given) => JsonObject | undefined;

export interface RuleResult {
  /** As the upstream takes it. */
  body: JsonObject;
  /** What that changed: undefined members are those to remove. */
  changes: JsonObject;
  /** The names of the rules that had something to do. */
  fixups: string[];
  /** What was taken from who asked, or added. */
  notes: string[];
}

/**
 * Rules as one step, in the order of the table: each sees what those before it left.
 * @param notes What a rule took from who asked, or added; those that are missing change nothing for him.
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

/** The same as the edits of a client's own text. */
export function asFixup(before: JsonObject, { changes, fixups, notes }: RuleResult): RequestFixup {
  const remove = Object.keys(changes).filter((key) => changes[key] === undefined && key in before);
  return { set: omitUndefined(changes), remove, fixups, ...(notes.length > 0 ? { dropped: notes } : {}) };
}
