/** What a client may ask for, as each dialect says it. */
import { dialects } from "../../dialects/hub/conversation";
import { hello } from "./plain-bodies";
import {
  config,
  description,
  each,
  fileLink,
  type Idea,
  images,
  link,
  loop,
  name,
  pdf,
  pixel,
  schema,
  thoughtful,
  tools,
  turnsOf,
  url,
  userOf,
  withTools,
} from "./spellings";

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
