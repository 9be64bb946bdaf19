/** Members that ride along: into the bag under the wire's own name, and out of it as far as this dialect has the word. */
import { isObject } from "../../json";
import { chatExtras, sharedExtras } from "../hub/chat-extras";
import type { ForeignPart, ForeignTool, JsonObject, WithExtras } from "../hub/conversation";
import { ignorableFields } from "../hub/ignorable-fields";
import { omit } from "../hub/json";

/** What only the chat dialect has a word for: a chat client's bag may hold it. */
export const chatOnly = {
  request: new Set([
    ...["n", "logprobs", "logit_bias", "seed", "presence_penalty", "frequency_penalty", "modalities", "audio"],
    ...["prediction", "functions", "function_call", "web_search_options", "response_format"],
  ]),
  turn: new Set(["name", "audio", "function_call", "refusal"]),
  others: new Set(["function", "custom", "file", "image_url", "index"]),
};

/** The bag, as far as this dialect has the words; what it has no word for is named. */
export function ownExtras({ extras }: WithExtras, notMine: ReadonlySet<string>, dropped: Set<string>): JsonObject {
  for (const key of Object.keys(extras?.anthropic ?? {})) if (!ignorableFields.anthropic.has(key)) dropped.add(key);
  const members = sharedExtras(extras?.openai ?? {});
  for (const [key, value] of Object.entries(chatExtras(extras?.openai ?? {})))
    if (value != null && !ignorableFields.openai.has(key)) dropped.add(key);
  for (const key of Object.keys(members)) if (notMine.has(key)) dropped.add(key);
  return omit(members, notMine) ?? {};
}

/** What came in this dialect's own JSON; another dialect's is named. */
export function ownValue({ dialect, value }: ForeignPart | ForeignTool, dropped: Set<string>): JsonObject | undefined {
  if (dialect === "responses" && isObject(value)) return value;
  dropped.add(isObject(value) && typeof value.type === "string" ? value.type : "an unknown part");
  return undefined;
}
