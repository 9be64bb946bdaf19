/**
 * Property: streams that are passed on although nobody here can follow them: what an SDK reads of the upstream's, it
 * reads of ours.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { codecs } from "../../src/dialects/codecs";
import { type Dialect, dialects, type JsonObject } from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { jsonOf, readSse, type SseFrame } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import { eventStream } from "../support/event-stream";
import { pairsIn } from "../support/pairs";
import { proof } from "../support/proof";
import fc, { triesOf } from "../support/random";
import { bytesAt, fixtures, hasFixture, overWire, passes, wire, written } from "../support/streams";

// ── What an SDK reads ──

let served = new Uint8Array();
const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => eventStream(served.slice()) });
afterAll(() => server.stop(true));
const shared = { apiKey: "unused", maxRetries: 0 };
const openai = new OpenAI({ ...shared, baseURL: `${server.url}v1` });
const anthropic = new Anthropic({ ...shared, baseURL: server.url.href.slice(0, -1) });
const prompt = [{ role: "user" as const, content: "Hi" }];

const streams: Record<Dialect, () => Promise<AsyncIterable<object>>> = {
  chat: () => openai.chat.completions.create({ model: "m", messages: prompt, stream: true }),
  responses: () => openai.responses.create({ model: "m", input: "Hi", stream: true }),
  messages: () => anthropic.messages.create({ model: "m", max_tokens: 9, messages: prompt, stream: true }),
};

interface Read {
  events: JsonObject[];
  failed: boolean;
}

async function readBySdk(dialect: Dialect, frames: SseFrame[]): Promise<Read> {
  served = new Uint8Array(wire(frames));
  const events: JsonObject[] = [];
  try {
    for await (const event of await streams[dialect]()) events.push({ ...event });
  } catch {
    return { events, failed: true };
  }
  const failed = events.some(({ type }) => type === "response.failed" || type === "error");
  return { events, failed };
}

// ── What goes to the client ──

const context = { model: "", usage: true, replies: 1 };

function passed(dialect: Dialect, frames: SseFrame[], model: string) {
  const fixups = new Set<string>();
  const events: ReplyEvent[] = [];
  const toClient = passes(codecs[dialect], { ...context, model }, (name) => void fixups.add(name), {
    push: (event) => void events.push(event),
    end() {},
  });
  return { out: overWire(written(toClient, frames)), fixups, events };
}

const frame = (json: JsonObject): SseFrame => ({
  ...(typeof json.type === "string" ? { event: json.type } : {}),
  data: JSON.stringify(json),
});

// ── Streams that a reader cannot follow ──

/** From `fixtures/pairs/odd-streams/`: titles, the events of a stream, and what is said of it. */
const streamsOf = (dialect: Dialect, file: string) =>
  pairsIn(readFileSync(join(fixtures, "pairs/odd-streams", `${file}.txt`), "utf8")).map(([title, [pair]]) => {
    const frames = [...(pair!.given as JsonObject[]).map(frame), ...(dialect === "chat" ? [{ data: "[DONE]" }] : [])];
    return [title, frames, pair!.out] as const;
  });

describe.each(dialects)("a stream of %s is passed on with", (dialect) => {
  test.each(streamsOf(dialect, dialect))("%s", async (_, frames, [said]) => {
    const { out, fixups, events: read } = passed(dialect, frames, "m");
    expect(out.map(({ data }) => data)).toEqual(frames.map(({ data }) => data));
    // What the reader follows needs no note.
    expect([...fixups]).toEqual(said === "followed" ? [] : ["reply-unfollowed"]);
    const sdk = await readBySdk(dialect, frames);
    expect(sdk.failed).toBe(false);
    expect(await readBySdk(dialect, out)).toEqual(sdk);
    expect(read.at(-1)).toMatchObject({ type: "finish" });
    // What it cost is known all the same.
    expect(read.findLast(({ type }) => type === "usage")).toMatchObject({ usage: { output: 5 } });
  });
});

// ── Blocks that are open at once ──

describe.each(dialects)("of %s", (dialect) => {
  test.each(streamsOf(dialect, `${dialect}-at-once`))(
    "blocks are read in the order in which they began where %s",
    (_, frames, expected) => {
      const { events: read, fixups } = passed(dialect, frames, "m");
      const texts: string[] = [];
      for (const event of read)
        if (event.type === "block-start") texts.push("");
        else if (event.type === "block-delta") texts.push(texts.pop() + event.text);
      expect(texts).toEqual(expected as string[]);
      expect([...fixups]).toEqual([]);
    },
  );
});

// ── Any change of a stream ──

const sources = [
  "text",
  "thinking-then-tool",
  "parallel-tools",
  "structured-output",
  "empty-arguments",
  "unicode",
  "max-tokens",
  "refusal",
  "chat-calls-side-by-side",
  "chat-text-inside-call",
];

/** One change: of a stream as a whole, or of one number or text in it. */
type Change = (frames: SseFrame[], at: number, other: number) => SseFrame[];
const edited = (frames: SseFrame[], at: number, edit: (json: JsonObject) => void): SseFrame[] =>
  frames.map((each, place) => {
    const json = place === at ? jsonOf(each) : undefined;
    if (typeof json !== "object" || json === null) return each;
    const copy = structuredClone(json) as JsonObject;
    edit(copy);
    return { ...(each.event === undefined ? {} : { event: each.event }), data: JSON.stringify(copy) };
  });
/** Sets members of these names, wherever they stand in the event. */
function setAll(value: unknown, names: readonly string[], to: (before: unknown) => unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value))
    if (names.includes(key)) (value as JsonObject)[key] = to(inner);
    else setAll(inner, names, to);
}
const changes: Record<string, Change> = {
  repeated: (frames, at) => frames.toSpliced(at, 0, frames[at]!),
  missing: (frames, at) => frames.toSpliced(at, 1),
  exchanged(frames, at, other) {
    const copy = [...frames];
    [copy[at], copy[other]] = [copy[other]!, copy[at]!];
    return copy;
  },
  "with other indexes": (frames, at, other) =>
    edited(frames, at, (json) => setAll(json, ["index", "output_index", "content_index"], () => (other % 4) - 1)),
  "without indexes": (frames, at) =>
    edited(frames, at, (json) => setAll(json, ["index", "output_index", "content_index"], () => null)),
  "with blanks": (frames, at) => edited(frames, at, (json) => setAll(json, ["arguments", "partial_json"], () => " \n")),
  "with other ids": (frames, at, other) =>
    edited(frames, at, (json) => setAll(json, ["id", "item_id"], () => `other_${other % 3}`)),
  "with other types": (frames, at) =>
    edited(frames, at, (json) => setAll(json.delta ?? json.item, ["type"], () => "new_type")),
};

/** What was said, in its order. Ids, numbers and forms are what fixups may change. */
const wordsIn = (events: JsonObject[]): string =>
  events
    .flatMap((event) => {
      const words: string[] = [];
      const collect = (value: unknown) => {
        if (typeof value !== "object" || value === null) return;
        for (const [key, inner] of Object.entries(value))
          if (
            typeof inner === "string" &&
            ["text", "thinking", "partial_json", "arguments", "content", "refusal", "reasoning_text"].includes(key)
          )
            words.push(inner);
          else collect(inner);
      };
      if (typeof event.delta === "string") words.push(event.delta);
      else collect(event.delta ?? event.choices);
      return words;
    })
    .join("|")
    .replaceAll(/\|+/g, "|");

const isEnd = ({ data, event }: SseFrame): boolean =>
  data === "[DONE]" ||
  event === "message_stop" ||
  (event ?? "").startsWith("response.completed") ||
  event === "response.incomplete" ||
  /"finish_reason":\s*"/.test(data ?? "");

test.each(dialects)(
  "whatever is changed in a stream of %s, an SDK reads of ours what it reads of the upstream's",
  async (dialect) => {
    const recorded = sources.flatMap((folder) => {
      if (!hasFixture(folder, `${dialect}.stream.txt`)) return [];
      const frames = run(readSse, [bytesAt(folder, `${dialect}.stream.txt`)]).filter(({ data }) => data !== undefined);
      return [frames.map(({ event, data }): SseFrame => ({ ...(event === undefined ? {} : { event }), data: data! }))];
    });
    let judged = 0;
    let unfollowed = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...recorded),
        fc.array(fc.tuple(fc.constantFrom(...Object.keys(changes)), fc.nat(), fc.nat()), {
          minLength: 1,
          maxLength: 3,
        }),
        async (source, steps) => {
          // The end stays where it is: a stream without one is cut, and that is told.
          const last = source.findIndex(isEnd);
          let body = source.slice(0, last);
          for (const [name, at, other] of steps)
            if (body.length > 0) body = changes[name]!(body, at % body.length, other % body.length);
          const frames = [...body, ...source.slice(last)];
          const sdk = await readBySdk(dialect, frames);
          if (sdk.failed) return;
          const { out, fixups } = passed(dialect, frames, "");
          const ours = await readBySdk(dialect, out);
          judged++;
          if (fixups.has("reply-unfollowed")) unfollowed++;
          expect(ours.failed).toBe(false);
          expect(wordsIn(ours.events)).toBe(wordsIn(sdk.events));
        },
      ),
      { numRuns: triesOf(300) },
    );
    expect(judged).toBeGreaterThan(30);
    // There is one thing only that a reader of responses cannot follow: parts that come back.
    // Few are: sixty inputs may have none.
    if (proof && dialect !== "responses") expect(unfollowed).toBeGreaterThan(0);
  },
);
