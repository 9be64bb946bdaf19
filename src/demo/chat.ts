/** POST /chat/completions: reads and validates the request. reply-variants.ts writes the answer. */

import { type Dialect, modelRules, type Objection, schemaObjection, type View } from "./model-call";
import type { ModelRequest, Reading, Tool } from "./parse-prompt";
import { promptBlock } from "./prompt-cache";
import { chatFrames, wholeChat } from "./reply-variants";
import { proof } from "./signatures";
import { lookArounds, openSchemas } from "./tool-schemas";
import { entry, invalid, type Json, number, parse, record, records, refusal, string } from "./wire";

const stopped = `data: ${JSON.stringify({ error: { code: "server_error", message: "DEMO: the model stopped working" } })}\n\n`;

export const chat: Dialect = {
  path: "/chat/completions",
  read,
  rules,
  whole: wholeChat,
  frames: chatFrames,
  interjections: { error: stopped, failed: stopped, ping: ": ping\n\n" },
};

function read(body: Json): Reading {
  const messages = records(body.messages);
  const effort = string(body.reasoning_effort);
  const asksThinking = number(body.thinking_budget) || (effort && effort !== "none");
  return {
    turns: messages.map(({ role, content }) => ({ role, content, results: role === "tool" ? [content] : [] })),
    tools: records(body.tools).map(readTool),
    choice: readChoice(body.tool_choice),
    thinks: asksThinking ? true : effort === "none" ? false : undefined,
    effort: effort || undefined,
    parallel: body.parallel_tool_calls !== false,
    schema: readSchema(record(body.response_format)),
    maxTokens: number(body.max_completion_tokens) ?? number(body.max_tokens),
    stops: [body.stop].flat().map(string).filter(Boolean),
    blocks: [...records(body.tools), ...messages].map((block) => promptBlock(block)),
  };
}

function readTool(tool: Json): Tool {
  const { name, description, parameters } = record(tool.function);
  return { name: string(name), kind: "function", description: string(description), schema: parameters };
}

const choices: Record<string, ModelRequest["choice"]> = { required: "any", none: "none" };

/** `tool_choice` of OpenAI's APIs: a word, or an object with a name. */
export function readChoice(choice: unknown): ModelRequest["choice"] {
  const { name, function: called } = record(choice);
  const tool = string(name) || string(record(called).name);
  return tool ? { name: tool } : (entry(choices, string(choice)) ?? "auto");
}

/** The schema in a format of OpenAI's APIs. */
export function readSchema({ type, schema, json_schema }: Json): unknown {
  if (type === "json_object") return { type: "object" };
  return type === "json_schema" ? (schema ?? record(json_schema).schema) : undefined;
}

const refused = (message: string) => refusal(400, "invalid_request_body", message);

function* rules(view: View): Generator<Objection> {
  const { account, body, model } = view;
  const messages = records(body.messages);
  const claude = model.family === "claude";
  yield messages.length === 0 && refused("messages must be a non-empty array");
  for (const rule of ["imagesAnnounced", "imagesSeen", "toolCount", "toolNames", "choiceOffered"] as const)
    yield modelRules[rule](view);
  yield records(body.tools).some((tool) => tool.type !== "function") &&
    refused("only tools of type function are supported");
  yield* openSchemas(view);
  const odd = messages.find(({ role }) => !["system", "user", "assistant", "tool"].includes(string(role)));
  yield odd && refused(`unsupported role: ${string(odd.role)}`);
  yield* toolPairs(messages);
  if (model.family !== "gpt") yield* callInputs(messages);
  if (model.family === "gpt") yield* idLengths(messages);
  // Newer models of OpenAI accept max_completion_tokens only.
  yield body.max_tokens !== undefined &&
    /^(gpt-5|o\d)/.test(model.id) &&
    invalid(
      "unsupported_parameter",
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      "max_tokens",
    );
  yield modelRules.effortKnown(view);
  const budget = number(body.thinking_budget);
  if (budget !== undefined) {
    yield !model.budget && refused("thinking_budget is not supported by this model");
    const { min = 0, max = 0 } = model.budget ?? {};
    yield (budget < min || budget > max) && refused(`thinking_budget must be between ${min} and ${max}`);
  }
  const { type, json_schema } = record(body.response_format);
  const isGpt = model.family === "gpt";
  if (type === "json_schema") {
    yield !isGpt && !model.traits.has("structured") && refused("response_format is not supported by this model");
    const { schema, name } = record(json_schema);
    yield isGpt && schemaObjection(schema, name, "response_format");
    if (isGpt) yield* lookArounds(schema, "response_format");
  }
  yield record(body.prediction).content === "" && refused("prediction content must not be empty");
  if (claude) {
    yield body.temperature != null &&
      body.top_p != null &&
      refused("`temperature` and `top_p` cannot both be specified for this model. Please use only one.");
    yield messages.at(-1)?.role === "assistant" &&
      refused("This model does not support assistant message prefill. The conversation must end with a user message.");
    yield messages.some(({ role, content }) => role === "user" && emptyText(content)) &&
      refused("messages: text content blocks must be non-empty");
  }
  // Replayed reasoning must be the model's own, unmodified.
  for (const { reasoning_opaque, reasoning_text } of messages)
    yield reasoning_opaque !== undefined &&
      proof(string(reasoning_opaque), string(reasoning_text), account.login) !== "valid" &&
      refused("Invalid `signature` in `thinking` block");
  yield modelRules.promptFits(view);
}

const emptyText = (content: unknown) =>
  content === "" || records(content).some((part) => part.type === "text" && string(part.text) === "");

function* idLengths(messages: Json[]): Generator<Objection> {
  for (const [at, { tool_calls }] of messages.entries())
    for (const [call, { id }] of records(tool_calls).entries()) {
      const { length } = string(id);
      const path = `messages[${at}].tool_calls[${call}].id`;
      yield length > 40 &&
        invalid(
          "string_above_max_length",
          `Invalid '${path}': string too long. Expected a string with maximum length 40, but got a string with length ${length} instead.`,
          path,
        );
    }
}

/** Other vendors' models get the input of a call as an object. */
function* callInputs(messages: Json[]): Generator<Objection> {
  for (const { tool_calls } of messages)
    for (const call of records(tool_calls)) {
      const input = parse(string(record(call.function).arguments));
      yield record(input) !== input &&
        refusal(400, "invalid_tool_call_format", "Invalid JSON format in tool call arguments");
    }
}

/** Each call needs a result directly after it, and each result a call. */
function* toolPairs(messages: Json[]): Generator<Objection> {
  let open = new Set<string>();
  for (const message of messages) {
    if (message.role === "tool") {
      const id = string(message.tool_call_id);
      yield !open.delete(id) && refused(`tool message has no matching tool_calls: ${id}`);
      continue;
    }
    if (open.size > 0) break;
    open = new Set(records(message.tool_calls).map((call) => string(call.id)));
  }
  yield open.size > 0 && refused(`tool_calls without tool messages: ${[...open].join(", ")}`);
}
