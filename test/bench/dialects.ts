/** What the bench says in each dialect: requests, and the frames of a stream. */
import { copilotReplies, copilotStreams } from "../support/copilot-forms";

export { clientPaths as clientPath, upstreamPaths as upstreamPath } from "../../src/lib/api-paths";

export const dialects = ["chat", "responses", "messages"] as const;
export type Dialect = (typeof dialects)[number];

/** The model that the upstream serves in this dialect only. */
export const modelOf = (dialect: Dialect) => `bench-${dialect}`;

/** A client's request, with a prompt of about so many bytes in turns of 25 kB at most. */
export function requestBody(client: Dialect, model: string, stream: boolean, bytes = 20): string {
  const line = 'const answer = await ask("what is it?"); // größe: 42\n\tif (!answer) return null;\n';
  const count = Math.max(1, Math.ceil(bytes / 25_000));
  const text = line.repeat(Math.ceil(Math.min(bytes, 25_000) / line.length)).slice(0, Math.min(bytes, 25_000));
  const turns = Array.from({ length: count }, (_, at) => ({
    role: (count - at) % 2 === 1 ? "user" : "assistant",
    content: text,
  }));
  if (client === "responses") return JSON.stringify({ model, stream, store: false, input: turns });
  if (client === "messages") return JSON.stringify({ model, stream, max_tokens: 1000, messages: turns });
  return JSON.stringify({
    model,
    stream,
    ...(stream ? { stream_options: { include_usage: true } } : {}),
    messages: turns,
  });
}

/** The form of a dialect's streams where a case does not name one. */
export const usualForm: Record<Dialect, string> = {
  chat: "chat, GPT",
  responses: "responses, an item id for each event",
  messages: "messages, dated",
};

/**
 * A stream's pieces: what begins it, some events of text, and what ends it.
 * @param input Tokens of the prompt.
 */
export function piecesOf(dialect: Dialect, form: string | undefined, perRead: number, input: number): string[] {
  const forms = copilotStreams(modelOf(dialect), input);
  const named = form && forms[form]?.dialect === dialect ? forms[form] : forms[usualForm[dialect]]!;
  const words = Array.from({ length: perRead }, (_, at) => named.words(` word${at % 10}`, at));
  return [named.begin, words.join(""), named.end];
}

/** The form of a dialect's full replies where a case does not name one. */
export const usualReply: Record<Dialect, string> = {
  chat: "chat, GPT",
  responses: "responses",
  messages: "messages, dated",
};

/** A full reply. @param input Tokens of the prompt. */
export function replyOf(dialect: Dialect, form: string | undefined, input: number): string {
  const forms = copilotReplies(modelOf(dialect), input);
  const named = form && forms[form]?.dialect === dialect ? forms[form] : forms[usualReply[dialect]]!;
  return JSON.stringify(named.reply);
}
