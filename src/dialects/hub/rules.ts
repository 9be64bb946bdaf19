/** Rules for what an upstream refuses in a request: each rule replaces one thing that is refused. */
import { isObject } from "../../lib/json";
import type { TranslationOptions } from "../codec";
import type { JsonObject } from "./conversation";
import { omitUndefined } from "./json";
import { isSameList } from "./lists";
import type { ModelFacts } from "./model";
import { type Notes, unnoted } from "./notes";

/** Returns the top-level fields to set (undefined: remove); returns undefined if nothing has to change. */
export type Rule = (body: JsonObject, model: ModelFacts, options: TranslationOptions) => JsonObject | undefined;

/**
 * A rule, and before it the words that it looks for: names of members, and values of `type` and `role`. It is asked only of a
 * request in which one of them is found as {@link findWords} does; without words, of each.
 */
export type RuleRow = readonly [...words: string[], rule: Rule];

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

/** The model's name as the upstream knows it. */
export const modelName: RuleRow = [(body, model) => (body.model === model.id ? undefined : { model: model.id })];

/** "[] is too short - 'tools'": some clients send an empty list. */
export const emptyTools: RuleRow = [
  "tools",
  ({ tools }) => (Array.isArray(tools) && tools.length === 0 ? { tools: undefined } : undefined),
];

/** Notes that a rule has changed a request. */
type NoteRule = (notes: Notes, rule: string, after: JsonObject) => void;

export interface RuleTable {
  rules: Record<string, RuleRow>;
  /** What a rule removed or added, for the client to know. Rules without an entry change nothing for the client. */
  dropped: Record<string, (before: JsonObject, after: JsonObject) => string[]>;
  /** Of a translated request, whose form the client did not write. */
  noteTranslated?: NoteRule;
  /**
   * For what passes through to a provider: it decides itself what it refuses, but for what another upstream has left in the
   * conversation, which a client cannot change.
   */
  providerRules: Record<string, RuleRow>;
}

type ApplyRules = (body: JsonObject, model: ModelFacts, options?: TranslationOptions) => JsonObject;

/** How a dialect's requests are changed: `applyRules` those that were translated, `fixRequest` those that pass through. */
export function requestRules({ rules, dropped, noteTranslated = () => {}, providerRules }: RuleTable) {
  const applyRules = applyInOrder(rules, dropped, noteTranslated);
  const fixPlain = applyInOrder(rules, dropped, noteFixup);
  const fixProvided = applyInOrder(providerRules, dropped, noteFixup);
  const fixRequest: ApplyRules = (body, model, options) =>
    (model.provider ? fixProvided : fixPlain)(body, model, options);
  return { applyRules, fixRequest };
}

const noteFixup: NoteRule = (notes, rule) => notes.addFixup(rule);

/** Applies the rules in the order of the table; each sees the result of those before it. */
function applyInOrder(rules: RuleTable["rules"], dropped: RuleTable["dropped"], noteRule: NoteRule): ApplyRules {
  const named = Object.entries(rules).map(([name, row]) => ({ name, rule: row.at(-1) as Rule }));
  const askedOfEach = Object.values(rules).map((row) => row.length === 1);
  const placesOf: PlacesOfWords = new Map();
  for (const [place, row] of Object.values(rules).entries())
    for (const word of row.slice(0, -1) as string[]) placesOf.set(word, [...(placesOf.get(word) ?? []), place]);
  return (body, model, options = { webSearch: true }) => {
    const { notes = unnoted } = options;
    let ruled = body;
    const isAsked = askedOfEach.slice();
    findWords(body, placesOf, isAsked);
    for (let place = 0; place < named.length; place++) {
      if (!isAsked[place]) continue;
      const { name, rule } = named[place]!;
      const before = ruled;
      const changes = rule(before, model, options);
      if (!changes) continue;
      findWords(changes, placesOf, isAsked);
      ruled = omitUndefined({ ...before, ...changes });
      noteRule(notes, name, ruled);
      for (const lost of dropped[name]?.(before, ruled) ?? []) notes.addDropped(lost);
    }
    return ruled;
  };
}

/** The places in the table of the rules that look for a word. */
type PlacesOfWords = Map<string, readonly number[]>;

/**
 * Notes which rules are asked: those that look for a word of the object or of an object in its lists. Words are the names of
 * members, types and roles. Other objects within them, such as schemas and the input of tools, are not looked into.
 */
function findWords(object: JsonObject, placesOf: PlacesOfWords, isAsked: boolean[]): void {
  for (const name in object) {
    note(name, placesOf, isAsked);
    const value = object[name];
    if (Array.isArray(value)) for (const item of value) isObject(item) && findWords(item, placesOf, isAsked);
    else if (typeof value === "string" && (name === "type" || name === "role")) note(value, placesOf, isAsked);
  }
}

function note(word: string, placesOf: PlacesOfWords, isAsked: boolean[]): void {
  const places = placesOf.get(word);
  if (places) for (const place of places) isAsked[place] = true;
}

/** Some of the rules, in their order. */
export const rulesNamed = (rules: RuleTable["rules"], names: readonly string[]): RuleTable["rules"] =>
  Object.fromEntries(Object.entries(rules).filter(([name]) => names.includes(name)));
