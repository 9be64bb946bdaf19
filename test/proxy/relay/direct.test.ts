/**
 * Property: through the proxy as directly at the upstream: in each dialect's own pair the differences are the fixups,
 * by name.
 */
import { afterAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BetaMessageStream } from "@anthropic-ai/sdk/lib/BetaMessageStream";
import { ChatCompletionStream } from "openai/lib/ChatCompletionStream";
import type { ChatCompletion } from "openai/resources/chat/completions";
import { type Dialect, dialects } from "../../../src/dialects/hub/conversation";
import { Comparison } from "../../support/differential";
import type { Json } from "../../support/json";
import { compareDirect, fullOutput, models, OwnPairs } from "../../support/own-pairs";
import { replyOf, streamOf } from "../../support/source-text";
import { fixtures } from "../../support/streams";

const plain: Record<Dialect, object> = {
  chat: { messages: [{ role: "user", content: "Hi" }] },
  responses: { input: "Hi", store: false, include: ["reasoning.encrypted_content"] },
  messages: { messages: [{ role: "user", content: "Hi" }], max_tokens: 500 },
};
/** A full reply that may be so long is requested as a stream. */
const long: Record<Dialect, object> = {
  chat: { max_tokens: fullOutput + 1 },
  responses: { max_output_tokens: fullOutput + 1 },
  messages: { max_tokens: fullOutput + 1 },
};
const streamed: Record<Dialect, object> = {
  chat: { stream: true, stream_options: { include_usage: true } },
  responses: { stream: true },
  messages: { stream: true },
};

const bodyOf = (dialect: Dialect, more: object) =>
  JSON.stringify({ model: models[dialect], ...plain[dialect], ...more });

const pairs = await OwnPairs.start();
afterAll(() => pairs[Symbol.asyncDispose]());

interface Fixture {
  name: string;
  dialect: Dialect;
  text: string;
}

const fixturesOf = (pattern: RegExp): Fixture[] =>
  readdirSync(fixtures)
    .sort()
    .flatMap((folder) =>
      readdirSync(join(fixtures, folder)).flatMap((file) => {
        const dialect = dialects.find((each) => file.startsWith(`${each}.`) || folder.startsWith(`${each}-`));
        const name = `${folder}/${file}`;
        return pattern.test(file) && dialect
          ? [{ name, dialect, text: readFileSync(join(fixtures, name), "utf8") }]
          : [];
      }),
    );

/** The model's name, made the one that was asked for, so that only what else differs is seen. */
const asAsked = (text: string, dialect: Dialect) =>
  text.replaceAll(/"model":\s*"[^"]*"/g, `"model":"${models[dialect]}"`);

test.each([false, true])("The fixtures' requests arrive upstream but for the fixups, streamed: %p.", async (stream) => {
  const comparison = new Comparison();
  for (const { name, dialect, text } of fixturesOf(/^((?!hub)\w+\.)?request\.json$/)) {
    const body = `${asAsked(text, dialect).trimEnd().slice(0, -1)},"stream":${stream}}`;
    pairs.answer = (_, isStream) =>
      isStream ? streamOf(dialect, models[dialect], ["{}"]) : replyOf(dialect, models[dialect], "{}");
    pairs.sent = "";
    const told = await pairs.ask(dialect, body);
    if (pairs.sent !== "") compareDirect(comparison, name, "request", [body, pairs.sent], told.fixups);
    else {
      // Refused here, and never sent.
      expect(told.text, name).toContain('"error"');
      comparison.skip(name);
    }
  }
  comparison.expectAtLeast(105);
});

test.each([
  ["full replies", "reply", /\.reply\.json$/, 80],
  ["streams", "stream", /(^|\.)stream\.txt$/, 160],
] as const)("The fixtures' %s arrive at the client but for the fixups.", async (_, kind, pattern, least) => {
  const comparison = new Comparison();
  for (const { name, dialect, text } of fixturesOf(pattern))
    for (const reply of [text, asAsked(text, dialect)]) {
      pairs.answer = () => reply;
      const told = await pairs.ask(dialect, bodyOf(dialect, kind === "stream" ? streamed[dialect] : {}));
      if (!told.isGood) comparison.skip(name);
      else {
        compareDirect(comparison, name, kind, [reply, told.text], told.fixups);
        if (kind === "reply" && told.fixups.length === 0) expect(told.text, name).toBe(reply);
      }
    }
  comparison.expectAtLeast(least);
});

test("The fixtures' streams, gathered to full replies, are what the makers' packages make of them.", async () => {
  const comparison = new Comparison();
  for (const { name, dialect, text } of fixturesOf(/(^|\.)stream\.txt$/)) {
    const stream = asAsked(text, dialect);
    pairs.answer = () => stream;
    const told = await pairs.ask(dialect, bodyOf(dialect, long[dialect]));
    const judged = told.isGood ? await together[dialect](stream) : undefined;
    if (judged === undefined) {
      comparison.skip(name);
      continue;
    }
    expect(told.fixups, name).toContain("stream-gathered");
    // The packages leave out what they do not know.
    const unseen = ["usage-asked", "stream-gathered", ...(stream.includes('"copilot_') ? ["copilot-fields"] : [])];
    compareDirect(comparison, name, "reply", [JSON.stringify(judged), told.text], told.fixups, unseen);
  }
  comparison.expectAtLeast(70);
});

/** The same by the makers' own packages; undefined where they cannot follow. */
const together: Record<Dialect, (text: string) => Promise<unknown>> = {
  async chat(text) {
    try {
      const stream = ChatCompletionStream.fromReadableStream(linesOf(text));
      const whole = await stream.finalChatCompletion();
      // It takes the null of a later chunk for the last word.
      const usage = dataOf(text)
        .flatMap((data) => JSON.parse(data).usage ?? [])
        .at(-1);
      return {
        ...whole,
        ...(usage ? { usage } : {}),
        choices: whole.choices.map((choice) => plainChoice(choice, text)),
      };
    } catch {
      return undefined;
    }
  },
  async messages(text) {
    try {
      const { parsed_output: _, ...whole } = await BetaMessageStream.fromReadableStream(linesOf(text)).finalMessage();
      return whole;
    } catch {
      return undefined;
    }
  },
  // The last event holds it.
  async responses(text) {
    return dataOf(text)
      .map((data) => JSON.parse(data))
      .findLast(({ response }) => response)?.response;
  },
};

/**
 * Without what the package adds of its own, with thinking, which it does not know, in one piece.
 * @throws Error where the upstream numbers several calls alike, which the package takes for one.
 */
function plainChoice(choice: ChatCompletion.Choice, text: string): object {
  const chunks: { choices?: { delta?: Json }[] }[] = dataOf(text).map((data) => JSON.parse(data));
  const deltas = chunks.flatMap(({ choices }) => choices ?? []).flatMap(({ delta }) => delta ?? []);
  const pieces: Json[] = deltas.flatMap((delta) => delta.tool_calls ?? []);
  const begun = pieces.filter((piece) => piece.function?.name).map(({ index }) => index);
  if (new Set(begun).size < begun.length) throw new Error("calls of one number");
  const message: Json = { ...choice.message };
  delete message.parsed;
  if (!text.includes('"refusal"')) delete message.refusal;
  if (message.content === "" && message.tool_calls) message.content = null;
  for (const key of ["reasoning_text", "cot_summary", "reasoning_content"])
    if (key in message) message[key] = deltas.map((delta) => delta[key] ?? "").join("");
  const { logprobs, ...others } = choice;
  return { ...others, ...(text.includes('"logprobs"') ? { logprobs } : {}), message };
}

const dataOf = (text: string) =>
  [...text.matchAll(/^data: ?(\{[^\n\r]*)/gm)].flatMap(([, data]) => (data === undefined ? [] : [data]));

const linesOf = (text: string) => new Blob([dataOf(text).join("\n")]).stream();

test("A long message that is gathered from a stream keeps what only its end tells, and its digits.", async () => {
  const event = (type: string, members: string) => `event: ${type}\ndata: {"type":"${type}"${members}}\n\n`;
  const delta = (index: number, members: string) =>
    event("content_block_delta", `,"index":${index},"delta":{${members}}`);
  const start = (index: number, members: string) =>
    event("content_block_start", `,"index":${index},"content_block":{${members}}`);
  const stop = (index: number) => event("content_block_stop", `,"index":${index}`);
  const stream = [
    event(
      "message_start",
      `,"message":{"id":"msg_1","type":"message","role":"assistant","model":"${models.messages}","content":[],"container":null,"stop_reason":null,"stop_sequence":null,"stop_details":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}`,
    ),
    start(0, '"type":"thinking","thinking":"","signature":""'),
    delta(0, '"type":"thinking_delta","thinking":"Hm"'),
    delta(0, '"type":"signature_delta","signature":"c2ln"'),
    stop(0),
    start(1, '"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}'),
    delta(1, '"type":"input_json_delta","partial_json":"{\\"query\\":"'),
    delta(1, '"type":"input_json_delta","partial_json":"\\"x\\"}"'),
    stop(1),
    start(2, '"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]'),
    stop(2),
    start(3, '"type":"text","text":"","citations":[]'),
    delta(3, '"type":"text_delta","text":"See "'),
    delta(3, '"type":"citations_delta","citation":{"type":"char_location","start_char_index":1}'),
    delta(3, '"type":"text_delta","text":"this."'),
    stop(3),
    start(4, '"type":"tool_use","id":"toolu_1","name":"look","input":{}'),
    delta(4, '"type":"input_json_delta","partial_json":"{\\"id\\":12345678901"'),
    delta(4, '"type":"input_json_delta","partial_json":"23456789,\\"x\\":1.0}"'),
    stop(4),
    event(
      "message_delta",
      ',"delta":{"stop_reason":"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":null},"container":{"id":"c1"}},"context_management":{"applied_edits":[{"type":"clear_thinking","cleared":1}]},"usage":{"input_tokens":null,"output_tokens":5,"server_tool_use":{"web_search_requests":1}}',
    ),
    event("message_stop", ""),
  ].join("");
  pairs.answer = () => stream;
  const told = await pairs.ask("messages", bodyOf("messages", long.messages));
  expect(told.fixups).toEqual(["stream-gathered"]);
  const { id, ...judged } = (await together.messages(stream)) as Json;
  const got = JSON.parse(told.text);
  expect(got).toEqual({ id, ...judged, content: got.content });
  expect(got.content.slice(0, 4)).toEqual(JSON.parse(JSON.stringify(judged.content)).slice(0, 4));
  expect(got).toMatchObject({
    container: { id: "c1" },
    stop_details: { type: "refusal" },
    context_management: { applied_edits: [{ cleared: 1 }] },
    usage: {
      service_tier: "standard",
      server_tool_use: { web_search_requests: 1 },
      input_tokens: 10,
      output_tokens: 5,
    },
  });
  expect(told.text).toContain('"input":{"id":1234567890123456789,"x":1.0}');
});
