/**
 * Fields that the hub does not read: kept as extras under their wire name, written again where this dialect has them.
 */

import type { ForeignPart, ForeignTool, JsonObject, WithExtras } from "../hub/conversation";
import { nameOf } from "../hub/foreign";
import { dropChat, dropOthers } from "../hub/ignorable-fields";
import { omit } from "../hub/json";

/** Fields that only the chat dialect has; a chat client may have sent them. */
export const chatOnly = {
  request: new Set([
    ...["n", "logprobs", "logit_bias", "modalities", "audio"],
    ...["prediction", "functions", "function_call", "web_search_options", "response_format"],
  ]),
  turn: new Set(["name", "audio", "function_call", "refusal"]),
  others: new Set(["function", "custom", "file", "image_url", "index"]),
};

/** The extras that this dialect has; the names of all others are added to `dropped`. */
export function ownExtras({ extras }: WithExtras, notMine: ReadonlySet<string>, dropped: Set<string>): JsonObject {
  dropOthers({ extras }, ["anthropic", "google"], dropped);
  dropChat({ extras }, dropped);
  const members = extras?.openai ?? {};
  for (const key of Object.keys(members)) if (notMine.has(key)) dropped.add(key);
  return omit(members, notMine) ?? {};
}

/** The JSON of a foreign part or tool of this dialect; the name of any other is added to `dropped`. */
export function ownValue({ dialect, value }: ForeignPart | ForeignTool, dropped: Set<string>): JsonObject | undefined {
  if (dialect === "responses") return value;
  dropped.add(nameOf({ value }));
  return undefined;
}
