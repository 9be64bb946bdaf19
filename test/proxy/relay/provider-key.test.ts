/**
 * Rows: a provider that repeats its own key: no row or log line has it, whatever part of an answer it stands in, and no
 * answer with a status of an error or a header of it. A stream that has begun passes as it comes.
 */
import { afterAll, beforeEach, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Dialect, dialects } from "../../../src/dialects/hub/conversation";
import { eventStream } from "../../support/event-stream";
import { startProxy } from "../../support/proxy";
import { fixtures } from "../../support/streams";

const key = "provider-key/of+the-owner=0123456789";

const failure = { type: "upstream_error", message: `The key ${key} was withdrawn.`, code: `bad ${key}` };

/** Streams that begin well, and fail with the key in their words. */
const streamOf = (dialect: Dialect) =>
  readFileSync(join(fixtures, `planted/${dialect}.txt`), "utf8").replaceAll("$", () => key);
const streams: Record<Dialect, string> = {
  messages: streamOf("messages"),
  chat: streamOf("chat"),
  responses: streamOf("responses"),
};

let answer: () => Response = () => new Response();
const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => answer() });
const at = (type: Dialect) => ({
  type: type === "messages" ? "anthropic" : type,
  baseUrl: `${server.url}v1`,
  apiKey: key,
  models: ["x"],
});
const proxy = await startProxy({
  config: { logLevel: "debug", providers: Object.fromEntries(dialects.map((speech) => [speech, at(speech)])) },
});
afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await server.stop(true);
});
beforeEach(() => proxy.lines.splice(0));

const say = [{ role: "user", content: "Hello" }];
const clients: Record<Dialect, (model: string, stream: boolean) => [string, object]> = {
  messages: (model, stream) => ["/v1/messages", { model, stream, max_tokens: 9, messages: say }],
  chat: (model, stream) => ["/v1/chat/completions", { model, stream, messages: say }],
  responses: (model, stream) => ["/v1/responses", { model, stream, input: "Hello" }],
};

const event = { "content-type": "text/event-stream" };
const everything = async (response: Response) =>
  [
    await response.text(),
    ...[...response.headers].flat(),
    ...proxy.lines,
    JSON.stringify(proxy.rows().slice(0, 1)),
  ].join("\n");

const pairs = dialects.flatMap((client) => dialects.map((upstream) => [client, upstream] as const));

test.each(pairs)("an error in the middle of a stream: %s from %s", async (client, upstream) => {
  answer = () => eventStream(streams[upstream]);
  const [path, body] = clients[client](`${upstream}/x`, true);
  const told = await (await proxy.post(path, body)).text();
  expect(told).toContain("Well");
  expect(told).toContain(failure.message);
  const [row] = proxy.rows();
  expect([row!.error_type, row!.error_message]).toEqual([
    "(no plain name)",
    `The provider ${upstream} reported an error.`,
  ]);
  expect(proxy.lines.join("") + JSON.stringify(row)).not.toContain("provider-key");
});

test.each(pairs)(
  "an error in a stream that is gathered, and in place of a reply: %s from %s",
  async (client, upstream) => {
    const [path, body] = clients[client](`${upstream}/x`, false);
    for (const make of [
      () => eventStream(streams[upstream]),
      () => Response.json({ type: "error", error: failure }),
      () => Response.json({ type: "error", error: failure }, { status: 500 }),
      () => Response.json({ type: "error", error: failure }, { status: 400 }),
    ]) {
      answer = make;
      expect(await everything(await proxy.post(path, body))).not.toContain("provider-key");
    }
  },
);

test("an error in the middle of a stream of the provider's own path", async () => {
  answer = () => eventStream(streams.messages);
  const response = await proxy.post("/messages/v1/messages", clients.messages("x", true)[1]);
  expect(await response.text()).toBe(streams.messages);
  expect(proxy.lines.join("") + JSON.stringify(proxy.rows()[0])).not.toContain("provider-key");
});

test("headers that the client gets, of replies, errors and lists", async () => {
  const headers = { "x-ratelimit-limit-requests": `9;key=${key}`, "request-id": key, "retry-after": "1" };
  const hidden = "9;key=[secret]";
  for (const [status, speech] of [200, 429].flatMap((status) => dialects.map((speech) => [status, speech] as const))) {
    answer = () =>
      status === 200
        ? new Response(streams[speech].replaceAll(key, "k"), { headers: { ...event, ...headers } })
        : Response.json({ error: { message: "Slow down." } }, { status, headers });
    const [path, body] = clients[speech](`${speech}/x`, true);
    const response = await proxy.post(path, body);
    expect([speech, status, response.headers.get("x-ratelimit-limit-requests")]).toEqual([speech, status, hidden]);
    expect(await everything(response)).not.toContain("provider-key");
  }
  for (const status of [200, 429]) {
    answer = () => Response.json({ data: [] }, { status, headers });
    const response = await fetch(`${proxy.url}/messages/v1/models`);
    expect(response.headers.get("x-ratelimit-limit-requests")).toBe(hidden);
    expect(await everything(response)).not.toContain("provider-key");
  }
});
