/**
 * Scenario: what other tests lean on in the demo: the forms of its answers, what it refuses, its faults, and what it
 * lets a test see.
 */

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { version } from "../../package.json";
import { type DemoAccount, demoAccounts, quotas } from "../../src/demo/accounts";
import { type Demo, type DemoOptions, startDemo } from "../../src/demo/demo";
import { directives } from "../../src/demo/faults";

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
  "editor-version": `dragoman/${version}`,
  "copilot-integration-id": "vscode-chat",
  "x-github-api-version": "2026-06-01",
};
const account = (login = "octo-demo"): DemoAccount => demo.accounts.find((one) => one.login === login)!;
const rest = (path: string, token: string) => fetch(demo.url + path, { headers: { authorization: token } });
const exchange = (login = "octo-demo") => rest("/copilot_internal/v2/token", `token ${account(login).githubToken}`);
const json = async (answer: Response | Promise<Response>): Promise<Wire> => (await answer).json();

/** A Copilot token, or the GitHub token itself in direct mode. */
async function bearer(login = "octo-demo"): Promise<string> {
  const { githubToken } = account(login);
  return githubToken.startsWith("gho_") ? githubToken : (await json(exchange(login))).token;
}

interface Sending {
  login?: string;
  headers?: Record<string, string>;
  host?: string;
  signal?: AbortSignal;
}

async function post(path: string, body: unknown, { login, headers, host, signal }: Sending = {}): Promise<Response> {
  const { githubToken, host: own } = account(login);
  const authorization = `Bearer ${await bearer(login)}`;
  return fetch((host ?? (own === "business" ? demo.businessUrl : demo.url)) + path, {
    method: "POST",
    headers: { authorization, ...(!githubToken.startsWith("gho_") && editor), ...headers },
    body: JSON.stringify(body),
    signal,
  });
}

const chat = (body: object, sending?: Sending) =>
  post("/chat/completions", { model: "gpt-4.1", ...say("hello"), ...body }, sending);
const responses = (body: object, sending?: Sending) =>
  post("/responses", { model: "gpt-5.2", input: "hello", ...body }, sending);
const messages = (body: object, sending?: Sending) =>
  post("/v1/messages", { model: "claude-sonnet-4.5", max_tokens: 4000, ...say("hello"), ...body }, sending);
const embed = (body: object) => post("/embeddings", { model: "text-embedding-3-small", input: ["a", "b"], ...body });
/** The data of every event; `[DONE]` stays a string. */
async function events(answer: Response | Promise<Response>): Promise<Wire[]> {
  const lines = (await (await answer).text()).split(/\r?\n/).filter((line) => line.startsWith("data: "));
  return lines.map((line) => (line === "data: [DONE]" ? "[DONE]" : JSON.parse(line.slice(6))));
}

const say = (content: string) => ({ messages: [{ role: "user", content }] });
const object = (properties: object, required = Object.keys(properties)) => ({ type: "object", properties, required });
const text = { type: "string" };
const weather = object({ city: text });
const wire = (name: string, parameters: object) => ({ type: "function", function: { name, parameters } });
const chatTools = [wire("get_weather", weather)];
const tool = { name: "get_weather", description: "", input_schema: weather };
const listed = async (login?: string): Promise<Wire[]> => {
  const host = account(login).host === "business" ? demo.businessUrl : demo.url;
  const authorization = `Bearer ${await bearer(login)}`;
  return (await json(fetch(`${host}/models`, { headers: { ...editor, authorization } }))).data;
};
const model = async (id: string) => (await listed()).find((each) => each.id === id);

describe("GitHub", () => {
  test("exchanges the token of a GitHub App, not an OAuth app's, and names the host of the plan", async () => {
    const answer = await json(exchange("work-demo"));
    expect(answer).toMatchObject({ refresh_in: 1500, expires_at: clock / 1000 + 1800, individual: false });
    expect(answer.endpoints.api).toBe(demo.businessUrl);
    expect((await exchange("plus-demo")).status).toBe(404);
    account().githubToken = "ghu_another";
    expect((await rest("/copilot_internal/v2/token", `token ${demoAccounts()[0]!.githubToken}`)).status).toBe(401);
  });

  test("ends a Copilot token at its end, and when a test says so", async () => {
    const statusOf = async (token: string) =>
      (await fetch(`${demo.url}/models`, { headers: { ...editor, authorization: `Bearer ${token}` } })).status;
    const old = await bearer();
    clock += 1_799_000;
    expect(await statusOf(old)).toBe(200);
    clock += 1000;
    expect(await statusOf(old)).toBe(401);
    const next = await bearer();
    demo.expireTokens();
    expect([await statusOf(next), await statusOf(await bearer())]).toEqual([401, 200]);
  });
});

describe("a request is charged", () => {
  test.each([
    ["claude-opus-4.6", "user", 3],
    ["claude-haiku-4.5", "user", 0.33],
    ["claude-opus-4.6", "agent", 0],
    ["claude-opus-4.6", undefined, 3],
    ["gpt-4.1", "user", 0],
  ] as const)("%s asked by %p costs %d premium requests", async (id, initiator, spent) => {
    const answer = await chat({ model: id }, { headers: initiator && { "x-initiator": initiator } });
    expect(account().quota.premium.remaining).toBeCloseTo(217.34 - spent, 5);
    const header = new URLSearchParams(answer.headers.get("x-quota-snapshot-premium_interactions")!);
    expect(Number(header.get("rem"))).toBeCloseTo(((217.34 - spent) / 300) * 100, 0);
    expect(Object.fromEntries(header)).toMatchObject({ ent: "300", ovPerm: "false", rst: "2026-08-01T00:00:00Z" });
  });

  test("an empty quota refuses a person's premium request only; paid overage goes on and is counted", async () => {
    account().quota = quotas.exhausted();
    const refused = await chat({ model: "claude-sonnet-4.5" });
    expect([refused.status, (await json(refused)).error.code]).toEqual([402, "quota_exceeded"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(86_400);
    expect((await chat({})).status).toBe(200);
    expect((await chat({ model: "claude-sonnet-4.5" }, { headers: { "x-initiator": "agent" } })).status).toBe(200);
    account().quota = quotas.overage();
    expect((await chat({ model: "claude-sonnet-4.5" })).status).toBe(200);
    expect(account().quota.premium.overageCount).toBe(13.5);
  });
});

test("an account of Auto alone may leave the model out in chat, and nowhere else", async () => {
  account().auto = { only: true, protocols: ["omission"], pool: ["gpt-5-mini"] };
  const all = [chat, responses, messages].map(async (ask) => (await ask({ model: undefined })).status);
  expect(await Promise.all(all)).toEqual([200, 400, 400]);
});

describe("the model list", () => {
  // biome-ignore format: a table is read by its rows
  test.each([
    ["A", "claude-sonnet-4.6", { billing: { is_premium: true, multiplier: 1 } }],
    ["A", "gpt-4.1", { version: "gpt-4.1-2025-04-14", capabilities: { family: "gpt-4.1" }, billing: { is_premium: false, multiplier: 0 } }],
    ["C", "claude-opus-5.5", { model_picker_price_category: "high", billing: { auto_discount: 10, token_prices: { default: { cache_read_price: "20.0000", cache_write_1h_price: "800.0000" } } } }],
    ["C", "claude-fable-5.2", { model_picker_price_category: "very_high" }],
    ["C", "gpt-5.3-codex", { model_picker_price_category: "low" }],
    ["C", "gpt-6-sol", { model_picker_price_category: "medium", billing: { token_prices: { default: { input_price: 200, max_prompt_tokens: 272_000 }, long_context: { input_price: 400, max_prompt_tokens: 922_000 } } } }],
    ["C", "claude-sonnet-5.5", { billing: { promo: { id: "demo-claude-sonnet-5.5", discount_percent: 50 } } }],
    ["A", "gpt-41-copilot", { capabilities: { family: "gpt-4.1", type: "completion" } }],
  ] as const)("of generation %s states the price and the family of %s in its form", async (generation, id, stated) => {
    open({ generation });
    account().plan = "enterprise";
    expect(await model(id)).toMatchObject(stated);
  });

  test("differs by plan and by account", async () => {
    account("work-demo").models = ["gpt-4.1", "claude-haiku-4.5"];
    account().plan = "free";
    expect((await listed("work-demo")).map(({ id }) => id)).toEqual(["claude-haiku-4.5", "gpt-4.1"]);
    expect((await listed()).map(({ id }) => id)).not.toContain("claude-sonnet-4.6");
  });
});

const image = { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }] };
const call = { id: "a", type: "function", function: { name: "f", arguments: "{}" } };
const many = Array.from({ length: 129 }, (_, index) => wire(`tool_${index}`, object({})));
const begun = ["user", "assistant"].map((role) => ({ role, content: "a" }));
const mark = { type: "ephemeral" };
const block = (more: object) => ({ messages: [{ role: "user", content: [{ type: "text", text: "a", ...more }] }] });
const result = (content: unknown) => [{ type: "tool_result", tool_use_id: "t", content }];
const used = (content: unknown) => ({
  tools: [tool],
  messages: [
    { role: "user", content: "a" },
    { role: "assistant", content: [{ type: "tool_use", id: "t", name: "get_weather", input: {} }] },
    { role: "user", content },
  ],
});
const budget = (budget_tokens: number, more = {}) => ({ thinking: { type: "enabled", budget_tokens, ...more } });
const picture = [{ type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } }];
const chatOf = (headers: Record<string, string>) => () => chat({}, { headers });
const elsewhere = (path: string) => () => post(path, {}, { host: demo.businessUrl });

// biome-ignore format: a table is read by its rows
const refusals: [situation: string, send: () => Promise<Response>, status: number, words: string][] = [
  ["a request without Editor-Version", chatOf({ "editor-version": "" }), 400, "bad request: missing Editor-Version header for IDE auth\n"],
  ["a request without Copilot-Integration-Id", chatOf({ "copilot-integration-id": "" }), 403, "not authorized to use this Copilot feature"],
  ["an API version that is too old", chatOf({ "x-github-api-version": "2022-11-28" }), 466, "no longer supported"],
  ["a request without a token", chatOf({ authorization: "" }), 401, "unauthorized\n"],
  ["a token that was given to nobody", chatOf({ authorization: "Bearer tid=1" }), 401, "unauthorized: invalid token\n"],
  ["a GitHub token that must be exchanged", chatOf({ authorization: `Bearer ${demoAccounts()[0]!.githubToken}` }), 401, "invalid token"],
  ...["/chat/completions", "/responses", "/v1/messages", "/embeddings"].map((path): (typeof refusals)[number] => [`${path} of another plan's host`, elsewhere(path), 421, "Misdirected Request\n"]),
  ["an unknown path", () => fetch(`${demo.url}/v1/models`), 404, "not found"],

  ["an unknown model", () => chat({ model: "gpt-9" }), 400, "model_not_supported"],
  ["a model whose terms nobody accepted", () => chat({ model: "gemini-3-pro-preview" }), 400, "model_not_supported"],
  ["a model at another endpoint", () => chat({ model: "gpt-5.3-codex" }), 400, "is not accessible via the /chat/completions endpoint"],
  ["a preview model for a raw GitHub token", () => chat({ model: "gemini-3.1-pro-preview" }, { login: "plus-demo" }), 400, "model_not_supported"],
  ["chat: pictures that no header announces", () => chat({ messages: [image] }), 400, "Bad Request\n"],
  ["chat: max_tokens for a newer GPT", () => chat({ model: "gpt-5-mini", max_tokens: 100 }), 400, "max_completion_tokens"],
  ["chat: an effort that the model does not have", () => chat({ model: "gpt-5-mini", reasoning_effort: "xhigh" }), 400, "unsupported_value"],
  ["chat: temperature with top_p for Claude", () => chat({ model: "claude-haiku-4.5", temperature: 1, top_p: 1 }), 400, "invalid_request_body"],
  ["chat: a prefill for Claude", () => chat({ model: "claude-haiku-4.5", messages: begun }), 400, "prefill"],
  ["chat: an empty text for Claude", () => chat({ model: "claude-haiku-4.5", ...say("") }), 400, "non-empty"],
  ["chat: a budget out of range", () => chat({ model: "claude-haiku-4.5", thinking_budget: 10 }), 400, "thinking_budget"],
  ["chat: 129 tools", () => chat({ tools: many }), 400, "too many tools"],
  ["chat: a tool's name with a dot", () => chat({ tools: [wire("a.b", object({}))] }), 400, "Invalid tool name"],
  ["chat: a tool result without its call", () => chat({ messages: [...begun, { role: "tool", tool_call_id: "x", content: "y" }] }), 400, "no matching tool_calls"],
  ["chat: a call without its result", () => chat({ messages: [{ role: "assistant", tool_calls: [call] }, { role: "user", content: "a" }] }), 400, "without tool messages"],
  ["chat: the developer role", () => chat({ messages: [{ role: "developer", content: "a" }] }), 400, "unsupported role"],
  ["chat: a prompt that is too long", () => chat({ model: "gpt-4o-mini", ...say("x".repeat(60_000)) }), 400, "model_max_prompt_tokens_exceeded"],

  ["responses: service_tier", () => responses({ service_tier: "priority" }), 400, "Unknown parameter: 'service_tier'"],
  ["responses: previous_response_id", () => responses({ previous_response_id: "resp_1" }), 400, "previous_response_not_found"],
  ["responses: image_generation", () => responses({ tools: [{ type: "image_generation" }] }), 400, "image_generation is not supported"],
  ["responses: an effort that the model does not have", () => responses({ model: "gpt-5.1", reasoning: { effort: "xhigh" } }), 400, "unsupported_value"],
  ["responses: temperature for Codex models", () => responses({ model: "gpt-5.3-codex", temperature: 0.2 }), 400, "temperature"],
  ["responses: a reference to something stored", () => responses({ input: [{ type: "item_reference", id: "rs_1" }] }), 404, "not found"],
  ["responses: a client's metadata in an item", () => responses({ input: [{ role: "user", content: "a", internal_chat_message_metadata_passthrough: {} }] }), 400, "Unknown parameter"],
  ["responses: an output without its call", () => responses({ input: [{ type: "function_call_output", call_id: "x", output: "y" }] }), 400, "No tool call found"],
  ["responses: a call without its output", () => responses({ input: [{ type: "function_call", call_id: "x", name: "f", arguments: "{}" }] }), 400, "No tool output found"],
  ["responses: a body without input", () => responses({ input: undefined }), 400, "Missing required parameter"],
  ["responses: a limit below 16 tokens", () => responses({ max_output_tokens: 1 }), 400, "integer_below_min_value"],
  ["responses: an invented long id", () => responses({ input: [{ role: "assistant", id: "x".repeat(65), content: "a" }] }), 400, "Invalid 'input[0].id': string too long"],
  ["responses: reasoning of elsewhere", () => responses({ input: [{ type: "reasoning", encrypted_content: "gAAAAA" }] }), 400, "invalid_encrypted_content"],

  ["messages: a scope of a cache mark", () => messages({ system: [{ type: "text", text: "c", cache_control: { ...mark, scope: "global" } }] }), 400, "system.0.cache_control.ephemeral.scope: Extra inputs are not permitted"],
  ["messages: a cache mark of the whole body", () => messages({ cache_control: mark }), 400, "cache_control: Extra inputs are not permitted"],
  ["messages: context_management without its beta", () => messages({ context_management: { edits: [] } }), 400, "context_management: Extra inputs are not permitted"],
  ["messages: an unknown beta", () => messages({}, { headers: { "anthropic-beta": "interleaved-thinking-2025-05-14,context-1m-2025-08-07" } }), 400, "Unexpected value(s) `context-1m-2025-08-07`"],
  ["messages: five cache marks", () => messages({ messages: [{ role: "user", content: Array(5).fill({ type: "text", text: "a", cache_control: mark }) }] }), 400, "A maximum of 4 blocks with cache_control may be provided. Found 5."],
  ["messages: a mark inside a tool result", () => messages(used(result([{ type: "text", text: "a", cache_control: mark }]))), 400, "may not be specified within `tool_result.content`"],
  ["messages: eager_input_streaming", () => messages({ model: "claude-haiku-4.5", tools: [{ ...tool, eager_input_streaming: true }] }), 400, "tools.0.custom.eager_input_streaming: Extra inputs are not permitted"],
  ["messages: defer_loading without its beta", () => messages({ tools: [{ ...tool, defer_loading: true }] }), 400, "tools.0.custom.defer_loading: Extra inputs are not permitted"],
  ["messages: a server tool", () => messages({ tools: [{ type: "web_fetch_20250910", name: "web_fetch" }] }), 400, "web_fetch_20250910"],
  ["messages: web search, in the host's own form", () => messages({ tools: [{ type: "web_search_20250305", name: "web_search" }] }), 400, '"code":"unsupported_value"}}\n'],
  ["messages: $schema, where Opus is served", () => messages({ model: "claude-opus-4.6", tools: [{ ...tool, input_schema: { ...weather, $schema: "x" } }] }), 400, "tools.0.custom.input_schema.$schema: Extra inputs are not permitted"],
  ["messages: a service_tier", () => messages({ service_tier: "auto" }), 400, "service_tier: Extra inputs are not permitted"],
  ["messages: metadata of its own", () => messages({ metadata: { user: "a" } }), 400, "metadata.user: Extra inputs are not permitted"],
  ["messages: a prefill", () => messages({ messages: begun }), 400, "prefill"],
  ["messages: an empty text", () => messages(block({ text: "" })), 400, "text content blocks must be non-empty"],
  ["messages: a blank text", () => messages(block({ text: " \n" })), 400, "text content blocks must be non-empty"],
  ["messages: the system role", () => messages({ messages: [{ role: "system", content: "a" }] }), 400, "messages: Unexpected role"],
  ["messages: a tool result without its call", () => messages({ messages: [{ role: "user", content: result("a") }] }), 400, "unexpected `tool_use_id`"],
  ["messages: a call without its result", () => messages(used("b")), 400, "`tool_use` ids were found without `tool_result` blocks"],
  ["messages: a reference to no tool", () => messages(used(result([{ type: "tool_reference", tool_name: "x" }]))), 400, "Tool reference 'x' not found in available tools"],
  ["messages: a foreign signature", () => messages({ messages: [begun[0], { role: "assistant", content: [{ type: "thinking", thinking: "a", signature: "EqQB" }] }, begun[0]] }), 400, "Invalid `signature` in `thinking` block"],
  ["messages: thinking with a forced tool", () => messages({ ...budget(1024), tools: [tool], tool_choice: { type: "any" } }), 400, "Thinking may not be enabled when tool_choice forces tool use."],
  ["messages: a turn of calls without its thinking", () => messages({ ...budget(1024), ...used(result("a")) }), 400, "Expected `thinking` or `redacted_thinking`, but found"],
  ["messages: a budget as large as the answer", () => messages({ max_tokens: 1024, ...budget(1024) }), 400, "`max_tokens` must be greater than `thinking.budget_tokens`"],
  ["messages: a budget that is too small", () => messages(budget(1000)), 400, "greater than or equal to 1024"],
  ["messages: adaptive thinking for an older model", () => messages({ thinking: { type: "adaptive" } }), 400, "adaptive thinking is not supported on this model"],
  ["messages: a display for an older model", () => messages(budget(1024, { display: "omitted" })), 400, "thinking.enabled.display: Extra inputs are not permitted"],
  ["messages: an effort for an older model", () => messages({ output_config: { effort: "low" } }), 400, "does not support the effort parameter"],
  ["messages: temperature with top_p", () => messages({ temperature: 1, top_p: 0.5 }), 400, "`temperature` and `top_p` cannot both be specified"],
  ["messages: no max_tokens", () => messages({ max_tokens: undefined }), 400, "max_tokens: Field required"],
  ["messages: more max_tokens than the model has", () => messages({ max_tokens: 128_000, stream: true }), 400, "max_tokens: 128000 > 32000"],
  ["messages: a long answer that is not streamed", () => messages({ max_tokens: 20_000 }), 400, "max_tokens: 20000 > 16000"],
  ["messages: a prompt that is too long", () => messages(say("x".repeat(700_000))), 400, "prompt is too long: 206502 tokens > 168000 maximum"],
  ["messages: a picture in a tool result that no header announces", () => messages(used(result(picture))), 400, "Bad Request\n"],

  ["embeddings: one text that is no list", () => embed({ input: "a" }), 400, "array of strings"],
  ["embeddings: 513 texts", () => embed({ input: Array(513).fill("a") }), 400, "between 1 and 512"],
  ["embeddings: base64", () => embed({ encoding_format: "base64" }), 400, "encoding_format"],
  ["count_tokens at the model host of generation A", () => post("/v1/messages/count_tokens", {}), 404, "not found"],
  ["embeddings: a chat model", () => embed({ model: "gpt-4.1" }), 400, "unsupported_api_for_model"],
];

test.each(refusals)("%s is refused in the upstream's words", async (_, send, status, words) => {
  const answer = await send();
  expect([answer.status, await answer.text()]).toEqual([status, expect.stringContaining(words)]);
});

test("a refusal has the form of its API: JSON labelled as text, or Anthropic's", async () => {
  expect((await chat({ model: "gpt-9" })).headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expect(await json(messages({ service_tier: "auto" }))).toEqual({
    type: "error",
    error: { type: "invalid_request_error", message: "service_tier: Extra inputs are not permitted" },
    request_id: expect.stringMatching(/^req_/),
  });
});

// biome-ignore format: a table is read by its rows
const accepted: [situation: string, send: () => Promise<Response>][] = [
  ["a raw GitHub token of an OAuth app, without an editor's headers", () => chat({}, { login: "plus-demo" })],
  ["announced pictures", () => chat({ messages: [image] }, { headers: { "copilot-vision-request": "true" } })],
  ["announced pictures in a tool result", () => messages(used(result(picture)), { headers: { "copilot-vision-request": "true" } })],
  ["context_management with its beta", () => messages({ context_management: { edits: [] } }, { headers: { "anthropic-beta": "context-management-2025-06-27" } })],
  ["defer_loading with its beta", () => messages({ tools: [{ ...tool, defer_loading: true }] }, { headers: { "anthropic-beta": "advanced-tool-use-2025-11-20" } })],
  ["adaptive thinking of a newer model", () => messages({ model: "claude-sonnet-4.6", thinking: { type: "adaptive" }, output_config: { effort: "high" } })],
];

test.each(accepted)("the simulated upstream accepts %s", async (_, send) => {
  expect((await send()).status).toBe(200);
});

describe("an answer has the form of", () => {
  const cities = say("weather in two cities");

  test("GPT on chat: a dated model, no object; in a stream numbered calls, and usage without choices", async () => {
    const whole = await json(chat({}));
    expect([whole.object, whole.model]).toEqual([undefined, "gpt-4.1-2025-04-14"]);
    const chunks = await events(chat({ stream: true, stream_options: { include_usage: true } }));
    expect(chunks[0]).toMatchObject({ choices: [], id: "", prompt_filter_results: [{}] });
    expect(chunks[1]).toMatchObject({ usage: null, choices: [{ delta: { content: "", role: "assistant" } }] });
    const [finish, usage, cost, end] = chunks.slice(-4);
    expect([finish.choices[0].finish_reason, usage.usage, cost.choices, end]).toEqual([
      ...["stop", whole.usage, [], "[DONE]"],
    ]);
    const written = chunks.map((chunk) => chunk.choices?.[0]?.delta?.content ?? "").join("");
    expect(written).toBe(whole.choices[0].message.content);
    const calls = await events(chat({ ...cities, tools: chatTools, stream: true }));
    const deltas = calls.flatMap((chunk) => chunk.choices?.[0]?.delta?.tool_calls ?? []);
    expect(deltas.filter(({ id }) => id).map(({ index }) => index)).toEqual([0, 1]);
  });

  test("Claude on chat: each call in a choice of its own; in a stream every call is number 0", async () => {
    const asked = { model: "claude-sonnet-4.5", ...cities, tools: chatTools };
    const { choices } = await json(chat(asked));
    expect(choices.map((choice: Wire) => [choice.index, choice.finish_reason])).toEqual(
      Array(3).fill([undefined, "tool_calls"]),
    );
    const chunks = await events(chat({ ...asked, stream: true, thinking_budget: 2000 }));
    const calls = chunks.flatMap((chunk) => chunk.choices?.[0]?.delta?.tool_calls ?? []);
    expect(new Set(calls.map(({ index }) => index))).toEqual(new Set([0]));
    expect(new Set(calls.flatMap(({ id }) => id ?? [])).size).toBe(2);
    expect(chunks.at(-2)).toMatchObject({ choices: [{ finish_reason: "tool_calls" }], usage: {} });
    const gemini = await json(chat({ model: "gemini-2.5-pro", ...say("think") }));
    expect(Object.keys(gemini.choices[0].message)).toContain("reasoning_opaque");
  });

  test("responses: events in order and numbered, another id of the same item in each, usage at the end", async () => {
    const tools = [{ type: "function", name: "get_weather", parameters: weather }];
    const asked = { model: "gpt-5.1", reasoning: { effort: "low", summary: "auto" }, input: "weather?", tools };
    const stream = await events(responses({ ...asked, stream: true }));
    const order = stream.map(({ type }) => type.replace("response.", ""));
    expect(order.filter((type, at) => type !== order[at - 1])).toEqual([
      ...["created", "in_progress", "output_item.added", "reasoning_summary_part.added"],
      ...["reasoning_summary_text.delta", "reasoning_summary_text.done", "reasoning_summary_part.done"],
      ...["output_item.done", "output_item.added", "content_part.added", "output_text.delta", "output_text.done"],
      ...["content_part.done", "output_item.done", "output_item.added", "function_call_arguments.delta"],
      ...["function_call_arguments.done", "output_item.done", "completed"],
    ]);
    expect(stream.map(({ sequence_number }) => sequence_number)).toEqual(stream.map((_, at) => at));
    const ids = stream.filter((event) => event.output_index === 0).map((event) => event.item_id ?? event.item.id);
    expect([new Set(ids).size, ...new Set(ids.map(({ length }) => length))]).toEqual([ids.length, 416]);
    const whole = await json(responses(asked));
    expect(whole.usage).toEqual(stream.at(-1).response.usage);
    expect(whole).toMatchObject({ model: "gpt-5.1-2025-11-13", output_text: null, tools: [{ strict: true }] });
  });

  test("messages: blocks in order, a ping, usage corrected at the end, ids of the host", async () => {
    const asked = { ...budget(2000), ...cities, tools: [tool] };
    const stream = await events(messages({ ...asked, stream: true }));
    const whole = await json(messages(asked));
    expect(stream.filter(({ type }) => type !== "content_block_delta").map(({ type }) => type)).toEqual([
      ...["message_start", "content_block_start", "ping", "content_block_stop"],
      ...Array(3).fill(["content_block_start", "content_block_stop"]).flat(),
      ...["message_delta", "message_stop"],
    ]);
    expect(whole.content.map(({ type }: Wire) => type)).toEqual(["thinking", "text", "tool_use", "tool_use"]);
    expect(whole).toMatchObject({ model: "claude-sonnet-4-5-20250929", stop_reason: "tool_use", stop_sequence: null });
    expect([stream.at(-2).usage, whole.id]).toEqual([whole.usage, expect.stringMatching(/^msg_bdrk_01/)]);
    const opus = await events(messages({ model: "claude-opus-4.6", stream: true }));
    expect([opus[0].message.id, opus.at(-1)]).toEqual([expect.stringMatching(/^msg_vrtx_01/), "[DONE]"]);
  });

  test("embeddings: the same for the same text", async () => {
    const [first, second] = (await json(embed({ input: ["a", "a"], dimensions: 64 }))).data;
    expect(first.embedding).toEqual(second.embedding);
    expect([first.embedding.length, Math.hypot(...first.embedding)]).toEqual([64, expect.closeTo(1, 6)]);
  });
});

describe("the upstream remembers", () => {
  const input = [{ role: "user", content: "weather?" }];
  const tools = [{ type: "function", name: "get_weather", parameters: weather }];
  const asked = { model: "gpt-5.1", reasoning: { effort: "low" }, include: ["reasoning.encrypted_content"], tools };
  const turn = async () => {
    const { output } = await json(responses({ ...asked, input }));
    const { call_id } = output.find((item: Wire) => item.call_id);
    return [...input, ...output, { type: "function_call_output", call_id, output: "sunny" }];
  };
  const bare = ({ id, ...item }: Wire) => item;

  test.each([
    ["come back to their own account", (items: Wire[]) => items, "octo-demo", 200, "sunny"],
    ["come back without their ids", (items: Wire[]) => items.map(bare), "octo-demo", 200, "sunny"],
    [
      "of another account are refused",
      (items: Wire[]) => items,
      "plus-demo",
      401,
      "does not belong to this connection",
    ],
    [
      "with another id of their reasoning are refused",
      (items: Wire[]) => items.map((item) => (item.type === "reasoning" ? { ...item, id: "rs_x" } : item)),
      "octo-demo",
      400,
      "item_id did not match",
    ],
  ])("responses: items that %s", async (_, change, login, status, words) => {
    const answer = await responses({ ...asked, input: change(await turn()) }, { login });
    expect([answer.status, await answer.text()]).toEqual([status, expect.stringContaining(words)]);
  });

  test("its own thinking on messages, also when its text was omitted, and on chat", async () => {
    const { content } = await json(messages(budget(2000)));
    const replay = (first: object) =>
      messages({
        ...budget(2000),
        messages: [begun[0], { role: "assistant", content: [first, content[1]] }, begun[0]],
      });
    expect((await replay(content[0])).status).toBe(200);
    expect((await replay({ ...content[0], thinking: "" })).status).toBe(400);
    expect((await replay({ ...content[0], thinking: "changed" })).status).toBe(400);
    const adaptive = { thinking: { type: "adaptive", display: "omitted" }, model: "claude-sonnet-4.6" };
    const [omitted] = (await json(messages(adaptive))).content;
    expect([omitted.thinking, (await replay(omitted)).status]).toEqual(["", 200]);
    const asked = messages({ ...budget(2000), messages: [{ role: "user", content: "[demo: redacted] Hello" }] });
    const [hidden] = (await json(asked)).content;
    expect([(await replay(hidden)).status, (await replay({ ...hidden, data: "changed" })).status]).toEqual([200, 400]);
    const claude = { model: "claude-sonnet-4.5" };
    const { message } = (await json(chat({ ...claude, thinking_budget: 2000 }))).choices[0];
    const again = (more: object) => chat({ ...claude, messages: [begun[0], { ...message, ...more }, begun[0]] });
    expect([(await again({})).status, (await again({ reasoning_text: "changed" })).status]).toEqual([200, 400]);
  });
});

describe("the scripted model", () => {
  const folder = { role: "system", content: "Environment:\nPrimary working directory: /home/me/project\nGit: yes" };
  const calls = async (tools: object[], content: string): Promise<Wire> => {
    const { choices } = await json(chat({ messages: [folder, { role: "user", content }], tools }));
    const made = choices[0].message.tool_calls?.[0].function;
    return made && { [made.name]: JSON.parse(made.arguments) };
  };
  const file = "write a file hello.txt with the text Hi there";
  const path = "/home/me/project/hello.txt";
  const printed = "printf '%s\\n' 'Hi there' > hello.txt";
  const listOfTexts = { type: "array", items: text };

  // biome-ignore format: a table is read by its rows
  test.each([
    ["Claude Code", "Write", object({ file_path: text, content: text }), { file_path: path, content: "Hi there" }],
    ["Codex", "exec_command", object({ cmd: text, workdir: text }, ["cmd"]), { cmd: printed }],
    ["an older Codex", "shell", object({ command: listOfTexts }), { command: ["bash", "-lc", printed] }],
    ["a client with bash", "bash", object({ command: text, description: text }), { command: printed, description: "demo" }],
    ["Cline", "editor", object({ path: text, old_text: { anyOf: [text, { type: "null" }] }, new_text: text }, ["path", "new_text"]), { path, new_text: "Hi there" }],
    ["Cline without an editor", "run_commands", object({ commands: listOfTexts }), { commands: [printed] }],
    ["a patch function", "apply_patch", object({ input: text }), { input: "*** Begin Patch\n*** Add File: hello.txt\n+Hi there\n*** End Patch" }],
    ["an editor that only replaces, which cannot", "edit", object({ path: text, old_string: text, new_string: text }), undefined],
  ])("the scripted model writes a file with the tool of %s", async (_, name, schema, expected) => {
    expect(await calls([wire(name, schema)], file)).toEqual(expected && { [name]: expected });
  });

  test("calls a tool with what its schema requires, if it is named or must be called", async () => {
    const inner = object({ on: { type: "boolean" }, maybe: { anyOf: [{ type: "null" }, text] } });
    const members = { when: { type: "string", format: "date" }, level: { enum: ["low", "high"] }, many: listOfTexts };
    const schema = { ...object({ ...members, inner: { $ref: "#/$defs/inner" } }), $defs: { inner } };
    expect(await calls([wire("lookup", schema)], "call lookup please")).toEqual({
      lookup: { when: "2026-01-31", level: "low", many: ["demo"], inner: { on: true, maybe: "demo" } },
    });
    const finish = async (tool_choice: unknown) =>
      (await json(chat({ tools: chatTools, tool_choice }))).choices[0].finish_reason;
    expect([await finish("required"), await finish("auto")]).toEqual(["tool_calls", "stop"]);
  });
});

describe("a fault on request", () => {
  test.each(directives.filter(({ name }) => /^\d/.test(name)).map(({ name, what }) => [name, what]))(
    "[demo: %s] answers with %s",
    async (name) => {
      const answer = await chat(say(`please [demo: ${name}]`));
      expect(answer.status).toBe(Number.parseInt(name, 10));
    },
  );

  test("a fault on request says how long to wait, applies once or to one account, and is over after its turn", async () => {
    const ask = (directive: string, login?: string) => chat(say(`[demo: ${directive}]`), { login });
    const wait = async (directive: string) => (await ask(directive)).headers.get("retry-after");
    expect(await Promise.all(["429 17", "429-silent", "402"].map(wait))).toEqual(["17", null, "3600"]);
    expect([(await ask("500 once")).status, (await ask("500 once")).status]).toEqual([500, 200]);
    const one = "429 @work-demo";
    expect([(await ask(one)).status, (await ask(one, "work-demo")).status]).toEqual([200, 429]);
    const later = [{ role: "user", content: "[demo: 500]" }, { role: "assistant", content: "a" }, begun[0]];
    expect((await chat({ messages: later })).status).toBe(200);
    const help = (await json(ask("what"))).choices[0].message.content;
    for (const { name } of directives) expect(help).toContain(`[demo: ${name}`);
  });

  const dialects = {
    chat: (directive: string, stream = true) => chat({ ...say(`[demo: ${directive}]`), stream }),
    responses: (directive: string, stream = true) => responses({ input: `[demo: ${directive}]`, stream }),
    messages: (directive: string, stream = true) => messages({ ...say(`[demo: ${directive}]`), stream }),
  };
  const error = { type: "overloaded_error" };

  test.each([
    ["chat", "[DONE]", /"finish_reason":"stop"/, { error: { code: "server_error" } }],
    ["responses", "response.completed", /event: response.output_item.done/, { type: "error", code: "server_error" }],
    ["messages", "message_stop", /message_delta/, { type: "error", error }],
  ] as const)(
    "faults on request of %s break the connection, leave out the end, or say an error or what means nothing",
    async (dialect, end, finish, form) => {
      const ask = dialects[dialect];
      const said = async (directive: string, stream = true) => (await ask(directive, stream)).text();
      for (const cut of [() => said("reset"), () => said("cut"), () => said("cut", false)])
        await expect(cut()).rejects.toMatchObject({ code: "ECONNRESET" });
      for (const left of ["end", "no-done"]) expect(await said(left)).not.toContain(end);
      expect(await said("no-finish")).not.toMatch(finish);
      expect(await said("after-done")).toContain('"late":true');
      expect((await events(ask("error-event"))).at(-1)).toMatchObject(form);
      expect(await events(ask("first-error"))).toMatchObject([form]);
      expect(await said("bad-json")).toContain('data: {"broken\n\n');
      expect(await said("ping")).toMatch(/^(: ping|event: ping)$/m);
    },
  );
});
