/** POST /chat/completions: reads and validates the request. reply-variants.ts writes the answer. */

import { type Dialect, modelRules, type Rule, schemaObjection } from "./model-call";
import type { ModelRequest, Tool } from "./parse-prompt";
import { promptBlock } from "./prompt-cache";
import { chatFrames, wholeChat } from "./reply-variants";
import { newestWords, ownWords } from "./scripted-replies";
import { proves } from "./signatures";
import { entry, invalid, type Json, number, record, records, refusal, string, weigh } from "./wire";

const stopped = `data: ${JSON.stringify({ error: { code: "server_error", message: "DEMO: the model stopped working" } })}\n\n`;

export const chat: Dialect = {
  path: "/chat/completions",
  read,
  get rules() {
    return rules;
  },
  whole: wholeChat,
  frames: chatFrames,
  interjections: { error: stopped, failed: stopped, ping: ": ping\n\n" },
};

function read(body: Json): ModelRequest {
  const messages = records(body.messages);
  const lastOther = messages.findLastIndex((message) => message.role !== "tool");
  const results = messages.slice(lastOther + 1).map((message) => textOf(message.content));
  const wordsIn = (some: Json[]) => some.filter((message) => message.role === "user").map(newestText);
  const sinceTheModel = messages.slice(messages.findLastIndex((message) => message.role === "assistant") + 1);
  const parts = messages.flatMap((message) => records(message.content));
  const effort = string(body.reasoning_effort);
  const asksThinking = number(body.thinking_budget) || (effort && effort !== "none");
  return {
    model: string(body.model),
    stream: body.stream === true,
    prompt: newestWords(wordsIn(messages), wordsIn(sinceTheModel), results),
    results,
    background: messages
      .filter(({ role }) => role !== "assistant" && role !== "tool")
      .map(({ content }) => textOf(content)),
    tools: records(body.tools).map(readTool),
    choice: readChoice(body.tool_choice),
    thinks: asksThinking ? true : effort === "none" ? false : undefined,
    effort: effort || undefined,
    parallel: body.parallel_tool_calls !== false,
    schema: readSchema(record(body.response_format)),
    maxTokens: number(body.max_completion_tokens) ?? number(body.max_tokens),
    stops: [body.stop].flat().map(string).filter(Boolean),
    turns: messages.filter((message) => message.role === "assistant").length,
    images: parts.filter((part) => part.type === "image_url").length,
    blocks: [...records(body.tools), ...messages].map((block) => promptBlock(block)),
    cacheKey: string(body.prompt_cache_key) || undefined,
    weight: weigh(body.messages),
    toolWeight: weigh(body.tools),
  };
}

const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : records(content)
        .map((part) => string(part.text))
        .join("\n");

/** The last text of a message that has a person's own words: clients put their context into earlier texts. */
function newestText({ content }: Json): string {
  const texts = typeof content === "string" ? [content] : records(content).map((part) => string(part.text));
  return texts.map(ownWords).findLast(Boolean) ?? "";
}

function readTool(tool: Json): Tool {
  const { name, description, parameters } = record(tool.function);
  return { name: string(name), kind: "function", description: string(description), schema: parameters };
}

const choices: Record<string, ModelRequest["choice"]> = { required: "any", none: "none" };

function readChoice(choice: unknown): ModelRequest["choice"] {
  const name = string(record(record(choice).function).name);
  if (name) return { name };
  return entry(choices, string(choice)) ?? "auto";
}

const readSchema = (format: Json): unknown =>
  format.type === "json_schema"
    ? record(format.json_schema).schema
    : format.type === "json_object"
      ? { type: "object" }
      : undefined;

const body = (message: string) => refusal(400, "invalid_request_body", message);

const rules: Rule[] = [
  ({ body: { messages } }) => records(messages).length === 0 && body("messages must be a non-empty array"),
  modelRules.imagesAnnounced,
  modelRules.imagesSeen,
  modelRules.toolCount,
  modelRules.toolNames,
  modelRules.choiceOffered,
  ({ body: { tools } }) =>
    records(tools).some((tool) => tool.type !== "function") && body("only tools of type function are supported"),
  ({ body: { messages } }) => {
    const odd = records(messages).find(({ role }) => !["system", "user", "assistant", "tool"].includes(string(role)));
    return odd && body(`unsupported role: ${string(odd.role)}`);
  },
  toolPairs,
  // Newer models of OpenAI accept max_completion_tokens only.
  ({ body: { max_tokens }, model }) =>
    max_tokens !== undefined &&
    /^(gpt-5|o\d)/.test(model.id) &&
    invalid(
      "unsupported_parameter",
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      "max_tokens",
    ),
  modelRules.effortKnown,
  ({ body: { thinking_budget }, model: { budget } }) => {
    const asked = number(thinking_budget);
    return (
      asked !== undefined &&
      (!budget || asked < budget.min || asked > budget.max) &&
      body(
        budget
          ? `thinking_budget must be between ${budget.min} and ${budget.max}`
          : "thinking_budget is not supported by this model",
      )
    );
  },
  ({ body: { response_format }, model }) =>
    record(response_format).type === "json_schema" &&
    !model.traits.has("structured") &&
    model.family !== "gpt" &&
    body("response_format is not supported by this model"),
  ({ body: { response_format }, model }) => {
    const { type, json_schema } = record(response_format);
    const { schema, name } = record(json_schema);
    return type === "json_schema" && model.family === "gpt" && schemaObjection(schema, name, "response_format");
  },
  ({ body: { prediction } }) => record(prediction).content === "" && body("prediction content must not be empty"),
  ({ body: { temperature, top_p }, model }) =>
    model.family === "claude" &&
    temperature != null &&
    top_p != null &&
    body("`temperature` and `top_p` cannot both be specified for this model. Please use only one."),
  ({ body: { messages }, model }) =>
    model.family === "claude" &&
    records(messages).at(-1)?.role === "assistant" &&
    body("This model does not support assistant message prefill. The conversation must end with a user message."),
  ({ body: { messages }, model }) =>
    model.family === "claude" &&
    records(messages).some(({ role, content }) => role === "user" && emptyText(content)) &&
    body("messages: text content blocks must be non-empty"),
  // Replayed reasoning must be the model's own, unmodified.
  ({ body: { messages } }) =>
    records(messages).some(
      ({ reasoning_opaque, reasoning_text }) =>
        reasoning_opaque !== undefined && !proves(string(reasoning_opaque), string(reasoning_text)),
    ) && body("Invalid `signature` in `thinking` block"),
  modelRules.promptFits,
];

const emptyText = (content: unknown) =>
  content === "" || records(content).some((part) => part.type === "text" && string(part.text) === "");

/** Each call needs a result directly after it, and each result a call. */
function toolPairs({ body: { messages } }: { body: Json }) {
  let open = new Set<string>();
  for (const message of records(messages)) {
    if (message.role === "tool") {
      const id = string(message.tool_call_id);
      if (!open.delete(id)) return body(`tool message has no matching tool_calls: ${id}`);
      continue;
    }
    if (open.size > 0) break;
    open = new Set(records(message.tool_calls).map((call) => string(call.id)));
  }
  return open.size > 0 && body(`tool_calls without tool messages: ${[...open].join(", ")}`);
}
