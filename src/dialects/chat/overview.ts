/** The roles in a chat request, and whether it contains an image. */
import { isObject } from "../../json";
import type { JsonObject } from "../hub/conversation";
import { type Overview, overviewOf, type Said } from "../overview";

/** `function` is the former name of `tool`; both are in the OpenAI SDK's ChatCompletionMessageParam. */
const speakers = new Map<unknown, Said["by"]>([
  ["system", "system"],
  ["developer", "system"],
  ["assistant", "model"],
  ["tool", "tool"],
  ["function", "tool"],
]);

const types = { text: new Set(["text"]), image: new Set(["image_url"]) };

export function overview({ messages }: JsonObject): Overview {
  const list = (Array.isArray(messages) ? messages : []).filter(isObject);
  return overviewOf(
    list.map(({ role, content }) => ({ by: speakers.get(role) ?? "user", content })),
    types,
  );
}
