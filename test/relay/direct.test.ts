/** Through the proxy as directly at the upstream: in each dialect's own pair the differences are the fixups, by name. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BetaMessageStream } from "@anthropic-ai/sdk/lib/BetaMessageStream";
import { ChatCompletionStream } from "openai/lib/ChatCompletionStream";
import type { ChatCompletion } from "openai/resources/chat/completions";
import { type Dialect, dialects } from "../../src/dialects/hub/conversation";
import { differences, readEvents, readWithSource, streamDifferences, unexplained } from "../support/direct";
import { type RunningProxy, startProxy } from "../support/proxy";
import { replyOf, streamOf } from "../support/source-text";
import { fixtures, hasFixture } from "../support/streams";

const models: Record<Dialect, string> = {
  chat: "gpt-4.1",
  responses: "gpt-5.3-codex",
  messages: "claude-sonnet-4.6",
};
const wires: Record<Dialect, { client: string; upstream: string; plain: object; long: object }> = {
  chat: {
    client: "/v1/chat/completions",
    upstream: "/chat/completions",
    plain: { messages: [{ role: "user", content: "Hi" }], stream_options: { include_usage: true } },
    long: { max_tokens: 5000 },
  },
  responses: {
    client: "/v1/responses",
    upstream: "/responses",
    plain: { input: "Hi", store: false, include: ["reasoning.encrypted_content"] },
    long: { max_output_tokens: 5000 },
  },
  messages: {
    client: "/v1/messages",
    upstream: "/v1/messages",
    plain: { messages: [{ role: "user", content: "Hi" }], max_tokens: 500 },
    long: { max_tokens: 5000 },
  },
};

let proxy: RunningProxy;
let sent = "";
/** The same, or by whether a stream was asked for. */
let answer: string | { full: string; stream: string } = "";

beforeAll(async () => {
  // A search that runs here makes another request of the client's.
  proxy = await startProxy({ config: { webSearchModel: "off" } });
  proxy.demo.intercept(
    "/models",
    async ({ headers }) => {
      if (headers["x-whole-list"]) return undefined;
      const whole = await fetch(`${proxy.demo.url}/models`, { headers: { ...headers, "x-whole-list": "1" } });
      const { data, ...list } = (await whole.json()) as { data: Listed[] };
      const offered = dialects.map((dialect) => {
        const model = data.find(({ id }) => id === models[dialect])!;
        const limits = { ...model.capabilities.limits, max_non_streaming_output_tokens: 1000 };
        const capabilities = { ...model.capabilities, limits };
        return { ...model, capabilities, supported_endpoints: [wires[dialect].upstream] };
      });
      return Response.json({ ...list, data: offered });
    },
    Number.POSITIVE_INFINITY,
  );
  proxy.demo.intercept(
    /^\/(chat\/completions|responses|v1\/messages)$/,
    ({ bytes }) => {
      sent = Buffer.from(bytes).toString();
      const streams = JSON.parse(sent).stream === true;
      const type = streams ? "text/event-stream" : "application/json";
      const body = typeof answer === "string" ? answer : answer[streams ? "stream" : "full"];
      return new Response(body, { headers: { "content-type": type } });
    },
    Number.POSITIVE_INFINITY,
  );
});
afterAll(() => proxy[Symbol.asyncDispose]());

interface Listed {
  id: string;
  capabilities: { limits: object };
}

interface Told {
  text: string;
  fixups: string[];
  /** It ended well. */
  isGood: boolean;
}

async function ask(dialect: Dialect, body: string): Promise<Told> {
  const response = await proxy.post(wires[dialect].client, body);
  const text = await response.text();
  const row = proxy.rows()[0]!;
  return { text, fixups: JSON.parse(row.fixups), isGood: response.status === 200 && row.error_type === null };
}

const clean = { unnamed: [], idle: [] };

const holding = (pattern: RegExp) =>
  readdirSync(fixtures)
    .sort()
    .flatMap((folder) =>
      readdirSync(join(fixtures, folder)).flatMap((file) => {
        const dialect = dialects.find((each) => file.startsWith(`${each}.`) || folder.startsWith(`${each}-`));
        return pattern.test(file) && dialect ? [{ folder, file, dialect }] : [];
      }),
    );
const textAt = (folder: string, file: string) => readFileSync(join(fixtures, folder, file), "utf8");

/** The model's name in a reply, made the one that was asked for, so that only what else differs is seen. */
const asAsked = (text: string, dialect: Dialect) =>
  text.replaceAll(/"model":\s*"[^"]*"/g, `"model":"${models[dialect]}"`);

describe("a request", () => {
  describe.each(holding(/^(\w+\.)?request\.json$/).filter(({ file }) => file !== "hub.request.json"))(
    "$folder/$file",
    ({ folder, file, dialect }) => {
      test.each([false, true])("streamed: %p", async (stream) => {
        const given = asAsked(textAt(folder, file), dialect);
        const body = `${given.trimEnd().slice(0, -1)},"stream":${stream}}`;
        answer = {
          full: replyOf(dialect, models[dialect], "{}"),
          stream: streamOf(dialect, models[dialect], ["{}"]),
        };
        sent = "";
        const { fixups, text } = await ask(dialect, body);
        // Refused here, and never sent.
        if (sent === "") return expect(text).toContain('"error"');
        expect(unexplained(differences(readWithSource(body), readWithSource(sent), "request"), fixups)).toEqual(clean);
      });
    },
  );
});

const plainBody = (dialect: Dialect, more: object) =>
  JSON.stringify({ model: models[dialect], ...wires[dialect].plain, ...more });

/** Mends that a plain request may need for itself. */
const ofRequest = new Set(["usage-asked", "stream-gathered"]);

describe("a full reply", () => {
  test.each(holding(/\.reply\.json$/))("$folder/$file", async ({ folder, file, dialect }) => {
    for (const text of [textAt(folder, file), asAsked(textAt(folder, file), dialect)]) {
      answer = text;
      const more = dialect === "chat" ? { stream_options: undefined } : {};
      const told = await ask(dialect, plainBody(dialect, more));
      if (!told.isGood) continue;
      expect(unexplained(differences(readWithSource(text), readWithSource(told.text), "reply"), told.fixups)).toEqual(
        clean,
      );
      if (told.fixups.length === 0) expect(told.text).toBe(text);
    }
  });
});

const streams = holding(/(^|\.)stream\.txt$/);

describe("a stream", () => {
  test.each(streams)("$folder/$file", async ({ folder, file, dialect }) => {
    for (const text of [textAt(folder, file), asAsked(textAt(folder, file), dialect)]) {
      answer = text;
      const told = await ask(dialect, plainBody(dialect, { stream: true }));
      if (!told.isGood) continue;
      const found = streamDifferences(readEvents(text), readEvents(told.text));
      expect(unexplained(found, told.fixups)).toEqual(clean);
    }
  });
});

describe("a stream, put together", () => {
  test.each(streams)("$folder/$file", async ({ folder, file, dialect }) => {
    const text = asAsked(textAt(folder, file), dialect);
    answer = text;
    const more = dialect === "chat" ? { stream_options: undefined } : {};
    const told = await ask(dialect, plainBody(dialect, { ...more, ...wires[dialect].long }));
    if (!told.isGood) return;
    expect(told.fixups).toContain("stream-gathered");
    const judged = await together[dialect](text);
    if (judged === undefined) return;
    // The packages leave out what they do not know.
    const unseen = new Set(text.includes('"copilot_') ? [...ofRequest, "copilot-fields"] : ofRequest);
    const found = differences(readWithSource(JSON.stringify(judged)), readWithSource(told.text), "reply");
    const { unnamed, idle } = unexplained(found, told.fixups);
    expect({ unnamed, idle: idle.filter((fixup) => !unseen.has(fixup)) }).toEqual(clean);
  });
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

// biome-ignore lint/suspicious/noExplicitAny: three wires, read as they come
type Json = any;

const dataOf = (text: string) =>
  [...text.matchAll(/^data: ?(\{[^\n\r]*)/gm)].flatMap(([, data]) => (data === undefined ? [] : [data]));

const linesOf = (text: string) => new Blob([dataOf(text).join("\n")]).stream();

test("a long message keeps what only its end tells, and its digits", async () => {
  const event = (type: string, members: string) => `event: ${type}\ndata: {"type":"${type}"${members}}\n\n`;
  const delta = (index: number, members: string) =>
    event("content_block_delta", `,"index":${index},"delta":{${members}}`);
  const start = (index: number, members: string) =>
    event("content_block_start", `,"index":${index},"content_block":{${members}}`);
  const stop = (index: number) => event("content_block_stop", `,"index":${index}`);
  answer = [
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
  const told = await ask("messages", plainBody("messages", wires.messages.long));
  expect(told.fixups).toEqual(["stream-gathered"]);
  const { id, ...judged } = (await together.messages(answer)) as Json;
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

test("fixtures of every kind are there", () => {
  expect(hasFixture("text", "chat.stream.txt")).toBe(true);
  expect(streams.length).toBeGreaterThan(80);
});
