/**
 * Property: whole conversations in each dialect's own pair: what the client sent and got is what the upstream got and
 * sent, but for the fixups.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { dialects } from "../../../src/dialects/hub/conversation";
import { offerOnly } from "../../support/catalogue";
import { clients } from "../../support/clients";
import { Comparison } from "../../support/differential";
import { differences, readEvents, readWithSource, streamDifferences, unexplained } from "../../support/direct";
import { type Tap, tap } from "../../support/log-capture";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { drawn, triesOf } from "../../support/random";
import { scenarios } from "../../support/scenarios";

const upstreams = [
  ["chat", "gemini-3.1-pro-preview", "/chat/completions"],
  ["chat", "claude-opus-4.6", "/chat/completions"],
  ["chat", "gpt-5-mini", "/chat/completions"],
  ["responses", "gpt-5.3-codex", "/responses"],
  ["messages", "claude-sonnet-4.6", "/v1/messages"],
] as const;

const comparison = new Comparison();
let proxy: RunningProxy;
let upstream: Tap;
/** Stands before the proxy and keeps what passes. */
let listener: ReturnType<typeof Bun.serve>;
let request = "";
let reply: Promise<string>;

beforeAll(async () => {
  const [account] = demoAccounts();
  proxy = await startProxy({ demo: { accounts: [{ ...account!, quota: quotas.unlimited() }] } });
  upstream = tap(proxy.demo);
  offerOnly(proxy.demo, Object.fromEntries(upstreams.map(([, model, endpoint]) => [model, [endpoint]])));
  listener = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(asked: Request) {
      request = await asked.text();
      const { host, connection, "content-length": length, ...headers } = asked.headers.toJSON();
      const { pathname } = new URL(asked.url);
      const response = await fetch(proxy.url + pathname, { method: "POST", headers, body: request });
      const [theirs, ours] = response.body!.tee();
      reply = new Response(ours).text();
      return new Response(theirs, response);
    },
  });
});
afterAll(async () => {
  listener.stop(true);
  await proxy[Symbol.asyncDispose]();
});

/** The upstream's answer, that the proxy was the only one to see, beside the client's. */
async function compare(stream: boolean): Promise<void> {
  const [row] = proxy.rows();
  const fixups: string[] = row ? JSON.parse(row.fixups) : [];
  // Tools that run here make a translation of it, whose request and reply are written anew: `tool-search.test.ts`.
  if (row?.http_status !== 200 || row.error_type !== null || fixups.includes("tools-over-limit"))
    return comparison.skip(row?.path ?? "no row");
  const sent = new TextDecoder().decode(upstream.seen().bytes);
  const [told, got] = [await upstream.bytes(), await reply];
  const found = differences(readWithSource(request), readWithSource(sent), "request");
  // A long answer that is asked for in full comes as a stream: `direct.test.ts` compares it.
  const isGathered = !stream && !told.startsWith("{");
  if (stream) found.push(...streamDifferences(readEvents(told), readEvents(got)));
  else if (!isGathered) found.push(...differences(readWithSource(told), readWithSource(got), "reply"));
  const { unnamed, idle } = unexplained(found, fixups);
  comparison.same(row.path, { unnamed, idle: isGathered ? [] : idle }, { unnamed: [], idle: [] });
}

describe.each(upstreams.map(([dialect, model]) => [dialect, model] as const))("%s, %s", (dialect, model) => {
  describe.each(["full", "stream"] as const)("%s", (mode) => {
    test.each(drawn(`${dialect} ${model} ${mode}`, scenarios))("%s", async (_name, play) => {
      const client = clients[dialect](listener.url.origin);
      await play({
        client: dialect,
        upstream: dialect,
        // OpenAI's chat has no word for it.
        showsThinking: model !== "gpt-5-mini",
        async ask(question) {
          const answer = await client[mode](question, model);
          await compare(mode === "stream");
          return answer;
        },
        async refused(question) {
          const thrown = await client[mode](question, model).catch((error) => error);
          return { status: thrown.status, message: thrown.message };
        },
        seen: upstream.seen,
        dropped: () => JSON.parse(proxy.rows()[0]!.dropped),
      });
    });
  });
});

test("Most exchanges of every dialect were compared.", () => {
  comparison.expectAtLeast(triesOf(205, 4));
  expect(new Set(upstreams.map(([dialect]) => dialect))).toEqual(new Set(dialects));
});
