/**
 * Rows: an error in a stream has no status: its code says whether the request is at fault. Clients send again what is
 * called the service's fault (Claude Code an `api_error`, Gemini CLI a 5xx), and each try is charged.
 */
import { expect, test } from "bun:test";
import type { ErrorType } from "@anthropic-ai/sdk/resources/shared";
import type { ResponseError } from "openai/resources/responses/responses";
import { codecs } from "../../src/dialects/codecs";
import { failureIn } from "../../src/dialects/hub/block-lifecycle";
import type { ClientDialect, JsonObject } from "../../src/dialects/hub/conversation";
import { jsonOf } from "../../src/lib/net/stream/sse";
import { statusOf } from "../../src/proxy/upstream/copilot/failure-match";
import type { Json } from "../support/json";
import { written } from "../support/streams";

type Fault = "request" | "service" | "limit";

/** Every code that OpenAI's package declares for a response that failed: a newer package with another one does not compile here. */
const codes: Record<ResponseError["code"], Fault> = {
  server_error: "service",
  vector_store_timeout: "service",
  rate_limit_exceeded: "limit",
  invalid_prompt: "request",
  data_residency_mismatch: "request",
  bio_policy: "request",
  misalignment_policy_violation: "request",
  invalid_image: "request",
  invalid_image_format: "request",
  invalid_base64_image: "request",
  invalid_image_url: "request",
  image_too_large: "request",
  image_too_small: "request",
  image_parse_error: "request",
  image_content_policy_violation: "request",
  invalid_image_mode: "request",
  image_file_too_large: "request",
  unsupported_image_media_type: "request",
  empty_image_file: "request",
  failed_to_download_image: "request",
  image_file_not_found: "request",
};
/** Of Copilot, and of OpenAI's Chat Completions. */
const others: Record<string, Fault> = {
  context_length_exceeded: "request",
  content_filter: "request",
  insufficient_quota: "limit",
  quota_exceeded: "limit",
  additional_spend_limit_reached: "limit",
};

const questions: Record<ClientDialect, JsonObject> = {
  chat: { messages: [{ role: "user", content: "Hi" }] },
  responses: { input: "Hi" },
  messages: { max_tokens: 9, messages: [{ role: "user", content: "Hi" }] },
  gemini: { alt: "sse", contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
};

const lastOf = (client: ClientDialect, code: string): Json => {
  const asked = codecs[client].decodeRequest({ model: "m", stream: true, ...questions[client] });
  const start = { type: "start" as const, id: "r", model: "m" };
  return jsonOf(written(codecs[client].encodeStream(asked), [start, { type: "error", code, message: "No." }]).at(-1)!);
};

/** What the clients of each dialect go by. */
const told: Record<Fault, { messages: ErrorType[]; gemini: number[]; chat: string[]; status: number[] }> = {
  request: { messages: ["invalid_request_error"], gemini: [400], chat: ["invalid_request_error"], status: [400, 422] },
  limit: {
    messages: ["rate_limit_error"],
    gemini: [429],
    chat: ["rate_limit_error", "insufficient_quota"],
    status: [402, 429],
  },
  service: {
    messages: ["api_error", "timeout_error"],
    gemini: [500, 504],
    chat: ["server_error", "timeout_error"],
    status: [500, 502, 504],
  },
};

test.each(Object.entries({ ...codes, ...others }))(
  "a stream that failed by %s is the fault of the %s",
  (code, fault) => {
    const { messages, gemini, chat, status } = told[fault];
    expect(messages).toContain(lastOf("messages", code).error.type);
    expect(gemini).toContain(lastOf("gemini", code).error.code);
    expect(chat).toContain(lastOf("chat", code).error.type);
    expect(lastOf("responses", code).response.error).toEqual({ code, message: "No." });
    // The same where nothing was sent yet.
    expect(status).toContain(statusOf(code));
  },
);

test.each([400, 401, 402, 403, 404, 413, 422, 429, 500, 503, 504, 529])(
  "an error that states %i as its code, as a number or a text, means this status",
  (status) => {
    for (const code of [status, String(status)])
      expect(statusOf(failureIn({ code, message: "No." }).code)).toBe(status);
  },
);
