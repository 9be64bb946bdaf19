/**
 * Rows: a promise in time: 1 MB that a client or an upstream sends holds the thread that serves everybody for less than
 * 50 ms. The texts are those that patterns stumble over, at each place of requests and answers, through real HTTP. What
 * is measured is the work of the thread between two turns of its loop, so that other processes do not count. Client and
 * upstream run on the same thread: their work counts, too.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { blocksIn } from "../../support/blocks";
import { namedEvent } from "../../support/event-stream";
import { hostileTexts, longestHeld, mostHeldMs } from "../../support/held";
import type { Json } from "../../support/json";
import { type RunningProxy, startProxy } from "../../support/proxy";

const mebibyte = 1024 * 1024;
const texts = Object.entries(hostileTexts);

let proxy: RunningProxy;
beforeAll(async () => {
  proxy = await startProxy({ config: { logLevel: "debug" } });
});
afterAll(() => proxy[Symbol.asyncDispose]());

/** JSON in which the text stands for each `$`. */
const withText = (json: string, text: string): Json =>
  JSON.parse(json, (_, value) => (typeof value === "string" ? value.replaceAll("$", () => text) : value));

const messages = [{ role: "user", content: "Hello" }];
/** Where a request goes, and what it has beside what it gives. */
const plain: Record<string, { path: string; body: Json; models?: string[] }> = {
  messages: { path: "/v1/messages", body: { max_tokens: 9, messages }, models: ["claude-sonnet-4.6", "gpt-5-mini"] },
  chat: { path: "/v1/chat/completions", body: { model: "gpt-5-mini", messages } },
  responses: { path: "/v1/responses", body: {} },
  gemini: { path: "/v1beta/models/gpt-5-mini:generateContent", body: {} },
  embeddings: { path: "/v1/embeddings", body: { model: "text-embedding-3-small" } },
  count: { path: "/v1/messages/count_tokens", body: { model: "claude-sonnet-4.6" } },
};

/** Places of a request of each dialect. */
const places = blocksIn("held/requests.txt").flatMap((block) => {
  const [, name = "", kind = "", json = ""] = /^(.*)\n> (\w+) (.*)$/.exec(block)!;
  const { path, body, models = [""] } = plain[kind]!;
  return models.map((model) => {
    const make = (text: string) => {
      const { headers, ...given } = withText(json, text);
      const short = (value: string) => value.slice(0, 3_000).replace(/[^ -~]/g, "x");
      const sent = headers && Object.fromEntries(Object.keys(headers).map((each) => [each, short(headers[each])]));
      return { path, body: { ...body, ...(model && { model }), ...given }, headers: sent as Record<string, string> };
    };
    return [`${name} ${model}`.trim(), make] as const;
  });
});

/** What an upstream may answer: a status and a type, and a text, JSON, or the events of a stream. */
const answers = blocksIn("held/answers.txt").map((block) => {
  const [name = "", head = "", ...lines] = block.split("\n");
  const [status, type = ""] = head.split(" ");
  const answer = (text: string) => {
    const written = lines.map((line) => {
      if (line === "$") return text;
      return type.endsWith("event-stream") ? namedEvent(withText(line, text)) : JSON.stringify(withText(line, text));
    });
    return new Response(written.join(""), { status: Number(status), headers: { "content-type": type } });
  };
  return [name, answer] as const;
});

describe.each(
  answers.flatMap(([name, answer]) =>
    (["/v1/messages", "/v1/chat/completions"] as const).map((path) => [name, path, answer] as const),
  ),
)("%s of an upstream at %s", (_name, path, answer) => {
  const model = "claude-sonnet-4.6";
  const body = { model, max_tokens: 9, messages, tools: [] };

  test("an answer of 1 MB holds the thread for less than 50 ms, whatever it is", async () => {
    const ask = async (written: (length: number) => string) => {
      const { length } = await answer(written(1_000)).text();
      const stream = (answer("").headers.get("content-type") ?? "").includes("event-stream");
      const text = written(mebibyte / Math.max(1, length / 1_500));
      const endpoint = path === "/v1/messages" ? "/v1/messages" : /./;
      let given = 0;
      proxy.demo.intercept(endpoint, () => {
        given++;
        return answer(text);
      });
      const held = await longestHeld(async () => void (await (await proxy.post(path, { ...body, stream })).text()));
      expect(given).toBe(1);
      return held;
    };
    expect(await heldBy(ask)).toEqual([]);
  });
});

/**
 * The texts with which something held the thread for too long, and the least of five such times: what the least says is the
 * work itself, and not a collection of garbage. Where plain letters of the same length take much themselves, as beside
 * neighbours that use up the memory's bandwidth, a text may take twice that.
 */
async function heldBy(ask: (written: (length: number) => string) => Promise<number>): Promise<[string, number][]> {
  await ask(() => "Hello");
  const leastOf = async (text: (length: number) => string, most: number) => {
    let held = Number.POSITIVE_INFINITY;
    for (let turn = 0; turn < 5 && held >= most; turn++) held = Math.min(held, await ask(text));
    return held;
  };
  const most = Math.max(mostHeldMs, 2 * (await leastOf((length) => "a".repeat(length), mostHeldMs / 2)));
  const slow: [string, number][] = [];
  for (const [name, text] of texts) {
    const held = await leastOf(text, most);
    if (held >= most) slow.push([name, Math.round(held)]);
  }
  return slow;
}

describe.each(places)("%s", (_place, make) => {
  test("a request of 1 MB holds the thread for less than 50 ms, whatever it is", async () => {
    const ask = async (written: (length: number) => string) => {
      const { length } = JSON.stringify(make(written(1_000)).body);
      // 1 MB as it is sent: escaped, and perhaps at two places.
      const { path, body, headers } = make(written(mebibyte / Math.max(1, length / 1_100)));
      const json = JSON.stringify(body);
      return await longestHeld(async () => void (await (await proxy.post(path, json, { headers })).text()));
    };
    expect(await heldBy(ask)).toEqual([]);
  });
});
