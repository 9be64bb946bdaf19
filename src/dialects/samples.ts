/** A minimal streamed request of each client dialect, and where the texts of its answer are. */
import { clientPaths, geminiPath } from "../lib/api-paths";
import type { ClientDialect, JsonObject } from "./hub/conversation";

interface SampleText {
  model: string;
  prompt: string;
  /** Instructions for the model; left out if empty. */
  system: string;
  maxTokens: number;
}

interface Sample {
  /** As its vendor calls it. */
  name: string;
  /** Under the host, with the query. */
  path(model: string): string;
  /** What the address says, which the body does not. */
  inAddress?(model: string): { model: string; stream: true; alt: "sse" };
  body(text: SampleText): JsonObject;
  headers?: Readonly<Record<string, string>>;
  /** The texts in the JSON of an event, by their paths; `*` stands for every item of a list. */
  texts: readonly SamplePath[];
}

interface SamplePath {
  kind: "text" | "thinking";
  /** `choices.*.delta.content` */
  path: string;
  /** Only in events that have this value there. */
  when?: readonly [path: string, value: string];
}

const messagesOf = ({ prompt, system }: SampleText) => [
  ...(system ? [{ role: "system", content: system }] : []),
  { role: "user", content: prompt },
];

export const samples: Readonly<Record<ClientDialect, Sample>> = {
  chat: {
    name: "OpenAI Chat Completions",
    path: () => clientPaths.chat,
    body: (text) => ({
      model: text.model,
      stream: true,
      stream_options: { include_usage: true },
      max_completion_tokens: text.maxTokens,
      messages: messagesOf(text),
    }),
    texts: [
      { kind: "thinking", path: "choices.*.delta.reasoning_text" },
      { kind: "text", path: "choices.*.delta.content" },
      { kind: "text", path: "choices.*.delta.refusal" },
    ],
  },
  responses: {
    name: "OpenAI Responses",
    path: () => clientPaths.responses,
    body: ({ model, system, prompt, maxTokens }) => ({
      model,
      stream: true,
      store: false,
      max_output_tokens: maxTokens,
      ...(system && { instructions: system }),
      input: prompt,
    }),
    texts: [
      { kind: "thinking", path: "delta", when: ["type", "response.reasoning_summary_text.delta"] },
      { kind: "thinking", path: "delta", when: ["type", "response.reasoning_text.delta"] },
      { kind: "text", path: "delta", when: ["type", "response.output_text.delta"] },
      { kind: "text", path: "delta", when: ["type", "response.refusal.delta"] },
    ],
  },
  messages: {
    name: "Anthropic Messages",
    path: () => clientPaths.messages,
    headers: { "anthropic-version": "2023-06-01" },
    body: ({ model, system, prompt, maxTokens }) => ({
      model,
      stream: true,
      max_tokens: maxTokens,
      ...(system && { system }),
      messages: [{ role: "user", content: prompt }],
    }),
    texts: [
      { kind: "thinking", path: "delta.thinking" },
      { kind: "text", path: "delta.text" },
    ],
  },
  gemini: {
    name: "Google Gemini",
    path: (model) => `${geminiPath}/${encodeURIComponent(model)}:streamGenerateContent?alt=sse`,
    inAddress: (model) => ({ model, stream: true, alt: "sse" }),
    body: ({ system, prompt, maxTokens }) => ({
      ...(system && { systemInstruction: { parts: [{ text: system }] } }),
      contents: [{ role: "user", parts: [{ text: prompt }] }],
      generationConfig: { maxOutputTokens: maxTokens },
    }),
    texts: [
      // Thoughts are sent only if they are asked for.
      { kind: "text", path: "candidates.*.content.parts.*.text" },
    ],
  },
};
