/**
 * Scenario: what goes wrong upstream, as each client's own kind of failure: every client dialect with every upstream
 * dialect; from `fixtures/scenes/failures.txt` and `broken.txt`, and here what is slow, cut or compressed.
 */
import { describe, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { type ClientDialect, clientDialects, dialects } from "../../../src/dialects/hub/conversation";
import { upstreamPaths } from "../../../src/lib/api-paths";
import { openHeldBodies } from "../../../src/lib/net/in/held-bytes";
import { requireRoomFor } from "../../../src/proxy/relay/running-limits";
import { offerOnly } from "../../support/catalogue";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { readBroken, readReply } from "../../support/read-reply";
import { refusalOf } from "../../support/refusal";
import { testScenes } from "../../support/scenes";

testScenes("failures");
testScenes("broken");

const models = { chat: "gemini-3.1-pro-preview", responses: "gpt-5.3-codex", messages: "claude-sonnet-4.6" } as const;
const combinations = clientDialects.flatMap((client) => dialects.map((upstream) => [client, upstream] as const));

async function start(): Promise<RunningProxy> {
  const [account] = demoAccounts();
  const proxy = await startProxy({ demo: { accounts: [{ ...account!, quota: quotas.unlimited() }] } });
  offerOnly(proxy.demo, Object.fromEntries(dialects.map((dialect) => [models[dialect], [upstreamPaths[dialect]]])));
  return proxy;
}

function ask(proxy: RunningProxy, client: ClientDialect, model: string, prompt: string, stream = true) {
  const messages = [{ role: "user", content: prompt }];
  const asks: Record<ClientDialect, [path: string, body: object]> = {
    chat: ["/v1/chat/completions", { model, stream, messages }],
    responses: ["/v1/responses", { model, stream, input: prompt }],
    messages: ["/v1/messages", { model, stream, max_tokens: 1000, messages }],
    gemini: [
      `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
      { contents: [{ role: "user", parts: [{ text: prompt }] }] },
    ],
  };
  return proxy.post(...asks[client]);
}

test("a stream that is cut ends in the client's own error, or never begins", async () => {
  await using proxy = await start();
  for (const [client, upstream] of combinations) {
    const response = await ask(proxy, client, models[upstream], "[demo: cut 4] Tell me of [demo: long 20]");
    const text = await response.text();
    // A reset may overtake what was sent before it: then nothing has begun, and the failure is an answer.
    if (response.status === 502) expect(JSON.parse(text)).toMatchObject({ error: { message: expect.any(String) } });
    else expect([response.status, readBroken(client, text)]).toEqual([200, expect.any(Object)]);
    expect(proxy.rows()[0]).toMatchObject({
      client_dialect: client,
      upstream_dialect: upstream,
      error_type: expect.any(String),
      error_message: expect.any(String),
    });
  }
});

test("an upstream that compresses its answers is read, and the client is told of no compression", async () => {
  await using proxy = await start();
  for (const [client, upstream] of combinations) {
    proxy.demo.intercept(upstreamPaths[upstream], async ({ headers, bytes, path }) => {
      const plain = await fetch(proxy.demo.url + path, { method: "POST", headers, body: new Uint8Array(bytes) });
      return new Response(Bun.gzipSync(new Uint8Array(await plain.arrayBuffer())), {
        headers: { "content-type": plain.headers.get("content-type")!, "content-encoding": "gzip" },
      });
    });
    const response = await ask(proxy, client, models[upstream], "Say hello.", false);
    expect(response.headers.get("content-encoding")).toBeNull();
    expect(await response.text()).toContain("DEMO: Hello!");
  }
});

describe("silence of the upstream", () => {
  const isSign: Record<ClientDialect, (text: string) => number> = {
    chat: (text) => text.match(/^: /gm)?.length ?? 0,
    responses: (text) => (text.match(/^event: response\.in_progress$/gm)?.length ?? 0) - 1,
    messages: (text) => text.match(/^event: ping$/gm)?.length ?? 0,
    // White space before the next JSON, which the first sign begins.
    gemini: (text) => Math.max(...[...text.matchAll(/^data:( +)\{/gm)].map(([, space]) => space!.length)),
  };
  test("is filled with what each client counts as life, and disturbs the strictest reader of none", async () => {
    await using quiet = await start();
    quiet.app.limits.keepAlive = 60;
    await Promise.all(
      combinations.map(async ([client, upstream]) => {
        const response = await ask(quiet, client, models[upstream], "[demo: silence 1] Say hello.");
        const text = await response.text();
        await readReply(client, models[upstream], text);
        // Chat's own upstream, and Anthropic's, say `ping` besides.
        expect([client, upstream, isSign[client](text) >= 2]).toEqual([client, upstream, true]);
      }),
    );
  });

  test("beyond the limit ends in a timeout of the client's own", async () => {
    await using quiet = await start();
    quiet.app.limits.stream.idle = 150;
    await Promise.all(
      combinations.map(async ([client, upstream]) => {
        const response = await ask(quiet, client, models[upstream], "[demo: silence 20] Say hello.");
        const last = readBroken(client, await response.text());
        if (client === "messages") expect(last.error.type).toBe("timeout_error");
      }),
    );
  });
});

test("a request is refused without a row while 3,000 run, or 300 of the same member", async () => {
  await using proxy = await start();
  const { inFlight } = proxy.app;
  const begin = (count: number, member: string | null) => {
    const handle = { member, tell: () => ({}) as never, stop() {}, cutShort() {} };
    for (let left = count; left > 0; left--) inFlight.begin(crypto.randomUUID(), handle);
  };
  begin(299, "ana");
  requireRoomFor("ana", inFlight);
  begin(1, "ana");
  expect(refusalOf(() => requireRoomFor("ana", inFlight))).toMatchObject({
    ...{ status: 429, details: { code: "too_many_running", headers: { "retry-after": "1" } } },
    message: expect.stringMatching(/^300 of your requests are running at this server already/),
  });
  begin(2699, null);
  requireRoomFor("bo", inFlight);
  begin(1, null);
  const refused = await ask(proxy, "chat", "gpt-5-mini", "Hello");
  const error = { message: "3000 requests are running already; try again in a moment.", code: "overloaded" };
  expect([refused.status, refused.headers.get("retry-after"), await refused.json()]).toMatchObject([
    503,
    "1",
    { error },
  ]);
  expect(proxy.rows()).toEqual([]);
});

test("running requests of a member have 128 MiB of bodies at most, and those of the owner have no limit", () => {
  const bodies = openHeldBodies();
  const [one, two] = [bodies.of("ana"), bodies.of("ana")];
  const mib = 1024 * 1024;
  one.add(100 * mib);
  two.add(28 * mib);
  expect(refusalOf(() => two.add(1))).toMatchObject({
    ...{ status: 429, details: { code: "too_many_running", headers: { connection: "close", "retry-after": "1" } } },
    message: expect.stringContaining("have 128 MiB at this server already"),
  });
  bodies.of("bo").add(128 * mib);
  bodies.of(null).add(1_000 * mib);
  one[Symbol.dispose]();
  two.add(100 * mib);
});
