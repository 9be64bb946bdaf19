/**
 * Property: what nobody foresaw, in each dialect's own pair: members nobody knows, odd numbers, words that look like
 * ours, several answers.
 */
import { afterAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { dialects } from "../../../src/dialects/hub/conversation";
import { clientPaths } from "../../../src/lib/api-paths";
import { Comparison } from "../../support/differential";
import { eventStream, eventsIn } from "../../support/event-stream";
import { compareDirect, models, OwnPairs } from "../../support/own-pairs";
import fc, { triesOf } from "../../support/random";
import { replyOf, requestOf, streamOf } from "../../support/source-text";

const pairs = await OwnPairs.start();
afterAll(() => pairs[Symbol.asyncDispose]());

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

const tries = triesOf(60, 3);
const places = fc.uniqueArray(fc.integer({ min: 0, max: 25 }), { minLength: 1, maxLength: 4 });
const strangers = fc.array(stranger, { minLength: 1, maxLength: 3 });

test.each(
  dialects.flatMap((dialect) =>
    (["request", "streamed request", "reply", "stream"] as const).map((kind) => [kind, dialect] as const),
  ),
)("Members that nobody knows survive in a %s of %s.", async (kind, dialect) => {
  const model = models[dialect];
  const comparison = new Comparison();
  await fc.assert(
    fc.asyncProperty(strangers, places, fc.boolean(), async (strange, at, isChanged) => {
      const named = isChanged && !kind.includes("request") ? `${model}-dated` : model;
      const isStream = kind.startsWith("stream");
      const own = (text: string) => withStrangers(text, strange, at);
      const reply = kind === "reply" ? own(replyOf(dialect, named, '{"n":[1.0]}')) : replyOf(dialect, model, "{}");
      const stream = streamOf(dialect, named, ['{"n":', "[1.0]}"]).replace(/(?<=^data: )\{.*$/gm, (data) =>
        kind === "stream" ? own(data) : data,
      );
      pairs.answer = () => (isStream ? stream : reply);
      const plain = requestOf(dialect, model, '{"n":[1.0]}', isStream, isChanged && kind.includes("request"));
      const body = kind.includes("request") ? own(plain) : plain;
      const told = await pairs.ask(dialect, body);
      expect(told.isGood, told.text).toBe(true);
      if (kind === "reply" || kind === "stream")
        compareDirect(comparison, kind, kind, [isStream ? stream : reply, told.text], told.fixups, ["usage-asked"]);
      else {
        const mended = body.replaceAll("\\ud800", "\\ufffd");
        expect(told.fixups.includes("half-characters")).toBe(mended !== body);
        compareDirect(comparison, kind, "request", [mended, pairs.sent], told.fixups, ["half-characters"]);
      }
    }),
    { numRuns: tries },
  );
  comparison.expectAtLeast(tries);
});

test.each(
  dialects.flatMap((dialect) =>
    ["dragoman.json", "dragoman.chat.x.y", "dragoman.messages..c2ln"].map((words) => [words, dialect] as const),
  ),
)("The text %j in a prompt of %s changes nothing.", async (words, dialect) => {
  const more = dialect === "chat" ? '"n":2,"logprobs":true,"functions":[],' : "";
  const body = requestOf(dialect, models[dialect], '{"n":[1.0]}', false, false)
    .replace("Look it up.", words)
    .replace("{", `{${more}`);
  const reply = replyOf(dialect, models[dialect], "{}");
  pairs.answer = () => reply;
  expect((await pairs.ask(dialect, body)).text).toBe(reply);
  expect(pairs.sent).toBe(body);
});

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
  "chat streams that a translation would have to put in order: %s: OpenAI's package reads them as from the upstream itself",
  async (name, chunks) => {
    const stream = chunks.join("") + done;
    pairs.answer = () => stream;
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
    await using direct = upstream(() => stream);
    expect(await read(`${pairs.proxy.url}/v1`)).toEqual(await read(direct.url));
    expect(pairs.proxy.rows()[0]).toMatchObject({ error_type: null, stop_reason: "tool_calls", http_status: 200 });
  },
);

test.each(["messages", "responses"] as const)(
  "each call of a chat stream comes whole to a client of %s",
  async (client) => {
    pairs.answer = () => cases["calls side by side"].join("") + done;
    const response = await pairs.proxy.post(clientPaths[client], {
      ...JSON.parse(requestOf(client, models.chat, "{}", true, false)),
      stream: true,
    });
    const events = eventsIn(await response.text());
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
    expect(pairs.proxy.rows()[0]!.error_type).toBeNull();
  },
);

/** An upstream without a proxy before it. */
function upstream(text: () => string): { url: string } & AsyncDisposable {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => eventStream(text()),
  });
  return { url: server.url.origin, [Symbol.asyncDispose]: () => server.stop(true) };
}
