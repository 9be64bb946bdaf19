import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type DemoAccount, demoAccounts, quotas } from "../../src/demo/accounts";
import { anthropicKey } from "../../src/demo/anthropic";
import { type Demo, type DemoOptions, startDemo } from "../../src/demo/demo";
import { directives } from "../../src/demo/faults";
import { unloadedNow } from "../support/unloaded";

// Answers of the upstream are read here as the wire has them.
// biome-ignore lint/suspicious/noExplicitAny: these are the wire's own shapes, looked at from outside
type Wire = any;

let demo: Demo;
let clock: number;

beforeEach(() => open());
afterEach(() => demo.stop());

function open(options: DemoOptions = {}) {
  demo?.stop();
  clock = Date.UTC(2026, 6, 20, 10);
  demo = startDemo({ pace: 0, now: () => clock, ...options });
}

const editor = {
  "editor-version": "dragoman/0.1.0",
  "copilot-integration-id": "vscode-chat",
  "x-github-api-version": "2026-06-01",
};

const account = (login = "octo-demo"): DemoAccount => demo.accounts.find((one) => one.login === login)!;

/** A Copilot token, or the GitHub token itself in direct mode. */
async function bearer(login = "octo-demo"): Promise<string> {
  const { githubToken } = account(login);
  if (githubToken.startsWith("gho_")) return githubToken;
  const answer = await fetch(`${demo.url}/copilot_internal/v2/token`, {
    headers: { authorization: `token ${githubToken}` },
  });
  return ((await answer.json()) as Wire).token;
}

interface Sending {
  login?: string;
  headers?: Record<string, string>;
  host?: string;
  signal?: AbortSignal;
}

async function post(path: string, body: unknown, { login, headers, host, signal }: Sending = {}): Promise<Response> {
  const direct = account(login).githubToken.startsWith("gho_");
  return fetch((host ?? (account(login).host === "business" ? demo.businessUrl : demo.url)) + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${await bearer(login)}`,
      "content-type": "application/json",
      ...(!direct && editor),
      ...headers,
    },
    body: JSON.stringify(body),
    signal,
  });
}

const chat = (body: object, sending?: Sending) =>
  post("/chat/completions", { model: "gpt-4.1", messages: [{ role: "user", content: "hello" }], ...body }, sending);
const responses = (body: object, sending?: Sending) =>
  post("/responses", { model: "gpt-5.2", input: "hello", ...body }, sending);
const messages = (body: object, sending?: Sending) =>
  post(
    "/v1/messages",
    { model: "claude-sonnet-4.5", max_tokens: 4000, messages: [{ role: "user", content: "hello" }], ...body },
    sending,
  );

const json = async (answer: Response | Promise<Response>): Promise<Wire> => (await answer).json();

/** The data of every event; `[DONE]` stays a string. */
async function events(answer: Response | Promise<Response>): Promise<Wire[]> {
  const text = await (await answer).text();
  return text
    .split(/\r?\n\r?\n/)
    .flatMap((frame) => frame.split(/\r?\n/).filter((line) => line.startsWith("data: ")))
    .map((line) => (line === "data: [DONE]" ? "[DONE]" : JSON.parse(line.slice(6))));
}

const say = (text: string) => ({ messages: [{ role: "user", content: text }] });
const wire = (name: string, parameters: object) => ({ type: "function", function: { name, parameters } });
const object = (properties: object, required = Object.keys(properties)) => ({ type: "object", properties, required });
const text = { type: "string" };
const weather = object({ city: text });

describe("signing in by device code", () => {
  const ask = async (path: string, body: object, headers: Record<string, string> = { accept: "application/json" }) =>
    fetch(`${demo.url}/login/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  const poll = async (client_id: string, device_code: string) =>
    json(ask("oauth/access_token", { client_id, device_code, grant_type }));

  for (const [client_id, token, scope] of [
    ["Iv1.b507a08c87ecfe98", "ghu_", ""],
    ["Ov23li8tweQw6odWQebz", "gho_", "read:user"],
  ] as const)
    test(`${client_id} waits, polls and gets a ${token} token`, async () => {
      const start = await json(ask("device/code", { client_id, scope: "read:user" }));
      expect(start).toMatchObject({ expires_in: 900, interval: 5, verification_uri: `${demo.url}/login/device` });
      expect(start.user_code).toMatch(/^\w{4}-\w{4}$/);
      clock += 5000;
      expect(await poll(client_id, start.device_code)).toMatchObject({ error: "authorization_pending" });
      clock += 5000;
      const done = await poll(client_id, start.device_code);
      expect(done).toMatchObject({ token_type: "bearer", scope });
      expect(done.access_token).toStartWith(token);
      expect(demo.accounts.map((one) => one.githubToken)).toContain(done.access_token);
    });

  test("who polls too early is told to slow down, with HTTP 200", async () => {
    const { device_code } = await json(ask("device/code", { client_id: "Iv1.x" }));
    clock += 1000;
    const answer = await ask("oauth/access_token", { client_id: "Iv1.x", device_code, grant_type });
    expect(answer.status).toBe(200);
    expect(await json(answer)).toMatchObject({ error: "slow_down", interval: 10 });
  });

  for (const outcome of ["access_denied", "expired_token"] as const)
    test(`${outcome} ends it`, async () => {
      demo.device.outcome = outcome;
      demo.device.pending = 0;
      const { device_code } = await json(ask("device/code", { client_id: "Iv1.x" }));
      clock += 5000;
      expect(await poll("Iv1.x", device_code)).toMatchObject({ error: outcome });
    });

  test("a code lives fifteen minutes", async () => {
    const { device_code } = await json(ask("device/code", { client_id: "Iv1.x" }));
    clock += 901_000;
    expect(await poll("Iv1.x", device_code)).toMatchObject({ error: "expired_token" });
  });

  test("without Accept: application/json the answer is a form", async () => {
    const answer = await ask("device/code", { client_id: "Iv1.x" }, { accept: "*/*" });
    expect(new URLSearchParams(await answer.text()).get("device_code")).toHaveLength(40);
  });

  test("an unknown application is not found", async () => {
    expect((await ask("device/code", { client_id: "nobody" })).status).toBe(404);
  });
});

describe("who am I and the token exchange", () => {
  const rest = (path: string, token: string) => fetch(demo.url + path, { headers: { authorization: token } });
  const exchange = (token: string) => rest("/copilot_internal/v2/token", token);

  test("a GitHub token names its owner; an unknown one is bad credentials", async () => {
    expect(await json(rest("/user", `Bearer ${account().githubToken}`))).toMatchObject({ login: "octo-demo" });
    const refused = await rest("/user", "token ghu_unknown");
    expect([refused.status, await refused.json()]).toEqual([
      401,
      { message: "Bad credentials", documentation_url: "https://docs.github.com/rest", status: "401" },
    ]);
  });

  for (const scheme of ["token", "Bearer"])
    test(`the exchange takes "${scheme}" and names the host of the plan`, async () => {
      const answer = await json(exchange(`${scheme} ${account("work-demo").githubToken}`));
      expect(answer).toMatchObject({ refresh_in: 1500, expires_at: clock / 1000 + 1800, individual: false });
      expect(answer.endpoints.api).toBe(demo.businessUrl);
      expect(answer.token).toMatch(/^tid=[0-9a-f]{32};exp=\d+;sku=.*:[0-9a-f]{64}$/);
    });

  test("a token of an OAuth app cannot be exchanged: 404", async () => {
    expect((await exchange(`token ${account("plus-demo").githubToken}`)).status).toBe(404);
  });

  for (const [fault, status, part] of [
    ["no_copilot_access", 403, "Signup for GitHub Copilot"],
    ["snippy_not_configured", 403, "snippy_not_configured"],
    ["billing_locked", 403, "billing_locked"],
    ["rate-limit", 403, "API rate limit exceeded"],
    ["revoked", 401, "Bad credentials"],
    ["502", 502, "<html>"],
    ["unreadable", 200, "expires_at"],
  ] as const)
    test(`the exchange can fail: ${fault}`, async () => {
      account().exchangeFault = fault;
      const answer = await exchange(`token ${account().githubToken}`);
      expect(answer.status).toBe(status);
      expect(await answer.text()).toContain(part);
    });

  test("a Copilot token is refused at its end, or at refresh_in for a strict account", async () => {
    const old = await bearer();
    const ask = (token: string) =>
      fetch(`${demo.url}/models`, { headers: { ...editor, authorization: `Bearer ${token}` } });
    clock += 1_799_000;
    expect((await ask(old)).status).toBe(200);
    clock += 1000;
    const refused = await ask(old);
    expect([refused.status, await refused.text()]).toEqual([401, "unauthorized: token expired\n"]);
    account().expiresEarly = true;
    const early = await bearer();
    clock += 1_500_000;
    expect((await ask(early)).status).toBe(401);
  });

  test("expireTokens refuses what was handed out so far, not what comes after", async () => {
    const old = await bearer();
    demo.expireTokens();
    const ask = (token: string) =>
      fetch(`${demo.url}/models`, { headers: { ...editor, authorization: `Bearer ${token}` } });
    expect([(await ask(old)).status, (await ask(await bearer())).status]).toEqual([401, 200]);
  });
});

describe("quota", () => {
  const report = (login = "octo-demo") =>
    json(
      fetch(`${demo.url}/copilot_internal/user`, { headers: { authorization: `token ${account(login).githubToken}` } }),
    );

  for (const [name, premium] of [
    ["pro", { entitlement: 300, remaining: 217, quota_remaining: 217.34, percent_remaining: 72.447, unlimited: false }],
    ["overdrawn", { entitlement: 300, remaining: -1, percent_remaining: -0.333 }],
    ["overage", { remaining: 0, overage_permitted: true, overage_count: 12.5 }],
    ["unlimited", { entitlement: 0, remaining: 0, percent_remaining: 100, unlimited: true }],
    ["tokenBilling", { entitlement: 0, remaining: 0, percent_remaining: 100, unlimited: false }],
    ["free", { entitlement: 50, remaining: 50, unlimited: false }],
  ] as const)
    test(`${name} shows its own numbers`, async () => {
      account().quota = quotas[name]();
      const answer = await report();
      expect(answer.quota_snapshots.premium_interactions).toMatchObject(premium);
      expect(answer.token_based_billing).toBe(name === "tokenBilling" ? true : undefined);
      expect(answer.quota_reset_date).toBe("2026-08-01");
    });

  test("the old free plan has no snapshots", async () => {
    account().quota = quotas.freeLegacy();
    const answer = await report();
    expect(answer.quota_snapshots).toBeUndefined();
    expect(answer).toMatchObject({
      limited_user_quotas: { chat: 450, completions: 4000 },
      monthly_quotas: { chat: 500, completions: 4000 },
      limited_user_reset_date: "2026-08-01",
    });
  });

  test("the host it states may contradict the token's", async () => {
    account().statedHost = "business";
    expect((await report()).endpoints.api).toBe(demo.businessUrl);
  });

  for (const [model, initiator, spent] of [
    ["claude-opus-4.6", "user", 3],
    ["claude-haiku-4.5", "user", 0.33],
    ["claude-opus-4.6", "agent", 0],
    ["claude-opus-4.6", undefined, 3],
    ["gpt-4.1", "user", 0],
  ] as const)
    test(`${model} asked by ${initiator ?? "nobody in particular"} costs ${spent}`, async () => {
      const answer = await chat({ model }, { headers: initiator && { "x-initiator": initiator } });
      expect(answer.status).toBe(200);
      expect(account().quota.premium.remaining).toBeCloseTo(217.34 - spent, 5);
      const header = new URLSearchParams(answer.headers.get("x-quota-snapshot-premium_interactions")!);
      expect(Number(header.get("rem"))).toBeCloseTo(((217.34 - spent) / 300) * 100, 0);
      expect(Object.fromEntries(header)).toMatchObject({ ent: "300", ovPerm: "false", rst: "2026-08-01T00:00:00Z" });
    });

  test("at nothing left a premium model is refused with 402, a free one and an agent's turn are not", async () => {
    account().quota = quotas.exhausted();
    const refused = await chat({ model: "claude-sonnet-4.5" });
    expect([refused.status, await refused.json()]).toEqual([
      402,
      { error: { message: "You have no quota", code: "quota_exceeded" } },
    ]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(86_400);
    expect((await chat({})).status).toBe(200);
    expect((await chat({ model: "claude-sonnet-4.5" }, { headers: { "x-initiator": "agent" } })).status).toBe(200);
  });

  test("paid overage goes on and is counted", async () => {
    account().quota = quotas.overage();
    expect((await chat({ model: "claude-sonnet-4.5" })).status).toBe(200);
    expect(account().quota.premium.overageCount).toBe(13.5);
  });

  test("unlimited is -1 in headers, and business spells the premium one premium_models", async () => {
    const answer = await chat({}, { login: "work-demo" });
    expect(new URLSearchParams(answer.headers.get("x-quota-snapshot-premium_models")!).get("ent")).toBe("-1");
  });

  test("under token billing every request costs credits, whoever asked", async () => {
    open({ generation: "B" });
    account().quota = quotas.credits();
    const answer = await json(chat({ model: "gpt-5-mini" }, { headers: { "x-initiator": "agent" } }));
    const credits = answer.copilot_usage.total_nano_aiu / 1e9;
    expect(credits).toBeGreaterThan(0);
    expect(account().quota.premium.remaining).toBeCloseTo(1100 - credits, 9);
  });
});

describe("the door of the model host", () => {
  const everything = { model: "gpt-4.1", ...say("hello") };
  // biome-ignore format: a table is read by its rows
  const strangers = [
    ["no Editor-Version", { "editor-version": "" }, 400, "bad request: missing Editor-Version header for IDE auth\n"],
    ["no Copilot-Integration-Id", { "copilot-integration-id": "" }, 403, "unauthorized: not authorized to use this Copilot feature\n"],
    ["an API version that is too old", { "x-github-api-version": "2022-11-28" }, 466, "bad request: the specified API version is no longer supported. You may need to update your client to a newer version.\n"],
    ["no token", { authorization: "" }, 401, "unauthorized\n"],
    ["a token nobody was given", { authorization: "Bearer tid=1" }, 401, "unauthorized: invalid token\n"],
    ["a GitHub token that may only be exchanged", { authorization: `Bearer ${demoAccounts()[0]!.githubToken}` }, 401, "unauthorized: invalid token\n"],
  ] as const;
  for (const [situation, headers, status, words] of strangers)
    test(`${situation}: ${status}`, async () => {
      const answer = await post("/chat/completions", everything, { headers });
      expect([answer.status, await answer.text()]).toEqual([status, words]);
      expect(answer.headers.get("content-type")).toStartWith("text/plain");
    });

  for (const path of ["/chat/completions", "/responses", "/v1/messages", "/embeddings"])
    test(`${path} of another plan's host: 421`, async () => {
      const answer = await post(path, everything, { host: demo.businessUrl });
      expect([answer.status, await answer.text()]).toEqual([421, "Misdirected Request\n"]);
    });

  test("/models of another plan's host: 421", async () => {
    const answer = await fetch(`${demo.url}/models`, {
      headers: { ...editor, authorization: `Bearer ${await bearer("work-demo")}` },
    });
    expect(answer.status).toBe(421);
  });

  test("a GitHub token of an OAuth app comes in directly, with no editor headers", async () => {
    expect((await chat({}, { login: "plus-demo" })).status).toBe(200);
  });

  test("answers carry ids of the request; our own is echoed", async () => {
    const answer = await chat({}, { headers: { "x-request-id": "abc" } });
    expect(answer.headers.get("x-request-id")).toBe("abc");
    expect(answer.headers.get("x-github-request-id")).toMatch(/^\w{4}:\w{6}:/);
  });

  test("ping, unknown paths, broken JSON", async () => {
    expect((await fetch(`${demo.url}/_ping`)).status).toBe(200);
    expect((await fetch(`${demo.url}/v1/models`)).status).toBe(404);
    const broken = await fetch(`${demo.url}/chat/completions`, {
      method: "POST",
      headers: { ...editor, authorization: `Bearer ${await bearer()}` },
      body: "{",
    });
    expect(broken.status).toBe(400);
  });
});

describe("models", () => {
  const list = async (login?: string): Promise<Wire[]> => {
    const host = account(login).host === "business" ? demo.businessUrl : demo.url;
    return (
      await json(fetch(`${host}/models`, { headers: { ...editor, authorization: `Bearer ${await bearer(login)}` } }))
    ).data;
  };
  const one = async (id: string) => (await list()).find((model) => model.id === id);

  test("generation A has the real shape", async () => {
    expect(await one("claude-sonnet-4.6")).toEqual({
      object: "model",
      id: "claude-sonnet-4.6",
      name: "Claude Sonnet 4.6",
      vendor: "Anthropic",
      version: "claude-sonnet-4.6",
      preview: false,
      is_chat_default: false,
      is_chat_fallback: false,
      model_picker_enabled: true,
      model_picker_category: "versatile",
      supported_endpoints: ["/chat/completions", "/v1/messages"],
      policy: { state: "enabled", terms: expect.any(String) },
      billing: {
        is_premium: true,
        multiplier: 1,
        restricted_to: ["pro", "pro_plus", "individual_trial", "business", "enterprise"],
      },
      capabilities: {
        object: "model_capabilities",
        type: "chat",
        family: "claude-sonnet-4.6",
        tokenizer: "o200k_base",
        limits: {
          max_context_window_tokens: 200000,
          max_prompt_tokens: 168000,
          max_output_tokens: 32000,
          max_non_streaming_output_tokens: 16000,
          vision: {
            max_prompt_image_size: 3145728,
            max_prompt_images: 5,
            supported_media_types: ["image/jpeg", "image/png", "image/webp"],
          },
        },
        supports: {
          streaming: true,
          tool_calls: true,
          parallel_tool_calls: true,
          structured_outputs: true,
          vision: true,
          adaptive_thinking: true,
          min_thinking_budget: 1024,
          max_thinking_budget: 32000,
          reasoning_effort: ["low", "medium", "high"],
        },
      },
    });
  });

  test("ids repeat, legacy models list no endpoints, hidden ones can be called", async () => {
    const ids = (await list()).map((model) => model.id);
    expect(ids.filter((id) => id === "gpt-4" || id === "gpt-4-o-preview")).toHaveLength(4);
    const legacy = await one("gpt-4.1");
    expect("supported_endpoints" in legacy).toBe(false);
    expect(legacy).toMatchObject({
      version: "gpt-4.1-2025-04-14",
      is_chat_default: true,
      billing: { is_premium: false, multiplier: 0 },
    });
    expect((await one("gpt-4o-mini")).model_picker_enabled).toBe(false);
    expect((await chat({ model: "gpt-4o-mini" })).status).toBe(200);
  });

  test("generation B prices tokens and knows no premium", async () => {
    open({ generation: "B" });
    expect((await one("claude-sonnet-4.6")).billing).toEqual({
      restricted_to: ["pro", "pro_plus", "individual_trial", "business", "enterprise", "max"],
      token_prices: {
        batch_size: 1_000_000,
        default: {
          cache_price: 30,
          cache_write_price: 375,
          context_max: 200_000,
          input_price: 300,
          output_price: 1500,
        },
        long_context: {
          cache_price: 30,
          cache_write_price: 375,
          context_max: 936_000,
          input_price: 300,
          output_price: 1500,
        },
      },
    });
    expect((await one("gpt-4o-mini-2024-07-18")).billing).toEqual({
      token_prices: { batch_size: 0, default: { cache_price: 0, input_price: 0, output_price: 0 } },
    });
  });

  test("generation C prices tokens under other names, with texts, tiers and promotions where a model has them", async () => {
    open({ generation: "C" });
    expect((await one("claude-opus-5.5")).billing).toEqual({
      restricted_to: ["pro", "pro_plus", "individual_trial", "business", "enterprise", "max"],
      auto_discount: 10,
      token_prices: {
        batch_size: 1_000_000,
        default: {
          cache_read_price: "25.0000",
          cache_write_price: "625.0000",
          cache_write_1h_price: "1000.0000",
          input_price: "500.0000",
          output_price: "2500.0000",
        },
      },
    });
    expect((await one("gpt-6-sol")).billing.token_prices).toEqual({
      batch_size: 1_000_000,
      default: {
        cache_read_price: 20,
        cache_write_price: 250,
        input_price: 200,
        output_price: 1000,
        max_prompt_tokens: 272_000,
      },
      long_context: {
        cache_read_price: 40,
        cache_write_price: 500,
        input_price: 400,
        output_price: 1500,
        max_prompt_tokens: 922_000,
      },
    });
    expect((await one("claude-sonnet-5")).billing.promo).toEqual({
      id: "demo-claude-sonnet-5",
      discount_percent: 50,
      ends_at: expect.any(String),
      message: expect.any(String),
      show_banner: true,
    });
    expect((await one("claude-haiku-4.5")).capabilities.supports).toMatchObject({
      tool_search: false,
      context_editing: true,
    });
  });

  test("the mixed generation has only the new name for the price of cached tokens", async () => {
    open({ generation: "mixed" });
    const { token_prices } = (await one("gpt-5.4")).billing;
    expect(token_prices.default).toEqual({
      cache_read_price: 25,
      context_max: 272_000,
      input_price: 250,
      output_price: 1500,
    });
  });

  test("every second list leaves out the unsteady ids of the options, which serve all the time", async () => {
    open({ unsteady: ["gpt-5-mini"] });
    const has = async () => (await one("gpt-5-mini")) !== undefined;
    expect([await has(), await has(), await has()]).toEqual([true, false, true]);
    expect((await chat({ model: "gpt-5-mini" })).status).toBe(200);
  });

  test("an answer states no charge where the upstream is told to leave it out", async () => {
    open({ drift: ["no-cost"] });
    const answer = await json(chat({ model: "gpt-5-mini" }));
    expect(answer).not.toHaveProperty("copilot_usage");
    expect(answer).toHaveProperty("usage");
  });

  test("accounts see different lists: by plan, and by their own", async () => {
    account("work-demo").models = ["gpt-4.1", "claude-haiku-4.5"];
    account().plan = "free";
    expect((await list("work-demo")).map((model) => model.id)).toEqual(["claude-haiku-4.5", "gpt-4.1"]);
    expect((await list()).map((model) => model.id)).not.toContain("claude-sonnet-4.6");
  });

  for (const [situation, body, code] of [
    ["an unknown model", { model: "gpt-9" }, "model_not_supported"],
    ["a model whose terms nobody accepted", { model: "gemini-3-pro-preview" }, "model_not_supported"],
    ["a model of another endpoint", { model: "gpt-5.3-codex" }, "unsupported_api_for_model"],
    ["an embeddings model", { model: "text-embedding-3-small" }, "unsupported_api_for_model"],
  ] as const)
    test(`${situation} is refused: ${code}`, async () => {
      const answer = await chat(body);
      expect(answer.status).toBe(400);
      expect((await json(answer)).error).toMatchObject({ code });
    });

  test("the refusal of a wrong endpoint names both", async () => {
    expect((await json(chat({ model: "gpt-5.3-codex" }))).error.message).toBe(
      'model "gpt-5.3-codex" is not accessible via the /chat/completions endpoint',
    );
  });

  test("accepting a model's terms opens it; a seat of an organisation may not", async () => {
    expect((await post("/models/gemini-3-pro-preview/policy", { state: "enabled" })).status).toBe(200);
    expect((await chat({ model: "gemini-3-pro-preview" })).status).toBe(200);
    expect(
      (await post("/models/gemini-3-pro-preview/policy", { state: "enabled" }, { login: "work-demo" })).status,
    ).toBe(403);
  });

  test("a preview model does not take a raw GitHub token", async () => {
    expect((await chat({ model: "gemini-3.1-pro-preview" }, { login: "plus-demo" })).status).toBe(400);
    expect((await chat({ model: "gemini-3.1-pro-preview" })).status).toBe(200);
  });
});

describe("chat, as GPT speaks it", () => {
  test("a whole answer has padding, a dated model, no object and no created", async () => {
    const answer = await json(chat(say("Grüße 漢字 🙂")));
    expect(answer).not.toHaveProperty("object");
    expect(answer).not.toHaveProperty("created");
    expect(answer.model).toBe("gpt-4.1-2025-04-14");
    const [choice] = answer.choices;
    expect(choice).toMatchObject({ finish_reason: "stop", index: 0 });
    expect(choice.message.padding).toBeString();
    expect(choice.message.content).toContain("DEMO");
    expect(choice.message.content).toContain("Grüße 漢字 🙂");
  });

  test("with calls the content key is absent", async () => {
    const { choices } = await json(chat({ ...say("the weather, please"), tools: [wire("get_weather", weather)] }));
    expect(choices[0].finish_reason).toBe("tool_calls");
    expect(choices[0].message).not.toHaveProperty("content");
    expect(choices[0].message.tool_calls[0]).toMatchObject({
      type: "function",
      function: { name: "get_weather", arguments: '{"city":"Paris"}' },
    });
  });

  test("a stream: empty first chunk, role, text, finish, usage without choices, [DONE]", async () => {
    const chunks = await events(chat({ stream: true, stream_options: { include_usage: true } }));
    expect(chunks[0]).toMatchObject({ choices: [], id: "", model: "", object: "" });
    expect(chunks[0].prompt_filter_results).toBeArray();
    expect(chunks[1].choices[0].delta).toEqual({ content: "", refusal: null, role: "assistant" });
    expect(chunks[1].usage).toBeNull();
    const finish = chunks.findIndex((chunk) => chunk.choices?.[0]?.finish_reason === "stop");
    expect(chunks[finish].choices[0].delta).toEqual({});
    expect(chunks[finish + 1]).toMatchObject({ choices: [], usage: { prompt_tokens: expect.any(Number) } });
    expect(chunks[finish + 2]).toMatchObject({ choices: [], copilot_usage: { total_nano_aiu: 0 } });
    expect(chunks.at(-1)).toBe("[DONE]");
    const whole = await json(chat({}));
    expect(chunks.map((chunk) => chunk.choices?.[0]?.delta?.content ?? "").join("")).toBe(
      whole.choices[0].message.content,
    );
    expect(chunks[finish + 1].usage).toEqual(whole.usage);
  });

  test("without include_usage there is none", async () => {
    const chunks = await events(chat({ stream: true }));
    expect(chunks.some((chunk) => chunk.usage !== undefined)).toBe(false);
  });

  test("parallel calls are numbered, the first delta names them", async () => {
    const tools = [wire("get_weather", weather)];
    const chunks = await events(chat({ ...say("weather in two cities"), tools, stream: true }));
    const deltas = chunks.flatMap((chunk) => chunk.choices?.[0]?.delta?.tool_calls ?? []);
    const named = deltas.filter((delta) => delta.id);
    expect(named.map((delta) => [delta.index, delta.function])).toEqual([
      [0, { arguments: "", name: "get_weather" }],
      [1, { arguments: "", name: "get_weather" }],
    ]);
    const written = [0, 1].map((index) =>
      deltas
        .filter((delta) => delta.index === index)
        .map((delta) => delta.function.arguments)
        .join(""),
    );
    expect(written).toEqual(['{"city":"Paris"}', '{"city":"Tokyo"}']);
  });

  test("reasoning is a summary under cot_summary, its id after the finish", async () => {
    const chunks = await events(chat({ model: "gpt-5-mini", reasoning_effort: "low", stream: true }));
    const summaries = chunks.filter((chunk) => chunk.choices?.[0]?.delta?.cot_summary);
    expect(summaries.length).toBeGreaterThan(1);
    const finish = chunks.findIndex((chunk) => chunk.choices?.[0]?.finish_reason);
    expect(chunks[finish + 1].choices[0].delta.cot_id).toBeString();
  });

  test("n answers have n indices", async () => {
    expect((await json(chat({ n: 2 }))).choices.map((choice: Wire) => choice.index)).toEqual([0, 1]);
  });
});

describe("chat, as Claude speaks it", () => {
  const model = "claude-sonnet-4.5";
  const tools = [wire("get_weather", weather)];

  test("a whole answer splits text and calls over choices without numbers", async () => {
    const answer = await json(chat({ model, ...say("weather in two cities"), tools }));
    expect(answer.id).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
    expect(answer.choices).toHaveLength(3);
    for (const choice of answer.choices) expect(choice).toMatchObject({ finish_reason: "tool_calls" });
    for (const choice of answer.choices) expect(choice).not.toHaveProperty("index");
    expect(answer.choices[0].message.content).toContain("get_weather");
    expect(answer.choices[1].message.tool_calls[0].id).toStartWith("toolu_bdrk_");
  });

  test("in a stream every call is number 0, and usage is in the finish chunk", async () => {
    const chunks = await events(
      chat({ model, ...say("weather in two cities"), tools, stream: true, thinking_budget: 2000 }),
    );
    const [finish, done] = chunks.slice(-2);
    expect(done).toBe("[DONE]");
    expect(finish.choices[0]).toEqual({ finish_reason: "tool_calls", index: 0, delta: { content: null } });
    expect(finish.usage.prompt_tokens).toBeNumber();
    const body = chunks.slice(0, -2);
    for (const chunk of chunks.slice(0, -1)) expect(chunk).not.toHaveProperty("object");
    for (const chunk of body) expect(chunk.choices[0].delta.role).toBe("assistant");
    const deltas = body.flatMap((chunk) => chunk.choices[0].delta.tool_calls ?? []);
    expect(new Set(deltas.map((delta) => `${delta.index} ${delta.type}`))).toEqual(new Set(["0 function"]));
    expect(new Set(deltas.map((delta) => delta.id).filter(Boolean)).size).toBe(2);
    const thinking = body.findIndex((chunk) => chunk.choices[0].delta.reasoning_opaque);
    expect(body[0].choices[0].delta.reasoning_text).toBeString();
    expect(body[thinking].choices[0].delta.content).toBe("");
    expect(body[thinking + 1].choices[0].delta.content).toStartWith("DEMO");
  });

  test("its own reasoning may be replayed, another's may not", async () => {
    const { choices } = await json(chat({ model, thinking_budget: 2000 }));
    const { reasoning_text, reasoning_opaque, content } = choices[0].message;
    const again = (opaque: string, thought: string) =>
      chat({
        model,
        messages: [
          { role: "user", content: "hello" },
          { role: "assistant", content, reasoning_text: thought, reasoning_opaque: opaque },
          { role: "user", content: "more" },
        ],
      });
    expect((await again(reasoning_opaque, reasoning_text)).status).toBe(200);
    expect((await again(reasoning_opaque, "changed")).status).toBe(400);
    expect((await again("Zm9yZWlnbg==", reasoning_text)).status).toBe(400);
  });

  test("a later turn reads from the cache up to a mark", async () => {
    const copilot_cache_control = { type: "ephemeral" };
    const first = { role: "user", content: "hello ".repeat(1000), copilot_cache_control };
    const usage = async (...messages: object[]) =>
      (await json(chat({ model, messages }))).usage.prompt_tokens_details.cached_tokens;
    expect(await usage(first)).toBe(0);
    const turns = [first, { role: "assistant", content: "hi" }, { role: "user", content: "more" }];
    expect(await usage(...turns)).toBeGreaterThan(1000);
    expect(await usage({ role: "system", content: "It is 12:01." }, ...turns)).toBe(0);
  });
});

test("Gemini is like GPT but shows its reasoning", async () => {
  const chunks = await events(chat({ model: "gemini-2.5-pro", ...say("think"), stream: true }));
  expect(chunks[0]).toMatchObject({
    object: "chat.completion.chunk",
    choices: [{ delta: { reasoning_text: expect.any(String) } }],
  });
  expect(chunks.some((chunk) => chunk.choices?.[0]?.delta?.reasoning_opaque)).toBe(true);
  const { message } = (await json(chat({ model: "gemini-2.5-pro", ...say("think") }))).choices[0];
  expect(message).toMatchObject({ reasoning_text: expect.any(String), reasoning_opaque: expect.any(String) });
});

describe("what chat refuses", () => {
  const image = { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }] };
  const call = { id: "a", type: "function", function: { name: "f", arguments: "{}" } };
  const many = Array.from({ length: 129 }, (_, index) => wire(`tool_${index}`, object({})));
  // biome-ignore format: a table is read by its rows
  const refusedChats = [
    ["pictures that no header announces", { messages: [image] }, "Bad Request\n"],
    ["max_tokens on a newer GPT", { model: "gpt-5-mini", max_tokens: 100 }, "max_completion_tokens"],
    ["an effort the model does not have", { model: "gpt-5-mini", reasoning_effort: "xhigh" }, "unsupported_value"],
    ["temperature with top_p on Claude", { model: "claude-haiku-4.5", temperature: 1, top_p: 1 }, "invalid_request_body"],
    ["an assistant's turn at the end on Claude", { model: "claude-haiku-4.5", messages: [{ role: "user", content: "a" }, { role: "assistant", content: "b" }] }, "prefill"],
    ["empty text on Claude", { model: "claude-haiku-4.5", messages: [{ role: "user", content: "" }] }, "non-empty"],
    ["a budget out of range", { model: "claude-haiku-4.5", thinking_budget: 10 }, "thinking_budget"],
    ["129 tools", { tools: many }, "too many tools"],
    ["a tool's name with a dot", { tools: [wire("a.b", object({}))] }, "Invalid tool name"],
    ["a tool result nobody asked for", { messages: [{ role: "user", content: "a" }, { role: "tool", tool_call_id: "x", content: "y" }] }, "invalid_request_body"],
    ["a call without its result", { messages: [{ role: "assistant", tool_calls: [call] }, { role: "user", content: "a" }] }, "invalid_request_body"],
    ["the developer role", { messages: [{ role: "developer", content: "a" }] }, "unsupported role"],
    ["a prompt that is too long", { model: "gpt-4o-mini", ...say("x".repeat(60_000)) }, "model_max_prompt_tokens_exceeded"],
    ["no messages", { messages: [] }, "invalid_request_body"],
  ] as const;
  for (const [situation, body, part] of refusedChats)
    test(situation, async () => {
      const answer = await chat(body);
      expect(answer.status).toBe(400);
      expect(await answer.text()).toContain(part);
    });

  test("pictures that are announced are taken", async () => {
    expect((await chat({ messages: [image] }, { headers: { "copilot-vision-request": "true" } })).status).toBe(200);
  });

  test("its JSON is labelled as text", async () => {
    const answer = await chat({ model: "gpt-9" });
    expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(await answer.text()).toEndWith("}\n");
  });
});

describe("what the model does when asked", () => {
  const folder = {
    role: "system",
    content: "Environment:\nPrimary working directory: /home/me/project\nIs a git repository: yes",
  };
  const call = async (tool: object, prompt: string) => {
    const { choices } = await json(chat({ messages: [folder, { role: "user", content: prompt }], tools: [tool] }));
    const made = choices[0].message.tool_calls?.[0];
    return made && JSON.parse(made.function.arguments);
  };
  const prompt = "write a file hello.txt with the text Hi there";

  // biome-ignore format: a table is read by its rows
  const writingTools = [
    ["Claude Code", "Write", object({ file_path: text, content: text }), { file_path: "/home/me/project/hello.txt", content: "Hi there" }],
    ["opencode", "write", object({ filePath: text, content: text }), { filePath: "/home/me/project/hello.txt", content: "Hi there" }],
    ["Codex", "exec_command", object({ cmd: text, workdir: text }, ["cmd"]), { cmd: "printf '%s\\n' 'Hi there' > hello.txt" }],
    ["an older Codex", "shell", object({ command: { type: "array", items: text } }), { command: ["bash", "-lc", "printf '%s\\n' 'Hi there' > hello.txt"] }],
    ["a client with bash", "bash", object({ command: text, description: text }), { command: "printf '%s\\n' 'Hi there' > hello.txt", description: "demo" }],
    ["Cline", "editor", object({ path: text, old_text: { anyOf: [text, { type: "null" }] }, new_text: text, insert_line: { type: "integer" } }, ["path", "new_text"]), { path: "/home/me/project/hello.txt", new_text: "Hi there" }],
    ["Cline without an editor", "run_commands", object({ commands: { type: "array", items: { anyOf: [text, object({ command: text })] } } }), { commands: ["printf '%s\\n' 'Hi there' > hello.txt"] }],
    ["an editor that replaces only", "edit", object({ path: text, old_string: text, new_string: text }), undefined],
    ["an editor tool", "str_replace_based_edit_tool_create", object({ command: { enum: ["view", "create"] }, path: text, file_text: text }), undefined],
    ["a patch function", "apply_patch", object({ input: text }), { input: "*** Begin Patch\n*** Add File: hello.txt\n+Hi there\n*** End Patch" }],
  ] as const;
  for (const [client, name, schema, expected] of writingTools)
    test(`a file is written with the tool of ${client}`, async () => {
      expect(await call(wire(name, schema), prompt)).toEqual(expected as never);
    });

  test("the words of Cline's user are taken out of what it puts around them", async () => {
    const editor = wire("editor", object({ path: text, new_text: text }));
    const said = `<user_input mode="act"><mode_notice>Now act.</mode_notice>${prompt}</user_input>`;
    expect(await call(editor, said)).toEqual({ path: "/home/me/project/hello.txt", new_text: "Hi there" });
  });

  for (const [wording, path, content] of [
    ['Create the file notes/a.md containing "# Title"', "notes/a.md", "# Title"],
    ["create a file called demo.py that says print(1)", "demo.py", "print(1)"],
    ["Please save 'it's fine' to out.txt", "out.txt", "it's fine"],
    ["Make hello.txt with content `Hi`", "hello.txt", "Hi"],
    ["Write the text hello world into the file out/a.txt", "out/a.txt", "hello world"],
    ["Create a file a.txt containing exactly: one two", "a.txt", "one two"],
    ["create empty.txt", "empty.txt", "Hello from DEMO"],
  ] as const)
    test(wording, async () => {
      expect(await call(wire("Write", object({ file_path: text, content: text })), wording)).toEqual({
        file_path: `/home/me/project/${path}`,
        content,
      });
    });

  for (const wording of ["write a summary of package.json", "read package.json and write about it", "hello"])
    test(`${wording}: nothing is written`, async () => {
      expect(await call(wire("Write", object({ file_path: text, content: text })), wording)).toBeUndefined();
    });

  test("a shell gets its quotes and folders right", async () => {
    expect(await call(wire("bash", object({ command: text })), 'save "it\'s fine" to notes/a.txt')).toEqual({
      command: "mkdir -p notes && printf '%s\\n' 'it'\\''s fine' > notes/a.txt",
    });
  });

  test("a writing tool is preferred to a shell, a shell to a patch", async () => {
    const tools = [
      wire("apply_patch", object({ input: text })),
      wire("bash", object({ command: text })),
      wire("write", object({ path: text, content: text })),
    ];
    const used = async (offered: object[]) =>
      (await json(chat({ ...say(prompt), tools: offered }))).choices[0].message.tool_calls[0].function.name;
    expect([await used(tools), await used(tools.slice(0, 2)), await used(tools.slice(0, 1))]).toEqual([
      "write",
      "bash",
      "apply_patch",
    ]);
  });

  test("reminders around the prompt are not the prompt", async () => {
    const content = [
      { type: "text", text: "<system-reminder>write a file x.txt</system-reminder>" },
      { type: "text", text: "hello" },
    ];
    const { choices } = await json(
      chat({ messages: [{ role: "user", content }], tools: [wire("write", object({ path: text, content: text }))] }),
    );
    expect(choices[0].message.content).toContain("“hello”");
  });

  test('"call NAME" calls it with what its schema requires', async () => {
    const schema = object(
      {
        when: { type: "string", format: "date" },
        level: { enum: ["low", "high"] },
        kind: { const: "k" },
        list: { type: "array", items: { type: "integer" } },
        inner: { $ref: "#/$defs/inner" },
        optional: text,
      },
      ["when", "level", "kind", "list", "inner"],
    );
    const parameters = {
      ...schema,
      $defs: { inner: object({ on: { type: "boolean" }, maybe: { anyOf: [{ type: "null" }, text] } }) },
    };
    expect(await call(wire("lookup", parameters), "call lookup please")).toEqual({
      when: "2026-01-31",
      level: "low",
      kind: "k",
      list: [1],
      inner: { on: true, maybe: "demo" },
    });
    expect(await call(wire("list_all", object({})), "call list_all")).toEqual({});
  });

  test("a tool that must be called is called, one that must not is not", async () => {
    const tools = [wire("get_weather", weather)];
    const finish = async (tool_choice: unknown) => (await json(chat({ tools, tool_choice }))).choices[0].finish_reason;
    expect(await finish({ type: "function", function: { name: "get_weather" } })).toBe("tool_calls");
    expect(await finish("required")).toBe("tool_calls");
    expect(await finish("auto")).toBe("stop");
    expect((await json(chat({ ...say("weather?"), tools, tool_choice: "none" }))).choices[0].finish_reason).toBe(
      "stop",
    );
    expect(
      (await json(chat({ ...say("weather in two cities"), tools, parallel_tool_calls: false }))).choices[0].message
        .tool_calls,
    ).toHaveLength(1);
  });

  test("after tool results it says what the tool said", async () => {
    const turns = [
      { role: "user", content: "the weather, please" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "a", type: "function", function: { name: "get_weather", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "a", content: "Sunny ☀️ 31°" },
    ];
    const { choices } = await json(chat({ messages: turns, tools: [wire("get_weather", weather)] }));
    expect(choices[0].finish_reason).toBe("stop");
    expect(choices[0].message.content).toContain("Sunny ☀️ 31°");
  });

  test("a schema for the answer is kept to", async () => {
    const json_schema = { name: "x", schema: object({ city: text, size: { type: "integer", minimum: 7 } }) };
    const { choices } = await json(chat({ response_format: { type: "json_schema", json_schema } }));
    expect(JSON.parse(choices[0].message.content)).toEqual({ city: "Paris", size: 7 });
  });

  test("stop sequences and token limits end it", async () => {
    const stopped = await json(chat({ stop: ["wrote"] }));
    expect(stopped.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "DEMO: Hello! 👋 You " } });
    const cut = await json(chat({ max_tokens: 3 }));
    expect(cut.choices[0]).toMatchObject({ finish_reason: "length", message: { content: "DEMO: Hello!" } });
  });
});

describe("responses", () => {
  const add = { type: "function", name: "get_weather", parameters: weather };
  const everything = { reasoning: { effort: "low", summary: "auto" }, include: ["reasoning.encrypted_content"] };
  const ask = (input: unknown) => ({ model: "gpt-5.1", ...everything, input, tools: [add] });

  test("the stream comes in order, each event numbered", async () => {
    const stream = await events(responses({ ...ask("weather?"), stream: true }));
    const order = stream
      .map((event) => event.type.replace("response.", ""))
      .filter((type, at, all) => type !== all[at - 1]);
    expect(order).toEqual([
      "created",
      "in_progress",
      "output_item.added",
      "reasoning_summary_part.added",
      "reasoning_summary_text.delta",
      "reasoning_summary_text.done",
      "reasoning_summary_part.done",
      "output_item.done",
      "output_item.added",
      "content_part.added",
      "output_text.delta",
      "output_text.done",
      "content_part.done",
      "output_item.done",
      "output_item.added",
      "function_call_arguments.delta",
      "function_call_arguments.done",
      "output_item.done",
      "completed",
    ]);
    expect(stream.map((event) => event.sequence_number)).toEqual(stream.map((_, at) => at));
    const end = stream.at(-1);
    expect(end.response.output.map((item: Wire) => item.type)).toEqual(["reasoning", "message", "function_call"]);
    expect(end.copilot_quota_snapshots.premium_interactions.entitlement).toBe("300");
    expect(end.copilot_usage.total_nano_aiu).toBeGreaterThan(0);
    expect(end.response.output_text).toBeNull();
  });

  test("event lines say the type", async () => {
    expect(await (await responses({ stream: true })).text()).toStartWith(
      'event: response.created\ndata: {"type":"response.created"',
    );
  });

  test("the same item has another id in every event", async () => {
    const stream = await events(responses({ ...ask("hello"), stream: true }));
    const ids = stream.filter((event) => event.output_index === 0).map((event) => event.item_id ?? event.item.id);
    expect(ids.length).toBeGreaterThan(5);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toHaveLength(416);
    expect(stream[0].response.id).toHaveLength(416);
  });

  test("usage is the same whole and streamed, and the model is dated", async () => {
    const whole = await json(responses(ask("weather?")));
    const end = (await events(responses({ ...ask("weather?"), stream: true }))).at(-1);
    expect(end.response.usage).toEqual(whole.usage);
    expect(whole).toMatchObject({ object: "response", status: "completed", model: "gpt-5.1-2025-11-13", store: false });
  });

  test("without a summary asked for there is none; without the include nothing is encrypted", async () => {
    const { output } = await json(responses({ model: "gpt-5.1", reasoning: { effort: "low" } }));
    expect(output[0]).toMatchObject({ type: "reasoning", summary: [] });
    expect(output[0]).not.toHaveProperty("encrypted_content");
  });

  test("functions come back strict, unless they say no", async () => {
    const { tools } = await json(responses({ tools: [add, { ...add, name: "loose", strict: false }] }));
    expect(tools[0]).toMatchObject({ strict: true, parameters: { additionalProperties: false } });
    expect(tools[1].parameters).not.toHaveProperty("additionalProperties");
  });

  test("a custom tool takes free text, in its own events", async () => {
    const stream = await events(
      responses({
        input: "write a file a.txt with the text Hi",
        tools: [{ type: "custom", name: "apply_patch" }],
        stream: true,
      }),
    );
    const patch = "*** Begin Patch\n*** Add File: a.txt\n+Hi\n*** End Patch";
    expect(
      stream
        .filter((event) => event.type === "response.custom_tool_call_input.delta")
        .map((event) => event.delta)
        .join(""),
    ).toBe(patch);
    expect(stream.at(-1).response.output[1]).toMatchObject({
      type: "custom_tool_call",
      name: "apply_patch",
      input: patch,
    });
  });

  test("tools may come in a namespace and as an input item; code mode writes a program", async () => {
    const tools = [{ type: "namespace", name: "functions", tools: [{ type: "custom", name: "exec" }] }];
    const input = [
      { type: "additional_tools", role: "developer", tools },
      {
        type: "message",
        role: "user",
        content: [{ type: "input_text", text: "<environment_context><cwd>/x</cwd></environment_context>" }],
      },
      { type: "message", role: "user", content: [{ type: "input_text", text: "write a file a.txt with the text Hi" }] },
    ];
    const { output } = await json(responses({ model: "gpt-5.3-codex", input }));
    expect(output[0].phase).toBe("commentary");
    expect(output[1]).toMatchObject({ type: "custom_tool_call", name: "exec", namespace: "functions" });
    expect(output[1].input).toContain("tools.exec_command");
  });

  test("a search is an item with a citation", async () => {
    const { output } = await json(responses({ input: "search the web for news", tools: [{ type: "web_search" }] }));
    expect(output.map((item: Wire) => item.type)).toEqual(["web_search_call", "message"]);
    expect(output[1].content[0].annotations[0].type).toBe("url_citation");
  });

  test("a token limit leaves it incomplete; a refusal is a part of its own", async () => {
    const cut = (await events(responses({ stream: true, max_output_tokens: 16 }))).at(-1);
    expect(cut).toMatchObject({
      type: "response.incomplete",
      response: { incomplete_details: { reason: "max_output_tokens" } },
    });
    const refused = await events(responses({ input: "[demo: refuse]", stream: true }));
    expect(refused.some((event) => event.type === "response.refusal.delta")).toBe(true);
  });

  describe("replayed items", () => {
    const turn = async (login?: string) => {
      const { output } = await json(responses(ask("weather?"), { login }));
      return output as Wire[];
    };
    const answered = (output: Wire[]) => [
      { role: "user", content: "weather?" },
      ...output,
      { type: "function_call_output", call_id: output.find((item) => item.call_id).call_id, output: "sunny" },
    ];

    test("come back to their own account", async () => {
      const answer = await responses(ask(answered(await turn())));
      expect(answer.status).toBe(200);
      expect(JSON.stringify(await answer.json())).toContain("sunny");
    });

    test("come back without ids, or with a short id of the client's own", async () => {
      const output = await turn();
      const bare = output.map(({ id, ...item }) => (item.type === "message" ? { ...item, id: "msg_123" } : item));
      expect((await responses(ask(answered(bare)))).status).toBe(200);
    });

    test("are another account's: 401 that is not about tokens", async () => {
      const answer = await responses(ask(answered(await turn())), { login: "plus-demo" });
      expect(answer.status).toBe(401);
      expect(await answer.text()).toContain("input item ID does not belong to this connection");
    });

    test("have an invented long id: string_above_max_length", async () => {
      const input = [
        { type: "message", role: "assistant", id: "x".repeat(65), content: [{ type: "output_text", text: "a" }] },
        { role: "user", content: "b" },
      ];
      expect((await json(responses({ input }))).error).toMatchObject({
        code: "string_above_max_length",
        message:
          "Invalid 'input[0].id': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
      });
    });

    test("have reasoning under another id: refused", async () => {
      const output = await turn();
      output[0].id = "rs_invented";
      expect((await json(responses(ask(answered(output))))).error.message).toMatch(
        /^The encrypted content for item rs_\w+ could not be verified. Reason: Encrypted content item_id did not match the target item id.$/,
      );
    });

    test("have reasoning of elsewhere: invalid_encrypted_content", async () => {
      const input = [
        { type: "reasoning", summary: [], encrypted_content: "gAAAAA" },
        { role: "user", content: "b" },
      ];
      expect((await json(responses({ input }))).error.code).toBe("invalid_encrypted_content");
    });
  });

  // biome-ignore format: a table is read by its rows
  const refusedResponses = [
    ["service_tier", { service_tier: "priority" }, "service_tier"],
    ["previous_response_id", { previous_response_id: "resp_1" }, "previous_response_not_found"],
    ["image_generation", { tools: [{ type: "image_generation" }] }, "image_generation"],
    ["an effort the model does not have", { model: "gpt-5.1", reasoning: { effort: "xhigh" } }, "unsupported_value"],
    ["temperature on Codex models", { model: "gpt-5.3-codex", temperature: 0.2 }, "temperature"],
    ["a reference to something stored", { input: [{ type: "item_reference", id: "rs_1" }] }, "not found"],
    ["metadata of a client on an item", { input: [{ role: "user", content: "a", internal_chat_message_metadata_passthrough: {} }] }, "Unknown parameter"],
    ["an output without its call", { input: [{ type: "function_call_output", call_id: "x", output: "y" }] }, "No tool call found"],
    ["a call without its output", { input: [{ type: "function_call", call_id: "x", name: "f", arguments: "{}" }] }, "No tool output found"],
    ["a body without input", { input: undefined }, "Missing required parameter"],
    ["a limit below 16 tokens", { max_output_tokens: 1 }, "integer_below_min_value"],
    ["a prompt that is too long", { model: "gpt-5-mini", input: "x".repeat(600_000) }, "model_max_prompt_tokens_exceeded"],
    ["a model that is not offered here", { model: "claude-sonnet-4.5" }, "unsupported_api_for_model"],
  ] as const;
  for (const [situation, body, part] of refusedResponses)
    test(`${situation} is refused`, async () => {
      const answer = await responses(body);
      expect(answer.status).toBeOneOf([400, 404]);
      expect(await answer.text()).toContain(part);
    });
});

describe("messages", () => {
  const tool = { name: "get_weather", description: "", input_schema: weather };
  const betas = (value: string) => ({ headers: { "anthropic-beta": value } });

  test("a whole answer: dated model, ids of its host, applied_edits always", async () => {
    const answer = await json(messages({ ...say("weather?"), tools: [tool] }));
    expect(answer).toMatchObject({
      type: "message",
      role: "assistant",
      model: "claude-sonnet-4-5-20250929",
      stop_reason: "tool_use",
      stop_sequence: null,
      context_management: { applied_edits: [] },
      copilot_usage: { total_nano_aiu: expect.any(Number) },
    });
    expect(answer.id).toStartWith("msg_bdrk_01");
    expect(answer.content[1]).toMatchObject({ type: "tool_use", name: "get_weather", input: { city: "Paris" } });
    expect(answer.content[1].id).toStartWith("toolu_bdrk_01");
  });

  test("a stream: blocks in order, a ping, usage corrected at the end", async () => {
    const thinking = { type: "enabled", budget_tokens: 2000 };
    const body = { thinking, ...say("weather in two cities"), tools: [tool] };
    const stream = await events(messages({ ...body, stream: true }));
    const types = stream.map((event) => event.type).filter((type) => type !== "content_block_delta");
    const block = ["content_block_start", "content_block_stop"];
    expect(types).toEqual([
      "message_start",
      "content_block_start",
      "ping",
      "content_block_stop",
      ...block,
      ...block,
      ...block,
      "message_delta",
      "message_stop",
    ]);
    expect(stream.filter((event) => event.content_block).map((event) => event.content_block.type)).toEqual([
      "thinking",
      "text",
      "tool_use",
      "tool_use",
    ]);
    expect(stream.some((event) => event.delta?.type === "signature_delta")).toBe(true);
    const [start, end] = [stream[0].message.usage, stream.at(-2).usage];
    expect(start.input_tokens).not.toBe(end.input_tokens);
    expect(end).toEqual((await json(messages(body))).usage);
    expect(stream.at(-2)).toMatchObject({
      delta: { stop_reason: "tool_use" },
      context_management: { applied_edits: [] },
    });
    const written = stream
      .filter((event) => event.index === 3 && event.delta)
      .map((event) => event.delta.partial_json)
      .join("");
    expect(JSON.parse(written)).toEqual({ city: "Tokyo" });
  });

  test("one of the hosts behind it has other ids and adds [DONE]", async () => {
    const stream = await events(messages({ model: "claude-opus-4.6", stream: true }));
    expect(stream[0].message.id).toStartWith("msg_vrtx_01");
    expect(stream.at(-1)).toBe("[DONE]");
  });

  test("input_tokens leaves out what was cached", async () => {
    const first = [
      { role: "user", content: [{ type: "text", text: "x".repeat(8000), cache_control: { type: "ephemeral" } }] },
    ];
    const wrote = (await json(messages({ messages: first }))).usage;
    expect(wrote.cache_creation_input_tokens).toBeGreaterThan(wrote.input_tokens);
    const later = (
      await json(
        messages({ messages: [...first, { role: "assistant", content: "a" }, { role: "user", content: "b" }] }),
      )
    ).usage;
    expect(later.cache_read_input_tokens).toBeGreaterThan(later.input_tokens);
  });

  test("thinking is replayed with its own signature, also when its text was omitted", async () => {
    const thinking = { type: "enabled", budget_tokens: 2000 };
    const { content } = await json(messages({ thinking }));
    const replay = (block: object) =>
      messages({
        thinking,
        messages: [
          { role: "user", content: "a" },
          { role: "assistant", content: [block, content[1]] },
          { role: "user", content: "b" },
        ],
      });
    expect((await replay(content[0])).status).toBe(200);
    expect((await replay({ ...content[0], thinking: "" })).status).toBe(200);
    for (const forged of [
      { ...content[0], thinking: "changed" },
      { ...content[0], signature: "" },
      { ...content[0], signature: "EqQB" },
    ]) {
      const answer = await replay(forged);
      expect(answer.status).toBe(400);
      expect((await json(answer)).error.message).toContain("Invalid `signature` in `thinking` block");
    }
  });

  test("adaptive thinking may be omitted or redacted", async () => {
    const adaptive = { model: "claude-sonnet-4.6", thinking: { type: "adaptive", display: "omitted" } };
    const { content } = await json(messages(adaptive));
    expect(content[0]).toMatchObject({ type: "thinking", thinking: "" });
    const redacted = await json(messages({ ...adaptive, ...say("[demo: redacted]") }));
    expect(redacted.content[0].type).toBe("redacted_thinking");
  });

  for (const [limits, reason] of [
    [{ max_tokens: 2 }, { stop_reason: "max_tokens" }],
    [{ stop_sequences: ["wrote"] }, { stop_reason: "stop_sequence", stop_sequence: "wrote" }],
    [say("[demo: refuse]"), { stop_reason: "refusal" }],
  ] as const)
    test(`it says why it ended: ${reason.stop_reason}`, async () => {
      expect(await json(messages(limits))).toMatchObject(reason);
    });

  test("a file is written into the folder its texts speak of", async () => {
    const content = [
      { type: "text", text: "<system-reminder>\nPrimary working directory: /srv/app\n</system-reminder>" },
      { type: "text", text: 'create hello.txt with content "Hi"' },
    ];
    const tools = [{ name: "Write", input_schema: object({ file_path: text, content: text }) }];
    expect((await json(messages({ messages: [{ role: "user", content }], tools }))).content[1].input).toEqual({
      file_path: "/srv/app/hello.txt",
      content: "Hi",
    });
  });

  test("tool results beside reminders are still the tool's turn", async () => {
    const turns = [
      { role: "user", content: "weather?" },
      { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "get_weather", input: {} }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", content: "Sunny" },
          { type: "text", text: "<system-reminder>be kind</system-reminder>" },
        ],
      },
    ];
    const answer = await json(messages({ messages: turns, tools: [tool] }));
    expect(answer.stop_reason).toBe("end_turn");
    expect(answer.content[0].text).toContain("Sunny");
  });

  const ephemeral = { type: "ephemeral" };
  const block = (more: object) => ({ messages: [{ role: "user", content: [{ type: "text", text: "a", ...more }] }] });
  const result = (content: unknown) => [{ type: "tool_result", tool_use_id: "t", content }];
  const used = (content: unknown) => [
    { role: "user", content: "a" },
    { role: "assistant", content: [{ type: "tool_use", id: "t", name: "get_weather", input: {} }] },
    { role: "user", content },
  ];
  // biome-ignore format: a table is read by its rows
  const refusedMessages = [
    ["cache_control.scope", { system: [{ type: "text", text: "a" }, { type: "text", text: "b" }, { type: "text", text: "c", cache_control: { ...ephemeral, scope: "global" } }] }, "system.2.cache_control.ephemeral.scope: Extra inputs are not permitted"],
    ["a cache_control of the whole body", { cache_control: ephemeral }, "cache_control: Extra inputs are not permitted"],
    ["context_management without its beta", { context_management: { edits: [] } }, "context_management: Extra inputs are not permitted"],
    ["an output_config inside a message", { messages: [{ role: "user", content: "a", output_config: {} }] }, "messages.0.output_config: Extra inputs are not permitted"],
    ["five marks", { messages: [{ role: "user", content: Array.from({ length: 5 }, () => ({ type: "text", text: "a", cache_control: ephemeral })) }] }, "A maximum of 4 blocks with cache_control may be provided. Found 5."],
    ["a mark inside a tool result", { messages: used(result([{ type: "text", text: "a", cache_control: ephemeral }])), tools: [tool] }, "cache_control may not be specified within `tool_result.content`"],
    ["eager_input_streaming", { tools: [{ ...tool, eager_input_streaming: true }] }, "tools.0.custom.eager_input_streaming: Extra inputs are not permitted"],
    ["defer_loading without its beta", { tools: [{ ...tool, defer_loading: true }] }, "tools.0.custom.defer_loading: Extra inputs are not permitted"],
    ["a server tool", { tools: [{ type: "bash_20250124", name: "bash" }] }, "bash_20250124"],
    ["$schema, where Opus is served", { model: "claude-opus-4.6", tools: [{ ...tool, input_schema: { ...weather, $schema: "x" } }] }, "tools.0.custom.input_schema.$schema: Extra inputs are not permitted"],
    ["a service_tier", { service_tier: "auto" }, "service_tier: Extra inputs are not permitted"],
    ["metadata of its own", { metadata: { user: "a" } }, "metadata.user: Extra inputs are not permitted"],
    ["an answer that is begun", { messages: [{ role: "user", content: "a" }, { role: "assistant", content: "b" }] }, "prefill"],
    ["empty text", block({ text: "" }), "text content blocks must be non-empty"],
    ["blank text", block({ text: " \n" }), "text content blocks must be non-empty"],
    ["the system role", { messages: [{ role: "system", content: "a" }, { role: "user", content: "b" }] }, "messages.0.role: Input should be 'user' or 'assistant'"],
    ["a tool result nobody asked for", { messages: [{ role: "user", content: result("a") }] }, "unexpected `tool_use_id`"],
    ["a call without its result", { messages: used("b"), tools: [tool] }, "`tool_use` ids were found without `tool_result` blocks"],
    ["a reference to a tool that is not there", { messages: used(result([{ type: "tool_reference", tool_name: "x" }])), tools: [tool] }, "Tool reference 'x' not found in available tools"],
    ["thinking with a forced tool", { thinking: { type: "enabled", budget_tokens: 1024 }, tools: [tool], tool_choice: { type: "any" } }, "Thinking may not be enabled when tool_choice forces tool use."],
    ["a budget as large as the answer", { max_tokens: 1024, thinking: { type: "enabled", budget_tokens: 1024 } }, "`max_tokens` must be greater than `thinking.budget_tokens`"],
    ["a budget that is too small", { thinking: { type: "enabled", budget_tokens: 1000 } }, "greater than or equal to 1024"],
    ["adaptive thinking on an older model", { thinking: { type: "adaptive" } }, "adaptive thinking is not supported on this model"],
    ["a display on an older model", { thinking: { type: "enabled", budget_tokens: 1024, display: "omitted" } }, "thinking.enabled.display: Extra inputs are not permitted"],
    ["an effort on an older model", { output_config: { effort: "low" } }, "does not support the effort parameter"],
    ["temperature with top_p", { temperature: 1, top_p: 0.5 }, "`temperature` and `top_p` cannot both be specified"],
    ["no max_tokens", { max_tokens: undefined }, "max_tokens: Field required"],
    ["more max_tokens than it has", { max_tokens: 128_000, stream: true }, "max_tokens: 128000 > 32000"],
    ["a long answer that is not streamed", { max_tokens: 20_000 }, "max_tokens: 20000 > 16000"],
    ["a prompt that is too long", say("x".repeat(700_000)), "prompt is too long: 206502 tokens > 168000 maximum"],
  ] as const;
  for (const [situation, body, words] of refusedMessages)
    test(`${situation} is refused in the words clients know`, async () => {
      const answer = await messages(body);
      expect(answer.status).toBe(400);
      expect((await json(answer)).error.message).toContain(words);
    });

  test("its refusals have Anthropic's form", async () => {
    expect(await json(messages({ service_tier: "auto" }))).toEqual({
      type: "error",
      error: { type: "invalid_request_error", message: "service_tier: Extra inputs are not permitted" },
      request_id: expect.stringMatching(/^req_/),
    });
  });

  test("an unknown beta is refused, known ones open their fields", async () => {
    expect(
      (await json(messages({}, betas("interleaved-thinking-2025-05-14,context-1m-2025-08-07")))).error.message,
    ).toStartWith("Unexpected value(s) `context-1m-2025-08-07` for the `anthropic-beta` header");
    expect((await messages({ context_management: { edits: [] } }, betas("context-management-2025-06-27"))).status).toBe(
      200,
    );
    expect(
      (await messages({ tools: [{ ...tool, defer_loading: true }] }, betas("advanced-tool-use-2025-11-20"))).status,
    ).toBe(200);
  });

  test("with a budget, the turn of a call must begin with thinking", async () => {
    const thinking = { type: "enabled", budget_tokens: 1500 };
    const tools = [{ name: "f", input_schema: { type: "object" } }];
    const asked = [{ role: "user", content: "Please think, then call f." }];
    const { content } = await json(messages({ max_tokens: 4000, thinking, tools, messages: asked }));
    const id = content.find(({ type }: Wire) => type === "tool_use").id;
    const goOn = (said: Wire[]) => {
      const result = { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "done" }] };
      return messages({
        max_tokens: 4000,
        thinking,
        tools,
        messages: [...asked, { role: "assistant", content: said }, result],
      });
    };
    expect((await goOn(content)).status).toBe(200);
    const forgetful = await goOn(content.filter(({ type }: Wire) => type !== "thinking"));
    expect([forgetful.status, await forgetful.text()]).toEqual([400, expect.stringContaining("Expected `thinking`")]);
  });

  test("web search is refused in the host's own form, as text", async () => {
    const answer = await messages({ tools: [{ type: "web_search_20250305", name: "web_search" }] });
    expect(answer.headers.get("content-type")).toStartWith("text/plain");
    expect(await json(answer)).toEqual({
      error: { message: "The use of the web search tool is not supported.", code: "unsupported_value" },
    });
  });

  test("a model that only thinks adaptively", async () => {
    open({ generation: "B" });
    const model = "claude-sonnet-5";
    const answer = await messages({ model, thinking: { type: "enabled", budget_tokens: 1024 } });
    expect((await json(answer)).error.message).toStartWith('"thinking.type.enabled" is not supported for this model.');
    expect((await messages({ model, thinking: { type: "adaptive" }, output_config: { effort: "max" } })).status).toBe(
      200,
    );
  });

  test("pictures in a tool result need the header too", async () => {
    const source = { type: "base64", media_type: "image/png", data: "AAAA" };
    const body = { messages: used(result([{ type: "image", source }])), tools: [tool] };
    const refused = await messages(body);
    expect([refused.status, await refused.text()]).toEqual([400, "Bad Request\n"]);
    expect((await messages(body, { headers: { "copilot-vision-request": "true" } })).status).toBe(200);
  });
});

describe("counting tokens", () => {
  const count = (
    body: object,
    headers: Record<string, string> = { "x-api-key": anthropicKey, "anthropic-version": "2023-06-01" },
  ) =>
    fetch(`${demo.url}/v1/messages/count_tokens`, {
      method: "POST",
      headers,
      body: JSON.stringify({ model: "claude-sonnet-4-5", ...say("hello there"), ...body }),
    });

  test("Anthropic's counter counts, and takes only what it knows", async () => {
    expect(await json(count({}))).toEqual({ input_tokens: 4 });
    expect((await json(count({ max_tokens: 5 }))).error.message).toBe("max_tokens: Extra inputs are not permitted");
    expect((await count({ model: "claude-sonnet-4.5" })).status).toBe(404);
    expect((await count({}, { "x-api-key": "wrong" })).status).toBe(401);
    expect((await count(say("[demo: 529]"))).status).toBe(529);
  });

  test("a hundred a minute are enough", async () => {
    const statuses = await Promise.all(Array.from({ length: 101 }, async () => (await count({})).status));
    expect(statuses.filter((status) => status === 429)).toHaveLength(1);
    clock += 60_000;
    expect((await count({})).status).toBe(200);
  });

  test("the model host has no such thing", async () => {
    expect((await post("/v1/messages/count_tokens", {})).status).toBe(404);
  });
});

describe("embeddings", () => {
  const embed = (body: object) => post("/embeddings", { model: "text-embedding-3-small", input: ["a", "b"], ...body });

  test("the same text has the same unit vector, of the size asked for", async () => {
    const answer = await json(embed({ dimensions: 64 }));
    expect(answer).toMatchObject({
      object: "list",
      model: "text-embedding-3-small",
      usage: { prompt_tokens: 2, total_tokens: 2 },
    });
    const [first, second] = answer.data;
    expect(first.embedding).toHaveLength(64);
    expect(Math.hypot(...first.embedding)).toBeCloseTo(1, 6);
    expect(first.embedding).not.toEqual(second.embedding);
    expect((await json(embed({ dimensions: 64 }))).data[0].embedding).toEqual(first.embedding);
    expect((await json(embed({}))).data[0].embedding).toHaveLength(1536);
  });

  for (const [situation, body] of [
    ["one string", { input: "a" }],
    ["numbers", { input: [[1, 2]] }],
    ["513 texts", { input: Array.from({ length: 513 }, () => "a") }],
    ["base64", { encoding_format: "base64" }],
    ["a size for a model of one size", { model: "text-embedding-ada-002", dimensions: 64 }],
    ["a chat model", { model: "gpt-4.1" }],
  ] as const)
    test(`${situation}: refused`, async () => {
      expect((await embed(body)).status).toBe(400);
    });
});

describe("failures on request", () => {
  for (const { name, what } of directives.filter((directive) => /^\d/.test(directive.name)))
    test(`[demo: ${name}] ${what}`, async () => {
      const answer = await chat(say(`please [demo: ${name}]`));
      expect(answer.status).toBe(Number.parseInt(name, 10));
      await answer.text();
    });

  test("429 and 402 say how long: in seconds, as a date, or not", async () => {
    const wait = async (directive: string) => (await chat(say(`[demo: ${directive}]`))).headers.get("retry-after");
    expect(await wait("429 17")).toBe("17");
    expect(await wait("429-date 60")).toBe("Mon, 20 Jul 2026 10:01:00 GMT");
    expect(await wait("429-silent")).toBeNull();
    expect(await wait("429-weekly")).toBe("187200");
    expect(await wait("402")).toBe("3600");
  });

  test("once, and on one account only", async () => {
    const status = async (directive: string, login?: string) =>
      (await chat(say(`[demo: ${directive}]`), { login })).status;
    expect([await status("500 once"), await status("500 once")]).toEqual([500, 200]);
    expect([await status("429 @work-demo"), await status("429 @work-demo", "work-demo")]).toEqual([200, 429]);
  });

  test("a directive of an earlier turn is over", async () => {
    const turns = [
      { role: "user", content: "[demo: 500]" },
      { role: "assistant", content: "a" },
      { role: "user", content: "b" },
    ];
    expect((await chat({ messages: turns })).status).toBe(200);
  });

  test("an unknown one is explained, and help lists them all", async () => {
    for (const directive of ["what", "help"]) {
      const { choices } = await json(chat(say(`[demo: ${directive}]`)));
      for (const { name } of directives) expect(choices[0].message.content).toContain(`[demo: ${name}`);
    }
  });

  const dialects = {
    chat: (directive: string, stream = true) => chat({ ...say(`[demo: ${directive}]`), stream }),
    responses: (directive: string, stream = true) => responses({ input: `[demo: ${directive}]`, stream }),
    messages: (directive: string, stream = true) => messages({ ...say(`[demo: ${directive}]`), stream }),
  };
  const ends = { chat: "[DONE]", responses: "response.completed", messages: "message_stop" };

  for (const [dialect, ask] of Object.entries(dialects)) {
    const end = ends[dialect as keyof typeof ends];
    describe(dialect, () => {
      test("cut: some events, then a reset", async () => {
        const reader = (await ask("cut")).body!.getReader();
        expect((await reader.read()).value!.length).toBeGreaterThan(0);
        const rest = async () => {
          while (!(await reader.read()).done);
        };
        await expect(rest()).rejects.toMatchObject({ code: "ECONNRESET" });
      });
      test("cut of a whole answer: a reset", async () => {
        await expect((async () => (await ask("cut", false)).text())()).rejects.toMatchObject({ code: "ECONNRESET" });
      });
      test("reset: no byte of a body", async () => {
        await expect((async () => (await ask("reset")).text())()).rejects.toThrow();
      });
      test("end: a clean end without the last event", async () => {
        const body = await (await ask("end")).text();
        expect(body.length).toBeGreaterThan(50);
        expect(body).not.toContain(end);
      });
      test("no-done, no-finish, after-done", async () => {
        expect(await (await ask("no-done")).text()).not.toContain(end);
        const finish = {
          chat: /"finish_reason":"stop"/,
          responses: /event: response.output_item.done/,
          messages: /message_delta/,
        };
        expect(await (await ask("no-finish")).text()).not.toMatch(finish[dialect as keyof typeof finish]);
        expect(await (await ask("after-done")).text()).toMatch(/"late":true/);
      });
      test("error-event and first-error come in the dialect's own form", async () => {
        const forms = {
          chat: { error: { code: "server_error" } },
          responses: { type: "error", code: "server_error" },
          messages: { type: "error", error: { type: "overloaded_error" } },
        };
        const form = forms[dialect as keyof typeof forms];
        const midway = await events(ask("error-event"));
        expect(midway.length).toBeGreaterThan(2);
        expect(midway.at(-1)).toMatchObject(form);
        expect(await events(ask("first-error"))).toMatchObject([form]);
        expect(await json(ask("first-error", false))).toMatchObject(form);
      });
      test("bad-json: one line cannot be read, the rest can", async () => {
        const body = await (await ask("bad-json")).text();
        expect(body).toContain('data: {"broken\n\n');
        expect(body).toContain(end);
        await expect(json(ask("bad-json", false))).rejects.toThrow();
      });
      test("ping: a line that means nothing, and everything else", async () => {
        const body = await (await ask("ping")).text();
        expect(body).toMatch(/^(: ping|event: ping)$/m);
        expect(body).toContain(end);
      });
      test("empty and html", async () => {
        expect([(await ask("empty")).status, await (await ask("empty")).text()]).toEqual([200, ""]);
        const page = await ask("html");
        expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html"]);
      });
      test("crlf and chop change packets, not content", async () => {
        const plain = (await events(ask("refuse"))).length;
        expect(await (await ask("refuse] [demo: crlf")).text()).toContain("\r\n\r\n");
        expect((await events(ask("refuse] [demo: crlf"))).length).toBe(plain);
        expect((await events(ask("refuse] [demo: chop 3"))).length).toBe(plain);
        const packets = (await ask("refuse] [demo: chop 2")).body!;
        expect((await Array.fromAsync(packets)).length).toBeGreaterThan(3);
      });
      test("long: as many pieces as asked for", async () => {
        const body = await (await ask("long 500")).text();
        expect(body).toContain("Line 500 of 500");
        expect(body.split("\n\n").length).toBeGreaterThan(500);
      });
    });
  }

  test("wrong-finish: calls that end as if they were text", async () => {
    const tools = [wire("get_weather", weather)];
    const { choices } = await json(chat({ ...say("weather? [demo: wrong-finish]"), tools }));
    expect([choices[0].finish_reason, choices[0].message.tool_calls.length]).toEqual(["stop", 1]);
  });

  test("no-output: the items were only streamed", async () => {
    const stream = await events(dialects.responses("no-output"));
    expect(stream.at(-1).response.output).toEqual([]);
    expect(stream.some((event) => event.type === "response.output_item.done")).toBe(true);
  });

  test("failed is response.failed", async () => {
    expect((await events(dialects.responses("failed"))).at(-1)).toMatchObject({
      type: "response.failed",
      response: { status: "failed" },
    });
  });

  test("silence is midway, slow-headers before everything", async () => {
    const [start, unloaded] = [performance.now(), unloadedNow()];
    const silent = await dialects.chat("silence 0.2");
    const headers = unloadedNow() - unloaded;
    expect((await events(silent)).at(-1)).toBe("[DONE]");
    expect(headers).toBeLessThan(150);
    expect(performance.now() - start).toBeGreaterThan(190);
    const slow = performance.now();
    await dialects.chat("slow-headers 0.2");
    expect(performance.now() - slow).toBeGreaterThan(190);
  });
});

describe("what a test can see and do", () => {
  const settled = async (condition: () => boolean) => {
    for (let tries = 0; tries < 100 && !condition(); tries += 1) await Bun.sleep(5);
    expect(condition()).toBe(true);
  };

  test("the journal has what arrived, byte for byte, and what became of it", async () => {
    const body = { model: "gpt-4.1", ...say("漢字"), unknown: 1 };
    await (await post("/chat/completions?beta=true", body, { headers: { "x-initiator": "agent" } })).text();
    const seen = demo.journal.at(-1)!;
    expect(seen).toMatchObject({
      host: "individual",
      method: "POST",
      path: "/chat/completions",
      query: "?beta=true",
      body,
      account: "octo-demo",
      status: 200,
    });
    expect(seen.headers["x-initiator"]).toBe("agent");
    expect(new TextDecoder().decode(seen.bytes)).toBe(JSON.stringify(body));
    expect(seen.aborted).toBeUndefined();
  });

  test("a journal can be kept short", async () => {
    open({ keep: 2 });
    for (let count = 0; count < 4; count += 1) await (await chat({})).text();
    expect(demo.journal).toHaveLength(2);
  });

  for (const situation of ["long 100000", "silence 60", "slow-headers 60"])
    test(`hanging up during [demo: ${situation}] arrives at once`, async () => {
      const controller = new AbortController();
      const answer = chat({ ...say(`[demo: ${situation}]`), stream: true }, { signal: controller.signal });
      answer.catch(() => {});
      await settled(() => demo.open === 1);
      if (!situation.startsWith("slow")) await (await answer).body!.getReader().read();
      controller.abort();
      await settled(() => demo.open === 0);
      expect(demo.journal.at(-1)!.aborted).toBe(clock);
    });

  test("open and peak count streams; a finished one is not an aborted one", async () => {
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => chat({ ...say("[demo: silence 0.05]"), stream: true })),
    );
    expect(demo.peak).toBe(5);
    await Promise.all(answers.map((answer) => answer.text()));
    expect(demo.open).toBe(0);
    expect(demo.journal.every((seen) => seen.aborted === undefined)).toBe(true);
  });

  test("an interceptor answers as often as it was asked to", async () => {
    demo.intercept("/chat/completions", () => new Response("no", { status: 418 }), 2);
    demo.intercept(/token$/, () => undefined);
    const statuses = [(await chat({})).status, (await chat({})).status, (await chat({})).status];
    expect(statuses).toEqual([418, 418, 200]);
    expect(demo.journal.filter((seen) => seen.status === 418)).toHaveLength(2);
  });

  test("an intercepted stream is open until it ends or its caller leaves", async () => {
    const endless = () => new Response(new ReadableStream({ start: (controller) => controller.enqueue("a") }));
    demo.intercept("/chat/completions", endless);
    demo.intercept("/chat/completions", () => new Promise<Response>(() => {}));
    for (const situation of ["a stream without end", "no answer at all"]) {
      const controller = new AbortController();
      const answer = chat({}, { signal: controller.signal });
      answer.catch(() => {});
      await settled(() => demo.open === 1);
      if (situation === "a stream without end") await (await answer).body!.getReader().read();
      controller.abort();
      await settled(() => demo.open === 0);
      expect(demo.journal.at(-1)!.aborted).toBe(clock);
    }
  });

  test("streams run side by side, and a pace slows them", async () => {
    open({ pace: 5 });
    const [start, unloaded] = [performance.now(), unloadedNow()];
    await Promise.all(Array.from({ length: 20 }, async () => (await chat({ stream: true })).text()));
    expect(performance.now() - start).toBeGreaterThan(50);
    expect(unloadedNow() - unloaded).toBeLessThan(1000);
  });

  test("stopping ends streams that would go on", async () => {
    const answer = await chat({ ...say("[demo: silence 60]"), stream: true });
    const start = unloadedNow();
    await demo.stop();
    expect(unloadedNow() - start).toBeLessThan(1000);
    await answer.text().catch(() => {});
  });
});
