/** What nobody foresaw, in each dialect's own pair: members nobody knows, odd numbers, words that look like ours, several answers. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { type Dialect, dialects } from "../../src/dialects/hub/conversation";
import { offerOnly } from "../support/catalogue";
import { differences, readEvents, readWithSource, streamDifferences, unexplained } from "../support/direct";
import { type RunningProxy, startProxy } from "../support/proxy";
import fc from "../support/random";
import { replyOf, requestOf, streamOf } from "../support/source-text";

const models: Record<Dialect, string> = {
  chat: "gpt-4.1",
  responses: "gpt-5.3-codex",
  messages: "claude-sonnet-4.6",
};
const wires = {
  chat: ["/v1/chat/completions", "/chat/completions"],
  responses: ["/v1/responses", "/responses"],
  messages: ["/v1/messages", "/v1/messages"],
} as const;

let proxy: RunningProxy;
let sent = "";
let answer = "";

beforeAll(async () => {
  // A search that runs here makes another request of the client's.
  proxy = await startProxy({ config: { webSearchModel: "off" } });
  offerOnly(
    proxy.demo,
    Object.fromEntries(dialects.map((dialect) => [models[dialect], [wires[dialect][1]]])) as Parameters<
      typeof offerOnly
    >[1],
  );
  proxy.demo.intercept(
    /^\/(chat\/completions|responses|v1\/messages)$/,
    ({ bytes }) => {
      sent = Buffer.from(bytes).toString();
      const type = JSON.parse(sent).stream === true ? "text/event-stream" : "application/json";
      return new Response(answer, { headers: { "content-type": type } });
    },
    Number.POSITIVE_INFINITY,
  );
});
afterAll(() => proxy[Symbol.asyncDispose]());

const clean = { unnamed: [], idle: [] };

/** Members that no wire has, with values that are easily lost. */
const stranger = fc.tuple(
  fc.constantFrom("x_new", "10", "2", "__proto__", "constructor", "toJSON", "rawJSON", "a.b", "é"),
  fc.constantFrom(
    "1.0",
    "-0",
    "1e3",
    "9007199254740993",
    "null",
    "[]",
    '{"b":[{"c":2.50}]}',
    '"dragoman.json"',
    '"\\ud800"',
  ),
);

/** The JSON text with strangers put at the start of some of its objects: those that open at these places. */
function withStrangers(
  text: string,
  strangers: readonly (readonly [string, string])[],
  places: readonly number[],
): string {
  let count = -1;
  let inString = false;
  let out = "";
  for (let at = 0; at < text.length; at++) {
    const sign = text[at]!;
    out += sign;
    if (sign === "\\") out += text[++at] ?? "";
    else if (sign === '"') inString = !inString;
    if (inString || sign !== "{") continue;
    count++;
    const found = places.indexOf(count);
    const one = strangers[found % Math.max(1, strangers.length)];
    // An empty object is the start of a call's input, which its pieces replace.
    if (found !== -1 && one && text[at + 1] !== "}") out += `${JSON.stringify(one[0])}:${one[1]},`;
  }
  return out;
}

const places = fc.uniqueArray(fc.integer({ min: 0, max: 25 }), { minLength: 1, maxLength: 4 });
const strangers = fc.array(stranger, { minLength: 1, maxLength: 3 });

describe.each([...dialects])("%s", (dialect) => {
  const model = models[dialect];
  const fixups = () => JSON.parse(proxy.rows()[0]!.fixups) as string[];

  test.each([false, true])("a request, streamed: %p", async (stream) => {
    await fc.assert(
      fc.asyncProperty(strangers, places, fc.boolean(), async (strange, at, needsMend) => {
        const body = withStrangers(requestOf(dialect, model, '{"n":[1.0]}', stream, needsMend), strange, at);
        answer = stream ? streamOf(dialect, model, ["{}"]) : replyOf(dialect, model, "{}");
        const response = await proxy.post(wires[dialect][0], body);
        await response.text();
        expect(response.status).toBe(200);
        expect(unexplained(differences(readWithSource(body), readWithSource(sent), "request"), fixups())).toEqual(
          clean,
        );
      }),
      { numRuns: 60 },
    );
  });

  test("a full reply", async () => {
    await fc.assert(
      fc.asyncProperty(strangers, places, fc.boolean(), async (strange, at, dated) => {
        answer = withStrangers(replyOf(dialect, dated ? `${model}-dated` : model, '{"n":[1.0]}'), strange, at);
        const response = await proxy.post(wires[dialect][0], requestOf(dialect, model, "{}", false, false));
        const text = await response.text();
        expect(response.status).toBe(200);
        expect(unexplained(differences(readWithSource(answer), readWithSource(text), "reply"), fixups())).toEqual(
          clean,
        );
      }),
      { numRuns: 60 },
    );
  });

  test("a stream", async () => {
    await fc.assert(
      fc.asyncProperty(strangers, places, fc.boolean(), async (strange, at, dated) => {
        answer = streamOf(dialect, dated ? `${model}-dated` : model, ['{"n":', "[1.0]}"])
          .split("\n")
          .map((line) =>
            line.startsWith("data: {") ? `data: ${withStrangers(line.slice("data: ".length), strange, at)}` : line,
          )
          .join("\n");
        const response = await proxy.post(wires[dialect][0], requestOf(dialect, model, "{}", true, false));
        const text = await response.text();
        expect(proxy.rows()[0]!.error_type).toBeNull();
        const found = streamDifferences(readEvents(answer), readEvents(text));
        expect(
          unexplained(
            found,
            fixups().filter((fixup) => fixup !== "usage-asked"),
          ),
        ).toEqual(clean);
      }),
      { numRuns: 60 },
    );
  });

  test.each(["dragoman.json", "dragoman.chat.x.y", "dragoman.messages..c2ln"])(
    "the text %j in a prompt changes nothing",
    async (words) => {
      const more = dialect === "chat" ? '"n":2,"logprobs":true,"functions":[],' : "";
      const body = requestOf(dialect, model, '{"n":[1.0]}', false, false)
        .replace("Look it up.", words)
        .replace("{", `{${more}`);
      answer = replyOf(dialect, model, "{}");
      const response = await proxy.post(wires[dialect][0], body);
      expect(await response.text()).toBe(answer);
      expect(sent).toBe(body);
    },
  );
});

describe("chat streams that a translation would have to put in order", () => {
  const chunk = (index: number, delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({
      id: "c1",
      object: "chat.completion.chunk",
      created: 1,
      model: models.chat,
      choices: [{ index, delta, finish_reason }],
    })}\n\n`;
  const call = (index: number, input: string, id?: string) => ({
    tool_calls: [
      { index, ...(id ? { id, type: "function" } : {}), function: { ...(id ? { name: id } : {}), arguments: input } },
    ],
  });
  const done = "data: [DONE]\n\n";
  const cases = {
    "calls side by side": [
      chunk(0, { role: "assistant", ...call(0, "", "f") }),
      chunk(0, call(1, "", "g")),
      chunk(0, call(0, '{"a":')),
      chunk(0, call(1, '{"b":')),
      chunk(0, { reasoning_text: "Hm." }),
      chunk(0, call(0, "1}")),
      chunk(0, call(1, "2}")),
      chunk(0, {}, "tool_calls"),
    ],
    "two answers, their calls in turn": [
      chunk(0, { role: "assistant", ...call(0, '{"a":', "f") }),
      chunk(1, { role: "assistant", ...call(0, '{"b":', "g") }),
      chunk(0, call(0, "1}")),
      chunk(1, call(0, "2}")),
      chunk(0, {}, "tool_calls"),
      chunk(1, {}, "tool_calls"),
    ],
  };

  test.each(Object.entries(cases))(
    "%s: OpenAI's package reads them as from the upstream itself",
    async (name, chunks) => {
      answer = chunks.join("") + done;
      const n = name.startsWith("two") ? 2 : 1;
      const read = async (baseURL: string) => {
        const openai = new OpenAI({ baseURL, apiKey: "unused", maxRetries: 0 });
        const body = {
          model: models.chat,
          n,
          messages: [{ role: "user" as const, content: "Hi" }],
          stream: true as const,
        };
        const calls: Record<string, string> = {};
        for await (const { choices } of await openai.chat.completions.create(body))
          for (const { index, delta } of choices)
            for (const piece of delta.tool_calls ?? []) {
              const key = `${index}.${piece.index}`;
              calls[key] = (calls[key] ?? "") + piece.function?.arguments;
            }
        return calls;
      };
      await using direct = upstream(() => answer);
      expect(await read(`${proxy.url}/v1`)).toEqual(await read(direct.url));
      expect(proxy.rows()[0]).toMatchObject({ error_type: null, stop_reason: "tool_calls", http_status: 200 });
    },
  );

  test.each(["messages", "responses"] as const)("to a client of %s each call comes whole", async (client) => {
    answer = cases["calls side by side"].join("") + done;
    const response = await proxy.post(wires[client][0], {
      ...JSON.parse(requestOf(client, models.chat, "{}", true, false)),
      stream: true,
    });
    const events = [...(await response.text()).matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data!));
    const calls =
      client === "responses"
        ? events.flatMap(({ type, item }) =>
            type === "response.output_item.done" && item.type === "function_call" ? [item.arguments] : [],
          )
        : Object.values(
            Object.groupBy(
              events.filter(({ delta }) => delta?.type === "input_json_delta"),
              ({ index }) => index,
            ),
          ).map((pieces) => pieces!.map(({ delta }) => delta.partial_json).join(""));
    expect(calls).toEqual(['{"a":1}', '{"b":2}']);
    expect(proxy.rows()[0]!.error_type).toBeNull();
  });
});

/** An upstream without a proxy before it. */
function upstream(text: () => string): { url: string } & AsyncDisposable {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response(text(), { headers: { "content-type": "text/event-stream" } }),
  });
  return { url: server.url.origin, [Symbol.asyncDispose]: () => server.stop(true) };
}
