/** Rows: a status of 200 with an error in place of the reply: what a client gets, and which account serves then. */
import { describe, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { type Dialect, dialects } from "../../../src/dialects/hub/conversation";
import { offerOnly } from "../../support/catalogue";
import { eventStream } from "../../support/event-stream";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { drawn } from "../../support/random";

const upstreams = {
  chat: ["gemini-3.1-pro-preview", "/chat/completions"],
  responses: ["gpt-5.3-codex", "/responses"],
  messages: ["claude-sonnet-4.6", "/v1/messages"],
} as const satisfies Record<Dialect, readonly [string, string]>;
const paths = { chat: "/v1/chat/completions", responses: "/v1/responses", messages: "/v1/messages" };
const pairs = dialects.flatMap((client) => dialects.map((upstream) => [client, upstream] as const));

/** Two accounts that may use the same models at the same host. */
async function start(): Promise<RunningProxy> {
  const accounts = demoAccounts().map((each) => ({ ...each, host: "individual" as const, quota: quotas.unlimited() }));
  const proxy = await startProxy({ demo: { accounts: accounts.slice(0, 2) } });
  offerOnly(proxy.demo, Object.fromEntries(Object.values(upstreams).map(([model, path]) => [model, [path]])));
  return proxy;
}

const ask = (proxy: RunningProxy, client: Dialect, upstream: Dialect, stream: boolean, content = "Hello") =>
  proxy.post(
    paths[client],
    {
      chat: { model: upstreams[upstream][0], stream, messages: [{ role: "user", content }] },
      responses: { model: upstreams[upstream][0], stream, input: [{ role: "user", content }] },
      messages: {
        model: upstreams[upstream][0],
        stream,
        max_tokens: 100,
        messages: [{ role: "user", content }],
      },
    }[client],
  );

/** The error as the first event of the dialect's stream, or as its full reply. */
const told = (upstream: Dialect, code: string, stream: boolean): Response => {
  const error = upstream === "messages" ? { type: code, message: "Overloaded." } : { code, message: "Overloaded." };
  const body = JSON.stringify(upstream === "chat" ? { error } : { type: "error", error });
  if (!stream) return new Response(body, { headers: { "content-type": "application/json" } });
  const name = upstream === "chat" ? "" : "event: error\n";
  return eventStream(`${name}data: ${body}\n\n`);
};

describe.each(drawn("broken replies", pairs))("a client of %s and an upstream of %s", (client, upstream) => {
  test.each([
    ["overloaded_error", 529, "overloaded_error", undefined],
    ["rate_limit_error", 429, "rate_limit_error", "rate_limit_error"],
    ["invalid_request_error", 400, "invalid_request_error", "invalid_request_error"],
    ["timeout_error", 504, "timeout_error", "timeout_error"],
    ["content_filter", 400, "invalid_request_error", "invalid_request_error"],
    ["constructor", 502, "api_error", "upstream_error"],
  ])("%s is %i, full and streamed", async (code, status, anthropic, openai) => {
    for (const stream of [true, false]) {
      await using proxy = await start();
      proxy.demo.intercept(upstreams[upstream][1], () => told(upstream, code, stream), 4);
      const response = await ask(proxy, client, upstream, stream);
      const { error } = (await response.json()) as { error: { type: string; message: string } };
      expect([stream, response.status]).toEqual([stream, status]);
      // A rate limit that both accounts have hit is told of both.
      expect(error.message).toContain("Overloaded.");
      if (client === "messages") expect(error.type).toBe(anthropic);
      else if (openai) expect(error.type).toBe(openai);
      expect(proxy.rows()[0]).toMatchObject({ http_status: status, error_type: expect.any(String) });
    }
  });

  test("a quota that is used up marks the account, and the next one serves with every word of a long prompt", async () => {
    const long = "One word after another. ".repeat(1000);
    for (const stream of [true, false]) {
      await using proxy = await start();
      proxy.demo.intercept(upstreams[upstream][1], () => told(upstream, "quota_exceeded", stream), 1);
      const response = await ask(proxy, client, upstream, stream, long);
      expect([response.status, (await response.text()).includes("Overloaded.")]).toEqual([200, false]);
      const calls = proxy.demo.journal.filter(({ path }) => path === upstreams[upstream][1]);
      const [first, second] = calls.map(({ bytes }) => Buffer.from(bytes).toString());
      expect(first).toContain(long);
      expect(second).toBe(first);
      expect(proxy.app.accounts.map(({ state }) => state.name)).toEqual(["exhausted", "ready"]);
      const [row] = proxy.rows();
      expect(row).toMatchObject({ http_status: 200, error_type: null, account_id: "work-demo" });
      expect(JSON.parse(row!.attempts)).toMatchObject([
        { account: "octo-demo", status: 200, error: "quota_exceeded" },
        { account: "work-demo", status: 200 },
      ]);
      expect(row!.input_tokens).toBeGreaterThan(0);
    }
  });

  test("a JSON error with status 200 where a stream was asked for keeps its words, its code and its meaning", async () => {
    await using proxy = await start();
    proxy.demo.intercept(upstreams[upstream][1], () => told(upstream, "overloaded_error", false), 1);
    const response = await ask(proxy, client, upstream, true);
    expect(response.status).toBe(529);
    expect(await response.json()).toMatchObject({ error: { message: "Overloaded." } });
    expect(proxy.rows()[0]).toMatchObject({
      error_type: "overloaded_error",
      error_message: "GitHub Copilot reported an error (overloaded_error).",
    });
  });

  test("JSON or a page that is no error is a portal's", async () => {
    await using proxy = await start();
    for (const body of ["<html>Sign in</html>", '{"hello":1}']) {
      proxy.demo.intercept(
        upstreams[upstream][1],
        () => new Response(body, { headers: { "content-type": "text/html" } }),
        1,
      );
      const response = await ask(proxy, client, upstream, true);
      expect(response.status).toBe(502);
      expect(await response.text()).toContain("did not answer with an event stream");
    }
  });
});

test("a reply that had begun is not asked for again, whatever it says then", async () => {
  await using proxy = await start();
  const begun = `event: message_start\ndata: ${JSON.stringify({
    type: "message_start",
    message: {
      id: "m",
      type: "message",
      role: "assistant",
      model: "c",
      content: [],
      usage: { input_tokens: 1, output_tokens: 1 },
    },
  })}\n\n`;
  let asked = 0;
  proxy.demo.intercept(
    "/v1/messages",
    () => {
      asked++;
      const error = `event: error\ndata: {"type":"error","error":{"type":"quota_exceeded","message":"Overloaded."}}\n\n`;
      return eventStream(begun + error);
    },
    2,
  );
  const response = await ask(proxy, "messages", "messages", true);
  expect([response.status, (await response.text()).includes("Overloaded."), asked]).toEqual([200, true, 1]);
});

test.each([false, true])(
  "a provider's key in the code of an error is hidden from client and history (stream: %p)",
  async (stream) => {
    const key = "pandas-key-0123456789";
    await using server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request) {
        const code = `refused ${request.headers.get("authorization")?.slice("Bearer ".length)}`;
        const text = JSON.stringify({ error: { message: `It was ${code}.`, code } });
        return stream
          ? eventStream(`data: ${text}\n\n`)
          : new Response(text, { headers: { "content-type": "application/json" } });
      },
    });
    const models = ["small"];
    const providers = { local: { type: "chat", baseUrl: `${server.url.origin}/v1`, apiKey: key, models } };
    await using proxy = await startProxy({ config: { providers } });
    const body = { model: "local/small", stream, messages: [{ role: "user", content: "Hello pandas" }] };
    const answer = await proxy.post("/v1/chat/completions", body);
    const metrics = await fetch(`${proxy.url}/metrics`);
    const [row] = proxy.rows();
    expect([answer.status, row]).toMatchObject([502, { upstream_model: "local/small" }]);
    for (const text of [await answer.text(), JSON.stringify(row), await metrics.text(), proxy.lines.join("")]) {
      expect(text).not.toContain("key-0123456789");
      expect(text).toMatch(/refused|no plain name/);
    }
  },
);
