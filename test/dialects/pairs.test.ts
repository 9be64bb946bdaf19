/** Pairs: what a codec does, from `fixtures/pairs/<dialect>/<act>.txt`: under each title what goes in and what comes out. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { transformJSONSchema } from "@anthropic-ai/sdk/lib/transform-json-schema";
import { chat } from "../../src/dialects/chat/codec";
import type { Codec } from "../../src/dialects/codec";
import { decodeEmbeddings, decodeEmbeddingsRequest, encodeEmbeddings } from "../../src/dialects/embeddings";
import { gemini } from "../../src/dialects/gemini/codec";
import type {
  ClientDialect,
  Conversation,
  Dialect,
  JsonObject,
  Reasoning,
  Tool,
  Turn,
} from "../../src/dialects/hub/conversation";
import { lostReasoningIn } from "../../src/dialects/hub/lost-reasoning";
import type { ModelFacts } from "../../src/dialects/hub/model";
import { closedSchema } from "../../src/dialects/hub/output-schema";
import { hasRefusedName, renameProperties } from "../../src/dialects/hub/property-names";
import { budgetOf, effortOf } from "../../src/dialects/hub/reasoning";
import { mendRefused, type SchemaRefusal } from "../../src/dialects/hub/refused-schemas";
import { type Block, believable, type ReplyEvent, type Usage } from "../../src/dialects/hub/reply";
import { withoutTuples } from "../../src/dialects/hub/schema-fixups";
import { separateTexts } from "../../src/dialects/hub/separate-texts";
import { continueConversation, offerFunctions } from "../../src/dialects/hub/server-offers";
import { asFunctionCalls } from "../../src/dialects/hub/server-turns";
import { isStrict, isStrictEverywhere } from "../../src/dialects/hub/strict-schema";
import { fitSchema, type SchemaFixup, vendorRow } from "../../src/dialects/hub/tool-schema";
import { deferTools } from "../../src/dialects/hub/tool-search";
import { withNearestEffort, withoutTools } from "../../src/dialects/hub/value-remedies";
import { messages } from "../../src/dialects/messages/codec";
import { shownNatively, withNativeSearch } from "../../src/dialects/native-search";
import { responses } from "../../src/dialects/responses/codec";
import {
  compactedReply,
  compactionReply,
  summaryReply,
  summaryRequest,
  triggered,
} from "../../src/dialects/responses/compaction";
import { decodeSearchCommands, encodeSearchAnswer } from "../../src/dialects/responses/search-commands";
import { failureMessage, ResponseChain } from "../../src/dialects/responses/socket";
import { samples } from "../../src/dialects/samples";
import { findingsIn, searchConversation } from "../../src/dialects/web-search";
import { run } from "../../src/lib/net/stream/stream";
import { citationsIn } from "../../src/proxy/server-tools/citations";
import { adapt } from "../support/adapt";
import { unfolded } from "../support/blocks";
import { outcomeOf, plains, rowsIn } from "../support/codec-pairs";
import { ableModel } from "../support/facts";
import { noted } from "../support/noted";
import { changes, testPairs } from "../support/pairs";
import { fixtures } from "../support/streams";

const codecs: Record<string, Codec> = { chat, responses, messages, gemini: gemini as Codec };

for (const [dialect, codec] of Object.entries(codecs))
  for (const file of readdirSync(join(fixtures, "pairs", dialect))) {
    const act = file.replace(".txt", "");
    const rows = rowsIn(readFileSync(join(fixtures, "pairs", dialect, file), "utf8"), act);
    test.each(rows)(`${dialect}, ${act}: %s`, (_, ofTitle) => {
      expect(ofTitle.length).toBeGreaterThan(0);
      for (const row of ofTitle) expect(outcomeOf(act, codec, row, plains[dialect]!)).toEqual(row.out);
    });
  }

const able = ableModel("m", "v");
const unthinking = { adaptiveThinking: false, thinkingBudget: undefined, efforts: [] };
const modelOf = (supports: object): ModelFacts => ({
  ...able,
  limits: {},
  supports: { ...able.supports, ...unthinking, ...supports },
});

const unsaid: Conversation = { model: "m", turns: [], tools: [], stream: true };
const asking = responses.decodeRequest({ model: "m", input: "Hi" });
const offered = (body: JsonObject) =>
  offerFunctions(responses.decodeRequest({ model: "m", input: "Hi", ...body }), () => ({
    description: "Searches.",
    schema: { type: "object" },
  }));

testPairs("hub", {
  /** What is put in other words for an upstream of a dialect, and perhaps of a vendor. */
  adapt([dialect, vendor]: [Dialect, string?], members: Partial<Conversation>) {
    const asked = { ...unsaid, ...members };
    const { conversation, restore, fixups, dropped } = adapt(asked, dialect, vendor);
    if (conversation === asked && !restore && fixups.length + dropped.length === 0) return "the same";
    return { ...changes(asked, conversation), restores: restore !== undefined, fixups, dropped };
  },
  /** What its client gets of a block of the reply: how it begins, its deltas, and how the reply ends. */
  restore(
    [dialect, vendor]: [Dialect, string?],
    members: Partial<Conversation>,
    block: Block,
    deltas: string[],
    end: ReplyEvent = { type: "finish", reason: "stop" },
  ) {
    const events: ReplyEvent[] = [
      { type: "start", id: "r", model: "m" },
      { type: "block-start", block },
      ...deltas.map((text): ReplyEvent => ({ type: "block-delta", text })),
      { type: "block-end" },
      end,
    ];
    return run(adapt({ ...unsaid, ...members }, dialect, vendor).restore!, events).slice(1);
  },
  /** What the model sees of tools that ran while it answered. */
  "server-turns"(...turns: Turn[]) {
    const seen = asFunctionCalls(turns);
    return seen === turns ? "the same" : seen;
  },
  /** A request of Responses whose tools dragoman runs: beyond the plain one what it is for the model. */
  offered(body: JsonObject) {
    const made = offered(body);
    return made && changes(asking, made.conversation);
  },
  /** The next request after one search, where the model may search again, and where it may not. */
  continued(body: JsonObject) {
    const said: Turn[] = [
      {
        role: "assistant",
        parts: [
          { kind: "server-call", id: "1", tool: "web-search", input: { query: "x" } },
          { kind: "server-result", id: "1", tool: "web-search", output: { kind: "pages", pages: [] } },
        ],
      },
    ];
    return [true, false].map((mayCall) => {
      const made = offered(body)!;
      const { turns, ...next } = continueConversation(made, said, () => mayCall);
      expect(turns).toEqual([...made.conversation.turns, ...said]);
      return changes(asking, { ...next, turns: asking.turns });
    });
  },
  /** The schema of a reply as Anthropic takes it: nothing where it would mean something else. */
  "closed-schema"(schema?: JsonObject) {
    const before = structuredClone(schema);
    const closed = closedSchema(schema);
    expect(schema).toEqual(before);
    return schema && closed === schema ? "the same" : closed;
  },
  /** The same where Anthropic's own package makes it of the schema. */
  "closed-by-package"(schema: JsonObject) {
    const before = structuredClone(schema);
    const closed = closedSchema(schema);
    expect(schema).toEqual(before);
    expect(closed).toEqual(transformJSONSchema(schema as never) as JsonObject);
    return closed;
  },
  /** A schema whose names of properties Claude refuses: with others, and which they are. */
  renamed(schema: JsonObject) {
    const taken = /^[a-zA-Z0-9_.-]{1,64}$/;
    const made = renameProperties(schema, taken);
    const names = made && [...made.renamed];
    return { refuses: hasRefusedName(schema, taken), ...(made && { schema: made.schema, names }) };
  },
  "without-tuples": (schema: JsonObject) => withoutTuples(schema),
  /** What a model supports, and the reasoning that is asked for. */
  effort: (supports: object, reasoning?: Reasoning) => effortOf(reasoning, modelOf(supports)),
  /** The same, and the tokens of the reply. */
  budget: (supports: object, reasoning: Reasoning, room?: number) => budgetOf(reasoning, modelOf(supports), room),
  /** What becomes of the schema of a property. */
  "schema-fixup"(name: SchemaFixup, schema: JsonObject) {
    const before = structuredClone(schema);
    const { properties } = fitSchema({ type: "object", properties: { a: schema } }, [name]).schema;
    expect(schema).toEqual(before);
    const { a } = properties as JsonObject;
    return a === schema ? "the same" : a;
  },
  /** What is sent after a refusal, in which other schemas stand, and how each was mended. */
  refused([dialect, vendor, isLast = false]: [Dialect, string, boolean?], body: JsonObject, refusal: SchemaRefusal) {
    const places = codecs[dialect]!.schemas;
    const { body: mended, ...told } = noted((notes) =>
      mendRefused(body, { dialect, vendor, places, notes }, refusal, isLast),
    );
    return mended && { ...mended, ...told };
  },
  /** What a request is without tools that are refused, and with the nearest effort that is taken. */
  "without-tools": (body: JsonObject, rejected: string[]) => withoutTools(body, rejected),
  "nearest-effort": (body: JsonObject, efforts: string[]) => withNearestEffort(body, efforts),
  separated: (...events: ReplyEvent[]) => run(separateTexts, events),
  "lost-reasoning": (changes: unknown) => lostReasoningIn(changes),
  believable: (usage: Partial<Usage>, most: number) => believable(usage, most),
  /** Whether OpenAI, and whether Anthropic as well, takes it for `strict`. */
  strict: (schema: JsonObject) => [isStrict(schema), isStrictEverywhere(schema)],
  /** Beside so many functions: which tools a model gets that has to search for the others, or whose upstream searches. */
  deferred([target, count = 0, isNative = false]: [Dialect, number?, boolean?], members: Partial<Conversation>) {
    const { tools = [] } = members;
    const many = Array.from({ length: count }, (_, at): Tool => ({ kind: "function", name: `f${at}`, schema: {} }));
    const asked = { ...unsaid, ...members, tools: [...tools, ...many] };
    const made = deferTools(asked, target, isNative);
    if (!made) return "the same";
    const { conversation, waiting, overflow } = made;
    const shown = conversation.tools.map((tool) => (tool.kind !== "foreign" && count > 0 ? tool.name : tool));
    return {
      ...changes(asked, conversation),
      tools: shown,
      waiting: [...waiting.tools.keys()],
      room: waiting.room,
      overflow,
    };
  },
  /** What becomes of a tool's for OpenAI. */
  "tool-schema"(given: JsonObject) {
    const { body, ...notes } = noted((each) => fitSchema(given, vendorRow("responses", "OpenAI").fixups, each));
    return body.schema === given ? "the same" : { schema: body.schema, ...notes };
  },
});

/** Ids are made anew for each reply. */
const withoutIds = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replace(/"([a-z_]+_)[0-9A-Za-z]{24,}"/g, '"$1*"'));

/** `<<9 x a>>` in a text stands for nine of these letters. */
const longOf = (value: unknown): unknown => JSON.parse(unfolded(JSON.stringify(value)));
const shortOf = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replace(/([a-z])\1{99,}/g, (all, letter) => `<<${all.length} x ${letter}>>`));

/** What clients ask beside a conversation, and how they ask otherwise than by HTTP. */
const paths = {
  /** The body of `/v1/alpha/search`, at a time. */
  "search-commands": (body: JsonObject) => decodeSearchCommands(body, Date.parse("2026-11-10T23:30:00Z")),
  "search-answer": (...given: Parameters<typeof encodeSearchAnswer>) => encodeSearchAnswer(...given),
  /** A message, or an event of the answer, each after the others, on one socket. */
  socket(...turns: { read?: JsonObject | string; write?: JsonObject }[]) {
    const chain = new ResponseChain();
    return turns.map(({ read, write }) => {
      if (write) return chain.write({ event: String(write.type), data: JSON.stringify(write) });
      const request = chain.read(typeof read === "string" ? read : JSON.stringify(read));
      return request ? { fixups: request.fixups, body: JSON.parse(request.body.toString()) } : "no answer";
    });
  },
  "socket-failure": (status: number, body: unknown, headers: Record<string, string>) =>
    failureMessage(status, body, new Headers(headers)),
  compact: (body: JsonObject) => JSON.parse(triggered(JSON.stringify(body))),
  compacted: (...given: Parameters<typeof compactedReply>) =>
    withoutIds(shortOf(compactedReply(...(longOf(given) as typeof given)))),
  /** Of a dialect: with instructions, and without. */
  sample(dialect: ClientDialect) {
    const { path, inAddress, body, ...others } = samples[dialect];
    const text = { model: "m", prompt: "Hi", maxTokens: 9 };
    const bodies = ["Be brief.", ""].map((system) => body({ ...text, system }));
    return { ...others, path: path("m"), inAddress: inAddress?.("m"), bodies };
  },
  summary: (body: JsonObject) => summaryRequest(body),
  "summary-reply": (...events: ReplyEvent[]) => withoutIds(run(summaryReply, events)),
  "compaction-reply": (...events: ReplyEvent[]) => withoutIds(run(compactionReply, events)),
  "embeddings-request": (body: JsonObject) => decodeEmbeddingsRequest(body),
  /** An upstream's answer to so many texts, and how the client gets it. */
  embeddings(answer: unknown, wanted: number, base64: boolean) {
    const read = decodeEmbeddings(JSON.stringify(answer), wanted, "GitHub Copilot");
    return { tokens: read.tokens, ...encodeEmbeddings("m", read, { base64 }) };
  },
  /** A client's request for an upstream that searches itself. */
  "native-search"(client: ClientDialect, body: JsonObject) {
    const asked = codecs[client]!.decodeRequest({ ...plains[client]!.body, ...body });
    const made = withNativeSearch(asked);
    return made && changes(asked, made);
  },
  "shown-natively": (...events: ReplyEvent[]) => withoutIds(run(shownNatively, events)),
  /** What a model that searches has found, and what it was asked. */
  findings: (...events: ReplyEvent[]) => findingsIn(events),
  citations: (...given: Parameters<typeof citationsIn>) => citationsIn(...given),
  "search-asked": (...given: Parameters<typeof searchConversation>) => searchConversation(...given),
};
testPairs("paths", paths);
