/**
 * Property: streams that are passed on although nobody here can follow them: what an SDK reads of the upstream's, it
 * reads of ours.
 */
import { afterAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { codecs } from "../../src/dialects/codecs";
import { type Dialect, dialects, type JsonObject } from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { jsonOf, readSse, type SseFrame } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import { eventStream } from "../support/event-stream";
import fc, { triesOf } from "../support/random";
import { bytesAt, hasFixture, overWire, passes, wire, written } from "../support/streams";

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

const start = {
  type: "message_start",
  message: {
    id: "m",
    type: "message",
    role: "assistant",
    model: "m",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  },
};
const begin = (index: number, type: "text" | "tool_use" | "thinking" = "text") => ({
  type: "content_block_start",
  index,
  content_block: {
    text: { type, text: "" },
    thinking: { type, thinking: "", signature: "" },
    tool_use: { type, id: `t${index}`, name: "look", input: {} },
  }[type],
});
const says = (index: number | undefined, text: string) => ({
  type: "content_block_delta",
  index,
  delta: { type: "text_delta", text },
});
const input = (index: number, partial_json: string) => ({
  type: "content_block_delta",
  index,
  delta: { type: "input_json_delta", partial_json },
});
const stop = (index?: number) => ({ type: "content_block_stop", index });
const ends = [
  { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 5 } },
  { type: "message_stop" },
];

const chunk = (delta: JsonObject, finish_reason: string | null = null, usage?: JsonObject) => ({
  id: "c",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta, finish_reason }],
  ...(usage ? { usage } : {}),
});
const piece = (index: number, args: string, begun?: JsonObject) =>
  chunk({
    tool_calls: [
      {
        index,
        ...(begun ? { type: "function", id: begun.id } : {}),
        function: { ...(begun?.name ? { name: begun.name } : {}), arguments: args },
      },
    ],
  });
const chatEnd = chunk({}, "tool_calls", { prompt_tokens: 1, completion_tokens: 5, total_tokens: 6 });
const role = chunk({ role: "assistant", content: null });

const response = (status: string, output: JsonObject[] = []) => ({
  id: "r",
  object: "response",
  created_at: 1,
  model: "m",
  status,
  output,
  usage: status === "completed" ? { input_tokens: 1, output_tokens: 5, total_tokens: 6 } : null,
});
const created = { type: "response.created", response: response("in_progress") };
const message = (text: string) => ({
  type: "message",
  id: "i",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [] }],
});
const added = (output_index: number) => ({
  type: "response.output_item.added",
  output_index,
  item: { ...message(""), id: `i${output_index}`, status: "in_progress", content: [] },
});
const wrote = (output_index: number, content_index: number, delta: string) => ({
  type: "response.output_text.delta",
  output_index,
  content_index,
  item_id: `i${output_index}`,
  delta,
});
const completed = (...texts: string[]) => ({
  type: "response.completed",
  response: response(
    "completed",
    texts.map((text, at) => ({ ...message(text), id: `i${at}` })),
  ),
});

/** Whether the reader follows each: what it follows needs no note. */
const odd: Record<Dialect, [string, boolean, JsonObject[]][]> = {
  messages: [
    [
      "texts that grow side by side",
      true,
      [start, begin(0), begin(1), says(0, "a"), says(1, "b"), says(0, "c"), stop(1), stop(0), ...ends],
    ],
    [
      "calls that grow side by side",
      true,
      [
        start,
        begin(0, "tool_use"),
        begin(1, "tool_use"),
        input(1, "{}"),
        input(0, "{"),
        input(0, "}"),
        stop(0),
        stop(1),
        ...ends,
      ],
    ],
    [
      "a call inside a text",
      true,
      [start, begin(0), says(0, "a"), begin(1, "tool_use"), input(1, "{}"), stop(1), says(0, "b"), stop(0), ...ends],
    ],
    ["a text that never stops", true, [start, begin(0), says(0, "a"), begin(1), says(1, "b"), ...ends]],
    ["a stop of another block", true, [start, begin(0), says(0, "a"), stop(7), says(0, "b"), stop(0), ...ends]],
    ["a stop without an index", true, [start, begin(0), says(0, "a"), stop(), ...ends]],
    ["words without an index", true, [start, begin(0), says(undefined, "a"), stop(0), ...ends]],
    ["a block that begins again", true, [start, begin(0), says(0, "a"), begin(0), says(0, "b"), stop(0), ...ends]],
    [
      "a waiting block that begins again",
      true,
      [start, begin(0), begin(1), begin(1), says(1, "b"), stop(1), stop(0), ...ends],
    ],
    [
      "words of a block that has stopped",
      false,
      [start, begin(0), says(0, "a"), stop(0), begin(1), says(0, "b"), stop(1), ...ends],
    ],
    [
      "a delta of a kind that is not known",
      true,
      [
        start,
        begin(0),
        { type: "content_block_delta", index: 0, delta: { type: "new_delta", new: 1 } },
        says(0, "a"),
        stop(0),
        ...ends,
      ],
    ],
    ["words inside a call", false, [start, begin(0, "tool_use"), says(0, "a"), input(0, "{}"), stop(0), ...ends]],
    [
      "a block that is nothing",
      false,
      [start, { type: "content_block_start", index: 0, content_block: null }, begin(1), says(1, "a"), stop(1), ...ends],
    ],
    [
      "a delta that is nothing",
      false,
      [start, begin(0), { type: "content_block_delta", index: 0, delta: null }, says(0, "a"), stop(0), ...ends],
    ],
  ],
  responses: [
    ["a part that comes back", false, [created, added(0), wrote(0, 1, "a"), wrote(0, 0, "b"), completed("b")]],
    [
      "items that grow side by side",
      true,
      [created, added(0), added(1), wrote(0, 0, "a"), wrote(1, 0, "b"), wrote(0, 0, "c"), completed("ac", "b")],
    ],
    ["words of an item that was never added", true, [created, wrote(3, 0, "a"), completed("a")]],
    [
      "an item that is only done",
      true,
      [
        created,
        { type: "response.output_item.done", output_index: 0, item: { ...message("a"), id: "i0" } },
        completed("a"),
      ],
    ],
    [
      "an event of a kind that is not known",
      true,
      [created, { type: "response.new.thing", of: 1 }, added(0), wrote(0, 0, "a"), completed("a")],
    ],
  ],
  chat: [
    [
      "blanks after a call that looked complete",
      true,
      [
        role,
        piece(0, "{}", { id: "a", name: "look" }),
        piece(1, "{", { id: "b", name: "look" }),
        piece(0, "\n"),
        piece(1, "}"),
        chatEnd,
      ],
    ],
    [
      "more input after a call that looked complete",
      false,
      [
        role,
        piece(0, "{}", { id: "a", name: "look" }),
        piece(1, "{", { id: "b", name: "look" }),
        piece(0, ',"x":1}'),
        piece(1, "}"),
        chatEnd,
      ],
    ],
    ["a negative index", false, [role, piece(-1, "{}", { id: "a", name: "look" }), chatEnd]],
    ["an index beyond all calls", false, [role, piece(100_000, "{}", { id: "a", name: "look" }), chatEnd]],
    ["a call without a name", false, [role, piece(0, "{}", { id: "a" }), chatEnd]],
  ],
};

describe.each(dialects)("a stream of %s is passed on with", (dialect) => {
  test.each(odd[dialect])("%s", async (_, isFollowed, events) => {
    const frames = [...events.map(frame), ...(dialect === "chat" ? [{ data: "[DONE]" }] : [])];
    const { out, fixups, events: read } = passed(dialect, frames, "m");
    expect(out.map(({ data }) => data)).toEqual(frames.map(({ data }) => data));
    expect([...fixups]).toEqual(isFollowed ? [] : ["reply-unfollowed"]);
    const sdk = await readBySdk(dialect, frames);
    expect(sdk.failed).toBe(false);
    expect(await readBySdk(dialect, out)).toEqual(sdk);
    expect(read.at(-1)).toMatchObject({ type: "finish" });
    // What it cost is known all the same.
    expect(read.findLast(({ type }) => type === "usage")).toMatchObject({ usage: { output: 5 } });
  });
});

// ── Blocks that are open at once ──

const done = (output_index: number, text: string) => ({
  type: "response.output_item.done",
  output_index,
  item: { ...message(text), id: `i${output_index}` },
});
const said = (content: string) => chunk({ content });

const atOnce: [string, Dialect, JsonObject[], string[]][] = [
  [
    "a block begins again while another one waits",
    "messages",
    [start, begin(0), says(0, "a"), begin(1), says(1, "b"), begin(0), says(0, "c"), stop(1), stop(0), ...ends],
    ["a", "b", "c"],
  ],
  [
    "a block that waits has ended",
    "messages",
    [start, begin(0), says(0, "a"), begin(1), says(1, "b"), stop(1), says(0, "c"), stop(0), ...ends],
    ["ac", "b"],
  ],
  [
    "a block begins with words",
    "messages",
    [
      start,
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "a" } },
      says(0, "b"),
      stop(0),
      { type: "content_block_start", index: 1, content_block: { type: "text", text: "c" } },
      stop(1),
      ...ends,
    ],
    ["ab", "c"],
  ],
  [
    "the later item ends first",
    "responses",
    [created, added(0), added(1), wrote(1, 0, "b"), done(1, "b"), wrote(0, 0, "a"), done(0, "a"), completed("a", "b")],
    ["a", "b"],
  ],
  [
    "an item goes on when the one before has ended",
    "responses",
    [
      ...[created, added(0), added(1), wrote(0, 0, "a"), wrote(1, 0, "b"), done(0, "a"), wrote(1, 0, "c")],
      ...[done(1, "bc"), completed("a", "bc")],
    ],
    ["a", "bc"],
  ],
  [
    "words come within a call",
    "chat",
    [role, piece(0, "{", { id: "a", name: "look" }), said("x"), piece(0, "}"), said("y"), chatEnd],
    ["{}", "xy"],
  ],
  [
    "words come between the pieces of two calls",
    "chat",
    [
      ...[role, piece(0, "{", { id: "a", name: "look" }), said("x"), piece(1, "[", { id: "b", name: "look" })],
      ...[piece(0, "}"), piece(1, "]"), chatEnd],
    ],
    ["{}", "x", "[]"],
  ],
];

test.each(atOnce)("blocks are read in the order in which they began where %s", (_, dialect, events, expected) => {
  const frames = [...events.map(frame), ...(dialect === "chat" ? [{ data: "[DONE]" }] : [])];
  const { events: read, fixups } = passed(dialect, frames, "m");
  const texts: string[] = [];
  for (const event of read)
    if (event.type === "block-start") texts.push("");
    else if (event.type === "block-delta") texts.push(texts.pop() + event.text);
  expect(texts).toEqual(expected);
  expect([...fixups]).toEqual([]);
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
    if (dialect !== "responses") expect(unfollowed).toBeGreaterThan(0);
  },
);
