/** Scenario: chains of models: who serves in place of whom, and that nobody is asked twice. */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { dialects } from "../../../src/dialects/hub/conversation";
import { offerOnly } from "../../support/catalogue";
import { clients } from "../../support/clients";
import { eventStream } from "../../support/event-stream";
import { helloReply, startOpenAiServer } from "../../support/openai-server";
import { type ProxyOptions, type RunningProxy, startProxy } from "../../support/proxy";
import { pixel, weather } from "../../support/scenarios";
import { until } from "../../support/until";

const [claude, gpt, local] = ["claude-sonnet-4.6", "gpt-5.3-codex", "ollama/gpt-small"] as const;
const claudePath = "/v1/messages";
const gptPath = "/responses";

const mock = await startOpenAiServer();
afterAll(() => mock[Symbol.asyncDispose]());

/** Each model at one endpoint, so that the upstream's log tells which one was asked. */
async function start(config: object = {}, more: ProxyOptions = {}): Promise<RunningProxy> {
  const proxy = await startProxy({
    demo: { accounts: [{ ...demoAccounts()[0]!, quota: quotas.unlimited() }] },
    config: {
      providers: { ollama: { baseUrl: mock.url } },
      fallbacks: { [claude]: [gpt, local] },
      ...config,
    },
    ...more,
  });
  offerOnly(proxy.demo, {
    [claude]: [claudePath],
    [gpt]: [gptPath],
    "gpt-5-mini": ["/chat/completions"],
    "text-embedding-3-small": [],
  });
  return proxy;
}

/** How each status comes from Copilot. */
const faults: Record<string, () => Response> = {
  "402 (no quota)": () =>
    Response.json({ error: { message: "You have no quota", code: "quota_exceeded" } }, { status: 402 }),
  "429 (this model)": () =>
    Response.json(
      { error: { message: "Slow down.", code: "user_model_rate_limited:pro" } },
      { status: 429, headers: { "retry-after": "60" } },
    ),
  "429 (overloaded)": () =>
    Response.json({ error: { message: "Overloaded.", code: "model_overloaded" } }, { status: 429 }),
  503: () => new Response("upstream provider rate limit", { status: 503 }),
  529: () =>
    Response.json({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }, { status: 529 }),
  "529 (first event)": () =>
    eventStream('event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'),
};

interface Row {
  upstream_model: string | null;
  http_status: number;
  fallbacks: string | null;
  attempts: string;
}

const callsTo = ({ demo }: RunningProxy, path: string) => demo.journal.filter((seen) => seen.path === path).length;
const passedOver = (row: Row) =>
  JSON.parse(row.fallbacks ?? "[]") as { model: string; status: number | null; why: string }[];
const hello = (model: string, more: object = {}) => ({
  model,
  max_tokens: 100,
  messages: [{ role: "user", content: "Say hello." }],
  ...more,
});

afterEach(() => mock.clear());

describe.each(Object.keys(faults))("after %s", (name) => {
  test.each(
    dialects.flatMap(
      (dialect) =>
        [
          [dialect, "full"],
          [dialect, "stream"],
        ] as const,
    ),
  )("a client of %s is served by the next model, %s", async (dialect, mode) => {
    if (name === "529 (first event)" && mode === "full") return;
    await using proxy = await start();
    proxy.demo.intercept(claudePath, faults[name]!);
    const client = clients[dialect](proxy.url);
    const answer = await client[mode]({ turns: [{ user: "Say hello." }], maxTokens: 100 }, claude);
    const [row] = proxy.rows();
    // Without quota, or limited, the account serves no other premium model.
    const served = name.startsWith("402") ? local : gpt;
    expect(answer.text).toContain(served === local ? helloReply : "Hello!");
    expect(answer.model).toBe(claude);
    expect([callsTo(proxy, claudePath), callsTo(proxy, gptPath), mock.calls().length]).toEqual(
      served === local ? [1, 0, 1] : [1, 1, 0],
    );
    expect(row).toMatchObject({ client_model: claude, upstream_model: served, http_status: 200, error_type: null });
    expect(passedOver(row!)[0]).toMatchObject({ model: claude, status: expect.any(Number) });
    expect(JSON.parse(row!.attempts).map(({ model }: { model: string }) => model)).toEqual([claude, served]);
  });
});

test("claude → gpt → provider: each is asked once, and Claude Code gets its tool call", async () => {
  await using proxy = await start();
  proxy.demo.intercept(claudePath, faults["529"]!);
  proxy.demo.intercept(gptPath, faults["429 (this model)"]!);
  const response = await proxy.post(
    "/v1/messages?beta=true",
    {
      ...hello(claude, { stream: true, thinking: { type: "adaptive", display: "omitted" } }),
      messages: [
        {
          role: "user",
          content: [{ type: "text", text: "What is the weather?", cache_control: { type: "ephemeral" } }],
        },
      ],
      tools: [{ name: "get_weather", description: "The weather.", input_schema: weather.schema }],
      output_config: { effort: "high" },
      context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    },
    { headers: { "user-agent": "claude-cli/2.1.330 (external, cli)" } },
  );
  expect([response.status, response.headers.get("x-dragoman-model")]).toEqual([200, local]);
  const text = await response.text();
  expect(text).toContain(`"model":"${claude}"`);
  expect(text).toContain('"name":"get_weather"');
  expect(text).toContain('"stop_reason":"tool_use"');
  expect(text).toEndWith('data: {"type":"message_stop"}\n\n');
  expect([callsTo(proxy, claudePath), callsTo(proxy, gptPath), mock.calls().length]).toEqual([1, 1, 1]);
  const [row] = proxy.rows();
  expect(row).toMatchObject({ upstream_model: local, upstream_dialect: "chat", input_tokens: 40, account_id: null });
  expect(passedOver(row!)).toEqual([
    { model: claude, status: 529, why: "GitHub Copilot answered with status 529 (overloaded_error)." },
    { model: gpt, status: 429, why: expect.stringContaining("This limit holds for this model only") },
  ]);
  expect(JSON.parse(row!.attempts)).toEqual([
    { account: "octo-demo", model: claude, status: 529, ms: expect.any(Number) },
    { account: "octo-demo", model: gpt, status: 429, ms: expect.any(Number) },
    { account: null, model: local, status: 200, ms: expect.any(Number) },
  ]);
  // What was changed for the first model is not said of the last.
  expect(JSON.parse(row!.fixups)).not.toContain("cache-key");
  const page = await (await fetch(`${proxy.url}/admin/requests/${row!.request_id}`)).text();
  expect(page).toContain("In place of");
  expect(page).toContain("overloaded_error");
  const { items } = (await (await fetch(`${proxy.url}/api/admin/requests`)).json()) as {
    items: { fallbacks: object[] }[];
  };
  expect(items[0]!.fallbacks).toEqual(passedOver(row!));
});

test("a model that serves itself is named as well; without a chain none is", async () => {
  await using proxy = await start();
  const served = await proxy.post("/v1/messages", hello(claude));
  expect([served.status, served.headers.get("x-dragoman-model")]).toEqual([200, claude]);
  expect(proxy.rows()[0]).toMatchObject({ fallbacks: null });
  const other = await proxy.post("/v1/responses", { model: gpt, input: "Say hello." });
  expect(other.headers.has("x-dragoman-model")).toBe(false);
});

test("where no model serves, the error is that of the model that was asked for, with what became of the others", async () => {
  await using proxy = await start();
  proxy.demo.intercept(claudePath, faults["429 (this model)"]!);
  proxy.demo.intercept(gptPath, faults["503"]!);
  mock.failNext(429, "The model is overloaded.");
  const response = await proxy.post("/v1/messages", hello(claude));
  expect([response.status, response.headers.get("retry-after")]).toEqual([429, "60"]);
  const { error } = (await response.json()) as { error: { message: string } };
  expect(error.message).toStartWith("Slow down.");
  expect(error.message).toContain(`None of its fallbacks could serve: ${gpt}: upstream provider rate limit`);
  expect(error.message).toContain(`; ${local}: The model is overloaded.`);
  expect([callsTo(proxy, claudePath), callsTo(proxy, gptPath), mock.calls().length]).toEqual([1, 1, 1]);
  const [row] = proxy.rows();
  expect(row).toMatchObject({ upstream_model: claude, http_status: 429 });
  expect(passedOver(row!).map(({ model, status }) => [model, status])).toEqual([
    [claude, 429],
    [gpt, 503],
    [local, 429],
  ]);
});

describe("no other model is asked", () => {
  test.each([
    [
      "a request that is wrong",
      () => Response.json({ error: { message: "No.", code: "invalid_request_body" } }, { status: 400 }),
      400,
    ],
    ["an error of the upstream's own", () => Response.json({ error: { message: "Oops." } }, { status: 500 }), 500],
    ["a gateway that fails", () => new Response("", { status: 502 }), 502],
    [
      "a block of the account",
      () =>
        Response.json(
          { error: { message: "Your access was suspended for abuse.", code: "account_suspended" } },
          { status: 403 },
        ),
      403,
    ],
  ])("no other model is asked after %s", async (_, fault, status) => {
    await using proxy = await start();
    proxy.demo.intercept(claudePath, fault);
    expect((await proxy.post("/v1/messages", hello(claude))).status).toBe(status);
    expect([callsTo(proxy, claudePath), callsTo(proxy, gptPath), mock.calls().length]).toEqual([1, 0, 0]);
    expect(proxy.rows()[0]).toMatchObject({ fallbacks: null, upstream_model: claude });
  });

  test("no other model is asked while an account is blocked, although a provider could serve", async () => {
    await using proxy = await start();
    proxy.app.accounts[0]!.setState({ name: "failed", reason: "GitHub's message.", suspended: true });
    expect((await proxy.post("/v1/messages", hello(claude))).status).toBe(403);
    expect([callsTo(proxy, claudePath), callsTo(proxy, gptPath), mock.calls().length]).toEqual([0, 0, 0]);
  });

  test("no other model is asked after a fallback found the account blocked, and the client hears of that", async () => {
    await using proxy = await start();
    proxy.demo.intercept(claudePath, faults["529"]!);
    proxy.demo.intercept(gptPath, () => Response.json({ error: { code: "spammy_user" } }, { status: 403 }));
    const response = await proxy.post("/v1/messages", hello(claude));
    expect([response.status, await response.text()]).toEqual([403, expect.stringContaining("Nothing was retried")]);
    expect([callsTo(proxy, claudePath), callsTo(proxy, gptPath), mock.calls().length]).toEqual([1, 1, 0]);
  });

  test("no other model is asked after the reply had begun", async () => {
    await using proxy = await start();
    const begun = [
      'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}\n\n',
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
    ].join("");
    for (const stream of [true, false]) {
      proxy.demo.intercept(claudePath, () => eventStream(begun));
      const response = await proxy.post("/v1/messages", hello(claude, { stream, max_tokens: 32_000 }));
      expect(await response.text()).toContain("Overloaded");
    }
    expect([callsTo(proxy, gptPath), mock.calls().length]).toEqual([0, 0]);
  });

  test("no other model is asked after the client has hung up", async () => {
    await using proxy = await start();
    const leave = new AbortController();
    proxy.demo.intercept(claudePath, faults["529"]!);
    proxy.demo.intercept(gptPath, () => new Promise<Response>(() => {}));
    const answer = proxy.post("/v1/messages", hello(claude), { signal: leave.signal }).catch(() => "left");
    await until(() => callsTo(proxy, gptPath) === 1, "the fallback is asked");
    leave.abort();
    expect(await answer).toBe("left");
    await until(() => proxy.rows().length === 1, "the row is written");
    expect(proxy.rows()[0]).toMatchObject({ http_status: 499, error_type: "client_closed" });
    expect(mock.calls()).toEqual([]);
  });

  test("no other model is asked with a body that only the first one can read", async () => {
    const rich = { id: "rich", vision: true };
    await using proxy = await start({
      providers: {
        ollama: {
          baseUrl: mock.url,
          models: ["plain", { id: "toolless", tools: false }, { id: "small", context: 10 }, rich],
        },
      },
    });
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } };
    const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data: pixel } };
    const signed = { type: "thinking", thinking: "Hm.", signature: "EqQBCgIYAhIM" };
    const user = (...content: object[]) => ({ role: "user", content });
    const text = (words: string) => ({ type: "text", text: words });
    const tools = [{ name: "get_weather", input_schema: weather.schema }];
    // The first count loads the tokenizer, which may take longer than a request waits for its count.
    await proxy.post("/v1/messages/count_tokens", hello(claude));
    const cases: [string, string, object, string][] = [
      [
        "an image, to a model that may be blind",
        "ollama/plain",
        { messages: [user(image, text("What?"))] },
        "not known to see images",
      ],
      ["tools, to a model without", "ollama/toolless", { tools }, "calls no tools"],
      ["more than its prompt", "ollama/small", { messages: [user(text("word ".repeat(200)))] }, "at most 10 tokens"],
      ["a PDF, to chat completions", "ollama/plain", { messages: [user(pdf, text("What?"))] }, "reads no files"],
      [
        "signed thinking of another maker",
        gpt,
        {
          messages: [
            user(text("Hi")),
            { role: "assistant", content: [signed, text("Yes?")] },
            user(text("Say hello.")),
          ],
        },
        "signed thinking of another maker",
      ],
      [
        "a part that only one maker knows",
        gpt,
        { messages: [user(text("Hi"), { type: "container_upload", file_id: "f" })] },
        "a part of another maker",
      ],
      ["a model that nobody has", "nope", {}, "There is no model `nope`"],
      ["a model of another kind", "text-embedding-3-small", {}, "not a chat model"],
    ];
    for (const [name, model, more, why] of cases) {
      await proxy.app.config.change({ fallbacks: { [claude]: [model] } });
      proxy.demo.intercept(claudePath, faults["529"]!);
      const response = await proxy.post("/v1/messages", hello(claude, more));
      expect([name, response.status, await response.text()]).toEqual([name, 529, expect.stringContaining(why)]);
      expect([name, callsTo(proxy, gptPath), mock.calls().length]).toEqual([name, 0, 0]);
      const written = why.replace("`nope`", "`…`");
      expect(passedOver(proxy.rows()[0]!)[1]).toMatchObject({ status: null, why: expect.stringContaining(written) });
    }
    await proxy.app.config.change({ fallbacks: { [claude]: ["ollama/plain", "ollama/rich"] } });
    proxy.demo.intercept(claudePath, faults["529"]!);
    const seen = await proxy.post("/v1/messages", hello(claude, { messages: [user(image, text("Say hello."))] }));
    expect([seen.status, seen.headers.get("x-dragoman-model")]).toEqual([200, "ollama/rich"]);
  });

  test("no model is asked that the key may not use", async () => {
    await using proxy = await start({
      auth: { apiKeys: [{ name: "ci", key: "k-ci-0123456789", models: ["claude-*"] }] },
    });
    proxy.demo.intercept(claudePath, faults["529"]!);
    const response = await proxy.post("/v1/messages", hello(claude), { headers: { "x-api-key": "k-ci-0123456789" } });
    expect([response.status, await response.text()]).toEqual([529, expect.stringContaining("may not use")]);
    expect([callsTo(proxy, gptPath), mock.calls().length]).toEqual([0, 0]);
  });

  test("no other model is asked for the chain of a model that served in another's place", async () => {
    await using proxy = await start({ fallbacks: { [claude]: [gpt], [gpt]: [local] } });
    for (const path of [claudePath, gptPath]) proxy.demo.intercept(path, faults["503"]!);
    expect((await proxy.post("/v1/messages", hello(claude))).status).toBe(503);
    expect([callsTo(proxy, claudePath), callsTo(proxy, gptPath), mock.calls().length]).toEqual([1, 1, 0]);
  });

  test("twice, under whatever names the chain has it, and never more than three", async () => {
    await using proxy = await start({
      fallbacks: {
        "claude-sonnet-4-6": [
          claude,
          "Claude-Sonnet-4.6",
          gpt,
          gpt,
          "GPT-5.3-codex",
          "gpt-5-mini",
          local,
          "ollama/fourth",
        ],
      },
    });
    for (const path of [claudePath, gptPath, "/chat/completions"]) proxy.demo.intercept(path, faults["503"]!);
    mock.failNext(503, "Overloaded.");
    expect((await proxy.post("/v1/messages", hello(claude))).status).toBe(503);
    expect([callsTo(proxy, claudePath), callsTo(proxy, gptPath), callsTo(proxy, "/chat/completions")]).toEqual([
      1, 1, 1,
    ]);
    expect(mock.calls().map(({ body }) => (body as { model: string }).model)).toEqual(["gpt-small"]);
  });

  test("no other model of GitHub Copilot is asked where its limit holds for every model", async () => {
    await using proxy = await start();
    proxy.demo.intercept(claudePath, () =>
      Response.json(
        { error: { message: "This integration is rate-limited.", code: "integration_rate_limited" } },
        { status: 429 },
      ),
    );
    const response = await proxy.post("/v1/messages", hello(claude));
    expect([response.status, response.headers.get("x-dragoman-model")]).toEqual([200, local]);
    expect(callsTo(proxy, gptPath)).toBe(0);
    expect(passedOver(proxy.rows()[0]!)[1]).toMatchObject({ model: gpt, status: null });
  });
});

test("an account without quota is not asked; the provider serves at once, and the other way round", async () => {
  await using proxy = await start(
    { fallbacks: { [claude]: [local], [local]: [claude] } },
    { demo: { accounts: [{ ...demoAccounts()[0]!, quota: quotas.exhausted() }] } },
  );
  await proxy.app.accounts[0]!.quota();
  expect((await proxy.post("/v1/messages", hello(claude))).headers.get("x-dragoman-model")).toBe(local);
  expect([callsTo(proxy, claudePath), mock.calls().length]).toEqual([0, 1]);
  expect(passedOver(proxy.rows()[0]!)[0]).toMatchObject({ model: claude, status: null });
  mock.failNext(402, "Pay first.");
  const back = await proxy.post("/v1/messages", hello(local));
  expect([back.status, mock.calls().length]).toEqual([402, 2]);
});

test("the chain of a name serves without an account, and while GitHub lists no models", async () => {
  await using proxy = await startProxy({
    accounts: [],
    config: { providers: { ollama: { baseUrl: mock.url } }, fallbacks: { [claude]: [gpt, local] } },
  });
  const response = await proxy.post("/v1/messages", hello(claude));
  expect([response.status, response.headers.get("x-dragoman-model")]).toEqual([200, local]);
  expect(passedOver(proxy.rows()[0]!)).toEqual([
    { model: claude, status: null, why: expect.stringContaining("No GitHub account is signed in") },
    { model: gpt, status: null, why: expect.stringContaining("No GitHub account is signed in") },
  ]);
  expect((await proxy.post("/v1/messages", hello("claude-opus-4.6"))).status).toBe(424);
  mock.failNext(503, "Overloaded.");
  const failed = await proxy.post("/v1/messages", hello(claude));
  expect([failed.status, await failed.text()]).toEqual([424, expect.stringContaining(`; ${local}: Overloaded.`)]);
});
