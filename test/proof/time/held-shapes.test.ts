/**
 * A promise in time: whatever members a stranger's JSON repeats, each step of a codec works for less than 50 ms on 256 kB
 * that it reads at once, and four times as much input is at most nine times the work. A step that is too short to
 * measure passes. What is measured is the thread's own work.
 */
import { describe, expect, test } from "bun:test";
import { type ClientCodec, type Codec, codecs } from "../../../src/dialects/codecs";
import { adapt } from "../../../src/dialects/hub/adapt";
import { type ClientDialect, type Dialect, dialects, type JsonObject } from "../../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../../src/dialects/hub/model";
import { mendRefused } from "../../../src/dialects/hub/refused-schemas";
import type { ReplyEvent } from "../../../src/dialects/hub/reply";
import { overviewOf } from "../../../src/dialects/overview";
import { ProxyError } from "../../../src/errors";
import type { SseFrame } from "../../../src/net/stream/sse";
import type { Sink } from "../../../src/net/stream/stream";
import { initiatorOf } from "../../../src/relay/initiator";
import { ableModel } from "../../support/facts";
import { longestHeld, mostHeldMs, workedMs, workOf } from "../../support/held";
import { hostileReplies, hostileRequests, hostileStreams } from "../../support/hostile-shapes";
import { startProxy } from "../../support/proxy";

const bytes = 256 * 1024;
/** Of the work for four times the input: linear work has 4, quadratic work 16, and a collector comes in between. */
const mostRatio = 9;
/** Below it the compiler, the collector and the clock are a large part of what is measured. */
const measurableMs = 15;

const models: Record<string, ModelFacts> = {
  Claude: ableModel("claude-opus-4.8", "Anthropic"),
  GPT: ableModel("gpt-6-sol", "OpenAI"),
  Gemini: ableModel("gemini-4-neon", "Google"),
  "a provider's": { ...ableModel("local", "Other"), provider: { assumed: [] } },
};

/** The members of a codec that read a request, or write one. A new member has to be placed: here, or below. */
type ReadsRequest = Exclude<keyof Codec, keyof typeof ofReplies | keyof typeof ofNothing>;
const ofReplies = {
  encodeReply: true,
  encodeStream: true,
  decodeReply: true,
  fixReply: true,
  decodeStream: true,
  fixStream: true,
  collectStream: true,
  endIn: true,
};
const ofNothing = { facts: true, compaction: true, encodeError: true, streamType: true, knownNames: true };

type Step = (codec: Codec, body: JsonObject) => unknown;

/** Each member for one model or several; what only upstreams' dialects have is not asked of others. */
const requestSteps: Record<ReadsRequest, Record<string, Step>> = {
  checkRequest: { "": (codec, body) => codec.checkRequest(body) },
  isWarmUp: { "": (codec, body) => codec.isWarmUp?.(body) },
  outline: { "": (codec, body) => initiatorOf(overviewOf(codec.outline(body))) },
  decodeRequest: { "": (codec, body) => codec.decodeRequest(body) },
  session: { "": (codec, body) => codec.session?.(body) },
  promptId: { "": (codec, body) => codec.promptId?.(body) },
  auxiliaryKind: { "": (codec, body) => codec.auxiliaryKind?.(body) },
  references: { "": (codec, body) => codec.references?.(body) },
  // Sent on from here to each upstream.
  encodeRequest: {},
  requestHeaders: forModels((codec, body, model) => codec.requestHeaders?.(new Headers(), body, model)),
  repairRequest: { "": (codec, body) => codec.repairRequest?.(body) },
  freeChoice: { "": (codec, body) => codec.freeChoice?.(body) },
  foldSystem: { "": (codec, body) => codec.foldSystem?.(body) },
  schemas: {
    ...forModels(mendSchemas(false)),
    ...forModels(mendSchemas(true), ", the last time"),
  },
  offersServerTools: forModels((codec, body, model) => codec.offersServerTools?.(body, model)),
  hasServerCalls: { "": (codec, body) => codec.hasServerCalls?.(body) },
  hasOwnResults: { "": (codec, body) => codec.hasOwnResults?.(body) },
  replyContext: { "": (codec, body) => codec.replyContext?.(body) },
  fixRequest: forModels((codec, body, model) => codec.fixRequest?.(body, model)),
  maxTokens: { "": (codec, body) => codec.maxTokens?.(body) },
};

/** What a refusal that names nothing changes, the first time or the last. */
function mendSchemas(isLast: boolean) {
  return (codec: Codec, body: JsonObject, { vendor }: ModelFacts) =>
    codec.schemas && mendRefused(body, { dialect: "chat", vendor, places: codec.schemas }, {}, isLast);
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

/** A refusal in words is an answer as well. */
function refusing<T>(step: () => T): T | undefined {
  try {
    return step();
  } catch (thrown) {
    if (thrown instanceof ProxyError) return undefined;
    throw thrown;
  }
}

/** @param most The ms that the step may take for {@link bytes}. What is too slow is asked again: others use the machine too. */
function expectLinear(what: string, make: (bytes: number) => () => unknown, most = mostHeldMs): void {
  const call = make(bytes);
  const before = workedMs();
  call();
  if (workedMs() - before < measurableMs) return;
  let worst = "";
  for (let turn = 0; turn < 3; turn++) {
    const one = workOf(call);
    if (one < measurableMs) return;
    const four = workOf(make(bytes * 4));
    if (one < most && four / one < mostRatio) return;
    worst = `${what}: ${one.toFixed()} ms, for four times the input ${four.toFixed()} ms`;
  }
  expect(worst).toBe("linear, and not too slow");
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
              refusing(() => codecs[upstream].encodeRequest(adapt(asked, upstream, model.vendor).conversation, model));
          });
    },
    120_000,
  );
});

const context = { model: "some-model", usage: true, replies: 1 };
const plain = codecs.chat.decodeRequest({ model: "m", messages: [{ role: "user", content: "Hello" }] });
const nowhere: Sink<SseFrame> = { push() {}, end() {} };

/** Writes the events for each client, whole and streamed. */
function writeAll(events: ReplyEvent[]): void {
  for (const client of Object.values(codecs) as ClientCodec[]) {
    if (events.at(-1)?.type !== "error") client.encodeReply(events, plain);
    const writer = client.encodeStream(plain)(nowhere);
    for (const event of events) writer.push(event);
    writer.end();
  }
}

/** Runs the frames through a reader or a writer. */
function through(sink: Sink<SseFrame>, frames: readonly SseFrame[]): void {
  for (const frame of frames) sink.push({ ...frame, json: undefined });
  sink.end();
}

const upstreamsOnly = <T extends { dialect: ClientDialect }>(shapes: readonly T[]) =>
  shapes.filter(({ dialect }) => dialects.includes(dialect as Dialect));

describe("a reply of 256 kB", () => {
  test.each(upstreamsOnly(hostileReplies).map((shape) => [shape.name, shape] as const))(
    "%s",
    (_name, shape) => {
      const codec = codecs[shape.dialect as Dialect];
      const steps: Record<string, (body: JsonObject) => unknown> = {
        decodeReply: (body) => codec.decodeReply(body),
        fixReply: (body) => codec.fixReply(body, context, () => {}),
        written: (body) => writeAll(codec.decodeReply(body)),
      };
      for (const [name, step] of Object.entries(steps))
        expectLinear(name, (size) => {
          const body = shape.make(name === "written" ? size / 8 : size);
          return () => refusing(() => step(body));
        });
    },
    120_000,
  );
});

describe("a stream of 256 kB", () => {
  test.each(upstreamsOnly(hostileStreams).map((shape) => [shape.name, shape] as const))(
    "%s",
    (_name, shape) => {
      const codec = codecs[shape.dialect as Dialect];
      const steps: Record<string, (frames: SseFrame[]) => unknown> = {
        decodeStream: (frames) => through(codec.decodeStream()({ push() {}, end() {} }), frames),
        fixStream: (frames) => through(codec.fixStream(context, () => {}, { push() {}, end() {} })(nowhere), frames),
        collectStream: (frames) => {
          const collector = codec.collectStream(() => {}, undefined, context);
          through(collector, frames);
          return collector.body();
        },
        endIn: (frames) => frames.map((frame) => codec.endIn?.(frame)),
        written: (frames) => {
          const events: ReplyEvent[] = [];
          through(codec.decodeStream()({ push: (event) => void events.push(event), end() {} }), frames);
          writeAll(events);
        },
      };
      // Frames come one by one, and others get their turn in between: only the order of growth counts.
      for (const [name, step] of Object.entries(steps))
        expectLinear(
          name,
          (size) => {
            const frames = shape.make(size);
            return () => refusing(() => step(frames));
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
  const byHand = hostileRequests.filter(({ name }) => /request: /.test(name));

  test("a small request of a hostile shape holds nobody up, whoever answers it", async () => {
    await using proxy = await startProxy();
    const listed = (await (await fetch(`${proxy.url}/v1/models`)).json()) as { data: { id: string }[] };
    const named = (form: RegExp) => listed.data.find(({ id }) => form.test(id))!.id;
    const asked = [named(/^claude-sonnet/), named(/^gpt-\d/), named(/^gemini/)];
    const slow: string[] = [];
    for (const { name, dialect, make } of byHand)
      for (const model of asked) {
        const path = paths[dialect].replace("gpt-6-sol", model);
        const body = JSON.stringify({ ...make(16 * 1024), ...(dialect === "gemini" ? {} : { model }) });
        const ask = () => longestHeld(async () => void (await (await proxy.post(path, body)).text()));
        let held = await ask();
        for (let turn = 0; turn < 4 && held >= mostHeldMs; turn++) held = Math.min(held, await ask());
        if (held >= mostHeldMs) slow.push(`${name}, ${model}: ${held.toFixed()} ms`);
      }
    expect(slow).toEqual([]);
  }, 300_000);
});
