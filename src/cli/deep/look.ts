/** Makes one call of an endpoint and says how its answer differs from what is known. */

import { embeddingsShape, isKnownHeader } from "../../books/changes/known-names";
import { codecs } from "../../dialects/codecs";
import { decodeEmbeddings, encodeEmbeddingsRequest } from "../../dialects/embeddings";
import { said } from "../../dialects/hub/beat";
import type { Conversation, Dialect } from "../../dialects/hub/conversation";
import type { ReplyEvent } from "../../dialects/hub/reply";
import { asProxyError } from "../../lib/errors";
import { isObject, parseJson } from "../../lib/json";
import { type Difference, differencesIn, plainName } from "../../lib/json-shape";
import { type CallResponse, piecesOf, readStart, readText } from "../../lib/net/out/body";
import { singleLimit } from "../../lib/net/out/clock";
import { jsonOf, readSse } from "../../lib/net/stream/sse";
import { collectInto, pipe } from "../../lib/net/stream/stream";
import type { Account } from "../../people/accounts/account";
import type { Copilot } from "../../proxy/upstream/copilot/copilot";
import { readFailure } from "../../proxy/upstream/copilot/failure";
import { type PlannedCall, tokensAtMost } from "./plan";

export interface Look {
  /** Milliseconds until the last byte. */
  ms: number;
  /** What is new, such as `member usage.mood`. */
  news: string[];
  /** What an answer always has, and this one has not. */
  missing: string[];
  /** Why there was no answer, in a sentence. */
  problem?: string;
}

const limits = singleLimit(60_000);
const maxBytes = 4 * 1024 * 1024;
const question = "Answer with one word: ready";

/** Never throws. */
export async function look(copilot: Copilot, account: Account, call: PlannedCall): Promise<Look> {
  const began = performance.now();
  const differences = { news: new Set<string>(), missing: new Set<string>() };
  let problem: string | undefined;
  try {
    const response = await copilot.call(await account.copilotToken(), {
      path: call.path,
      requestId: crypto.randomUUID(),
      limits,
      ...requestOf(call),
    });
    for (const name of response.headers.keys())
      if (!isKnownHeader(name)) differences.news.add(`header ${plainName(name)}`);
    problem = await (response.ok ? read(response, call, differences) : refusal(response, differences));
  } catch (thrown) {
    problem = asProxyError(thrown).message;
  }
  const ms = Math.round(performance.now() - began);
  return { ms, news: [...differences.news], missing: [...differences.missing], problem };
}

interface Found {
  news: Set<string>;
  missing: Set<string>;
}

function requestOf({ dialect, model }: PlannedCall) {
  if (dialect === null) {
    const body = JSON.stringify(encodeEmbeddingsRequest(model.id, [question], undefined));
    return { body, intent: "copilot-panel" as const, initiator: "agent" as const };
  }
  const codec = codecs[dialect];
  const conversation: Conversation = {
    model: model.id,
    stream: true,
    turns: [{ role: "user", parts: [{ kind: "text", text: question }] }],
    tools: [],
    maxTokens: tokensAtMost.output,
  };
  const body = codec.encodeRequest(conversation, model);
  const headers = codec.requestHeaders?.(null, body, model);
  // A person asks, and pays for it if the model costs something.
  return { body: JSON.stringify(body), headers, intent: "conversation-agent" as const, initiator: "user" as const };
}

async function refusal(response: CallResponse, { news }: Found): Promise<string> {
  const failure = readFailure(response.status, response.headers, await readStart(response, 64 * 1024), Date.now());
  if (failure.newCode !== undefined) news.add(`error code ${plainName(failure.newCode)}`);
  return `It answered with status ${response.status}: ${failure.error.message}`;
}

/** @returns Why the answer is none, if it is none. */
async function read(response: CallResponse, { dialect }: PlannedCall, found: Found): Promise<string | undefined> {
  if (dialect === null) return readEmbeddings(await readText(response, maxBytes), found);
  if (!/event-stream/.test(response.headers.get("content-type") ?? ""))
    return "It did not answer with an event stream.";
  return readStream(response, dialect, found);
}

function readEmbeddings(text: string, found: Found): string | undefined {
  const json = parseJson(text);
  if (!isObject(json)) return "It did not answer with JSON.";
  add(differencesIn(json, embeddingsShape()), "", found);
  decodeEmbeddings(text, 1, "GitHub Copilot");
  return undefined;
}

async function readStream(response: CallResponse, dialect: Dialect, found: Found): Promise<string | undefined> {
  const { events: known, typeOf } = codecs[dialect].knownNames();
  const events: ReplyEvent[] = [];
  const decoder = pipe(codecs[dialect].decodeStream(), said)(collectInto(events));
  const frames = readSse({
    push(frame) {
      decoder.push(frame);
      const json = jsonOf(frame);
      if (!isObject(json)) return;
      const type = typeOf(json);
      const shape = known.get(type);
      if (shape) add(differencesIn(json, shape), type === "" ? "" : `${type} `, found);
      else found.news.add(`event ${plainName(type)}`);
    },
    end: () => decoder.end(),
  });
  for await (const piece of piecesOf(response.body, maxBytes)) frames.push(piece);
  frames.end();
  const error = events.find((event) => event.type === "error");
  if (error?.type === "error") return `Its stream ended with an error: ${error.message}`;
  for (const part of missingParts(events)) found.missing.add(part);
  return undefined;
}

/** What every stream tells: the model's words, the tokens they took, and why it ended. */
function missingParts(events: readonly ReplyEvent[]): string[] {
  const usage = Object.assign({}, ...events.map((event) => (event.type === "usage" ? event.usage : {})));
  const has = (type: ReplyEvent["type"]) => events.some((event) => event.type === type);
  return [
    ...(has("block-start") ? [] : ["the answer's words"]),
    ...(typeof usage.input === "number" && typeof usage.output === "number" ? [] : ["the number of tokens"]),
    ...(has("finish") ? [] : ["why the answer ended"]),
  ];
}

function add(differences: readonly Difference[], prefix: string, { news, missing }: Found): void {
  for (const { kind, path } of differences) {
    if (kind === "missing") missing.add(`member ${prefix}${path}`);
    else news.add(`${kind === "value" ? "value" : "member"} ${prefix}${path}`);
  }
}
