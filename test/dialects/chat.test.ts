/** Pairs: Chat, from the folders `fixtures/chat-*`, and rows of what is read, written and passed on. */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { chat } from "../../src/dialects/chat/codec";
import { ObjectEnd } from "../../src/dialects/chat/object-end";
import type { ReplyContext } from "../../src/dialects/codec";
import type { Conversation, Turn } from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { isObject, parseJson } from "../../src/lib/json";
import { readSse } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import { chunkSizes } from "../support/differential";
import { checkChatStream } from "../support/grammar-chat";
import fc, { triesOf } from "../support/random";
import { meaningOf } from "../support/reply-grammar";
import {
  bytesAt,
  chunksOf,
  cutsOf,
  decode,
  decodeFrames,
  fixtures,
  hasFixture,
  jsonAt,
  overWire,
  passes,
  passesFull,
  reads,
  wire,
  written,
} from "../support/streams";

const conversation = (...turns: Turn[]): Conversation => ({ model: "m", turns, tools: [], stream: true });

const quirks = readdirSync(fixtures).filter((name) => name.startsWith("chat-"));
const meant = (folder: string) => {
  const { asked, fixups, loose, ...meaning } = jsonAt(folder, "expected.json");
  return { asked, fixups: fixups, loose, meaning };
};
const askedOf = (folder: string, model: string): ReplyContext => ({
  model,
  usage: true,
  replies: 1,
  ...meant(folder).asked,
});

describe.each(quirks.filter((folder) => hasFixture(folder, "chat.stream.txt")))(
  "what Copilot's streams and replies are like: %s",
  (folder) => {
    const stream = bytesAt(folder, "chat.stream.txt");
    const { fixups, meaning, loose } = meant(folder);
    const whole = decode(chat, [stream]);
    const context = askedOf(folder, modelIn(stream));
    const ends = meaning.end.type === "finish";

    test("is understood, whatever the size of the chunks", () => {
      expect(meaningOf(whole)).toEqual(meaning);
      for (const size of chunkSizes) expect(decode(chat, chunksOf(stream, size))).toEqual(whole);
    });

    test("passes through with its fixups only, and reads the same", () => {
      const told = new Set<string>();
      const out = written(
        passes(chat, context, (name) => told.add(name)),
        run(readSse, [stream]),
      );
      expect([...told].sort()).toEqual(fixups.stream);
      if (told.size === 0 && ends) expect(wire(out)).toEqual(stream);
      if (ends && hasDone(stream) && !loose) checkChatStream(overWire(out), conversation());
      const usage = context.usage ? { ...meaning.usage } : {};
      if (told.has("bill-chunk")) delete usage.nanoCredits;
      expect(meaningOf(decodeFrames(chat, out))).toEqual({ ...meaning, usage });
    });

    test("a request that was fixed needs no second fixup", () => {
      const fixup = () => passes(chat, context, (name) => told.push(name));
      const told: string[] = [];
      const once = overWire(written(fixup(), run(readSse, [stream])));
      told.length = 0;
      const twice = written(fixup(), once);
      expect(told).toEqual([]);
      expect(wire(twice)).toEqual(wire(once));
    });

    test("cut at any byte passes through to one end, the same for client and books", () => {
      for (const frames of cutsOf(stream)) {
        const arrived = decodeFrames(
          chat,
          written(
            passes(chat, context, () => {}),
            frames,
          ),
        );
        const booked = meaningOf(run(reads(chat), frames));
        expect({ ...meaningOf(arrived), usage: {} }).toEqual({ ...booked, usage: {} });
      }
    });
  },
);

test.each(quirks.filter((folder) => hasFixture(folder, "chat.reply.json")))(
  "what Copilot's streams and replies are like: %s as a full reply",
  (folder) => {
    const reply = jsonAt(folder, "chat.reply.json");
    const { fixups, meaning } = meant(folder);
    expect(meaningOf(chat.decodeReply(reply))).toEqual(meaning);
    const context = askedOf(folder, reply.model);
    const told = new Set<string>();
    const fixed = passesFull(chat, reply, context, (name) => told.add(name));
    expect([...told].sort()).toEqual(fixups.reply);
    expect(meaningOf(chat.decodeReply(fixed))).toEqual(meaning);
    expect(fixed).toMatchObject({ object: "chat.completion", model: context.model, choices: [{ index: 0 }] });
    expect(passesFull(chat, fixed, context, () => {})).toBe(fixed);
  },
);

function modelIn(stream: Uint8Array): string {
  const [, name] = /"model":"([^"]+)"/.exec(new TextDecoder().decode(stream)) ?? [];
  return name ?? "";
}

function hasDone(stream: Uint8Array): boolean {
  return new TextDecoder().decode(stream).includes("[DONE]");
}

test("a call is told of as soon as its name and id are known", () => {
  const told: ReplyEvent[] = [];
  const reader = reads(chat)({ push: (event) => void told.push(event), end() {} });
  const call = { index: 0, id: "call_1", type: "function", function: { name: "look", arguments: "" } };
  reader.push({
    data: JSON.stringify({ id: "c", model: "m", choices: [{ index: 0, delta: { tool_calls: [call] } }] }),
  });
  expect(told.at(-1)).toEqual({ type: "block-start", block: { kind: "tool-call", id: "call_1", name: "look" } });
});

test.each([
  [1024, 0, "finish"],
  [1025, 0, "error"],
  [1, 1023, "finish"],
  [1, 1024, "error"],
])(
  "a stream of %d calls that begin at index %d ends with %s: a faulty upstream fills no memory",
  (count, index, type) => {
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      data: JSON.stringify({ id: "c", model: "m", choices: [{ index: 0, delta, finish_reason }] }),
    });
    const calls = Array.from({ length: count }, (_, at) => {
      const call = { index, id: `call_${at}`, type: "function", function: { name: "look", arguments: "{}" } };
      return chunk({ tool_calls: [call] });
    });
    expect(decodeFrames(chat, [...calls, chunk({}, "tool_calls"), { data: "[DONE]" }]).at(-1)).toMatchObject({ type });
  },
);

test("the end of an object is found wherever its pieces begin", () => {
  const json = fc.dictionary(fc.string(), fc.jsonValue()).map((object) => JSON.stringify(object));
  const signs = fc.array(fc.constantFrom(...'{}[]":,\\a1 \u00a0')).map((all) => all.join(""));
  const pieces = fc.array(fc.oneof(json, signs), { maxLength: 3 }).map((texts) => texts.join(""));
  fc.assert(
    fc.property(pieces, fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 3 }), (text, size, asks) => {
      const end = new ObjectEnd();
      for (let at = 0; at < text.length; at += size) {
        const soFar = text.slice(0, at + size);
        end.add(text.slice(at, at + size));
        if ((at / size) % asks === 0)
          expect([soFar, end.isReached(soFar)]).toEqual([soFar, isObject(parseJson(soFar))]);
      }
    }),
    { numRuns: triesOf(300) },
  );
});
