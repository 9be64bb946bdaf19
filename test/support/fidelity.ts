/**
 * What survives between dialects, found out: each idea is spelt in every dialect that has a word for it, read by the one
 * codec and written by the other, and looked for in what comes out.
 */

import { codecs } from "../../src/dialects/codecs";
import {
  type ClientDialect,
  clientDialects,
  type Dialect,
  dialects,
  type JsonObject,
} from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";
import { offerFunctions } from "../../src/dialects/hub/server-offers";
import { packSignature } from "../../src/dialects/hub/signature";
import { ProxyError } from "../../src/lib/errors";
import { isObject } from "../../src/lib/json";
import { serverTools } from "../../src/proxy/server-tools/tools";
import { adapt } from "./adapt";
import { ableModel } from "./facts";
import { geminiReader } from "./gemini-reply";
import { pixel } from "./scenarios";

type Fate = "kept" | "carried" | "dropped" | "refused" | "left out" | "–";

/** Client first, upstream second. */
export const pairs = clientDialects.flatMap((client) =>
  dialects.filter((upstream) => upstream !== client).map((upstream) => [client, upstream] as const),
);

export function fidelityTable(): string {
  const rows = [
    ["in a request", ...pairs.map(([client, upstream]) => `${client} → ${upstream}`)],
    ...requests.map((idea) => [idea.name, ...pairs.map(([client, upstream]) => requestFate(idea, client, upstream))]),
  ];
  const replyRows = [
    ["in a reply", ...pairs.map(([client, upstream]) => `${client} ← ${upstream}`)],
    ...replies.map((idea) => [idea.name, ...pairs.map(([client, upstream]) => replyFate(idea, client, upstream))]),
  ];
  return `${markdown(rows)}\n\n${markdown(replyRows)}`;
}

function markdown([head = [], ...rows]: string[][]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

// ── Looking ──

/** A model that can do everything, of the maker whose own dialect it is. */
const models: Record<Dialect, ModelFacts> = {
  chat: ableModel("gpt-4.1", "OpenAI"),
  responses: ableModel("gpt-5.3-codex", "OpenAI"),
  messages: ableModel("claude-sonnet-4.6", "Anthropic"),
};

interface Idea {
  name: string;
  /** How each dialect says it: members of the body beside a plain one's. A dialect without the feature is missing. */
  said: Partial<Record<ClientDialect, JsonObject | ((upstream: ClientDialect) => JsonObject)>>;
  /** A piece of it that must arrive for the idea to have arrived, where something else may be put in its place. */
  needle?: string | RegExp;
  /** It never arrives in the other dialect's own words. */
  isAnotherForm?: true;
}

/** Where the idea went that a client of the one dialect sends to an upstream of the other. */
export function requestFate(idea: Idea, client: ClientDialect, upstream: Dialect): Fate {
  const said = spelling(idea, client, upstream);
  if (!said) return "–";
  const plain = translated({}, client, upstream);
  let told: Translated;
  try {
    told = translated(said, client, upstream);
  } catch (thrown) {
    if (thrown instanceof ProxyError) return "refused";
    throw thrown;
  }
  const isTold = told.dropped.some((name) => !plain.dropped.includes(name));
  const own = spelling(idea, upstream, upstream);
  const word = own ? without(respelt(own, upstream), respelt({}, upstream)) : [];
  if (arrived(idea, told.leaves)) {
    if (!idea.isAnotherForm && word.length > 0 && word.every((leaf) => told.leaves.includes(leaf))) return "kept";
    const isElsewhere = without(told.leaves, plain.leaves).length > 0;
    if (isElsewhere && (!isTold || idea.needle !== undefined)) return "carried";
  }
  return isTold ? "dropped" : "left out";
}

/** Where the idea went that an upstream of the one dialect answers to a client of the other. */
export function replyFate(idea: Idea, client: ClientDialect, upstream: Dialect): Fate {
  const said = spelling(idea, upstream, upstream);
  if (!said) return "–";
  const told = answered(said, client, upstream);
  if (!arrived(idea, told)) return "–";
  const own = spelling(idea, client, client);
  const word = own ? without(answered(own, client, client), answered(plainReplies[client], client, client)) : [];
  if (word.length > 0 && word.every((leaf) => told.includes(leaf))) return "kept";
  return without(told, answered(plainReplies[upstream], client, upstream)).length > 0 ? "carried" : "–";
}

function spelling({ said }: Idea, dialect: ClientDialect, upstream: ClientDialect): JsonObject | undefined {
  const words = said[dialect];
  return typeof words === "function" ? words(upstream) : words;
}

function arrived({ needle }: Idea, leaves: string[]): boolean {
  if (needle === undefined) return true;
  return leaves.some((leaf) => (typeof needle === "string" ? leaf.includes(needle) : needle.test(leaf)));
}

interface Translated {
  leaves: string[];
  dropped: string[];
}

/** As `relay/translation` does it. */
function translated(said: JsonObject, client: ClientDialect, upstream: Dialect): Translated {
  const decoded = codecs[client].decodeRequest({ ...plainRequests[client], ...said });
  const { conversation } = offerFunctions(decoded, serverTools["web-search"].form) ?? { conversation: decoded };
  const adapted = adapt(conversation, upstream);
  const { body, dropped } = codecs[upstream].encodeRequest(adapted.conversation, models[upstream], { webSearch: true });
  return { leaves: leavesOf(body), dropped: [...adapted.dropped, ...dropped] };
}

/** The dialect's own request, as it writes it itself. */
function respelt(said: JsonObject, dialect: Dialect): string[] {
  const conversation = codecs[dialect].decodeRequest({ ...plainRequests[dialect], ...said });
  return leavesOf(codecs[dialect].encodeRequest(conversation, models[dialect], { webSearch: true }).body);
}

function answered(reply: JsonObject, client: ClientDialect, upstream: ClientDialect): string[] {
  const asked = codecs[client].decodeRequest({ ...plainRequests[client], ...wishes[client] });
  const { decodeReply } = upstream === "gemini" ? geminiReader : codecs[upstream];
  return leavesOf(codecs[client].encodeReply(decodeReply(reply), asked));
}

/** What a client must ask for to be shown all of a reply. */
const wishes: Partial<Record<ClientDialect, JsonObject>> = {
  gemini: { generationConfig: { thinkingConfig: { includeThoughts: true } } },
};

/** Every value of the body with the way to it, places in lists, made ids and times left aside. */
function leavesOf(value: unknown, path = ""): string[] {
  if (Array.isArray(value)) return value.flatMap((member) => leavesOf(member, `${path}[]`));
  if (isObject(value))
    return Object.entries(value).flatMap(([key, member]) => (made.has(key) ? [] : leavesOf(member, `${path}.${key}`)));
  return [`${path}=${JSON.stringify(path.endsWith(".thoughtSignature") ? unpacked(String(value)) : value)}`];
}

/** Google's signatures are base64, also those that dragoman packed. */
function unpacked(signature: string): string {
  const text = Buffer.from(signature, "base64").toString();
  return text.startsWith("dragoman.") ? text : signature;
}

const made = new Set(["id", "created", "created_at", "responseId"]);

const without = (leaves: string[], others: string[]): string[] => leaves.filter((leaf) => !others.includes(leaf));

// ── Plain ──

const model = "m";
const hello = { role: "user", content: "Hello." };
const plainRequests: Record<ClientDialect, JsonObject> = {
  chat: { model, messages: [hello] },
  responses: { model, input: [hello] },
  messages: { model, max_tokens: 32_000, messages: [hello] },
  gemini: { model, contents: [geminiTurn(hello)] },
};

/** A turn whose content is a text or parts. */
function geminiTurn({ role, content }: JsonObject): JsonObject {
  const parts = typeof content === "string" ? [{ text: content }] : content;
  return { role: role === "assistant" ? "model" : "user", parts };
}

const plainReplies: Record<ClientDialect, JsonObject> = {
  chat: chatReply({ content: "Hi." }),
  responses: responsesReply([{ type: "message", id: "msg_1", role: "assistant", content: [outputText("Hi.")] }]),
  messages: messagesReply([{ type: "text", text: "Hi." }]),
  gemini: geminiReply([{ text: "Hi." }]),
};

function geminiReply(parts: JsonObject[], more: JsonObject = {}, usage: JsonObject = {}): JsonObject {
  const usageMetadata = { promptTokenCount: 900, candidatesTokenCount: 90, totalTokenCount: 990, ...usage };
  const candidates = [{ content: { parts, role: "model" }, finishReason: "STOP", index: 0, ...more }];
  return { candidates, usageMetadata, modelVersion: model, responseId: "r1" };
}

function chatReply(message: JsonObject, finish_reason = "stop", more: JsonObject = {}): JsonObject {
  const usage = { prompt_tokens: 900, completion_tokens: 90, total_tokens: 990, ...more };
  const choices = [{ index: 0, finish_reason, message: { role: "assistant", content: null, ...message } }];
  return { id: "chatcmpl-1", object: "chat.completion", created: 1, model, choices, usage };
}

function responsesReply(output: JsonObject[], more: JsonObject = {}, usage: JsonObject = {}): JsonObject {
  const counted = {
    input_tokens: 900,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 90,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 990,
    ...usage,
  };
  return {
    id: "resp_1",
    object: "response",
    created_at: 1,
    status: "completed",
    model,
    output,
    usage: counted,
    ...more,
  };
}

function messagesReply(content: JsonObject[], more: JsonObject = {}, usage: JsonObject = {}): JsonObject {
  const counted = { input_tokens: 900, output_tokens: 90, ...usage };
  const end = { stop_reason: "end_turn", stop_sequence: null };
  return { id: "msg_1", type: "message", role: "assistant", model, content, ...end, usage: counted, ...more };
}

function outputText(text: string): JsonObject {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

// ── Ideas of a request ──

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const name = "get_weather";
const description = "The weather in a city";
const tools: Record<ClientDialect, JsonObject> = {
  chat: { type: "function", function: { name, description, parameters: schema } },
  responses: { type: "function", name, description, parameters: schema, strict: false },
  messages: { name, description, input_schema: schema },
  gemini: { functionDeclarations: [{ name, description, parametersJsonSchema: schema }] },
};
const withTools = (dialect: ClientDialect, more: JsonObject = {}) => ({ tools: [tools[dialect]], ...more });

/** A turn that calls the tool, and the turn with its result. */
function loop(dialect: ClientDialect, result: { output?: unknown; more?: JsonObject } = {}): JsonObject {
  const id = "call_1";
  const { output = "18 degrees", more = {} } = result;
  const arguments_ = '{"city":"Paris"}';
  const turns: Record<ClientDialect, unknown[]> = {
    chat: [
      hello,
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id, type: "function", function: { name, arguments: arguments_ } }],
      },
      { role: "tool", tool_call_id: id, content: output, ...more },
    ],
    responses: [
      hello,
      { type: "function_call", call_id: id, name, arguments: arguments_ },
      { type: "function_call_output", call_id: id, output, ...more },
    ],
    messages: [
      hello,
      { role: "assistant", content: [{ type: "tool_use", id, name, input: { city: "Paris" } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: output, ...more }] },
    ],
    gemini: [
      hello,
      { role: "assistant", content: [{ functionCall: { id, name, args: { city: "Paris" } } }] },
      {
        role: "user",
        content: [
          {
            functionResponse: {
              id,
              name,
              ...(Array.isArray(output) ? { parts: output } : { response: { output } }),
              ...more,
            },
          },
        ],
      },
    ],
  };
  return withTools(dialect, turnsOf(dialect, ...turns[dialect]));
}

const turnsOf = (dialect: ClientDialect, ...turns: unknown[]): JsonObject =>
  dialect === "responses"
    ? { input: turns }
    : dialect === "gemini"
      ? { contents: turns.map((turn) => geminiTurn(turn as JsonObject)) }
      : { messages: turns };
const userOf = (dialect: ClientDialect, ...content: unknown[]): JsonObject =>
  turnsOf(dialect, { role: "user", content });
const each = (words: (dialect: ClientDialect) => JsonObject): Idea["said"] =>
  Object.fromEntries(clientDialects.map((dialect) => [dialect, words(dialect)]));
const config = (generationConfig: JsonObject): JsonObject => ({ generationConfig });

const url = `data:image/png;base64,${pixel}`;
const fileLink = "https://example.com/report.pdf";
const link = "https://example.com/a.png";
const pdf = "JVBERi0xLjQKJQ==";
const images = {
  chat: (at: string) => ({ type: "image_url", image_url: { url: at } }),
  responses: (at: string) => ({ type: "input_image", image_url: at }),
  messages: (at: string) =>
    at.startsWith("data:")
      ? { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } }
      : { type: "image", source: { type: "url", url: at } },
  gemini: (at: string) =>
    at.startsWith("data:")
      ? { inlineData: { mimeType: "image/png", data: pixel } }
      : { fileData: { mimeType: "image/png", fileUri: at } },
};

/** A turn of the model that thought, its proof as a client of the dialect holds it. */
function thoughtful(dialect: ClientDialect, maker: ClientDialect): JsonObject {
  const proof = packSignature({ dialect: maker, value: "cHJvb2Y=" }, dialect);
  const text = "I shall greet.";
  const turns: Record<ClientDialect, unknown[]> = {
    chat: [{ role: "assistant", content: "Hi.", reasoning_text: text, reasoning_opaque: proof }],
    responses: [
      { type: "reasoning", summary: [{ type: "summary_text", text }], encrypted_content: proof },
      { role: "assistant", content: [outputText("Hi.")] },
    ],
    messages: [
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: text, signature: proof },
          { type: "text", text: "Hi." },
        ],
      },
    ],
    gemini: [
      {
        role: "assistant",
        content: [
          { text, thought: true },
          { text: "Hi.", thoughtSignature: dialect === maker ? proof : Buffer.from(proof).toString("base64") },
        ],
      },
    ],
  };
  return turnsOf(dialect, hello, ...turns[dialect], hello);
}

const format = { name: "answer", schema, strict: true };

export const requests: Idea[] = [
  {
    name: "text",
    said: each((dialect) => turnsOf(dialect, hello, { role: "assistant", content: "Hi." }, hello)),
  },
  {
    name: "system prompt",
    said: {
      chat: { messages: [{ role: "system", content: "Be brief." }, hello] },
      responses: { input: [{ role: "system", content: "Be brief." }, hello] },
      messages: { system: "Be brief." },
      gemini: { systemInstruction: { parts: [{ text: "Be brief." }] } },
    },
  },
  {
    name: "system prompt in the middle of the conversation",
    needle: "Be brief.",
    said: Object.fromEntries(
      dialects.map((dialect) => [dialect, turnsOf(dialect, hello, { role: "system", content: "Be brief." }, hello)]),
    ),
  },
  { name: "images", said: each((dialect) => userOf(dialect, images[dialect](url))) },
  { name: "image URLs", said: each((dialect) => userOf(dialect, images[dialect](link))) },
  {
    name: "file URLs",
    needle: fileLink,
    said: {
      responses: userOf("responses", { type: "input_file", file_url: fileLink }),
      messages: userOf("messages", { type: "document", source: { type: "url", url: fileLink } }),
      gemini: userOf("gemini", { fileData: { mimeType: "application/pdf", fileUri: fileLink } }),
    },
  },
  {
    name: "documents made of text blocks",
    needle: "the document's words",
    said: {
      messages: userOf("messages", {
        type: "document",
        title: "Report",
        source: { type: "content", content: [{ type: "text", text: "the document's words" }] },
      }),
    },
  },
  {
    name: "search results from the client",
    needle: "what was found",
    said: {
      messages: userOf("messages", {
        type: "search_result",
        source: "https://example.com/found",
        title: "Found",
        content: [{ type: "text", text: "what was found" }],
      }),
    },
  },
  {
    name: "PDF files",
    needle: pdf,
    said: {
      chat: userOf("chat", {
        type: "file",
        file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${pdf}` },
      }),
      responses: userOf("responses", {
        type: "input_file",
        filename: "a.pdf",
        file_data: `data:application/pdf;base64,${pdf}`,
      }),
      messages: userOf("messages", {
        type: "document",
        title: "a.pdf",
        source: { type: "base64", media_type: "application/pdf", data: pdf },
      }),
      gemini: userOf("gemini", { inlineData: { mimeType: "application/pdf", displayName: "a.pdf", data: pdf } }),
    },
  },
  { name: "tools", said: each((dialect) => withTools(dialect)) },
  {
    name: "forced tool choice",
    said: {
      chat: withTools("chat", { tool_choice: { type: "function", function: { name } } }),
      responses: withTools("responses", { tool_choice: { type: "function", name } }),
      messages: withTools("messages", { tool_choice: { type: "tool", name } }),
      gemini: withTools("gemini", {
        toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: [name] } },
      }),
    },
  },
  {
    name: "choice among some of the tools",
    said: {
      chat: withTools("chat", {
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: { mode: "required", tools: [{ type: "function", function: { name } }] },
        },
      }),
      responses: withTools("responses", {
        tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "function", name }] },
      }),
      gemini: withTools("gemini", {
        toolConfig: { functionCallingConfig: { mode: "VALIDATED", allowedFunctionNames: [name] } },
      }),
    },
  },
  {
    name: "no parallel tool calls",
    said: {
      chat: withTools("chat", { parallel_tool_calls: false }),
      responses: withTools("responses", { parallel_tool_calls: false }),
      messages: withTools("messages", { tool_choice: { type: "auto", disable_parallel_tool_use: true } }),
    },
  },
  { name: "tool calls and results", said: each((dialect) => loop(dialect)) },
  {
    name: "images in a tool result",
    needle: pixel,
    said: each((dialect) => loop(dialect, { output: [images[dialect](url)] })),
  },
  {
    name: "error flag of a tool result",
    said: {
      responses: loop("responses", { more: { status: "incomplete" } }),
      messages: loop("messages", { more: { is_error: true } }),
      gemini: loop("gemini", { more: { response: { error: "18 degrees" } } }),
    },
  },
  {
    name: "free-text tools (`custom`)",
    needle: "apply_patch",
    said: {
      chat: { tools: [{ type: "custom", custom: { name: "apply_patch", description } }] },
      responses: { tools: [{ type: "custom", name: "apply_patch", description }] },
    },
  },
  {
    name: "tool namespaces",
    needle: "agents",
    said: { responses: { tools: [{ type: "namespace", name: "agents", description, tools: [tools.responses] }] } },
  },
  {
    name: "tools as an input item",
    needle: name,
    said: {
      responses: { input: [{ type: "additional_tools", role: "developer", tools: [tools.responses] }, hello] },
    },
  },
  {
    name: "web search",
    needle: "web_search",
    isAnotherForm: true,
    said: {
      chat: { web_search_options: {} },
      responses: { tools: [tools.responses, { type: "web_search" }] },
      messages: { tools: [tools.messages, { type: "web_search_20250305", name: "web_search" }] },
      gemini: { tools: [tools.gemini, { googleSearch: {} }] },
    },
  },
  {
    name: "reasoning effort",
    said: {
      chat: { reasoning_effort: "low" },
      responses: { reasoning: { effort: "low" } },
      messages: { thinking: { type: "adaptive" }, output_config: { effort: "low" } },
      gemini: config({ thinkingConfig: { thinkingLevel: "LOW" } }),
    },
  },
  {
    name: "thinking budget",
    said: {
      chat: { thinking_budget: 8000 },
      messages: { thinking: { type: "enabled", budget_tokens: 8000 } },
      gemini: config({ thinkingConfig: { thinkingBudget: 8000 } }),
    },
  },
  {
    name: "the model's own signed reasoning",
    said: {
      chat: (upstream) => thoughtful("chat", upstream),
      responses: (upstream) => thoughtful("responses", upstream),
      messages: (upstream) => thoughtful("messages", upstream),
      gemini: (upstream) => thoughtful("gemini", upstream),
    },
  },
  {
    name: "signed reasoning of another dialect",
    needle: "cHJvb2Y=",
    said: {
      chat: (upstream) => thoughtful("chat", upstream === "chat" ? "messages" : "chat"),
      responses: (upstream) => thoughtful("responses", upstream === "responses" ? "messages" : "responses"),
      messages: (upstream) => thoughtful("messages", upstream === "messages" ? "chat" : "messages"),
      gemini: () => thoughtful("gemini", "gemini"),
    },
  },
  {
    name: "output token limit",
    said: {
      chat: { max_tokens: 777 },
      responses: { max_output_tokens: 777 },
      messages: { max_tokens: 777 },
      gemini: config({ maxOutputTokens: 777 }),
    },
  },
  {
    name: "stop sequences",
    said: {
      chat: { stop: ["END"] },
      messages: { stop_sequences: ["END"] },
      gemini: config({ stopSequences: ["END"] }),
    },
  },
  {
    name: "`temperature`",
    said: each((dialect) => (dialect === "gemini" ? config({ temperature: 0.5 }) : { temperature: 0.5 })),
  },
  { name: "`top_p`", said: each((dialect) => (dialect === "gemini" ? config({ topP: 0.5 }) : { top_p: 0.5 })) },
  { name: "`top_k`", said: { messages: { top_k: 5 }, gemini: config({ topK: 5 }) } },
  {
    name: "JSON schema output",
    said: {
      chat: { response_format: { type: "json_schema", json_schema: format } },
      responses: { text: { format: { type: "json_schema", ...format } } },
      messages: { output_config: { format: { type: "json_schema", schema } } },
      gemini: config({ responseMimeType: "application/json", responseJsonSchema: schema }),
    },
  },
  {
    name: "JSON schema output that is a list",
    needle: "tags",
    said: {
      gemini: config({
        responseMimeType: "application/json",
        responseJsonSchema: { type: "array", items: { type: "string", description: "tags" } },
      }),
    },
  },
  {
    name: "JSON output without a schema",
    needle: /json.object/i,
    said: {
      chat: { response_format: { type: "json_object" } },
      responses: { text: { format: { type: "json_object" } } },
      gemini: config({ responseMimeType: "application/json" }),
    },
  },
  { name: "`verbosity`", said: { chat: { verbosity: "low" }, responses: { text: { verbosity: "low" } } } },
  {
    name: "cache markers",
    said: {
      chat: userOf("chat", { type: "text", text: "Hello.", cache_control: { type: "ephemeral" } }),
      messages: userOf("messages", { type: "text", text: "Hello.", cache_control: { type: "ephemeral" } }),
    },
  },
  { name: "`user`", said: { chat: { user: "ada" }, responses: { user: "ada" } } },
  {
    name: "`metadata`",
    said: each((dialect) => (dialect === "gemini" ? { labels: { user_id: "ada" } } : { metadata: { user_id: "ada" } })),
  },
  {
    name: "`seed`, penalties",
    said: { chat: { seed: 1, presence_penalty: 0.5 }, gemini: config({ seed: 1, presencePenalty: 0.5 }) },
  },
  {
    name: "`logprobs`",
    said: { chat: { logprobs: true }, responses: { include: ["message.output_text.logprobs"] } },
  },
  { name: "`logit_bias`", said: { chat: { logit_bias: { "1": 2 } } } },
  {
    name: "safety settings",
    said: { gemini: { safetySettings: [{ category: "HARM_CATEGORY_HATE_SPEECH", threshold: "BLOCK_NONE" }] } },
  },
  {
    name: "`context_management`",
    said: { messages: { context_management: { edits: [{ type: "clear_thinking_20251015" }] } } },
  },
  { name: "`compaction`", said: { messages: { compaction: { type: "enabled" } } } },
  { name: "several answers", said: { chat: { n: 2 }, gemini: config({ candidateCount: 2 }) } },
  {
    name: "stored replies, items or contents",
    said: { responses: { previous_response_id: "resp_1" }, gemini: { cachedContent: "cachedContents/a" } },
  },
  { name: "background mode", said: { responses: { background: true } } },
  {
    name: "a turn or result of nothing but what this API alone has",
    said: each((dialect) =>
      userOf(dialect, dialect === "gemini" ? { hologram: { url: "x" } } : { type: "hologram", url: "x" }),
    ),
  },
  {
    name: "output limit of the other OpenAI API",
    needle: "4321",
    said: { chat: { max_output_tokens: 4321 }, responses: { max_tokens: 4321 } },
  },
  {
    name: "effort of the other OpenAI API",
    needle: /="medium"/,
    said: { chat: { reasoning: { effort: "medium" } }, responses: { reasoning_effort: "medium" } },
  },
  {
    name: "instructions of the other OpenAI API",
    needle: "Be brief.",
    said: { chat: { instructions: "Be brief." } },
  },
  {
    name: "stop sequences of the other OpenAI API",
    said: { responses: { stop: ["END"] } },
  },
  {
    name: "response format of the other OpenAI API",
    needle: "city",
    said: {
      chat: { text: { format: { type: "json_schema", ...format } } },
      responses: { response_format: { type: "json_schema", json_schema: format } },
    },
  },
  { name: "unknown fields", said: each(() => ({ x_brand_new: "new" })) },
];

// ── Ideas of a reply ──

const thought = "I shall greet.";
const proof = "cHJvb2Y=";
const call = { id: "call_1", name };

export const replies: Idea[] = [
  {
    name: "text",
    said: {
      chat: chatReply({ content: "Grüße." }),
      responses: responsesReply([{ type: "message", id: "msg_1", role: "assistant", content: [outputText("Grüße.")] }]),
      messages: messagesReply([{ type: "text", text: "Grüße." }]),
      gemini: geminiReply([{ text: "Grüße." }]),
    },
  },
  {
    name: "reasoning",
    needle: thought,
    said: {
      chat: chatReply({ content: "Hi.", reasoning_text: thought }),
      responses: responsesReply([
        { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: thought }] },
        { type: "message", id: "msg_1", role: "assistant", content: [outputText("Hi.")] },
      ]),
      messages: messagesReply([
        { type: "thinking", thinking: thought, signature: "" },
        { type: "text", text: "Hi." },
      ]),
      gemini: geminiReply([{ text: thought, thought: true }, { text: "Hi." }]),
    },
  },
  {
    name: "reasoning signature",
    needle: proof,
    said: {
      chat: chatReply({ content: "Hi.", reasoning_text: thought, reasoning_opaque: proof }),
      responses: responsesReply([
        { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: thought }], encrypted_content: proof },
        { type: "message", id: "msg_1", role: "assistant", content: [outputText("Hi.")] },
      ]),
      messages: messagesReply([
        { type: "thinking", thinking: thought, signature: proof },
        { type: "text", text: "Hi." },
      ]),
      gemini: geminiReply([
        { text: thought, thought: true },
        { text: "Hi.", thoughtSignature: proof },
      ]),
    },
  },
  {
    name: "tool calls",
    needle: "Paris",
    said: {
      chat: chatReply(
        { tool_calls: [{ id: call.id, type: "function", function: { name, arguments: '{"city":"Paris"}' } }] },
        "tool_calls",
      ),
      responses: responsesReply([
        {
          type: "function_call",
          id: "fc_1",
          call_id: call.id,
          name,
          arguments: '{"city":"Paris"}',
          status: "completed",
        },
      ]),
      messages: messagesReply([{ type: "tool_use", ...call, input: { city: "Paris" } }], { stop_reason: "tool_use" }),
      gemini: geminiReply([{ functionCall: { ...call, args: { city: "Paris" } } }]),
    },
  },
  {
    name: "refusal",
    said: {
      chat: chatReply({ refusal: "No." }),
      responses: responsesReply([
        { type: "message", id: "msg_1", role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
      ]),
      messages: messagesReply([{ type: "text", text: "No." }], { stop_reason: "refusal" }),
      gemini: geminiReply([{ text: "No." }], { finishReason: "SAFETY" }),
    },
  },
  {
    name: "output token limit reached",
    said: {
      chat: chatReply({ content: "Hi." }, "length"),
      responses: responsesReply([{ type: "message", id: "msg_1", role: "assistant", content: [outputText("Hi.")] }], {
        status: "incomplete",
        incomplete_details: { reason: "max_output_tokens" },
      }),
      messages: messagesReply([{ type: "text", text: "Hi." }], { stop_reason: "max_tokens" }),
      gemini: geminiReply([{ text: "Hi." }], { finishReason: "MAX_TOKENS" }),
    },
  },
  {
    name: "cached tokens",
    said: {
      chat: chatReply({ content: "Hi." }, "stop", { prompt_tokens_details: { cached_tokens: 777 } }),
      responses: responsesReply(
        [{ type: "message", id: "msg_1", role: "assistant", content: [outputText("Hi.")] }],
        {},
        { input_tokens_details: { cached_tokens: 777 } },
      ),
      messages: messagesReply([{ type: "text", text: "Hi." }], {}, { input_tokens: 123, cache_read_input_tokens: 777 }),
      gemini: geminiReply([{ text: "Hi." }], {}, { cachedContentTokenCount: 777 }),
    },
  },
  {
    name: "reasoning tokens",
    needle: "77",
    said: {
      chat: chatReply({ content: "Hi." }, "stop", { completion_tokens_details: { reasoning_tokens: 77 } }),
      responses: responsesReply(
        [{ type: "message", id: "msg_1", role: "assistant", content: [outputText("Hi.")] }],
        {},
        { output_tokens_details: { reasoning_tokens: 77 } },
      ),
      messages: messagesReply([{ type: "text", text: "Hi." }], {}, { output_tokens_details: { thinking_tokens: 77 } }),
      gemini: geminiReply([{ text: "Hi." }], {}, { candidatesTokenCount: 13, thoughtsTokenCount: 77 }),
    },
  },
];
