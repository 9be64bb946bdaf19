/** Pairs: Responses, from the folders `fixtures/responses-*`, and rows of what is read, written and passed on. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import type { ReplyContext } from "../../src/dialects/codec";
import type { Conversation, JsonObject } from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { responses } from "../../src/dialects/responses/codec";
import { rules } from "../../src/dialects/responses/rules";
import { jsonFrame, readSse, type SseFrame } from "../../src/lib/net/stream/sse";
import { collectInto, run } from "../../src/lib/net/stream/stream";
import { eventStream } from "../support/event-stream";
import { ableModel } from "../support/facts";
import { checkResponsesStream } from "../support/grammar-responses";
import { fixRequest } from "../support/noted";
import fc from "../support/random";
import { expectSameReply, meaningOf } from "../support/reply-grammar";
import { bytesAt, fixtures, hasFixture, jsonAt, overWire, passes, reads, wire, written } from "../support/streams";

const able = ableModel("some-model", "Azure OpenAI");
const model: ModelFacts = {
  ...able,
  dialects: ["responses"],
  limits: { output: 32_000 },
  supports: { ...able.supports, adaptiveThinking: false, thinkingBudget: undefined },
};
const asked: ReplyContext = { model: "gpt-5.1-2025-11-13", usage: true, replies: 1 };

const textAt = (folder: string, file: string) => readFileSync(join(fixtures, folder, file), "utf8");
const withFile = (file: string) =>
  readdirSync(fixtures).filter((name) => name.startsWith("responses-") && hasFixture(name, file));

const request = (members: JsonObject): JsonObject => ({ model: "some-model", input: "Hi.", ...members });
const decode = (members: JsonObject): Conversation => responses.decodeRequest(request(members));

/** The client's request as it goes up when the dialects match. */
const passed = (body: JsonObject, facts = model, options?: { webSearch: boolean }): JsonObject =>
  responses.fixRequest(body, facts, options);

test.each(withFile("request.json"))("a request passed through: %s", (folder) => {
  const before = jsonAt(folder, "request.json");
  const options = { webSearch: folder !== "responses-web-search" };
  const { fixups } = fixRequest(responses, before, model, options);
  expect(passed(before, model, options)).toEqual(jsonAt(folder, "fixed.json"));
  expect(fixups).toEqual([folder.replace("responses-", "")]);
  expect(fixRequest(responses, passed(before, model, options), model, options).fixups).toEqual([]);
});

test("every fixup has a folder or a pair that proves its need", () => {
  const folders = [...withFile("request.json"), ...withFile("stream.txt")];
  const pairs = textAt("pairs/responses", "fix.txt").matchAll(/"fixups":(\[[^\]]*\])/g);
  const shown = new Set([
    ...folders.map((name) => name.replace("responses-", "")),
    ...[...pairs].flatMap(([, names = ""]): string[] => JSON.parse(names)),
  ]);
  const ofStreams = ["copilot-fields", "empty-output", "error-event", "foreign-event", "model-name", "response-id"];
  expect([...Object.keys(rules), ...ofStreams].filter((name) => !shown.has(name))).toEqual([]);
});

const framesOf = (bytes: Uint8Array) => run(readSse, [bytes]);
const sse = (...events: JsonObject[]): SseFrame[] => events.map((event) => jsonFrame(event, String(event.type)));
const created: JsonObject = {
  type: "response.created",
  response: { id: "r1", model: asked.model, status: "in_progress", output: [] },
  sequence_number: 0,
};
const completed: JsonObject = {
  type: "response.completed",
  response: { id: "r1", model: asked.model, status: "completed", output: [] },
  sequence_number: 99,
};
const decodeEvents = (...events: JsonObject[]) => run(reads(responses), sse(...events));
const read = (...events: JsonObject[]) => meaningOf(decodeEvents(...events));
const added = (output_index: number, item: JsonObject) => ({ type: "response.output_item.added", output_index, item });
const done = (output_index: number, item: JsonObject) => ({ type: "response.output_item.done", output_index, item });
const textDelta = (output_index: number, content_index: number, delta: string) => ({
  type: "response.output_text.delta",
  ...{ output_index, content_index, delta },
});
test("words are read as they are meant, whatever they look like", () => {
  const item = { type: "message", id: "m", content: [] };
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom('"', "\\", '\\"', '\n","delta":"x', '"output_index":3,')),
      (words) => {
        const blocks = words === "" ? [] : [{ kind: "text", text: words }];
        expect(read(created, added(0, item), textDelta(0, 0, words), done(0, item), completed).blocks).toEqual(blocks);
      },
    ),
  );
});

const start: ReplyEvent = { type: "start", id: "chatcmpl-1", model: "claude-sonnet-4.5-dated" };

test("a beat is a comment before the response began, then a repetition, and nothing after its end", () => {
  const frames: SseFrame[] = [];
  const client = responses.encodeStream(decode({}))(collectInto(frames));
  client.keepAlive();
  client.push(start);
  client.keepAlive();
  client.push({ type: "finish", reason: "stop" });
  client.keepAlive();
  client.end();
  expect(frames.map(({ event, data }) => event ?? data ?? "comment")).toEqual([
    ...["comment", "response.created", "response.in_progress", "response.in_progress", "response.completed"],
  ]);
  checkResponsesStream(overWire(frames));
});

const fixup = (frames: SseFrame[], fixups = new Set<string>()) =>
  written(
    passes(responses, asked, (name) => fixups.add(name)),
    frames,
  );

test.each(withFile("stream.txt"))("a stream passed through: %s", async (folder) => {
  const fixups = new Set<string>();
  const out = fixup(framesOf(bytesAt(folder, "stream.txt")), fixups);
  expect(new TextDecoder().decode(wire(out))).toBe(textAt(folder, "mended.txt"));
  expect([...fixups]).toEqual([folder.replace("responses-", "")]);
  checkResponsesStream(overWire(out));
  await sdkReads(wire(out));
});

test.each(["responses-item-ids", "responses-response-id", "responses-foreign-event"])(
  "a stream passed through: %s breaks the SDK unmended",
  async (folder) => {
    await expect(sdkReads(bytesAt(folder, "stream.txt"))).rejects.toThrow();
  },
);

test("beats are numbered in line, and so is what follows them", () => {
  const frames = framesOf(bytesAt("responses-item-ids", "stream.txt"));
  const fixups = new Set<string>();
  const out = written(
    passes(responses, asked, (name) => fixups.add(name)),
    frames,
    (client) => client.keepAlive(),
  );
  checkResponsesStream(overWire(out));
  expect([...fixups].sort()).toEqual(["item-ids", "sequence-number"]);
  expect(out.filter(({ event }) => event === "response.in_progress")).toHaveLength(frames.length);
});

const scenarios = readdirSync(fixtures).filter((name) => hasFixture(name, "responses.stream.txt"));

test.each(scenarios)(
  "the OpenAI SDK's helper, the strictest reader there is reads %s, written and passed through, beats and all",
  async (scenario) => {
    const stream = framesOf(bytesAt(scenario, "responses.stream.txt"));
    const events = run(reads(responses), stream);
    const conversation = responses.decodeRequest(jsonAt(scenario, "responses.request.json"));
    const out = written(responses.encodeStream(conversation), events, (client) => client.keepAlive());
    const fixed = written(
      passes(responses, asked, () => {}),
      stream,
      (client) => client.keepAlive(),
    );
    expectSameReply(responses.decodeReply(await sdkReads(wire(out))), events);
    expectSameReply(responses.decodeReply(await sdkReads(wire(fixed))), events);
  },
);

async function sdkReads(bytes: Uint8Array): Promise<unknown> {
  const fetch = async () => eventStream(bytes);
  const client = new OpenAI({ apiKey: "k", baseURL: "http://localhost/v1", maxRetries: 0, fetch });
  return client.responses.stream({ model: "m", input: "x" }).finalResponse();
}
