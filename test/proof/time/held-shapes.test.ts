/**
 * Rows: a promise in time: whatever members a stranger's JSON repeats, each step of a codec works for less than 50 ms
 * on 256 kB that it reads at once, and four times as much input is at most nine times the work: three times for each
 * doubling, where linear work has two and quadratic work four. A step that is too short to measure passes. What is
 * measured is the thread's own work.
 */
import { describe, expect, test } from "bun:test";
import { type ClientCodec, type Codec, codecs, type TranslationOptions } from "../../../src/dialects/codecs";
import {
  type ClientDialect,
  type Conversation,
  type Dialect,
  dialects,
  type JsonObject,
} from "../../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../../src/dialects/hub/model";
import { unnoted } from "../../../src/dialects/hub/notes";
import { mendRefused } from "../../../src/dialects/hub/refused-schemas";
import type { ReplyEvent } from "../../../src/dialects/hub/reply";
import { separateTexts } from "../../../src/dialects/hub/separate-texts";
import { offerFunctions } from "../../../src/dialects/hub/server-offers";
import { deferTools, withoutWaiting } from "../../../src/dialects/hub/tool-search";
import { shownNatively, withNativeSearch } from "../../../src/dialects/native-search";
import { overviewOf } from "../../../src/dialects/overview";
import { ProxyError } from "../../../src/lib/errors";
import type { SseFrame } from "../../../src/lib/net/stream/sse";
import { collectInto, pipe, run, type Sink } from "../../../src/lib/net/stream/stream";
import { initiatorOf } from "../../../src/proxy/relay/initiator";
import { serverTools } from "../../../src/proxy/server-tools/tools";
import { adapt } from "../../support/adapt";
import { chatChunk, eventStream } from "../../support/event-stream";
import { ableModel, unableModel } from "../../support/facts";
import { longestHeld, mostHeldMs, workedMs } from "../../support/held";
import { hostileReplies, hostileRequests, hostileStreams } from "../../support/hostile-shapes";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { collects, passes, passesFull, reads } from "../../support/streams";

const bytes = 256 * 1024;
/** Of the work for four times the input: linear work has 4, quadratic work 16, and a collector comes in between. */
const mostRatio = 9;
/** Of the work for twice as much as that: a collector that came in between before does so no second time. */
const mostDoubled = 3;
/** Below it the compiler, the collector and the clock are a large part of what is measured. */
const measurableMs = 15;

const claude = ableModel("claude-opus-4.8", "Anthropic");
const models: Record<string, ModelFacts> = {
  Claude: { ...claude, supports: { ...claude.supports, systemTurns: true, turnEfforts: true, contextEditing: true } },
  GPT: ableModel("gpt-6-sol", "OpenAI"),
  Gemini: ableModel("gemini-4-neon", "Google"),
  "a provider's": { ...ableModel("local", "Other"), provider: { assumed: [] } },
  "an unable": unableModel("old", "Anthropic"),
};

/** All that the configuration may ask for. */
const options: TranslationOptions = { webSearch: true, hourCache: true, cache: { key: "a", marks: true } };

/** What each member of a codec reads. A new member has to be placed, and asked below. */
type ReadsReply = "decodeReply" | "passOn" | "encodeReply";
type ReadsStream = "decodeStream" | "passOn" | "endIn" | "encodeStream";
type ReadsNothing = "facts" | "encodeError" | "knownNames";
type ReadsRequest = Exclude<keyof Codec, ReadsReply | ReadsStream | ReadsNothing>;

type Step = (codec: Codec, body: JsonObject) => unknown;

/** Each member for one model or several; what only upstreams' dialects have is not asked of others. */
const requestSteps: Record<ReadsRequest, Record<string, Step>> = {
  checkRequest: { "": (codec, body) => codec.checkRequest(body) },
  compaction: {
    "": (codec, body) => codec.compaction?.inWords.request({ ...body, input: withTrigger(codec, body.input) }),
  },
  outline: {
    "": (codec, body) => initiatorOf(overviewOf(codec.outline(body))),
    ...forModels((codec, body, model) => {
      for (const ask of Object.values(codec.outline(body))) if (typeof ask === "function") ask(model);
    }),
  },
  decodeRequest: { "": (codec, body) => codec.decodeRequest(body) },
  // Sent on from here to each upstream.
  encodeRequest: {},
  requestHeaders: forModels((codec, body, model) => codec.requestHeaders?.(new Headers(), body, model, options)),
  remedies: {
    "": (codec, body) => {
      for (const change of Object.values(codec.remedies ?? {})) change(body, () => true);
    },
  },
  schemas: {
    ...forModels(mendSchemas(false)),
    ...forModels(mendSchemas(true), ", the last time"),
  },
  fixRequest: forModels((codec, body, model) => codec.fixRequest?.(body, model, options)),
};

/** The input with the item that asks for a summary. */
const withTrigger = ({ compaction }: Codec, input: unknown) => [input, { type: compaction?.trigger }].flat();

/** What a refusal that names nothing changes, the first time or the last. */
function mendSchemas(isLast: boolean) {
  return (codec: Codec, body: JsonObject, { vendor }: ModelFacts) =>
    codec.schemas && mendRefused(body, { dialect: "chat", vendor, places: codec.schemas, notes: unnoted }, {}, isLast);
}

function forModels(
  step: (codec: Codec, body: JsonObject, model: ModelFacts) => unknown,
  when = "",
): Record<string, Step> {
  return Object.fromEntries(
    Object.entries(models).map(([name, model]) => [
      ` for ${name} model${when}`,
      (codec, body) => step(codec, body, model),
    ]),
  );
}

/** The request with functions for the tools that run here, and without those that the model is to search for. */
function planned(asked: Conversation, upstream: Dialect): unknown {
  const deferred = deferTools(asked, upstream, false)?.conversation ?? asked;
  return [
    withNativeSearch(deferred),
    offerFunctions(deferred, (offer) => serverTools[offer.tool].form(offer)),
    withoutWaiting(asked, upstream),
  ];
}

/** A refusal in words is an answer as well. */
function refusing<T>(step: () => T): T | undefined {
  try {
    return step();
  } catch (thrown) {
    if (thrown instanceof ProxyError) return undefined;
    throw thrown;
  }
}

/** How often a step that seems too slow is asked again: others use the machine too. */
const mostTurns = 8;

/** @param most The ms that the step may take for {@link bytes}. */
function expectLinear(what: string, make: (bytes: number) => () => unknown, most = mostHeldMs): void {
  const call = make(bytes);
  // The first call compiles as well.
  let one = Math.min(workedFor(call), workedFor(call));
  if (one < measurableMs) return;
  const callFour = make(bytes * 4);
  let four = workedFor(callFour);
  for (let turn = 0; turn < mostTurns && (one >= most || four / one >= mostRatio); turn++) {
    one = Math.min(one, workedFor(call));
    if (one < measurableMs) return;
    four = Math.min(four, workedFor(callFour));
  }
  if (one < most && (four / one < mostRatio || workedFor(make(bytes * 8)) / four < mostDoubled)) return;
  expect(`${what}: ${one.toFixed()} ms, for four times the input ${four.toFixed()} ms`).toBe(
    "linear, and not too slow",
  );
}

/** The thread's own work, ms. */
function workedFor(call: () => unknown): number {
  const before = workedMs();
  call();
  return workedMs() - before;
}

const codecOf = (dialect: ClientDialect): ClientCodec & Partial<Codec> => codecs[dialect];

/** Makes each size once: the steps change nothing in what they read. */
function madeOnce<T>(make: (bytes: number) => T): (bytes: number) => T {
  const made = new Map<number, T>();
  return (size) => {
    if (!made.has(size)) made.set(size, make(size));
    return made.get(size)!;
  };
}

describe("a request of 256 kB", () => {
  test.each(hostileRequests.map((shape) => [shape.name, shape] as const))(
    "%s",
    (_name, { dialect, make }) => {
      const codec = codecOf(dialect) as Codec;
      const body = madeOnce(make);
      const decoded = madeOnce((size) => refusing(() => codec.decodeRequest(body(size))));
      for (const [member, steps] of Object.entries(requestSteps))
        for (const [model, step] of Object.entries(steps))
          expectLinear(member + model, (size) => {
            const read = body(size);
            return () => refusing(() => step(codec, read));
          });
      for (const upstream of dialects)
        for (const [name, model] of Object.entries(models))
          expectLinear(`to ${upstream} for ${name} model`, (size) => {
            const asked = decoded(size);
            return () =>
              asked &&
              refusing(() =>
                codecs[upstream].encodeRequest(adapt(asked, upstream, model.vendor).conversation, model, options),
              );
          });
      for (const upstream of dialects)
        expectLinear(`with tools that run here, to ${upstream}`, (size) => {
          const asked = decoded(size);
          return () => asked && refusing(() => planned(asked, upstream));
        });
    },
    120_000,
  );
});

const context = { model: "some-model", usage: true, replies: 1 };
const asked = codecs.chat.decodeRequest({
  model: "m",
  messages: [{ role: "user", content: "Hello" }],
  tools: [
    { type: "custom", custom: { name: "get_weather" } },
    { type: "function", function: { name: "look", parameters: { type: "object", properties: { "a[]": {} } } } },
  ],
});
const { restore } = adapt(asked, "messages");
/** What stands between a reader and a writer. */
const between = pipe(shownNatively, pipe(restore!, separateTexts));
const nowhere: Sink<unknown> = { push() {}, end() {} };

/** Writes the events for each client, whole and streamed. */
const writers: Record<"encodeReply" | "encodeStream", (client: ClientCodec, events: ReplyEvent[]) => void> = {
  encodeReply(client, events) {
    if (events.at(-1)?.type !== "error") client.encodeReply(events, asked);
  },
  encodeStream(client, events) {
    const writer = client.encodeStream(asked)(nowhere);
    for (const event of events) writer.push(event);
    writer.end();
  },
};

function writeAll(how: keyof typeof writers, read: ReplyEvent[]): void {
  const events = run(between, read);
  for (const client of Object.values(codecs)) writers[how](client, events);
}

/** Runs the frames through a reader or a writer. */
function through(sink: Sink<SseFrame>, frames: readonly SseFrame[]): void {
  for (const frame of frames) sink.push({ ...frame, json: undefined });
  sink.end();
}

const upstreamsOnly = <T extends { dialect: ClientDialect }>(shapes: readonly T[]) =>
  shapes.filter(({ dialect }) => dialects.includes(dialect as Dialect));

/** Of a reply that is written for all clients, whole and streamed, each client has its part. */
const perClient = 1 / 8;

describe("a reply of 256 kB", () => {
  const steps: Record<ReadsReply, { part?: number; step: Step }> = {
    decodeReply: { step: (codec, body) => codec.decodeReply(body) },
    passOn: { step: (codec, body) => passesFull(codec, body, context, () => {}) },
    encodeReply: { part: perClient, step: (codec, body) => writeAll("encodeReply", codec.decodeReply(body)) },
  };
  test.each(upstreamsOnly(hostileReplies).map((shape) => [shape.name, shape] as const))(
    "%s",
    (_name, shape) => {
      const codec = codecs[shape.dialect as Dialect];
      for (const [name, { part = 1, step }] of Object.entries(steps))
        expectLinear(name, (size) => {
          const body = shape.make(size * part);
          return () => refusing(() => step(codec, body));
        });
    },
    120_000,
  );
});

describe("a stream of 256 kB", () => {
  const steps: Record<ReadsStream, (codec: Codec, frames: SseFrame[]) => unknown> = {
    decodeStream: (codec, frames) => through(reads(codec)(nowhere), frames),
    passOn(codec, frames) {
      through(passes(codec, context, () => {}, nowhere)(nowhere), frames);
      const collector = collects(codec, () => {}, undefined, context);
      through(collector, frames);
      return collector.body();
    },
    endIn: (codec, frames) => frames.map((frame) => codec.endIn?.(frame)),
    encodeStream(codec, frames) {
      const events: ReplyEvent[] = [];
      through(reads(codec)(collectInto(events)), frames);
      writeAll("encodeStream", events);
      writeAll("encodeReply", events);
    },
  };
  test.each(upstreamsOnly(hostileStreams).map((shape) => [shape.name, shape] as const))(
    "%s",
    (_name, shape) => {
      const codec = codecs[shape.dialect as Dialect];
      const frames = madeOnce(shape.make);
      // Frames come one by one, and others get their turn in between: only the order of growth counts.
      for (const [name, step] of Object.entries(steps))
        expectLinear(
          name,
          (size) => {
            const read = frames(size);
            return () => refusing(() => step(codec, read));
          },
          Number.POSITIVE_INFINITY,
        );
    },
    120_000,
  );
});

describe("beside a running server", () => {
  const paths: Record<ClientDialect, string> = {
    chat: "/v1/chat/completions",
    responses: "/v1/responses",
    messages: "/v1/messages",
    gemini: "/v1beta/models/gpt-6-sol:generateContent",
  };
  const sizes = [840, 16 * 1024];
  /** Those of the fixtures are many and alike: each asks one model. */
  const isOfFixture = (name: string) => !/request: /.test(name);

  /** An endless stream through the proxy, and the thread's own work between two pieces that its client gets, ms. */
  async function runningStream({ demo, post }: RunningProxy) {
    const pieces = new ReadableStream({
      async pull(out) {
        await Bun.sleep(2);
        out.enqueue(chatChunk({ delta: { content: "Hm. " } }));
      },
    });
    demo.intercept("/chat/completions", () => eventStream(pieces));
    const ask = { model: "gpt-5-mini", stream: true, messages: [{ role: "user", content: "Go on." }] };
    const reader = (await post("/v1/chat/completions", ask)).body!.getReader();
    let gap = 0;
    const reading = (async () => {
      for (let last = workedMs(); !(await reader.read()).done; last = workedMs())
        gap = Math.max(gap, workedMs() - last);
    })();
    return {
      /** The largest gap while something is done. */
      async gapDuring(work: () => Promise<unknown>): Promise<number> {
        gap = 0;
        await work();
        return gap;
      },
      async [Symbol.asyncDispose]() {
        await reader.cancel();
        await reading;
      },
    };
  }

  test("a small request of a hostile shape holds nobody up, whoever answers it", async () => {
    await using proxy = await startProxy();
    await using stream = await runningStream(proxy);
    const listed = (await (await fetch(`${proxy.url}/v1/models`)).json()) as { data: { id: string }[] };
    const named = (form: RegExp) => listed.data.find(({ id }) => form.test(id))!.id;
    const asked = [named(/^claude-sonnet/), named(/^gpt-\d/), named(/^gemini/)];
    const slow: string[] = [];
    for (const [at, { name, dialect, make }] of hostileRequests.entries())
      for (const size of sizes) {
        let [mostHeld, mostGap] = [0, 0];
        for (const model of isOfFixture(name) ? [asked[at % asked.length]!] : asked) {
          const path = paths[dialect].replace("gpt-6-sol", model);
          const body = JSON.stringify({ ...make(size), ...(dialect === "gemini" ? {} : { model }) });
          let [held, gap] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
          for (let turn = 0; turn < 5 && held >= mostHeldMs; turn++) {
            const ask = async () => void (await (await proxy.post(path, body)).text());
            const nextGap = await stream.gapDuring(async () => {
              held = Math.min(held, await longestHeld(ask));
            });
            gap = Math.min(gap, nextGap);
          }
          if (held >= mostHeldMs) slow.push(`${name}, ${size} bytes, ${model}: ${held.toFixed()} ms`);
          [mostHeld, mostGap] = [Math.max(mostHeld, held), Math.max(mostGap, gap)];
        }
        const measured = [mostHeld, mostGap].map((ms) => `${ms.toFixed(1).padStart(6)} ms`).join("");
        console.log(`${measured}  ${name}, ${size} bytes`);
      }
    expect(slow).toEqual([]);
  }, 300_000);
});
