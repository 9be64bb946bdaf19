/**
 * Rows: what is read of an upstream's answer is among the names that it is known to send, so that drift is noticed
 * where it matters. The readers tell what they read: they are given answers that write it down, whether a member is
 * there or not.
 */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { codecs } from "../../src/dialects/codecs";
import { type Dialect, dialects } from "../../src/dialects/hub/conversation";
import type { Shape } from "../../src/lib/json-shape";
import { jsonOf, readSse } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import { copilotReplies, copilotStreams } from "../support/copilot-forms";
import { bytesAt, fixtures, hasFixture, jsonAt, overWire, passes, written } from "../support/streams";

/** The member that is being copied with all others of its object: nobody has asked for it. */
let copied: string | symbol | undefined;

/** A JSON that tells the path of each member that is read of it. Items of a list have the path of the list. */
function watched<Json extends object>(json: Json, path: string[], read: (path: string[]) => void): Json {
  return new Proxy(json, {
    get(target, key) {
      const inner: unknown = Reflect.get(target, key);
      const isMember = typeof key === "string" && !Array.isArray(target);
      const own = isMember ? [...path, key] : path;
      if (isMember && copied !== key) read(own);
      copied = undefined;
      return typeof inner === "object" && inner !== null ? watched(inner, own, read) : inner;
    },
    getOwnPropertyDescriptor(target, key) {
      copied = key;
      return Reflect.getOwnPropertyDescriptor(target, key);
    },
  });
}

function isKnown({ members }: Shape, [name, ...rest]: string[]): boolean {
  const member = members.get(name ?? "");
  return member !== undefined && (rest.length === 0 || !member.shape || isKnown(member.shape, rest));
}

/** One reader for the calls of all dialects' older forms: no chat completion has it. */
const ofOtherForms = ["choices.delta.tool_calls.function.input", "choices.message.tool_calls.function.input"];

/** Objects that no fixture has, without their members: those are read all the same. */
const hollow: Record<Dialect, object> = {
  chat: {
    choices: [],
    usage: { prompt_tokens_details: {}, completion_tokens_details: {} },
    copilot_usage: {},
  },
  responses: { output: [], usage: { input_tokens_details: {}, output_tokens_details: {} }, copilot_usage: {} },
  messages: {
    content: [],
    usage: { cache_creation: {}, output_tokens_details: {} },
    stop_details: {},
    copilot_usage: {},
  },
};

test.each(dialects)("what is read of %s is known", (dialect) => {
  const { decodeReply, decodeStream, knownNames } = codecs[dialect];
  const { reply, events, typeOf } = knownNames();
  const unknown = new Set<string>();
  let count = 0;
  const readOf = (shape: Shape | undefined) => (path: string[]) => {
    count++;
    // Each event is asked for what only some have.
    const shapes = [shape ?? reply, ...(path.length === 1 ? [reply, ...events.values()] : [])];
    if (!shapes.some((known) => isKnown(known, path))) unknown.add(path.join("."));
  };
  const folders = readdirSync(fixtures);
  const replies = folders.filter((folder) => hasFixture(folder, `${dialect}.reply.json`));
  for (const json of [
    hollow[dialect],
    ...replies.map((folder) => jsonAt(folder, `${dialect}.reply.json`)),
    ...Object.values(copilotReplies("m")).flatMap((form) => (form.dialect === dialect ? [form.reply] : [])),
  ])
    decodeReply(watched(json, [], readOf(reply)));
  const streams = folders.filter((folder) => hasFixture(folder, `${dialect}.stream.txt`));
  for (const bytes of [
    ...streams.map((folder) => bytesAt(folder, `${dialect}.stream.txt`)),
    ...Object.values(copilotStreams("m")).flatMap((form) =>
      form.dialect === dialect ? [new TextEncoder().encode(form.begin + form.words("Hi", 0) + form.end)] : [],
    ),
  ]) {
    const reader = decodeStream()({ push() {}, end() {} });
    // As it is passed on, nothing has to be changed any more: the reader does not get a copy.
    const client = passes(codecs[dialect], { model: "", usage: true, replies: 1 }, () => {});
    for (const frame of overWire(written(client, run(readSse, [bytes])))) {
      const json = jsonOf(frame);
      if (typeof json === "object" && json !== null)
        frame.json = watched(json, [], readOf(events.get(typeOf(json as Record<string, unknown>))));
      reader.push(frame);
    }
    reader.end();
  }
  expect([...unknown].filter((path) => !ofOtherForms.includes(path))).toEqual([]);
  expect(count).toBeGreaterThan(500);
});
