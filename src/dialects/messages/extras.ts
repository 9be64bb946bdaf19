/**
 * Fields that only Anthropic has: kept as extras under their path (`thinking.display`), and written back to their
 * place.
 */

import { isObject, numberIn } from "../../lib/json";
import { plainName } from "../../lib/json-shape";
import type { Conversation, JsonObject, WithExtras } from "../hub/conversation";
import { Fields } from "../hub/fields";
import { dropOthers, isIgnorable } from "../hub/ignorable-fields";
import { refuse, setField } from "../hub/json";
import type { Notes } from "../hub/notes";

/** Objects whose fields are read one by one; their unknown fields become extras under their path. Inner ones first. */
const nests = ["output_config.format", "output_config", "thinking", "tool_choice", "cache_control", "source"] as const;
type Nest = (typeof nests)[number];

/** Merges extras; an empty object if there are none. */
export function asExtras(...extrasList: (JsonObject | undefined)[]): WithExtras {
  const filled = extrasList.filter((extras) => extras !== undefined && Object.keys(extras).length > 0);
  return filled.length === 0 ? {} : { extras: { anthropic: merged(filled) } };
}

/** The fields of a nested object that nobody has read, under their path. */
export function nestedExtras(nest: Nest, fields: Fields): JsonObject | undefined {
  const left = fields.rest();
  return left && merged(Object.entries(left).map(([key, value]) => ({ [`${nest}.${key}`]: value })));
}

/** The cache mark of a part or tool, and what nobody has read of it as extras. */
export function withCacheMark(
  holder: Fields,
  ...extrasList: (JsonObject | undefined)[]
): WithExtras & { cache?: true } {
  const mark = holder.any("cache_control");
  if (!isObject(mark)) return asExtras(holder.rest(), ...extrasList);
  const control = new Fields(mark);
  if (mark.type === "ephemeral") control.skip("type");
  return { cache: true, ...asExtras(holder.rest(), ...extrasList, nestedExtras("cache_control", control)) };
}

/** Writes the cache mark and the extras back into the object. */
export function restoreCacheMark(object: JsonObject, holder: WithExtras & { cache?: boolean }): JsonObject {
  if (holder.cache) object.cache_control = { type: "ephemeral" };
  return restoreExtras(object, holder.extras?.anthropic);
}

/** Writes extras back to where they came from. The object is changed in place. */
export function restoreExtras(object: JsonObject, extras: JsonObject | undefined): JsonObject {
  for (const [key, value] of Object.entries(extras ?? {})) {
    const nest = nests.find((prefix) => key.startsWith(`${prefix}.`));
    if (nest) setAt(object, nest.split("."), key.slice(nest.length + 1), value);
    else setField(object, key, value);
  }
  return object;
}

function setAt(object: JsonObject, path: string[], key: string, value: unknown): void {
  const [step, ...further] = path;
  if (step === undefined) {
    setField(object, key, value);
    return;
  }
  // If `thinking` or `tool_choice` was not written, its fields are lost.
  if (!isObject(object[step]) && step !== "output_config") return;
  const inner = isObject(object[step]) ? { ...object[step] } : {};
  object[step] = inner;
  setAt(inner, further, key, value);
}

function merged(extrasList: (JsonObject | undefined)[]): JsonObject {
  const all: JsonObject = {};
  for (const extras of extrasList) for (const [key, value] of Object.entries(extras ?? {})) setField(all, key, value);
  return all;
}

// ── Other families' ──

/** OpenAI fields that change the meaning of a request: they are refused, not dropped. */
const essential: Record<string, (value: unknown) => boolean> = {
  n: (value) => numberIn(value) !== 1,
  background: (value) => value === true,
  previous_response_id: () => true,
  conversation: () => true,
  prompt: () => true,
};

/** @throws ProxyError `invalid_request` naming the field. */
export function refuseEssential(conversation: Conversation): void {
  const extras = conversation.extras?.openai ?? {};
  for (const [key, changes] of Object.entries(essential))
    if (extras[key] != null && changes(extras[key])) {
      const sentence = `\`${key}\` is not supported for this model: its upstream uses the Messages API, which has no equivalent. Leave it out.`;
      refuse(key, sentence, "unsupported_parameter");
    }
}

/** Notes the extras of other families that are lost as dropped. */
export function dropExtras(holder: WithExtras, notes: Notes): void {
  dropOthers(holder, ["google"], notes);
  const extras: JsonObject = { ...holder.extras?.openai, ...holder.extras?.chat };
  for (const [key, value] of Object.entries(extras))
    if (!isIgnorable("openai", key, value) && !Object.hasOwn(essential, key)) notes.addDropped(plainName(key));
}
