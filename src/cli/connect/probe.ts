/** Makes one small test call through the server in a client's dialect, and states its cost. */

import { clientPaths, geminiPath, upstreamPaths } from "../../api-paths";
import type { ClientModel, ToolDialect } from "../../clients/models";
import { isObject } from "../../json";
import { ask, type KnownKey, type RunningServer } from "../running-server";

const question = "Answer with one word: ready";

interface Call {
  path(model: string): string;
  body(model: string): object;
  headers?: Record<string, string>;
  /** The text of the answer. */
  read(answer: Record<string, unknown>): unknown[];
}

const messages = [{ role: "user", content: question }];

const calls: Record<ToolDialect, Call> = {
  chat: {
    path: () => clientPaths.chat,
    body: (model) => ({ model, messages }),
    read: ({ choices }) => list(choices).map(({ message }) => (isObject(message) ? message.content : undefined)),
  },
  responses: {
    path: () => clientPaths.responses,
    body: (model) => ({ model, input: question, store: false }),
    read: ({ output }) => list(output).flatMap(({ content }) => list(content).map(({ text }) => text)),
  },
  messages: {
    path: () => clientPaths.messages,
    body: (model) => ({ model, max_tokens: 1024, messages }),
    headers: { "anthropic-version": "2023-06-01" },
    read: ({ content }) => list(content).map(({ text }) => text),
  },
  gemini: {
    path: (model) => `${geminiPath}/${model}:generateContent`,
    body: () => ({ contents: [{ parts: [{ text: question }] }] }),
    read: ({ candidates }) =>
      list(candidates).flatMap(({ content }) => list(isObject(content) ? content.parts : []).map(({ text }) => text)),
  },
};

const list = (value: unknown) => (Array.isArray(value) ? value.filter(isObject) : []);

/**
 * The model for the test call: the client's own if it is free, else a free one, preferably with the client's dialect.
 * @returns Undefined if no model is free.
 */
export function freeModel(
  dialect: ToolDialect,
  own: ClientModel,
  all: readonly ClientModel[],
): ClientModel | undefined {
  const free = [own, ...all].filter(({ premium, units }) => !premium && (units ?? 0) === 0);
  return (
    free.find((model) => model === own) ??
    free.find(({ endpoints }) => dialect !== "gemini" && endpoints.includes(upstreamPaths[dialect])) ??
    free[0]
  );
}

/** The cost of one turn with a model, as the end of a sentence. */
export function probeCost({ premium, units }: ClientModel): string {
  if (!premium) return "it is free";
  if (typeof units === "number") return `it costs ${units} premium ${units === 1 ? "request" : "requests"}`;
  return "it costs a few tokens of your quota";
}

/**
 * The duration in milliseconds, and the beginning of the answer.
 * @throws ProxyError if there is no answer
 */
export async function probe(server: RunningServer, key: string | undefined, dialect: ToolDialect, model: ClientModel) {
  const { path, body, headers, read } = calls[dialect];
  const since = performance.now();
  const keys: KnownKey[] = key === undefined ? [] : [{ value: key, from: "the settings" }];
  const answer = await ask(
    { ...server, keys },
    {
      path: path(model.id),
      method: "POST",
      headers,
      body: body(model.id),
      timeoutMs: 120_000,
    },
  );
  const text = (isObject(answer) ? read(answer) : []).filter((text) => typeof text === "string").join("");
  const line = text.replace(/[\p{C}\s]+/gu, " ").trim();
  return { took: performance.now() - since, text: line.length > 60 ? `${line.slice(0, 60)}…` : line };
}
