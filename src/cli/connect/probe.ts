/** Makes one small test call through the server in a client's dialect, and states its cost. */

import type { ClientModel, ToolDialect } from "../../clients/models";
import { clientPaths, geminiPath, upstreamPaths } from "../../lib/api-paths";
import { significant } from "../../lib/format";
import { isObject } from "../../lib/json";
import { type KnownKey, type RunningServer, send } from "../running-server";
import type { Said, Settings } from "../server-routes";

const question = "Answer with one word: ready";
/** Of the test call. Models that think need some room before the word. */
const tokensAtMost = { input: 100, output: 1_024 };

interface Call {
  send(server: RunningServer, model: string, settings: Settings): Promise<Said<unknown>>;
  /** The text of the answer. */
  read(answer: Record<string, unknown>): unknown[];
}

const messages = [{ role: "user", content: question }];

const calls: Record<ToolDialect, Call> = {
  chat: {
    send: (server, model, settings) =>
      send(server, clientPaths.chat, { model, max_tokens: tokensAtMost.output, messages }, settings),
    read: ({ choices }) => list(choices).map(({ message }) => (isObject(message) ? message.content : undefined)),
  },
  responses: {
    send: (server, model, settings) =>
      send(
        server,
        clientPaths.responses,
        { model, max_output_tokens: tokensAtMost.output, input: question, store: false },
        settings,
      ),
    read: ({ output }) => list(output).flatMap(({ content }) => list(content).map(({ text }) => text)),
  },
  messages: {
    send: (server, model, settings) =>
      send(
        server,
        clientPaths.messages,
        { model, max_tokens: tokensAtMost.output, messages },
        { ...settings, headers: { "anthropic-version": "2023-06-01" } },
      ),
    read: ({ content }) => list(content).map(({ text }) => text),
  },
  gemini: {
    send: (server, model, settings) =>
      send(
        server,
        `${geminiPath}/*`,
        {
          contents: [{ parts: [{ text: question }] }],
          generationConfig: { maxOutputTokens: tokensAtMost.output },
        },
        { ...settings, params: { "*": `${model}:generateContent` } },
      ),
    read: ({ candidates }) =>
      list(candidates).flatMap(({ content }) => list(isObject(content) ? content.parts : []).map(({ text }) => text)),
  },
};

const list = (value: unknown) => (Array.isArray(value) ? value.filter(isObject) : []);

/**
 * The model for the test call: the client's own if it is free, else a free one, else the cheapest small one of known price;
 * preferably one with the client's dialect. The client's own where nothing is known to be cheaper.
 */
export function probeModel(dialect: ToolDialect, own: ClientModel, all: readonly ClientModel[]): ClientModel {
  if (isFree(own)) return own;
  const speaks = ({ endpoints }: ClientModel) => dialect !== "gemini" && endpoints.includes(upstreamPaths[dialect]);
  const best = (models: readonly ClientModel[]) =>
    models.toSorted((one, other) => Number(speaks(other)) - Number(speaks(one)) || expense(one) - expense(other))[0];
  const known = [own, ...all].filter((model) => Number.isFinite(expense(model)));
  return best(all.filter(isFree)) ?? best(known.filter(({ light }) => light)) ?? best(known) ?? own;
}

/** Whether a call costs nothing. */
export const isFree = ({ premium, units }: ClientModel): boolean => !premium && (units ?? 0) === 0;

/** The cost of the test call with a model, as the end of a sentence. */
export function probeCost(model: ClientModel): string {
  const { units } = model;
  if (isFree(model)) return "it is free";
  if (typeof units === "number") return `it costs ${units} premium ${units === 1 ? "request" : "requests"}`;
  const credits = expense(model);
  if (!Number.isFinite(credits)) return "it costs a few tokens of your quota";
  return `it costs at most ${significant(credits)} AI credits`;
}

/** For comparing models: premium requests, or AI credits at most. Models of one list have one unit. Infinite if unknown. */
function expense({ units, tokens }: ClientModel): number {
  if (typeof units === "number") return units;
  const { input = null, output = null, per = 1 } = tokens ?? {};
  if (input === null || output === null) return Number.POSITIVE_INFINITY;
  return (tokensAtMost.input * input + tokensAtMost.output * output) / per;
}

/**
 * The duration in milliseconds, and the beginning of the answer.
 * @throws ProxyError if there is no answer
 */
export async function probe(server: RunningServer, key: string | undefined, dialect: ToolDialect, model: ClientModel) {
  const { send, read } = calls[dialect];
  const since = performance.now();
  const keys: KnownKey[] = key === undefined ? [] : [{ value: key, from: "the settings" }];
  const answer = await send({ ...server, keys }, model.id, { timeoutMs: 120_000 });
  const text = (isObject(answer) ? read(answer) : []).filter((text) => typeof text === "string").join("");
  const line = text.replace(/[\p{C}\s]+/gu, " ").trim();
  return { took: performance.now() - since, text: line.length > 60 ? `${line.slice(0, 60)}…` : line };
}
