/**
 * Pairs: whole requests and streams, from the files of `fixtures/pairs/whole/`. What stands above the first `===` goes in; below
 * each stands all that comes out in one way. `UPDATE=1` writes anew what comes out: read the difference.
 */
import { expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { diffLines } from "diff";
import { codecs } from "../../src/dialects/codecs";
import { type ClientDialect, clientDialects, type Dialect, type JsonObject } from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";
import { mendKnown, type SchemaMend } from "../../src/dialects/hub/refused-schemas";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { type Outline, overviewOf } from "../../src/dialects/overview";
import { readPieces } from "../../src/dialects/prompt-pieces";
import { isObject, parseJson } from "../../src/lib/json";
import type { SseFrame } from "../../src/lib/net/stream/sse";
import { adapt } from "../support/adapt";
import { factsOf, frameOf, plains, wordOf } from "../support/codec-pairs";
import { encodeRequest, fixRequest, noted } from "../support/noted";
import { changes, wholeIn, wholes } from "../support/pairs";
import { collects, decodeFrames, passes, wire, written } from "../support/streams";

type Sections = Record<string, string>;

/** The models for which a request is written: the first of a dialect whole, of the others what differs from it. */
const targets: [title: string, dialect: Dialect, model: ModelFacts][] = [
  ["chat", "chat", plains.chat!.model],
  ...(["gpt-5-mini", "claude-sonnet-4.5", "gemini-2.5-pro"] as const).map((model): [string, Dialect, ModelFacts] => [
    `chat, ${model}`,
    "chat",
    factsOf({ model }, plains.chat!),
  ]),
  [
    "chat of a provider",
    "chat",
    {
      ...plains.chat!.model,
      vendor: "DeepSeek",
      provider: { thinking: "reasoning_content" } as ModelFacts["provider"],
    },
  ],
  ["responses", "responses", plains.responses!.model],
  ["messages", "messages", plains.messages!.model],
];

const longest = 160;

/** JSON whose lists and objects stand in one line where they are short. */
function print(value: unknown, indent = "", before = 0): string {
  const text = JSON.stringify(value);
  if (text === undefined) return "nothing";
  if (typeof value !== "object" || value === null || indent.length + before + text.length <= longest) return text;
  const inner = `${indent}  `;
  if (Array.isArray(value)) return `[\n${value.map((each) => inner + print(each, inner)).join(",\n")}\n${indent}]`;
  const members = Object.entries(value).filter(([, each]) => each !== undefined);
  return `{\n${members
    .map(([name, each]) => `${inner}${JSON.stringify(name)}: ${print(each, inner, name.length + 4)}`)
    .join(",\n")}\n${indent}}`;
}

const lines = (values: readonly unknown[]): string => values.map((each) => JSON.stringify(each)).join("\n");

/** The lines that differ, with `-` and `+`. */
const beyond = (base: string, text: string): string =>
  diffLines(base, text)
    .filter(({ added, removed }) => added || removed)
    .flatMap(({ added, value }) =>
      value
        .trimEnd()
        .split("\n")
        .map((line) => `${added ? "+" : "-"}${line}`),
    )
    .join("\n") || "the same";

/** Ids and times that are made anew for each reply. */
const withoutIds = (text: string): string =>
  text
    .replace(/"(chatcmpl-|[a-z]+_)?(?:[0-9A-Za-z]{32}|[0-9a-f-]{36})"/g, '"$1*"')
    .replace(/"(created|created_at|completed_at)":( ?)\d{9,}(?:\.\d+)?/g, '"$1":$2"*"');

const told = (work: () => unknown): string => worded(() => print(work()));

const refused = "refused as";

/** How a request is refused, where it is. */
function worded(work: () => string): string {
  try {
    return work();
  } catch (thrown) {
    const { kind, message, details } = thrown as { kind?: string; message: string; details?: object };
    if (!details) throw thrown;
    return `${refused} ${kind}: ${message} ${JSON.stringify(details)}`;
  }
}

const notes = (fixups: readonly string[], dropped: readonly string[] = []) =>
  [`fixups: ${fixups.join(", ") || "none"}`, ...(dropped.length > 0 ? [`dropped: ${dropped.join(", ")}`] : [])].join(
    "\n",
  );

function ofRequest(client: ClientDialect, given: JsonObject): Sections {
  const codec = codecs[client];
  const whole = print(given);
  const sections: Sections = { check: told(() => codec.checkRequest(given) ?? "accepted") };
  sections["in the hub"] = told(() => codec.decodeRequest(structuredClone(given)));
  const first = new Map<Dialect, string>();
  for (const [title, dialect, model] of targets) {
    const sent = worded(() => {
      const adapted = adapt(codec.decodeRequest(structuredClone(given)), dialect, model.vendor);
      const made = encodeRequest(codecs[dialect], adapted.conversation, model, {
        webSearch: true,
        cache: { key: "cache-key", marks: true },
      });
      const told = notes([...adapted.fixups, ...made.fixups], [...adapted.dropped, ...made.dropped]);
      return `${told}\n${print(made.body)}`;
    });
    sections[`sent to ${title}`] =
      first.has(dialect) && !sent.startsWith(refused) ? beyond(first.get(dialect)!, sent) : sent;
    if (!first.has(dialect)) first.set(dialect, sent);
  }
  const { tools, messages, system, ...others } = codec.outline(given);
  sections.outline = print({
    ...Object.fromEntries(
      Object.entries(others).map(([name, value]) => [
        name,
        typeof value === "function" ? value(client === "gemini" ? plains.chat!.model : plains[client]!.model) : value,
      ]),
    ),
    overview: overviewOf({ tools, messages, system, ...others }),
    pieces: piecesOf(codec.outline(given)),
  });
  if (client === "gemini") return sections;
  const { remedies, schemas } = codecs[client];
  const { model } = plains[client]!;
  const asked = { ...given, model: model.id };
  const fixedFor = (facts: ModelFacts) => {
    const fixed = fixRequest(codecs[client], asked, facts);
    return `${notes(fixed.fixups, fixed.dropped)}\n${beyond(print(asked), print(fixed.body))}`;
  };
  sections.fixed = worded(() => fixedFor(model));
  sections["fixed for a model of few abilities"] = worded(() =>
    fixedFor({ ...model, supports: { ...model.supports, ...few } }),
  );
  sections.repaired = beyond(whole, print(remedies.repair(given, () => true)));
  if (remedies.freeChoice)
    sections["with a free choice"] = beyond(whole, print({ ...given, ...remedies.freeChoice(given) }));
  if (remedies.foldSystem)
    sections["with system messages folded"] = beyond(whole, print({ ...given, ...remedies.foldSystem(given) }));
  for (const mend of ["known", "words"] satisfies SchemaMend[]) {
    const made = noted((each) =>
      mendKnown(
        given,
        { dialect: client, notes: each, vendor: model.vendor, places: schemas },
        () => mend,
        (value) => value,
      ),
    );
    sections[`schemas mended: ${mend}`] =
      `${notes(made.fixups, made.dropped)}\n${beyond(whole, print({ ...given, ...made.body?.set }))}`;
  }
  return sections;
}

const few = { efforts: [], vision: false, structuredOutputs: false, parallelTools: false, adaptiveThinking: false };

/** What measures a prompt is given, in turn: a piece's kind, its tool and how it begins. */
function piecesOf(outline: Outline): unknown[] {
  const found: unknown[] = [];
  readPieces(outline, {
    piece(kind, content, tool) {
      const text = typeof content === "string" ? content : (JSON.stringify(content) ?? "nothing");
      found.push([kind, ...(tool === undefined ? [] : [tool]), text.slice(0, 40)].join(", "));
    },
    endMessage: () => found.push("end"),
    mark: () => found.push("mark"),
  });
  return found;
}

function ofStream(upstream: Dialect, given: JsonObject[]): Sections {
  const codec = codecs[upstream];
  const frames = given.map((each) => frameOf(each, codec));
  const events = decodeFrames(codec, frames);
  const context = { model: "the client's", usage: true, replies: 1 };
  const fixups = new Set<string>();
  const passed = written(
    passes(codec, context, (name) => fixups.add(name)),
    frames,
  ).map(wordOf);
  const sections: Sections = { said: lines(events) };
  sections["passed on"] = `${notes([...fixups])}\n${beyond(lines(given), lines(passed))}`;
  const gathered = new Set<string>();
  const reply = collects(codec, (name) => gathered.add(name), undefined, context);
  for (const frame of frames) reply.push(frame);
  reply.end();
  const body = reply.body();
  sections.gathered = `${notes([...gathered])}\n${print(body)}`;
  sections["said by the gathered reply"] = beyond(lines(events), lines(codec.decodeReply(body)));
  for (const client of clientDialects) {
    const asked = codecs[client].decodeRequest(plains[client]!.body);
    const nothing: ReplyEvent[] = [{ type: "finish", reason: "stop" }];
    const stream = (of: ReplyEvent[]) => written(codecs[client].encodeStream(asked), of);
    const last = parseJson(stream(nothing).at(-1)!.data ?? "");
    const plain = isObject(last) && isObject(last.response) ? last.response : {};
    sections[`streamed to ${client}`] =
      client === "gemini"
        ? new TextDecoder().decode(wire(stream(events))).trimEnd()
        : lines(stream(events).map((frame) => withoutPlain(frame, plain)));
    sections[`whole to ${client}`] = print(
      differing(codecs[client].encodeReply(nothing, asked), codecs[client].encodeReply(events, asked)),
    );
  }
  return sections;
}

/** A frame; of a response in it what the plain one lacks. */
function withoutPlain(frame: SseFrame, plain: JsonObject): unknown {
  const word = wordOf(frame);
  return isObject(word) && isObject(word.response) ? { ...word, response: differing(plain, word.response) } : word;
}

/** What differs from a plain reply; the two may be made in different seconds. */
function differing(plain: JsonObject, reply: JsonObject): JsonObject {
  const { created_at, completed_at, created } = reply;
  const times = Object.entries({ created_at, completed_at, created }).filter(([, time]) => time != null);
  return changes({ ...plain, ...Object.fromEntries(times) }, reply);
}

for (const file of readdirSync(wholes)) {
  const dialect = file.split(/[-.]/)[0] as Dialect;
  const { head, given, out: wanted } = wholeIn(file);
  const made = file.endsWith(".stream.txt")
    ? ofStream(
        dialect,
        given
          .trim()
          .split("\n")
          .map((each) => JSON.parse(each)),
      )
    : ofRequest(dialect, JSON.parse(given));
  const out = Object.entries(made).map(([title, text]): [string, string] => [title, withoutIds(text)]);
  if (process.env.UPDATE)
    writeFileSync(join(wholes, file), head + out.map(([title, text]) => `=== ${title}\n${text}\n`).join("\n"));
  else {
    test.each(out)(`${file}: %s`, (title, text) => expect(text).toBe(wanted.get(title)!));
    test(`${file} has nothing else`, () => expect([...wanted.keys()]).toEqual(out.map(([title]) => title)));
  }
}
