/** Pairs: Messages, from the folders `fixtures/messages-*`, and rows of what is read, written and passed on. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ReplyContext } from "../../src/dialects/codec";
import { cutReply } from "../../src/dialects/hub/block-lifecycle";
import type { Conversation, JsonObject } from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { messages } from "../../src/dialects/messages/codec";
import { rules } from "../../src/dialects/messages/rules";
import { errorKinds, ProxyError } from "../../src/lib/errors";
import { readSse, type SseFrame } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import { chunkSizes } from "../support/differential";
import { ableModel } from "../support/facts";
import { messageMeaning } from "../support/message-meaning";
import { fixRequest, noted } from "../support/noted";
import { refusalOf } from "../support/refusal";
import {
  bytesAt,
  chunksOf,
  fixtures,
  hasFixture as holds,
  jsonAt,
  overWire,
  passes,
  wire,
  written,
} from "../support/streams";

const facts: ModelFacts = {
  ...ableModel("claude", "Anthropic"),
  dialects: ["messages", "chat"],
  limits: { output: 32_000 },
};

const quirks = readdirSync(fixtures).filter((name) => name.startsWith("messages-"));
const textAt = (quirk: string, file: string) => readFileSync(join(fixtures, quirk, file), "utf8");

const factsOf = (quirk: string): ModelFacts => {
  if (!holds(quirk, "facts.json")) return facts;
  const { limits, supports } = jsonAt(quirk, "facts.json");
  const other = { ...facts.supports, ...supports };
  return {
    ...facts,
    limits: { ...facts.limits, ...limits },
    supports: { ...other, thinkingBudget: other.thinkingBudget ?? undefined },
  };
};

/** The fixups a folder shows: the one it is named after, unless it says otherwise. */
const mendsOf = (quirk: string): string[] =>
  holds(quirk, "fixups.json") ? jsonAt(quirk, "fixups.json") : [quirk.slice("messages-".length)];

function fixed(body: JsonObject, model: ModelFacts): { body: JsonObject; fixups: string[] } {
  const { dropped: _, ...others } = fixRequest(messages, body, model);
  return others;
}

const throughHub = (body: JsonObject, model: ModelFacts) => messages.encodeRequest(messages.decodeRequest(body), model);

const requests = quirks.filter((quirk) => holds(quirk, "request.json"));

test.each(requests.filter((quirk) => holds(quirk, "fixed.json")))(
  "what the upstream refuses of a request is fixed: %s",
  (quirk) => {
    const request = jsonAt(quirk, "request.json");
    const before = structuredClone(request);
    const result = fixed(request, factsOf(quirk));
    expect(messageMeaning(result.body)).toEqual(messageMeaning(jsonAt(quirk, "fixed.json")));
    expect(result.fixups).toEqual(mendsOf(quirk));
    expect(request).toEqual(before);
    expect(fixed(result.body, factsOf(quirk)).fixups).toEqual([]);
  },
);

test.each(requests.filter((quirk) => holds(quirk, "fixed.json")))(
  "what the upstream refuses of a request is fixed the same through the hub: %s",
  (quirk) => {
    const body = throughHub(jsonAt(quirk, "request.json"), factsOf(quirk));
    expect(messageMeaning(body)).toEqual(messageMeaning(jsonAt(quirk, "fixed.json")));
  },
);

test.each(requests.filter((quirk) => holds(quirk, "refused.json")))(
  "what the upstream refuses of a request is refused: %s",
  (quirk) => {
    const { param, names } = jsonAt(quirk, "refused.json");
    const body = jsonAt(quirk, "request.json");
    for (const send of [fixed, throughHub]) {
      const error = refusalOf(() => send(body, factsOf(quirk)));
      expect([error.kind, error.details.param]).toEqual(["invalid_request", param]);
      expect(error.message).toContain(names);
    }
  },
);

test("every rule has a folder of examples", () => {
  const shown = new Set(requests.flatMap((quirk) => (holds(quirk, "fixed.json") ? mendsOf(quirk) : [])));
  expect(Object.keys(rules).filter((name) => !shown.has(name))).toEqual([]);
});

test("a client's own request goes up as it is when nothing is wrong with it", () => {
  const body = jsonAt("messages-accepted", "request.json");
  const fixed = fixRequest(messages, body, facts);
  expect(fixed).toEqual({ body, fixups: [], dropped: [] });
  expect(fixed.body).toBe(body);
});

test("a client's own request is left to the upstream to refuse when it is malformed", () => {
  const odd = [5, null, "x", [null], [1], [{}], [{ role: 1, content: 5 }], [{ role: "user", content: [null] }]];
  for (const value of odd)
    for (const key of ["messages", "system", "tools", "tool_choice", "thinking", "output_config", "max_tokens"])
      expect(() => messages.fixRequest({ model: "m", messages: [], [key]: value }, facts)).not.toThrow();
});

const betasFor = (header: string | null, body: JsonObject, model: ModelFacts) => {
  const client = header === null ? null : new Headers({ "anthropic-beta": header });
  const { body: headers, fixups } = noted((notes) =>
    messages.requestHeaders!(client, body, model, { webSearch: true, notes }),
  );
  return { betas: headers["anthropic-beta"]?.split(",") ?? [], added: fixups.map((name) => name.slice(5)) };
};
test.each(quirks.filter((quirk) => holds(quirk, "betas.json")))("the beta header: fits the body: %s", (quirk) => {
  const { header, ...wanted } = jsonAt(quirk, "betas.json");
  expect(betasFor(header, fixed(jsonAt(quirk, "request.json"), facts).body, facts)).toEqual(wanted);
});

const asked: ReplyContext = { model: "asked-model", usage: true, replies: 1 };
const conversation: Conversation = { model: "asked-model", turns: [], tools: [], stream: true };
const frame = (json: JsonObject): SseFrame => ({ event: String(json.type), data: JSON.stringify(json) });

function passed(frames: SseFrame[]): { out: SseFrame[]; fixups: string[] } {
  const fixups = new Set<string>();
  const out = written(
    passes(messages, asked, (name) => fixups.add(name)),
    frames,
  );
  return { out, fixups: [...fixups] };
}

test.each(quirks.filter((quirk) => holds(quirk, "stream.txt")))(
  "a reply that is passed through is fixed as it streams: %s",
  (quirk) => {
    const stream = bytesAt(quirk, "stream.txt");
    for (const size of chunkSizes) {
      const { out, fixups } = passed(run(readSse, chunksOf(stream, size)));
      expect(Buffer.from(wire(out)).toString()).toBe(textAt(quirk, "mended.txt"));
      expect(fixups.sort()).toEqual(mendsOf(quirk).sort());
    }
  },
);

test("a reply that is passed through leaves every sound frame the very object it was", () => {
  const frames = run(readSse, [bytesAt("messages-model-name", "mended.txt")]);
  expect(passed(frames).out.every((each, index) => each === frames[index])).toBe(true);
});

test("a reply that is passed through leaves a large frame the object it was, too", () => {
  const frames = run(readSse, [bytesAt("messages-model-name", "mended.txt")]);
  const text = 'größe "x"\n'.repeat(10_000);
  const large = frame({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } });
  expect(passed(frames.toSpliced(3, 0, large))).toMatchObject({ fixups: [] });
  expect(passed(frames.toSpliced(3, 0, large)).out[3]).toBe(large);
});

test.each([
  ["no JSON at all", "oops"],
  ["a delta that is cut", '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a'],
  [
    "a delta with a bare quote in it",
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"b"}}',
  ],
  [
    "a delta with a control character",
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\u0001"}}',
  ],
  [
    "a delta with a false escape",
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\x"}}',
  ],
  ["an array", "[1]"],
])("a reply that is passed through ends in an error at an event that is %s, and tells nothing of it", (_, data) => {
  const good = run(readSse, [bytesAt("messages-model-name", "mended.txt")]);
  const bad = { event: "content_block_delta", data };
  const { out } = passed([...good.slice(0, 3), bad, ...good.slice(3)]);
  expect(out.slice(0, 3)).toEqual(good.slice(0, 3));
  expect(out.slice(3).map(({ event }) => event)).toEqual(["content_block_stop", "error"]);
  expect(Buffer.from(wire(out)).toString()).not.toContain(data);
});

const told = (...events: ReplyEvent[]) => overWire(written(messages.encodeStream(conversation), events));
const types = (frames: SseFrame[]) => frames.map(({ event }) => event);
const start: ReplyEvent = { type: "start", id: "", model: "gpt" };
const finish: ReplyEvent = { type: "finish", reason: "stop" };
const call: ReplyEvent = { type: "block-start", block: { kind: "tool-call", id: "call_1", name: "look" } };
const end: ReplyEvent = { type: "block-end" };

test("a call that broke off has no end, words that broke off have one", () => {
  const error: ReplyEvent = { type: "error", ...cutReply };
  const half: ReplyEvent = { type: "block-delta", text: '{"a' };
  expect(types(told(start, call, half, end, error)).slice(-2)).toEqual(["content_block_delta", "error"]);
  const text: ReplyEvent = { type: "block-start", block: { kind: "text" } };
  const failed = written(messages.encodeStream(conversation), [start, text, half], (client, at) => {
    if (at === 2) client.fail({ type: "error", ...cutReply });
  });
  expect(types(failed).slice(-2)).toEqual(["content_block_stop", "error"]);
});

test("what a client receives: silence is filled with a ping, and nothing follows the end", () => {
  const frames = written(messages.encodeStream(conversation), [start, finish], (client) => client.keepAlive());
  expect(types(frames)).toEqual(["message_start", "ping", "message_delta", "message_stop"]);
});

test("an error has Anthropic's form, whatever its kind", () => {
  for (const kind of Object.keys(errorKinds) as (keyof typeof errorKinds)[])
    expect(messages.encodeError(new ProxyError(kind, "No."), "req_1")).toEqual({
      type: "error",
      error: { type: errorKinds[kind].anthropic, message: "No." },
      request_id: "req_1",
    });
  expect(messages.encodeError(new ProxyError("upstream", "No.", { status: 529 }), "r")).toMatchObject({
    error: { type: "overloaded_error" },
  });
});
