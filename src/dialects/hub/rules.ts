/** Rules for what an upstream refuses in a request: each rule replaces one thing that is refused. */
import type { RequestFixup, TranslationOptions } from "../codec";
import type { Changes } from "./changes";
import type { JsonObject } from "./conversation";
import { omitUndefined } from "./json";
import { isSameList } from "./lists";
import type { ModelFacts } from "./model";

/** Returns the top-level fields to set (undefined: remove); returns undefined if nothing has to change. */
export type Rule = (body: JsonObject, model: ModelFacts, options: TranslationOptions) => JsonObject | undefined;

/** Changes a list of the request; items that stay keep their identity. */
type ListChange = (
  list: unknown[],
  model: ModelFacts,
  options: TranslationOptions,
  body: JsonObject,
) => readonly unknown[];

/** A rule about one list of a request; what is no list is left for the upstream to refuse. */
export const onList =
  (name: string, change: ListChange): Rule =>
  (body, model, options) => {
    const list: unknown = body[name];
    if (!Array.isArray(list)) return undefined;
    const after = change(list, model, options, body);
    return isSameList(after, list) ? undefined : { [name]: after };
  };

interface RuleTable {
  rules: Record<string, Rule>;
  /** What a rule removed or added, for the client to know. Rules without an entry change nothing for the client. */
  notes: Record<string, (before: JsonObject, after: JsonObject) => string[]>;
  /** For what passes through to a provider: it decides itself what it refuses. */
  providerRules: Record<string, Rule>;
}

interface RuleResult extends Changes {
  /** The request after all rules. */
  body: JsonObject;
  /** The top-level fields that changed; undefined ones are to be removed. */
  set: JsonObject;
}

type ApplyRules = (body: JsonObject, model: ModelFacts, options?: TranslationOptions) => RuleResult;

/** How a dialect's requests are changed: `applyRules` those that were translated, `fixRequest` those that pass through. */
export function requestRules({ rules, notes, providerRules }: RuleTable) {
  const applyRules = applyInOrder(rules, notes);
  const applyProviderRules = applyInOrder(providerRules, notes);
  const fixRequest = (body: JsonObject, model: ModelFacts, options?: TranslationOptions): RequestFixup =>
    asFixup(body, (model.provider ? applyProviderRules : applyRules)(body, model, options));
  return { applyRules, fixRequest };
}

/** Applies the rules in the order of the table; each sees the result of those before it. */
function applyInOrder(rules: RuleTable["rules"], notes: RuleTable["notes"]): ApplyRules {
  const named = Object.entries(rules);
  return (body, model, options = { webSearch: true }) => {
    const ruled: RuleResult = { body, set: {}, fixups: [], dropped: [] };
    for (const [name, rule] of named) {
      const changes = rule(ruled.body, model, options);
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
export const rulesNamed = (rules: RuleTable["rules"], names: readonly string[]): RuleTable["rules"] =>
  Object.fromEntries(Object.entries(rules).filter(([name]) => names.includes(name)));

/** The result as edits of the client's JSON. */
function asFixup(before: JsonObject, { set, fixups, dropped }: RuleResult): RequestFixup {
  const remove = Object.keys(set).filter((key) => set[key] === undefined && key in before);
  return { set: omitUndefined(set), remove, fixups, dropped };
}
