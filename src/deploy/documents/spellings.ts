/** An idea that a client or an upstream may express, and the parts that several ideas share, as each dialect says them. */
import { type ClientDialect, clientDialects, type JsonObject } from "../../dialects/hub/conversation";
import { packSignature } from "../../dialects/hub/signature";
import { geminiTurn, hello, outputText } from "./plain-bodies";

export interface Idea {
  name: string;
  /** How each dialect says it: members of the body beside a plain one's. A dialect without the feature is missing. */
  said: Partial<Record<ClientDialect, JsonObject | ((upstream: ClientDialect) => JsonObject)>>;
  /** A piece of it that must arrive for the idea to have arrived, where something else may be put in its place. */
  needle?: string | RegExp;
  /** It never arrives in the other dialect's own words. */
  isAnotherForm?: true;
}

export const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
export const name = "get_weather";
export const description = "The weather in a city";
export const tools: Record<ClientDialect, JsonObject> = {
  chat: { type: "function", function: { name, description, parameters: schema } },
  responses: { type: "function", name, description, parameters: schema, strict: false },
  messages: { name, description, input_schema: schema },
  gemini: { functionDeclarations: [{ name, description, parametersJsonSchema: schema }] },
};
export const withTools = (dialect: ClientDialect, more: JsonObject = {}) => ({ tools: [tools[dialect]], ...more });

/** A turn that calls the tool, and the turn with its result. */
export function loop(dialect: ClientDialect, result: { output?: unknown; more?: JsonObject } = {}): JsonObject {
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

export const turnsOf = (dialect: ClientDialect, ...turns: unknown[]): JsonObject =>
  dialect === "responses"
    ? { input: turns }
    : dialect === "gemini"
      ? { contents: turns.map((turn) => geminiTurn(turn as JsonObject)) }
      : { messages: turns };
export const userOf = (dialect: ClientDialect, ...content: unknown[]): JsonObject =>
  turnsOf(dialect, { role: "user", content });
export const each = (words: (dialect: ClientDialect) => JsonObject): Idea["said"] =>
  Object.fromEntries(clientDialects.map((dialect) => [dialect, words(dialect)]));
export const config = (generationConfig: JsonObject): JsonObject => ({ generationConfig });

/** One pixel. */
export const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
export const url = `data:image/png;base64,${pixel}`;
export const fileLink = "https://example.com/report.pdf";
export const link = "https://example.com/a.png";
export const pdf = "JVBERi0xLjQKJQ==";
export const images = {
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
export function thoughtful(dialect: ClientDialect, maker: ClientDialect): JsonObject {
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
