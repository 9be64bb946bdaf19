/**
 * Fields that the hub does not read: kept as extras under their wire name, written again where this dialect has them.
 */

import type { ForeignPart, ForeignTool, JsonObject, WithExtras } from "../hub/conversation";
import { nameOf } from "../hub/foreign";
import { dropChat, dropOthers } from "../hub/ignorable-fields";
import { omit } from "../hub/json";
import type { Notes } from "../hub/notes";

/** Fields that only the chat dialect has; a chat client may have sent them. */
export const chatOnly = {
  request: new Set([
    ...["n", "logprobs", "logit_bias", "modalities", "audio"],
    ...["prediction", "functions", "function_call", "web_search_options", "response_format"],
  ]),
  turn: new Set(["name", "audio", "function_call", "refusal"]),
  others: new Set(["function", "custom", "file", "image_url", "index"]),
};

/** The extras that this dialect has; all others are noted as dropped. */
export function ownExtras({ extras }: WithExtras, notMine: ReadonlySet<string>, notes: Notes): JsonObject {
  dropOthers({ extras }, ["anthropic", "google"], notes);
  dropChat({ extras }, notes);
  const members = extras?.openai ?? {};
  for (const key of Object.keys(members)) if (notMine.has(key)) notes.addDropped(key);
  return omit(members, notMine) ?? {};
}

/** The JSON of a foreign part or tool of this dialect; any other is noted as dropped. */
export function ownValue({ dialect, value }: ForeignPart | ForeignTool, notes: Notes): JsonObject | undefined {
  if (dialect === "responses") return value;
  notes.addDropped(nameOf({ value }));
  return undefined;
}
