/** Scenario: what is remembered: one row for each exchange, true numbers, and never content or secrets. */

import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { until } from "../../support/until";

const canary = "CANARY-zebra-umbrella-4711";
const ask = (content: string, more = {}) => ({ model: "gpt-5-mini", messages: [{ role: "user", content }], ...more });

test("a row tells: who asked what, where it went, what it took and cost", async () => {
  await using proxy = await startProxy();
  const response = await proxy.post(
    "/v1/chat/completions",
    ask("Hello", { model: "Claude-Sonnet-4-6", stream: true }),
    { headers: { "user-agent": "tester/1.0" } },
  );
  await response.text();
  await until(() => proxy.rows().length === 1, "the row is written");
  expect(proxy.rows()[0]).toMatchObject({
    path: "/v1/chat/completions",
    client_dialect: "chat",
    upstream_dialect: "chat",
    upstream_endpoint: "/chat/completions",
    account_id: "octo-demo",
    client_model: "Claude-Sonnet-4-6",
    upstream_model: "claude-sonnet-4.6",
    stream: 1,
    initiator: "user",
    initiator_reason: "a person's turn",
    http_status: 200,
    stop_reason: "stop",
    error_type: null,
    client_name: "tester/1.0",
    ...{ cost: 1e9, cost_unit: "premium" },
    attempts: expect.stringMatching(/^\[\{"account":"octo-demo","status":200,"ms":\d+\}\]$/),
  });
  const row = proxy.rows()[0]!;
  expect(row.input_tokens).toBeGreaterThan(0);
  expect(row.output_tokens).toBeGreaterThan(0);
  expect(row.first_byte_ms!).toBeLessThanOrEqual(row.duration_ms);
  expect(JSON.parse(row.fixups)).toContain("model-name");
});

test("an unknown number as unknown, never as 0", async () => {
  await using proxy = await startProxy({ demo: { generation: "C" } });
  const { url } = proxy;
  proxy.demo.intercept("/chat/completions", () =>
    Response.json({
      id: "x",
      model: exampleModels.flash,
      choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "hi" } }],
    }),
  );
  const body = JSON.stringify(ask("Hello", { model: exampleModels.flash }));
  await fetch(`${url}/v1/chat/completions`, { method: "POST", body });
  expect(proxy.rows()[0]).toMatchObject({
    input_tokens: null,
    output_tokens: null,
    cached_tokens: null,
    cost: null,
  });
});

test("a client's name ends before what a terminal would obey", async () => {
  await using proxy = await startProxy();
  const headers = { "user-agent": "tester/1.0\u009b31m" };
  await (await proxy.post("/v1/chat/completions", ask("Hello"), { headers })).text();
  expect(proxy.rows()[0]!.client_name).toBe("tester/1.0");
});

test("a row tells what failed in one sentence", async () => {
  await using proxy = await startProxy();
  await proxy.post("/v1/chat/completions", ask("Hello", { model: "nothing" }));
  await proxy.post("/v1/chat/completions", "{");
  const [broken, unknown] = proxy.rows();
  expect(unknown).toMatchObject({
    http_status: 404,
    error_type: "model_not_found",
    client_model: "nothing",
    upstream_model: null,
  });
  expect(broken).toMatchObject({ http_status: 400, error_type: "invalid_request", client_model: null });
});

test("a row tells whose turn it was, and why", async () => {
  await using proxy = await startProxy();
  const call = {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }],
  };
  const result = { role: "tool", tool_call_id: "c1", content: "done" };
  const person = { role: "user", content: "Hello" };
  const turns: [object[], string][] = [
    [[person], "user"],
    [[person, call, result], "agent"],
    [[person, call, result, person], "user"],
    [[person, call, result, { role: "system", content: "Be brief." }], "agent"],
    [[person, { role: "assistant", content: "Hi" }, person], "user"],
  ];
  for (const [messages, initiator] of turns) {
    await proxy.post("/v1/chat/completions", { model: "gpt-5-mini", messages });
    expect([proxy.rows()[0]!.initiator, proxy.demo.journal.at(-1)!.headers["x-initiator"]]).toEqual([
      initiator,
      initiator,
    ]);
  }
});

test("300 mixed requests, some aborted, some failing, are exactly 300 rows, and nothing of their content is kept", async () => {
  const key = "k-canary-0123456789";
  await using proxy = await startProxy({ config: { auth: { apiKeys: [key] }, logLevel: "debug" } });
  const send = (path: string, body: unknown, init: RequestInit = {}) =>
    proxy.post(path, body, { ...init, headers: { authorization: `Bearer ${key}` } });
  const outcomes: Promise<unknown>[] = [];
  const kinds = [
    () => send("/v1/chat/completions", ask(canary)).then((response) => response.text()),
    () => send("/v1/chat/completions", ask(canary, { stream: true })).then((response) => response.text()),
    () => send("/v1/chat/completions", ask(`[demo: 500] ${canary}`)).then((response) => response.text()),
    () =>
      send("/v1/chat/completions", ask(`[demo: cut] ${canary}`, { stream: true })).then((response) => response.text()),
    () =>
      send("/v1/chat/completions", ask(`[demo: error-event] ${canary}`, { stream: true })).then((response) =>
        response.text(),
      ),
    () => send("/v1/chat/completions", ask(canary, { model: "no-such-model" })).then((response) => response.text()),
    () => send("/v1/chat/completions", `{"model":"${canary}`).then((response) => response.text()),
    () =>
      send("/v1/embeddings", { model: "text-embedding-3-small", input: [canary] }).then((response) => response.text()),
    () => aborted("[demo: silence 5]"),
    () => aborted("[demo: slow-headers 5]"),
  ];
  const aborted = async (directive: string) => {
    const controller = new AbortController();
    const before = proxy.demo.journal.length;
    const response = send("/v1/chat/completions", ask(`${directive} ${canary}`, { stream: true }), {
      signal: controller.signal,
    });
    response.catch(() => {});
    await until(() => proxy.demo.journal.length > before, "the upstream is asked");
    await Bun.sleep(20);
    controller.abort();
    await response.then((started) => started.text()).catch(() => {});
  };
  await send("/v1/models", {}); // 405: no exchange
  for (let index = 0; index < 300; index++) {
    outcomes.push(kinds[index % kinds.length]!());
    if (outcomes.length % 50 === 0) await Promise.all(outcomes.splice(0));
  }
  await Promise.all(outcomes);
  await until(() => proxy.rows().length > 0 && proxy.history.count() >= 300, "300 rows are written");
  await until(() => proxy.app.inFlight.count === 0, "no request runs");
  proxy.app.history.flush();
  expect(proxy.history.count()).toBe(300);

  const token = (
    (await (await fetch(`${proxy.url}/token`, { headers: { "x-api-key": key } })).json()) as { token: string }
  ).token;
  const files = readdirSync(proxy.home, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const kept =
    files.map((entry) => readFileSync(join(entry.parentPath, entry.name)).toString("latin1")).join("\n") +
    proxy.lines.join("\n");
  for (const secret of [canary, token, proxy.demo.accounts[0]!.githubToken]) expect(kept).not.toContain(secret);
  expect(kept.split(key)).toHaveLength(2); // config.json, where the owner put it
});

describe("the account's token", () => {
  const hello = ask("Hello");

  test("50 requests at its expiry make exactly one exchange", async () => {
    await using proxy = await startProxy();
    await proxy.post("/v1/chat/completions", hello);
    const exchanges = () => exchangesOf(proxy);
    expect(exchanges()).toBe(1);
    proxy.demo.expireTokens();
    const answers = await Promise.all(Array.from({ length: 50 }, () => proxy.post("/v1/chat/completions", hello)));
    expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(200));
    expect(exchanges()).toBe(2);
    proxy.rows();
    expect(proxy.rows().some(({ attempts }) => JSON.parse(attempts).length === 2)).toBe(true);
  });

  test("the model host is learnt from the token; a business seat is served at its own", async () => {
    await using proxy = await startProxy({ accounts: ["work-demo"] });
    expect((await proxy.post("/v1/chat/completions", hello)).status).toBe(200);
    expect(proxy.demo.journal.at(-1)).toMatchObject({ host: "business", account: "work-demo" });
  });

  test("an account whose token cannot be exchanged is used directly", async () => {
    await using proxy = await startProxy({ accounts: ["plus-demo"] });
    expect((await proxy.post("/v1/chat/completions", hello)).status).toBe(200);
    expect(exchangesOf(proxy)).toBe(0);
    expect(proxy.demo.journal.at(-1)!.headers["editor-version"]).toBeUndefined();
  });

  test("we say who we are, and nothing of the client's headers goes up", async () => {
    await using proxy = await startProxy({ env: { DRAGOMAN_API_KEY: "client-key-0123" } });
    await proxy.post("/v1/chat/completions", hello, {
      headers: {
        cookie: "a=b",
        "x-forwarded-for": "1.2.3.4",
        "x-custom": "y",
        authorization: "Bearer client-key-0123",
        "user-agent": "evil",
      },
    });
    const { headers } = proxy.demo.journal.at(-1)!;
    expect(headers).toMatchObject({
      "user-agent": "dragoman/0.0.0-test",
      "editor-version": "dragoman/0.0.0-test",
      "editor-plugin-version": "dragoman/0.0.0-test",
    });
    for (const name of ["cookie", "x-forwarded-for", "x-custom", "vscode-machineid", "editor-device-id"])
      expect(headers).not.toHaveProperty(name);
    expect(headers.authorization).toStartWith("Bearer tid=");
  });

  test("headers from the config are added and replace ours, so that a retired version can be bridged", async () => {
    await using proxy = await startProxy({
      config: { upstreamHeaders: { "X-GitHub-Api-Version": "2027-01-01", "x-more": "1" } },
    });
    await proxy.post("/v1/chat/completions", hello);
    expect(proxy.demo.journal.at(-1)!.headers).toMatchObject({ "x-github-api-version": "2027-01-01", "x-more": "1" });
  });

  test("a request without any account is answered with 424 and the one command that helps", async () => {
    await using proxy = await startProxy({ accounts: [] });
    const response = await proxy.post("/v1/chat/completions", hello);
    expect([response.status, response.headers.get("x-should-retry")]).toEqual([424, "false"]);
    expect(await response.json()).toMatchObject({
      error: { code: "no_account", message: expect.stringContaining("dragoman auth") },
    });
  });
});

const exchangesOf = (proxy: RunningProxy) =>
  proxy.demo.journal.filter(({ path }) => path === "/copilot_internal/v2/token").length;
