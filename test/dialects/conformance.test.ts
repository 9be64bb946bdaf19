/**
 * Pairs: what every dialect promises, shown on the same scenarios: `test/fixtures/<scenario>/` holds what is meant
 * (`hub.request.json`, `hub.events.json`) and how each dialect spells it (`<dialect>.request.json`,
 * `<dialect>.reply.json`, `<dialect>.stream.txt`; `<dialect>.fixups.json` where its passthrough has something to fixup).
 * A dialect of the table below without its file fails. Of a dialect that only clients speak, the replies are read by a
 * reader of the tests.
 */

import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { geminiReader } from "../../src/deploy/documents/gemini-reply";
import { chat } from "../../src/dialects/chat/codec";
import { encodeUsage as chatUsage } from "../../src/dialects/chat/usage";
import type { ClientCodec, Codec, ReplyContext } from "../../src/dialects/codec";
import { codecs } from "../../src/dialects/codecs";
import { gemini } from "../../src/dialects/gemini/codec";
import { encodeUsage as geminiUsage } from "../../src/dialects/gemini/usage";
import { cutReply } from "../../src/dialects/hub/block-lifecycle";
import {
  type ClientDialect,
  type Conversation,
  clientDialects,
  dialects,
  type JsonObject,
} from "../../src/dialects/hub/conversation";
import type { ReplyEvent, Usage } from "../../src/dialects/hub/reply";
import { messages } from "../../src/dialects/messages/codec";
import { encodeMessageUsage as messagesUsage } from "../../src/dialects/messages/usage";
import { responses } from "../../src/dialects/responses/codec";
import { encodeUsage as responsesUsage } from "../../src/dialects/responses/usage";
import { readSse, type SseFrame } from "../../src/lib/net/stream/sse";
import { collectInto, run } from "../../src/lib/net/stream/stream";
import { chunkSizes } from "../support/differential";
import { ableModel } from "../support/facts";
import { checkChatStream } from "../support/grammar-chat";
import { checkGeminiStream } from "../support/grammar-gemini";
import { checkMessagesStream } from "../support/grammar-messages";
import { checkResponsesStream } from "../support/grammar-responses";
import { encodeRequest } from "../support/noted";
import { expectSameReply, type Lack, meaningOf, plainConversation } from "../support/reply-grammar";
import {
  bytesAt,
  chunksOf,
  collects,
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

interface Subject {
  codec: ClientCodec;
  /** Reads what the codec writes. */
  reader: Pick<Codec, "decodeReply" | "decodeStream">;
  /** The codec, if upstreams speak the dialect. */
  upstream?: Codec;
  lacks: ReadonlySet<Lack>;
  /** Throws unless the dialect's strictest client can read these frames. They end without an error. */
  checkStream(frames: SseFrame[], asked: Conversation): void;
}

const both = (codec: Codec) => ({ codec, reader: codec, upstream: codec });

const subjects: Record<ClientDialect, Subject> = {
  chat: { ...both(chat), lacks: new Set(["stop-sequence", "hidden-thoughts"]), checkStream: checkChatStream },
  responses: { ...both(responses), lacks: new Set(["stop", "stop-sequence"]), checkStream: checkResponsesStream },
  messages: { ...both(messages), lacks: new Set(["refusal-mark", "format-name"]), checkStream: checkMessagesStream },
  gemini: {
    codec: gemini,
    reader: geminiReader,
    lacks: new Set(["stop-sequence", "refusal-mark", "format-name", "parallel-tools", "hidden-thoughts"]),
    checkStream: checkGeminiStream,
  },
};

/** Takes everything the scenarios ask. */
const model = ableModel("some-model", "Anthropic");

const scenarios = [
  "text",
  "system-and-turns",
  "tool-call",
  "parallel-tools",
  "tool-result-image",
  "thinking-then-tool",
  "refusal",
  "max-tokens",
  "stop-sequence",
  "structured-output",
  "empty-arguments",
  "unicode",
];

/** What is meant, its proofs made by the dialect that is looked at. */
function eventsOf(scenario: string, dialect: string): ReplyEvent[] {
  const events: ReplyEvent[] = jsonAt(scenario, "hub.events.json");
  const maker = clientDialects.find((each) => each === dialect)!;
  for (const event of events) if (event.type === "block-end" && event.signature) event.signature.dialect = maker;
  return events;
}

test("every folder of a scenario is on the list", () => {
  const folders = readdirSync(fixtures).filter((name) => hasFixture(name, "hub.events.json"));
  expect(folders.sort()).toEqual([...scenarios].sort());
});

/** A full reply of chat has one text and one thought, wherever in its stream their pieces were; its client is not told what it cost. */
function gatheredForm({ blocks, usage: { nanoCredits: _, ...usage }, end }: ReturnType<typeof meaningOf>) {
  const texts = (kind: string) => blocks.flatMap((block) => (block.kind === kind ? [block.text] : [])).join("");
  return {
    text: texts("text"),
    thought: texts("thinking"),
    calls: blocks.filter((b) => b.kind === "tool-call"),
    usage,
    end,
  };
}

test.each(dialects)("a stream of %s that is gathered to a full reply says the same", (dialect) => {
  const codec = codecs[dialect];
  let gathered = 0;
  for (const folder of readdirSync(fixtures).filter((name) => hasFixture(name, `${dialect}.stream.txt`))) {
    const frames = run(readSse, [bytesAt(folder, `${dialect}.stream.txt`)]);
    const said = meaningOf(decodeFrames(codec, frames));
    if (said.end.type !== "finish") continue;
    const [notes, events]: [Set<string>, ReplyEvent[]] = [new Set(), []];
    const reply = collects(codec, (name) => notes.add(name), { push: (event) => events.push(event), end() {} });
    for (const frame of frames) reply.push(frame);
    reply.end();
    const meant = meaningOf([...codec.decodeReply(reply.body())]);
    expect({ folder, ...gatheredForm(meant) }).toEqual({ folder, ...gatheredForm(said) });
    expect({ folder, usage: meaningOf(events).usage }).toEqual({ folder, usage: said.usage });
    if (dialect !== "chat")
      expect([folder, notes.has("copilot-fields")]).toEqual([folder, said.usage.nanoCredits !== undefined]);
    gathered++;
  }
  expect(gathered).toBeGreaterThan(10);
});

// Input, output, and their sum; in Responses the thinking by its 9 characters where nobody counts it; in Messages what is kept for five minutes.
test.each<[Partial<Usage>, unknown[], unknown[], unknown[], unknown[]]>([
  [{}, [], [], [0, 0, undefined], []],
  [{ input: 7 }, [7, 0, 7], [7, 0, 7, 0], [7, 0, undefined], [7, undefined, 7]],
  [{ output: 5 }, [0, 5, 5], [0, 5, 5, 3], [0, 5, undefined], [undefined, 5, 5]],
  [{ output: 4, reasoning: 4 }, [0, 4, 4], [0, 4, 4, 4], [0, 4, undefined], [undefined, 0, 4]],
  [{ input: 7, cacheWriteHour: 0, output: 9 }, [7, 9, 16], [7, 9, 16, 3], [7, 9, 0], [7, 9, 16]],
  [
    { input: 9, cachedInput: 2, cacheWrite: 3, cacheWriteHour: 1, output: 5, reasoning: 4 },
    [9, 5, 14],
    [9, 5, 14, 4],
    [4, 5, 2],
    [9, 1, 14],
  ],
])("each dialect writes the usage %j in its own sums", (usage, inChat, inResponses, inMessages, inGemini) => {
  const wrote = (json: JsonObject | null | undefined, ...names: string[]) =>
    json ? names.map((name) => json[name]) : [];
  const ofResponses = responsesUsage(usage, 9);
  const details = ofResponses?.output_tokens_details as JsonObject | undefined;
  const ofMessages = messagesUsage(usage);
  const kept = ofMessages.cache_creation as JsonObject | null;
  expect([
    wrote(chatUsage(usage), "prompt_tokens", "completion_tokens", "total_tokens"),
    [...wrote(ofResponses, "input_tokens", "output_tokens", "total_tokens"), ...wrote(details, "reasoning_tokens")],
    [...wrote(ofMessages, "input_tokens", "output_tokens"), kept?.ephemeral_5m_input_tokens],
    wrote(geminiUsage(usage), "promptTokenCount", "candidatesTokenCount", "totalTokenCount"),
  ]).toEqual([inChat, inResponses, inMessages, inGemini]);
});

for (const [dialect, { codec, reader, upstream, lacks, checkStream }] of Object.entries(subjects))
  describe.each(scenarios)(`${dialect}: %s`, (scenario) => {
    const events = eventsOf(scenario, dialect);
    const request = jsonAt(scenario, `${dialect}.request.json`);
    const reply = jsonAt(scenario, `${dialect}.reply.json`);
    const stream = bytesAt(scenario, `${dialect}.stream.txt`);
    const conversation = () => codec.decodeRequest(request);

    test("a request means what it says", () => {
      const meant = plainConversation(jsonAt(scenario, "hub.request.json"), lacks);
      expect(plainConversation(conversation(), lacks)).toEqual(meant);
    });

    if (upstream)
      test("a request that goes through the hub comes out as it was", () => {
        const { body, dropped } = encodeRequest(upstream, conversation(), model);
        expect(dropped).toEqual([]);
        expect({ ...body, model: "" }).toEqual({ ...request, model: "" });
      });

    test("a stream is read whole, whatever the size of its chunks", () => {
      const whole = decode(reader, [stream]);
      expectSameReply(whole, events, lacks);
      for (const size of chunkSizes) expect(decode(reader, chunksOf(stream, size))).toEqual(whole);
    });

    test("a stream with CRLF line ends says the same", () => {
      const crlf = new TextEncoder().encode(new TextDecoder().decode(stream).replaceAll("\n", "\r\n"));
      for (const size of [1, 7, 1e9]) expect(decode(reader, chunksOf(crlf, size))).toEqual(decode(reader, [stream]));
    });

    test("a full reply says the same as its stream", () => {
      expectSameReply(reader.decodeReply(reply), events, lacks);
    });

    test("a stream cut at any byte ends in one error or is whole", () => {
      const whole = meaningOf(decode(reader, [stream]));
      for (const frames of cutsOf(stream)) {
        const cut = meaningOf(run(reads(reader), frames));
        if (cut.end.type === "finish") expect({ ...cut, usage: {} }).toEqual({ ...whole, usage: {} });
      }
    });

    test("a stream written for a client says the same and satisfies the strictest", () => {
      const out = written(codec.encodeStream(conversation()), events);
      checkStream(overWire(out), conversation());
      expectSameReply(decodeFrames(reader, out), events, lacks);
    });

    test("a full reply written for a client says the same as the stream written for it", () => {
      const body = JSON.parse(JSON.stringify(codec.encodeReply(events, conversation())));
      expectSameReply(reader.decodeReply(body), events, lacks);
      const streamed = decodeFrames(reader, written(codec.encodeStream(conversation()), events));
      expectSameReply(reader.decodeReply(body), streamed, lacks);
    });

    test("a beat between any two events changes nothing", () => {
      const beaten = written(codec.encodeStream(conversation()), events, (client) => client.keepAlive());
      checkStream(overWire(beaten), conversation());
      expectSameReply(decodeFrames(reader, beaten), events, lacks);
    });

    test("a failure after any event ends the stream as an error", () => {
      for (let at = 0; at < events.length; at++) {
        const failed = written(codec.encodeStream(conversation()), events, (client, index) => {
          if (index === at) client.fail({ type: "error", ...cutReply });
        });
        const end = at < events.length - 1 ? "error" : "finish";
        expect([at, meaningOf(decodeFrames(reader, failed)).end.type]).toEqual([at, end]);
      }
    });

    test("a reply that stops after any event ends with an error", () => {
      for (let at = 0; at < events.length - 1; at++) {
        const stopped = written(codec.encodeStream(conversation()), events.slice(0, at + 1));
        expect([at, meaningOf(decodeFrames(reader, stopped)).end.type]).toEqual([at, "error"]);
        expect([at, terminalFrame(reader, stopped)]).toEqual([at, stopped.length - 1]);
      }
    });

    if (!upstream) return;
    describe("passed through", () => {
      const codec = upstream;
      const frames = () => run(readSse, [stream]);
      /** Asked for the very model that answers, so that its name needs no fixup. */
      const context = (): ReplyContext => {
        const start = decode(codec, [stream]).find((event) => event.type === "start");
        return { model: start?.model ?? "", usage: true, replies: 1 };
      };
      const fixup = () => passes(codec, context(), () => {});

      test("a stream arrives byte for byte, but for its fixups", () => {
        const fixups = new Set<string>();
        const out = written(
          passes(codec, context(), (name) => fixups.add(name)),
          frames(),
        );
        const listed = hasFixture(scenario, `${dialect}.fixups.json`);
        expect([...fixups].sort()).toEqual(listed ? jsonAt(scenario, `${dialect}.fixups.json`) : []);
        if (fixups.size === 0) expect(wire(out)).toEqual(stream);
        checkStream(overWire(out), conversation());
        expectSameReply(decodeFrames(codec, out), events, lacks);
      });

      test("a stream cut at any byte ends in one error or is whole", () => {
        for (const cut of cutsOf(stream)) {
          const out = written(fixup(), cut);
          expectSameReply(decodeFrames(codec, out), run(reads(codec), cut), lacks);
          if (meaningOf(run(reads(codec), cut)).end.type === "error")
            expect([cut, terminalFrame(codec, out)]).toEqual([cut, out.length - 1]);
        }
      });

      test("a beat between any two frames changes nothing", () => {
        const beaten = written(fixup(), frames(), (client) => client.keepAlive());
        checkStream(overWire(beaten), conversation());
        expectSameReply(decodeFrames(codec, beaten), events, lacks);
      });

      test("a failure after any frame ends the stream as an error, unless it had ended", () => {
        const terminal = terminalFrame(codec, frames());
        for (let at = 0; at < frames().length; at++) {
          const failed = written(fixup(), frames(), (client, index) => {
            if (index === at) client.fail({ type: "error", ...cutReply });
          });
          const end = at < terminal ? "error" : "finish";
          expect([at, meaningOf(decodeFrames(codec, failed)).end.type]).toEqual([at, end]);
        }
      });

      test("a full reply arrives as it is, but for its fixups", () => {
        const fixups = new Set<string>();
        const body = passesFull(codec, reply, { ...context(), model: String(reply.model) }, (name) => fixups.add(name));
        if (fixups.size === 0) expect(body).toBe(reply);
        expectSameReply(codec.decodeReply(body), events, lacks);
      });
    });
  });

for (const [from, source] of Object.entries(subjects))
  for (const [to, target] of Object.entries(subjects).filter(([to]) => to !== from)) {
    const lacks = new Set([...source.lacks, ...target.lacks]);
    describe.each(scenarios)(`${from} to ${to}: %s`, (scenario) => {
      if (source.upstream)
        test("the reply says the same to the client", () => {
          const events = decode(source.reader, [bytesAt(scenario, `${from}.stream.txt`)]);
          const asked = target.codec.decodeRequest(jsonAt(scenario, `${to}.request.json`));
          const out = written(target.codec.encodeStream(asked), events);
          target.checkStream(overWire(out), asked);
          expectSameReply(decodeFrames(target.reader, out), events, lacks);
          expectSameReply(target.reader.decodeReply(target.codec.encodeReply(events, asked)), events, lacks);
        });

      const { upstream } = target;
      if (upstream)
        test("the request says the same to the upstream, but for another maker's thinking", () => {
          const conversation = source.codec.decodeRequest(jsonAt(scenario, `${from}.request.json`));
          const body = upstream.encodeRequest(conversation, model);
          const arrived = target.codec.decodeRequest(JSON.parse(JSON.stringify(body)));
          expect(plainConversation(withoutThinking(arrived), lacks)).toEqual(
            plainConversation(withoutThinking(conversation), lacks),
          );
        });
    });
  }

function withoutThinking(conversation: Conversation): Conversation {
  const turns = conversation.turns.map((turn) => ({
    ...turn,
    parts: turn.parts.filter((part) => part.kind !== "thinking"),
  }));
  return { ...conversation, turns };
}

/** Index of the frame that ends the stream. */
function terminalFrame(codec: Pick<Codec, "decodeStream">, frames: SseFrame[]): number {
  const events: ReplyEvent[] = [];
  const sink = reads(codec)(collectInto(events));
  return frames.findIndex((frame) => {
    sink.push(frame);
    return events.at(-1)?.type === "finish" || events.at(-1)?.type === "error";
  });
}
