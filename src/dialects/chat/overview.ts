/** The roles in a chat request, and whether it contains an image. */
import { isObject } from "../../json";
import type { JsonObject } from "../hub/conversation";
import { omit } from "../hub/json";
import { type Overview, type OverviewMessage, overviewOf, type PromptHead } from "../overview";

/** `function` is the former name of `tool`; both are in the OpenAI SDK's ChatCompletionMessageParam. */
const speakers = new Map<unknown, OverviewMessage["by"]>([
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

export function promptHead({ messages, tools }: JsonObject): PromptHead {
  const list = (Array.isArray(messages) ? messages : []).filter(isObject);
  const spoken = list.findIndex(({ role }) => speakers.get(role) !== "system");
  const content = (message: JsonObject | undefined) => unmarked(message?.content);
  return {
    tools,
    system: list.slice(0, spoken === -1 ? list.length : spoken).map(content),
    first: content(list[spoken]),
  };
}

const unmarked = (content: unknown): unknown =>
  Array.isArray(content) ? content.map((part) => (isObject(part) ? omit(part, marks) : part)) : content;

const marks: ReadonlySet<string> = new Set(["cache_control"]);
