/** Pairs: what passes because it is alike reaches the client and the record as it would through all stages. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { codecs } from "../../src/dialects/codecs";
import { AlikeEvents } from "../../src/dialects/hub/alike";
import { type Dialect, dialects } from "../../src/dialects/hub/conversation";
import { unnoted } from "../../src/dialects/hub/notes";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { type FrameSink, gatherFrames, readSse, type SseFrame } from "../../src/lib/net/stream/sse";
import { copilotStreams } from "../support/copilot-forms";
import { Comparison, chunkSizes } from "../support/differential";
import { type Chance, drawn, openChance, triesOf } from "../support/random";
import { bytesAt, fixtures, hasFixture, reads } from "../support/streams";

// Its signs mean something in a pattern and in a replacement.
const model = "gpt-5.$1*";
const forms = Object.entries(copilotStreams(model));
const words = [
  "word",
  " größe 字 🎈",
  '"quoted" \\ and \n',
  "$1 $& $$",
  "",
  "a",
  "data: [DONE]",
  "x\x7f",
  "x".repeat(300),
];
const error = 'data: {"error":{"message":"It failed.","code":"overloaded"}}\n\n';
/** A page is cited in the second of two texts, by its place in both. */
const thought = 'data: {"choices":[{"index":0,"delta":{"reasoning_text":"Hm."}}]}\n\n';
const cited =
  'data: {"choices":[{"index":0,"delta":{"annotations":[{"type":"url_citation","url_citation":{"start_index":4000,"end_index":4020,"url":"http://a.test/","title":"A"}}]}}]}\n\n';
const chunk = (call: object) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...call }] } }] })}\n\n`;
const piece = (text: unknown, id?: string) => chunk({ id, function: { name: id && "edit", arguments: text } });
const delta = (delta: string, obfuscation: string) =>
  `data: ${JSON.stringify({ type: "response.function_call_arguments.delta", obfuscation, delta, output_index: 0 })}\n\n`;
const added =
  'data: {"type":"response.output_item.added","item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"edit","arguments":""},"output_index":0}\n\n';
/** What is a piece of a call is not told by its place alone. */
const calls: [string, Dialect, string][] = [
  ["inputs that are objects", "chat", piece("", "a") + piece({ at: 1 }).repeat(60)],
  ["calls that only an id tells apart", "chat", piece("one", "a").repeat(20) + piece("two", "b").repeat(20)],
  ["a padding like the text", "responses", added + delta("same", "same").repeat(20) + delta("text", "x").repeat(20)],
];
const split = (text: string): string[] => text.match(/(?:[^\n]+\n)+\n/g) ?? [];

/** A chunk of a stream; what comes after it: silence, or a break. */
interface Piece {
  bytes: Uint8Array;
  then?: "keep-alive" | "failure";
}

function passed(dialect: Dialect, pieces: readonly Piece[], isAlike: boolean) {
  const out = gatherFrames();
  const fixups = new Set<string>();
  const events: (ReplyEvent | string)[] = [];
  const passage = codecs[dialect].passOn(
    { model, stream: true },
    { ...unnoted, addFixup: (name) => void fixups.add(name) },
  );
  const alike = isAlike ? new AlikeEvents(out, passage.free) : undefined;
  const client = alike ? alike.beforeWriter(passage.stream(alike)) : passage.stream(out);
  let read = 0;
  let call: string | undefined;
  const stages = passage.readStream({
    push(beat) {
      read++;
      for (const event of beat.events) {
        if (event.type === "block-start") call = event.block.kind === "tool-call" ? "" : undefined;
        if (event.type === "block-delta" && call !== undefined) call += event.text;
        if (event.type === "block-end" && call !== undefined) events.push(call);
        // Where a page is cited is of no use to the record.
        if (event.type !== "block-delta") events.push(event.type === "block-end" ? { ...event, citations: [] } : event);
      }
      client.push(beat);
    },
    end: () => client.end(),
  });
  const reader = readSse(alike ? alike.beforeReader(stages) : stages);
  const sent: Uint8Array[] = [];
  for (const { bytes, then } of pieces) {
    reader.push(bytes);
    if (then === "keep-alive") client.keepAlive();
    if (then === "failure") client.fail({ type: "error", code: "timeout", message: "Too late." });
    sent.push(out.take() ?? new Uint8Array());
  }
  reader.end();
  sent.push(out.take() ?? new Uint8Array());
  const text = Buffer.concat(sent).toString("latin1");
  return { read, reached: { text: text.replaceAll(/"created":\d{10}\b/g, ""), fixups: [...fixups].sort(), events } };
}

/** What is said to who writes the stream anew. */
function told(dialect: Dialect, pieces: readonly Piece[], isAlike: boolean) {
  const events: ReplyEvent[] = [];
  const stages = reads(codecs[dialect])({ push: (event) => void events.push(event), end() {} });
  let read = 0;
  const counted = {
    push(frame: SseFrame) {
      read++;
      stages.push(frame);
    },
    end: () => stages.end(),
  };
  const { pass } = stages as FrameSink;
  const reader = readSse(isAlike && pass ? { ...counted, pass: pass.bind(stages) } : counted);
  for (const { bytes } of pieces) reader.push(bytes);
  reader.end();
  return { read, reached: events };
}

/** DEL stands for a byte that is not UTF-8. */
const bytesOf = (text: string) => new TextEncoder().encode(text).map((byte) => (byte === 0x7f ? 0xff : byte));

const inChunks = (text: string, size: number): Piece[] => {
  const bytes = bytesOf(text);
  const starts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => at * size);
  return starts.map((start) => ({ bytes: bytes.slice(start, start + size) }));
};

const texts = (of: (text: string, at: number) => string): string =>
  Array.from({ length: 60 }, (_, at) => of(words[at % 9 < 5 ? 0 : at % words.length]!, at)).join("");

/** Each form with texts of all kinds, in several spellings and with several ends; each event of the fixtures several times. */
const streams = [
  ...forms.flatMap(([name, { dialect, begin, words: of, end }]) => {
    const all = texts(of);
    const odd = all.replace("word", "\\u00e9\\/").replace("word", "\\ud83c\\udf88").replaceAll("}\n\n", "} \n\n");
    return [
      [name, dialect, begin + all + all + end],
      [`${name}, spelled oddly`, dialect, begin + odd + end],
      [`${name}, cut`, dialect, begin + all],
      [`${name}, with an error`, dialect, begin + all + error],
      [`${name}, with no JSON`, dialect, `${begin}${all}data: {"choices":[\n\n${all}${end}`],
      [`${name}, citing`, dialect, begin + all + (dialect === "chat" ? thought + all + all + cited : "") + end],
      [`${name}, with CRLF`, dialect, (begin + all + end).replaceAll("\n", "\r\n")],
    ] as const;
  }),
  ...readdirSync(fixtures).flatMap((folder) =>
    dialects.flatMap((dialect) => {
      if (!hasFixture(folder, `${dialect}.stream.txt`)) return [];
      const text = Buffer.from(bytesAt(folder, `${dialect}.stream.txt`)).toString();
      const repeated = text.replaceAll(/(?:[^\n]+\n)+\n/g, (event) => event.repeat(12));
      return [[`${folder}, repeated`, dialect, repeated] as const];
    }),
  ),
];

test("Every stream is the same to the client and the record, however it is cut.", () => {
  const comparison = new Comparison();
  for (const [name, dialect, text] of [...calls, ...drawn("alike", streams)])
    for (const size of [...chunkSizes.slice(2), 700, 16_000, text.length * 4]) {
      const pieces = inChunks(text, size);
      const silent = pieces.map((piece, at) => (at === 9 ? { ...piece, then: "keep-alive" as const } : piece));
      const [one, other] = [passed(dialect, silent, true), passed(dialect, silent, false)];
      comparison.same(`${name}, ${dialect}, ${size}`, one.reached, other.reached);
      const [anew, whole] = [told(dialect, pieces, true), told(dialect, pieces, false)];
      comparison.same(`${name}, ${dialect}, ${size}, written anew`, anew.reached, whole.reached);
    }
  comparison.expectAtLeast(300);
}, 120_000);

/** Events of all fixtures. */
const strewn = Object.fromEntries(
  dialects.map((dialect) => [
    dialect,
    streams
      .filter((stream) => stream[1] === dialect && stream[0].endsWith(", repeated"))
      .flatMap(([, , text]) => [...new Set(split(text))]),
  ]),
);

/** The event with another place, number or spelling. */
const changed = (event: string, { pick, below }: Chance): string => {
  const indexes = /("(?:index|output_index|content_index|summary_index|sequence_number|created)": ?)\d+/;
  return pick(
    event.replace(indexes, `$1${below(3)}`),
    event.replace(/"(item_id|id|content|text|delta)": ?"[^"\\]*"/, `"$1":"${pick("", "x", "\\n", "ä")}"`),
    event.replace(/":"/, '": "'),
    event.replace(/"content":"/, '"content":"","reasoning_text":"'),
    event.replace(/"content":"[^"]+"/, '$&,"reasoning_text":"x"'),
    event.replace("}", ',"new":1}'),
    event.replace(/"word[^"]*"/, pick("null", "0", '"\\ud83c"', "[]")),
  );
};

function randomStream(chance: Chance): [Dialect, Piece[]] {
  const { below, maybe, pick } = chance;
  const [, { dialect, begin, words: of, end }] = pick(...forms);
  const [, other] = pick(...forms.filter(([, form]) => form.dialect === dialect));
  let text = begin;
  let at = 0;
  for (let part = below(8) + 1; part > 0; part--) {
    const run = maybe(0.7) ? of : other.words;
    // A seed of its own for each event gives all of a run the same change.
    const turned = maybe(0.2) ? `${below(1e6)}` : undefined;
    for (let left = below(25); left > 0; left--) {
      const event = run(maybe(0.8) ? "word" : pick(...words), at++);
      if (maybe(0.03)) text += changed(event, chance);
      else text += turned && maybe(0.9) ? changed(event, openChance(turned)) : event;
    }
    if (maybe(0.5)) text += pick(...strewn[dialect]!).repeat(pick(1, 1, 2, 12));
    if (maybe(0.1)) text += changed(pick(...strewn[dialect]!), chance);
  }
  if (maybe(0.8)) text += maybe(0.8) ? end : error;
  const bytes = bytesOf(maybe(0.05) ? text.replaceAll("\n", "\r\n") : text);
  const most = pick(40, 300, 3000, 100_000);
  const pieces: Piece[] = [];
  for (let start = 0; start < bytes.length; ) {
    const size = 1 + below(most);
    pieces.push({ bytes: bytes.slice(start, start + size), ...(maybe(0.02) ? { then: "keep-alive" } : {}) });
    start += size;
  }
  if (maybe(0.1)) pieces.splice(below(pieces.length) + 1, Infinity, { bytes: new Uint8Array(), then: "failure" });
  return [dialect, pieces];
}

test("A random stream with events strewn in, other places, silence and breaks is the same too.", () => {
  const comparison = new Comparison();
  let [read, all, readAnew, allAnew] = [0, 0, 0, 0];
  const tries = triesOf(3000);
  for (let at = 0; at < tries; at++) {
    const [dialect, pieces] = randomStream(openChance(`alike ${at}`));
    const [one, other] = [passed(dialect, pieces, true), passed(dialect, pieces, false)];
    comparison.same(`stream ${at}, ${dialect}`, one.reached, other.reached);
    read += one.read;
    all += other.read;
    const [anew, whole] = [told(dialect, pieces, true), told(dialect, pieces, false)];
    comparison.same(`stream ${at}, ${dialect}, written anew`, anew.reached, whole.reached);
    readAnew += anew.read;
    allAnew += whole.read;
  }
  comparison.expectAtLeast(2 * tries);
  expect(read).toBeLessThan(0.95 * all);
  expect(readAnew).toBeLessThan(0.95 * allAnew);
}, 120_000);

test("Most events of a text or a call pass unread; each piece of a call is read where it is written anew.", () => {
  for (const [name, { dialect, begin, words: of, end }] of forms) {
    const events = Array.from({ length: 500 }, (_, at) => of("word", at)).join("");
    const pieces = inChunks(begin + events + end, 3000);
    expect(passed(dialect, pieces, true).read, name).toBeLessThan(60);
    const { read } = told(dialect, pieces, true);
    expect(name.includes("calling a tool") ? read > 500 : read < 60, name).toBe(true);
  }
});
