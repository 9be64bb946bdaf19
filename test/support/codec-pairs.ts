/** The acts of a codec, each of what goes in and what comes out, as `fixtures/pairs/` writes them. */
import type { Codec } from "../../src/dialects/codec";
import { codecs } from "../../src/dialects/codecs";
import { type Conversation, type Dialect, dialects, type JsonObject } from "../../src/dialects/hub/conversation";
import { omitUndefined } from "../../src/dialects/hub/json";
import type { ModelFacts } from "../../src/dialects/hub/model";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import type { OutlineMessage } from "../../src/dialects/overview";
import { ProxyError } from "../../src/lib/errors";
import { isObject, parseJson } from "../../src/lib/json";
import { jsonOf, readSse, type SseFrame } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import { adapt } from "./adapt";
import { ableModel } from "./facts";
import { checkChatStream } from "./grammar-chat";
import { checkMessagesStream } from "./grammar-messages";
import { checkResponsesStream } from "./grammar-responses";
import { encodeRequest, fixRequest, noted } from "./noted";
import { changes, pairsIn } from "./pairs";
import { collects, decodeFrames, passes, passesFull, wire, written } from "./streams";

/** What is the same in all rows of a dialect, or all but those that say otherwise. */
interface Plain {
  /** The client's request. */
  body: JsonObject;
  conversation: Conversation;
  model: ModelFacts;
  /** An upstream's reply. */
  reply?: JsonObject;
  checkStream?: (frames: SseFrame[], asked: Conversation) => void;
}

export interface Row {
  /** Members beside the plain ones; events or frames of a stream; or the whole of it, if it is not an object. */
  in: unknown;
  /** Members of the plain request that `in` lacks. */
  lacks?: string[];
  /** Members of the model beside the plain ones, null for one that it lacks; or its name in `models`. */
  model?: JsonObject | keyof typeof models;
  options?: { webSearch: boolean };
  /** The client's beta header. */
  betas?: string;
  /** Members of the client's request for which a reply is, beside the plain ones. */
  asked?: JsonObject;
  /** The marks of what another account has made; all if it is left out. */
  foreign?: string[];
  /** Of the conversation that a reply is for. */
  conversation?: JsonObject;
  out: unknown;
}

const budget = { min: 1024, max: 32_000 };
const models = {
  "gpt-5-mini": { id: "gpt-5-mini", vendor: "OpenAI", supports: { completionTokens: true } },
  "claude-sonnet-4.5": {
    ...{ id: "claude-sonnet-4.5", vendor: "Anthropic", limits: { output: 32_000, fullOutput: 16_000 } },
    supports: { efforts: [], thinkingBudget: budget },
  },
  "gemini-2.5-pro": { id: "gemini-2.5-pro", vendor: "Google" },
  "of efforts and budgets": { supports: { efforts: ["none", "low", "high"], thinkingBudget: budget } },
};

const hi: Conversation["turns"] = [{ role: "user", parts: [{ kind: "text", text: "Hi." }] }];
const plainConversation: Conversation = { model: "m", turns: hi, tools: [], stream: true };

/** Of the OpenAI models: they know efforts and no budgets. */
const byEffort = (facts: ModelFacts): ModelFacts => ({
  ...facts,
  supports: { ...facts.supports, adaptiveThinking: false, thinkingBudget: undefined },
});

export const plains: Record<string, Plain> = {
  chat: {
    body: { model: "m", messages: [{ role: "user", content: "Hi." }] },
    conversation: plainConversation,
    model: byEffort({ ...ableModel("gpt-4.1", "Azure OpenAI"), dialects: ["chat"], limits: { output: 16_384 } }),
    reply: {
      ...{ id: "c", model: "m" },
      choices: [{ index: 0, message: { role: "assistant", content: "Hi." }, finish_reason: "stop" }],
    },
    checkStream: checkChatStream,
  },
  responses: {
    body: { model: "some-model", input: "Hi." },
    conversation: plainConversation,
    model: byEffort({
      ...ableModel("some-model", "Azure OpenAI"),
      dialects: ["responses"],
      limits: { output: 32_000 },
    }),
    checkStream: checkResponsesStream,
  },
  messages: {
    body: { model: "m", max_tokens: 100, messages: [{ role: "user", content: "Hi." }] },
    conversation: { ...plainConversation, maxTokens: 100, stream: false },
    model: { ...ableModel("claude", "Anthropic"), dialects: ["messages", "chat"], limits: { output: 32_000 } },
    reply: { id: "msg_1", model: "m", content: [{ type: "text", text: "Hi." }], stop_reason: "end_turn" },
    checkStream: checkMessagesStream,
  },
  gemini: {
    body: { model: "m", contents: [{ parts: [{ text: "Hi." }] }] },
    conversation: plainConversation,
    model: ableModel("m", "Google"),
  },
};

/** Acts that take events or frames, and those that give them: each has a line of its own. */
const [takeMany, giveMany] = [
  ["read", "gather", "full", "write", "end", "pass"],
  ["reply", "read", "write", "end", "pass"],
];

/** The rows of a file, by their titles. */
export const rowsIn = (text: string, act: string): [title: string, rows: Row[]][] =>
  pairsIn(text).map(([title, pairs]) => [
    title,
    pairs.map(({ special, given, out }) => ({
      ...(special as Partial<Row>),
      in: takeMany?.includes(act) ? given : given[0],
      out: giveMany?.includes(act) ? out : out[0],
    })),
  ]);

/** By the name of an act what comes out of a row. */
export const acts: Record<string, (codec: Codec, row: Row, plain: Plain) => unknown> = {
  /** A client's request in the hub. */
  decode: (codec, row, plain) => changes(codec.decodeRequest(plain.body), codec.decodeRequest(bodyOf(row, plain))),
  check: (codec, row, plain) => codec.checkRequest(bodyOf(row, plain) as JsonObject) ?? "accepted",
  /** A conversation for an upstream. */
  encode(codec, row, plain) {
    const model = factsOf(row, plain);
    const asked = { ...plain.conversation, ...(row.in as Partial<Conversation>) };
    for (const name of row.lacks ?? []) delete (asked as unknown as JsonObject)[name];
    return encoded(
      codec.encodeRequest(plain.conversation, model, row.options),
      encodeRequest(codec, asked, model, row.options),
    );
  },
  /** What a request says, read without decoding it. */
  outline(codec, row, plain) {
    const model = factsOf(row, plain);
    const said = (body: JsonObject) =>
      Object.fromEntries(
        Object.entries(codec.outline(body)).map(([name, value]) => [
          name,
          typeof value === "function" ? value(model) : name === "messages" ? value.map(withoutItem) : value,
        ]),
      );
    return changes(said(plain.body), said(bodyOf(row, plain) as JsonObject));
  },
  /** A client's request for an upstream of its own dialect, by way of the hub. */
  through(codec, row, plain) {
    const model = factsOf(row, plain);
    const encode = (body: unknown) => encodeRequest(codec, codec.decodeRequest(body), model, row.options);
    return encoded(encode(plain.body).body, encode(bodyOf(row, plain)));
  },
  ...Object.fromEntries(dialects.map((upstream) => [`to-${upstream}`, translated(upstream)])),
  /** An upstream's full reply for a client of any dialect, beyond what becomes of the plain one. */
  ...Object.fromEntries(dialects.map((client) => [`reply-to-${client}`, answered(client)])),
  /** For an upstream of the client's dialect, around the hub. What was fixed needs no more fixups. */
  fix(codec, row, plain) {
    const model = factsOf(row, plain);
    const body = bodyOf(row, { ...plain, body: { ...plain.body, model: model.id } }) as JsonObject;
    const before = structuredClone(body);
    const fixed = fixRequest(codec, body, model, row.options);
    same(body, before);
    if (fixed.fixups.length === 0 && fixed.body !== body) throw new Error("a copy of a request without a fault");
    same(fixRequest(codec, fixed.body, model, row.options).fixups, []);
    return encoded(body, fixed);
  },
  /** A client's request after another account has answered before: without what only that one can read. */
  repair(codec, row, plain) {
    const body = bodyOf(row, plain) as JsonObject;
    const repaired = codec.remedies.repair(body, (mark) => row.foreign?.includes(mark) ?? true);
    return repaired === body ? "the same" : changes(body, repaired);
  },
  /** The beta header for this body; without one of a client, the client spoke another dialect. */
  headers(codec, row, plain) {
    const client = row.betas === undefined ? null : new Headers({ "anthropic-beta": row.betas });
    const { body: headers, fixups } = noted((notes) =>
      codec.requestHeaders!(client, row.in as JsonObject, factsOf(row, plain), { webSearch: true, notes }),
    );
    return { betas: headers["anthropic-beta"]?.split(",") ?? [], fixups };
  },
  /** A full reply in the hub. */
  reply: (codec, row) => codec.decodeReply(row.in),
  /** A stream in the hub. */
  read: (codec, row) => decodeFrames(codec, framesIn(row, codec)),
  /** Events as a full reply to a client. */
  full: (codec, row, plain) => codec.encodeReply(row.in as ReplyEvent[], askedOf(codec, row, plain)),
  /** Events as a stream to a client, which keeps to the grammar of its dialect unless it ends in an error. */
  write(codec, row, plain) {
    const asked = askedOf(codec, row, plain);
    const events = row.in as ReplyEvent[];
    const frames = written(codec.encodeStream(asked), events);
    if (events.at(-1)?.type === "finish") plain.checkStream?.(overWire(frames), asked);
    return frames.map(wordOf);
  },
  /** The same for a long stream: the names of its events, and the last one, of a response what the plain one lacks. */
  end(codec, row, plain) {
    const asked = askedOf(codec, row, plain);
    const events = row.in as ReplyEvent[];
    const frames = overWire(written(codec.encodeStream(asked), events));
    if (events.at(-1)?.type === "finish") plain.checkStream?.(frames, asked);
    const [last, other] = [
      frames,
      written(codec.encodeStream(plain.conversation), [{ type: "finish", reason: "stop" }]),
    ].map((each) => jsonOf(each.at(-1)!) as JsonObject);
    const { response } = last!;
    const ids = frames.flatMap(
      (each) => (jsonOf(each) as { response?: { id: string } } | undefined)?.response?.id ?? [],
    );
    if (new Set(ids).size > 1) throw new Error(`one response has the ids ${ids}`);
    // The two may be made in different seconds.
    const { created_at, completed_at } = (response ?? {}) as JsonObject;
    const times = { created_at, ...(completed_at != null && { completed_at }) };
    const beyond = isObject(response) && { response: changes({ ...(other!.response as object), ...times }, response) };
    return [...frames.map(({ event, data }) => event ?? data ?? "a comment"), { ...last, ...beyond }];
  },
  /** A stream to a client of its own dialect. */
  pass(codec, row, plain) {
    const fixups = new Set<string>();
    const passing = passes(codec, contextOf(row, plain), (name) => fixups.add(name));
    const frames = written(passing, framesIn(row, codec));
    return [...frames.map(wordOf), ...(fixups.size > 0 ? [{ fixups: [...fixups] }] : [])];
  },
  /** A stream as a full reply to a client of its own dialect. */
  gather(codec, row, plain) {
    const fixups = new Set<string>();
    const reply = collects(codec, (name) => fixups.add(name), undefined, contextOf(row, plain));
    for (const frame of framesIn(row, codec)) reply.push(frame);
    reply.end();
    return { body: reply.body(), ...(fixups.size > 0 && { fixups: [...fixups] }) };
  },
  /** A full reply to a client of its own dialect: the same object if nothing is wrong with it. */
  "pass-full"(codec, row, plain) {
    const fixups: string[] = [];
    const body = row.in as JsonObject;
    const fixed = passesFull(codec, body, contextOf(row, plain), (name) => fixups.push(name));
    return fixed === body ? "the same" : { body: fixed, fixups };
  },
  error(codec, row) {
    const { kind, message, ...details } = row.in as { kind: ProxyError["kind"]; message: string };
    return codec.encodeError(new ProxyError(kind, message, details), "req_1");
  },
};

/** What comes out, or how it is refused, as JSON; ids and times that are made for each reply have a `*`. */
export function outcomeOf(act: string, codec: Codec, row: Row, plain: Plain): unknown {
  try {
    const text = JSON.stringify(acts[act]!(codec, row, plain));
    return JSON.parse(
      text
        .replace(/"(chatcmpl-|[a-z]+_)?(?:[0-9A-Za-z]{32}|[0-9a-f-]{36})"/g, '"$1*"')
        .replace(/"(created|created_at|completed_at)":\d{1,10}(?:\.\d+)?(?!\d)/g, '"$1":"*"'),
    );
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    const { param, code } = thrown.details;
    return JSON.parse(JSON.stringify({ refused: { param, code }, says: thrown.message }));
  }
}

const withoutItem = ({ item: _, ...message }: OutlineMessage) => message;

/** A client's request for an upstream of another dialect. */
function translated(upstream: Dialect) {
  return (client: Codec, row: Row, plain: Plain) => {
    const translate = (body: unknown) => {
      const adapted = adapt(client.decodeRequest(body), upstream);
      const facts = factsOf(row, plains[upstream]!);
      const sent = encodeRequest(codecs[upstream], adapted.conversation, facts, row.options);
      const both = (what: "fixups" | "dropped") => [...adapted[what], ...sent[what]];
      return { body: sent.body, fixups: both("fixups"), dropped: both("dropped") };
    };
    return encoded(translate(plain.body).body, translate(bodyOf(row, plain)));
  };
}

function answered(client: Dialect) {
  return (upstream: Codec, row: Row, plain: Plain) => {
    const asked = codecs[client].decodeRequest({ ...plains[client]!.body, ...row.asked });
    const { restore } = adapt(asked, upstream.facts.upstreams[0]!);
    const answer = (reply: JsonObject) => {
      const events = upstream.decodeReply(reply);
      return codecs[client].encodeReply(restore ? run(restore, events) : events, asked);
    };
    const before = answer(plain.reply!);
    const after: JsonObject = answer({ ...plain.reply, ...(row.in as JsonObject) });
    // A second may end between the two.
    const { id, created, created_at, completed_at } = before;
    const times = { created, created_at, ...(after.completed_at != null && { completed_at }) };
    return changes(before, omitUndefined({ ...after, id, ...times }));
  };
}

function bodyOf(row: Row, plain: Plain): unknown {
  if (!isObject(row.in)) return row.in;
  const body: JsonObject = { ...plain.body, ...row.in };
  for (const name of row.lacks ?? []) delete body[name];
  return body;
}

export function factsOf({ model: given = {} }: Pick<Row, "model">, { model: plain }: Plain): ModelFacts {
  const model: JsonObject = typeof given === "string" ? models[given] : given;
  const supports = Object.entries({ ...plain.supports, ...(model.supports as object) });
  return {
    ...plain,
    ...model,
    supports: Object.fromEntries(supports.filter(([, value]) => value !== null)),
  } as ModelFacts;
}

const askedOf = (codec: Codec, row: Row, plain: Plain): Conversation => ({
  ...(row.asked ? codec.decodeRequest({ ...plain.body, ...row.asked }) : plain.conversation),
  ...row.conversation,
});

function encoded(plain: JsonObject, { body, fixups, dropped }: ReturnType<typeof encodeRequest>): JsonObject {
  return {
    body: changes(plain, body),
    ...(fixups.length > 0 && { fixups }),
    ...(dropped.length > 0 && { dropped }),
  };
}

/** What is known of the client's request where its reply is passed on. */
const contextOf = ({ asked }: Row, { body }: Plain) => ({
  ...{ model: String(body.model), usage: true, replies: 1 },
  ...asked,
});

const framesIn = (row: Row, codec: Codec): SseFrame[] => (row.in as JsonObject[]).map((each) => frameOf(each, codec));

/** A frame as a row writes it: its JSON, or its members where that does not say all. */
export function frameOf(word: JsonObject, { facts }: Codec): SseFrame {
  if (Object.keys(word).every((name) => name === "event" || name === "data")) return { ...word };
  const data = JSON.stringify(word);
  return facts.upstreams[0] === "chat" ? { data } : { event: String(word.type), data };
}

export function wordOf(frame: SseFrame): unknown {
  const json = parseJson(frame.data ?? "");
  const { event, data } = frame;
  return isObject(json) && (event === undefined || event === json.type) ? json : { event, data };
}

const overWire = (frames: SseFrame[]) => run(readSse, [wire(frames)]);

function same(actual: unknown, expected: unknown): void {
  if (!Bun.deepEquals(actual, expected))
    throw new Error(`${JSON.stringify(actual)} is not ${JSON.stringify(expected)}`);
}
