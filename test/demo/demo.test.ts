/**
 * Scenario: what other tests lean on in the demo: the forms of its answers, what it refuses, its faults, and what it
 * lets a test see.
 */

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { version } from "../../package.json";
import { type DemoAccount, demoAccounts, quotas } from "../../src/demo/accounts";
import { type Demo, type DemoOptions, startDemo } from "../../src/demo/demo";
import { directives } from "../../src/demo/faults";
import { testWritten } from "../support/written";

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

test("an account of Auto alone may leave the model out in chat, and nowhere else", async () => {
  account().auto = { only: true, protocols: ["omission"], pool: ["gpt-5-mini"] };
  const all = [chat, responses, messages].map(async (ask) => (await ask({ model: undefined })).status);
  expect(await Promise.all(all)).toEqual([200, 400, 400]);
});

describe("the model list", () => {
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
const refusals: [situation: string, send: () => Promise<Response>][] = [
  ["a request without Editor-Version", chatOf({ "editor-version": "" })],
  ["a request without Copilot-Integration-Id", chatOf({ "copilot-integration-id": "" })],
  ["an API version that is too old", chatOf({ "x-github-api-version": "2022-11-28" })],
  ["a request without a token", chatOf({ authorization: "" })],
  ["a token that was given to nobody", chatOf({ authorization: "Bearer tid=1" })],
  ["a GitHub token that must be exchanged", chatOf({ authorization: `Bearer ${demoAccounts()[0]!.githubToken}` })],
  ...["/chat/completions", "/responses", "/v1/messages", "/embeddings"].map((path): (typeof refusals)[number] => [`${path} of another plan's host`, elsewhere(path)]),
  ["an unknown path", () => fetch(`${demo.url}/v1/models`)],

  ["an unknown model", () => chat({ model: "gpt-9" })],
  ["a model whose terms nobody accepted", () => chat({ model: "gemini-3-pro-preview" })],
  ["a model at another endpoint", () => chat({ model: "gpt-5.3-codex" })],
  ["a preview model for a raw GitHub token", () => chat({ model: "gemini-3.1-pro-preview" }, { login: "plus-demo" })],
  ["chat: pictures that no header announces", () => chat({ messages: [image] })],
  ["chat: max_tokens for a newer GPT", () => chat({ model: "gpt-5-mini", max_tokens: 100 })],
  ["chat: an effort that the model does not have", () => chat({ model: "gpt-5-mini", reasoning_effort: "xhigh" })],
  ["chat: temperature with top_p for Claude", () => chat({ model: "claude-haiku-4.5", temperature: 1, top_p: 1 })],
  ["chat: a prefill for Claude", () => chat({ model: "claude-haiku-4.5", messages: begun })],
  ["chat: an empty text for Claude", () => chat({ model: "claude-haiku-4.5", ...say("") })],
  ["chat: a budget out of range", () => chat({ model: "claude-haiku-4.5", thinking_budget: 10 })],
  ["chat: 129 tools", () => chat({ tools: many })],
  ["chat: a tool's name with a dot", () => chat({ tools: [wire("a.b", object({}))] })],
  ["chat: a tool result without its call", () => chat({ messages: [...begun, { role: "tool", tool_call_id: "x", content: "y" }] })],
  ["chat: a call without its result", () => chat({ messages: [{ role: "assistant", tool_calls: [call] }, { role: "user", content: "a" }] })],
  ["chat: the developer role", () => chat({ messages: [{ role: "developer", content: "a" }] })],
  ["chat: a prompt that is too long", () => chat({ model: "gpt-4o-mini", ...say("x".repeat(60_000)) })],

  ["responses: service_tier", () => responses({ service_tier: "priority" })],
  ["responses: previous_response_id", () => responses({ previous_response_id: "resp_1" })],
  ["responses: image_generation", () => responses({ tools: [{ type: "image_generation" }] })],
  ["responses: an effort that the model does not have", () => responses({ model: "gpt-5.1", reasoning: { effort: "xhigh" } })],
  ["responses: temperature for Codex models", () => responses({ model: "gpt-5.3-codex", temperature: 0.2 })],
  ["responses: a reference to something stored", () => responses({ input: [{ type: "item_reference", id: "rs_1" }] })],
  ["responses: a client's metadata in an item", () => responses({ input: [{ role: "user", content: "a", internal_chat_message_metadata_passthrough: {} }] })],
  ["responses: an output without its call", () => responses({ input: [{ type: "function_call_output", call_id: "x", output: "y" }] })],
  ["responses: a call without its output", () => responses({ input: [{ type: "function_call", call_id: "x", name: "f", arguments: "{}" }] })],
  ["responses: a body without input", () => responses({ input: undefined })],
  ["responses: a limit below 16 tokens", () => responses({ max_output_tokens: 1 })],
  ["responses: an invented long id", () => responses({ input: [{ role: "assistant", id: "x".repeat(65), content: "a" }] })],
  ["responses: reasoning of elsewhere", () => responses({ input: [{ type: "reasoning", encrypted_content: "gAAAAA" }] })],

  ["messages: a scope of a cache mark", () => messages({ system: [{ type: "text", text: "c", cache_control: { ...mark, scope: "global" } }] })],
  ["messages: a cache mark of the whole body", () => messages({ cache_control: mark })],
  ["messages: context_management without its beta", () => messages({ context_management: { edits: [] } })],
  ["messages: an unknown beta", () => messages({}, { headers: { "anthropic-beta": "interleaved-thinking-2025-05-14,context-1m-2025-08-07" } })],
  ["messages: five cache marks", () => messages({ messages: [{ role: "user", content: Array(5).fill({ type: "text", text: "a", cache_control: mark }) }] })],
  ["messages: a mark inside a tool result", () => messages(used(result([{ type: "text", text: "a", cache_control: mark }])))],
  ["messages: eager_input_streaming", () => messages({ model: "claude-haiku-4.5", tools: [{ ...tool, eager_input_streaming: true }] })],
  ["messages: defer_loading without its beta", () => messages({ tools: [{ ...tool, defer_loading: true }] })],
  ["messages: a server tool", () => messages({ tools: [{ type: "web_fetch_20250910", name: "web_fetch" }] })],
  ["messages: web search, in the host's own form", () => messages({ tools: [{ type: "web_search_20250305", name: "web_search" }] })],
  ["messages: $schema, where Opus is served", () => messages({ model: "claude-opus-4.6", tools: [{ ...tool, input_schema: { ...weather, $schema: "x" } }] })],
  ["messages: a service_tier", () => messages({ service_tier: "auto" })],
  ["messages: metadata of its own", () => messages({ metadata: { user: "a" } })],
  ["messages: a prefill", () => messages({ messages: begun })],
  ["messages: an empty text", () => messages(block({ text: "" }))],
  ["messages: a blank text", () => messages(block({ text: " \n" }))],
  ["messages: the system role", () => messages({ messages: [{ role: "system", content: "a" }] })],
  ["messages: a tool result without its call", () => messages({ messages: [{ role: "user", content: result("a") }] })],
  ["messages: a call without its result", () => messages(used("b"))],
  ["messages: a reference to no tool", () => messages(used(result([{ type: "tool_reference", tool_name: "x" }])))],
  ["messages: a foreign signature", () => messages({ messages: [begun[0], { role: "assistant", content: [{ type: "thinking", thinking: "a", signature: "EqQB" }] }, begun[0]] })],
  ["messages: thinking with a forced tool", () => messages({ ...budget(1024), tools: [tool], tool_choice: { type: "any" } })],
  ["messages: a turn of calls without its thinking", () => messages({ ...budget(1024), ...used(result("a")) })],
  ["messages: a budget as large as the answer", () => messages({ max_tokens: 1024, ...budget(1024) })],
  ["messages: a budget that is too small", () => messages(budget(1000))],
  ["messages: adaptive thinking for an older model", () => messages({ thinking: { type: "adaptive" } })],
  ["messages: a display for an older model", () => messages(budget(1024, { display: "omitted" }))],
  ["messages: an effort for an older model", () => messages({ output_config: { effort: "low" } })],
  ["messages: temperature with top_p", () => messages({ temperature: 1, top_p: 0.5 })],
  ["messages: no max_tokens", () => messages({ max_tokens: undefined })],
  ["messages: more max_tokens than the model has", () => messages({ max_tokens: 128_000, stream: true })],
  ["messages: a long answer that is not streamed", () => messages({ max_tokens: 20_000 })],
  ["messages: a prompt that is too long", () => messages(say("x".repeat(700_000)))],
  ["messages: a picture in a tool result that no header announces", () => messages(used(result(picture)))],

  ["embeddings: one text that is no list", () => embed({ input: "a" })],
  ["embeddings: 513 texts", () => embed({ input: Array(513).fill("a") })],
  ["embeddings: base64", () => embed({ encoding_format: "base64" })],
  ["count_tokens at the model host of generation A", () => post("/v1/messages/count_tokens", {})],
  ["embeddings: a chat model", () => embed({ model: "gpt-4.1" })],
];

// biome-ignore format: a table is read by its rows
const accepted: [situation: string, send: () => Promise<Response>][] = [
  ["a raw GitHub token of an OAuth app, without an editor's headers", () => chat({}, { login: "plus-demo" })],
  ["announced pictures", () => chat({ messages: [image] }, { headers: { "copilot-vision-request": "true" } })],
  ["announced pictures in a tool result", () => messages(used(result(picture)), { headers: { "copilot-vision-request": "true" } })],
  ["context_management with its beta", () => messages({ context_management: { edits: [] } }, { headers: { "anthropic-beta": "context-management-2025-06-27" } })],
  ["betas with spaces around them", () => messages({ context_management: { edits: [] } }, { headers: { "anthropic-beta": "interleaved-thinking-2025-05-14 , context-management-2025-06-27" } })],
  ["defer_loading with its beta", () => messages({ tools: [{ ...tool, defer_loading: true }] }, { headers: { "anthropic-beta": "advanced-tool-use-2025-11-20" } })],
  ["a tool for Gemini whose name begins with an underscore", () => chat({ model: "gemini-2.5-pro", tools: [wire("_tool", object({}))] })],
  ["adaptive thinking of a newer model", () => messages({ model: "claude-sonnet-4.6", thinking: { type: "adaptive" }, output_config: { effort: "high" } })],
];

const random = new RegExp(
  [
    String.raw`(?<=\b(?:req|msg|toolu)_(?:vrtx|bdrk)_01)\w+`,
    String.raw`(?<=\b(?:call|tooluse|toolu|resp|rs|msg|fc|chatcmpl)[-_])(?!vrtx|bdrk)[\w-]{12,}`,
    String.raw`[\da-f]{8}-[\da-f]{4}-[\da-f-]{22}|\b[\da-f]{32,}\b`,
    String.raw`(?<=")[\w+/-]{200,}={0,2}(?=")`,
  ].join("|"),
  "g",
);
/** What differs from run to run is numbered in the order in which it comes. */
function plain(text: string): string {
  const seen: string[] = [];
  const numbered = (each: string) => `…${(seen.includes(each) ? seen.indexOf(each) : seen.push(each) - 1) + 1}`;
  return text
    .replaceAll(demo.urls.individual, "http://individual.test")
    .replaceAll(demo.urls.business, "http://business.test")
    .replace(random, numbered);
}
const whole = async (answer: Response): Promise<string> => {
  const names = ["content-type", "retry-after", "x-quota-snapshot-premium_interactions", "x-copilot-used-model"];
  const headers = names.flatMap((name) => (answer.headers.has(name) ? [`${name}: ${answer.headers.get(name)}`] : []));
  return plain([String(answer.status), ...headers, "", await answer.text()].join("\n"));
};
const models = async (generation: DemoOptions["generation"]) => {
  open({ generation });
  account().plan = "enterprise";
  return new Response((await listed()).map((each) => JSON.stringify(each)).join("\n"));
};
const cityChoice = say("weather in two cities");
const responseTools = [{ type: "function", name: "get_weather", parameters: weather }];
const withCall = (id: string) => ({
  messages: [
    begun[0],
    { role: "assistant", tool_calls: [{ ...call, id }] },
    { role: "tool", tool_call_id: id, content: "y" },
  ],
});
const twice = async (send: () => Promise<Response>) => {
  await (await send()).text();
  return send();
};
const long = "A long text of many words. ".repeat(400);

/** What a request leaves of the account. */
const charged = (model: string, initiator?: string, quota?: keyof typeof quotas) => async () => {
  if (quota) account().quota = quotas[quota]();
  const answer = await chat({ model }, { headers: initiator ? { "x-initiator": initiator } : {} });
  const { remaining, overageCount } = account().quota.premium;
  const left = { code: (await json(answer)).error?.code, remaining, overageCount };
  return new Response(JSON.stringify(left), { status: answer.status, headers: answer.headers });
};

const input = [{ role: "user", content: "weather?" }];
/** The items of an answer come back, with the result of its call. */
const replayed =
  (change: (item: Wire) => Wire, login = "octo-demo") =>
  async () => {
    const asked = { model: "gpt-5.1", reasoning: { effort: "low" }, include: ["reasoning.encrypted_content"] };
    const { output } = await json(responses({ ...asked, input, tools: responseTools }));
    const { call_id } = output.find((item: Wire) => item.call_id);
    const items = [...input, ...output, { type: "function_call_output", call_id, output: "sunny" }];
    return responses({ ...asked, input: items.map(change), tools: responseTools }, { login });
  };
const named = (id: string) => (item: Wire) => (item.type === "reasoning" ? { ...item, id } : item);

const project = { role: "system", content: "Environment:\nPrimary working directory: /home/me/project\nGit: yes" };
const file = "write a file hello.txt with the text Hi there";
const calling =
  (content: string, ...tools: object[]) =>
  () =>
    chat({ messages: [project, { role: "user", content }], tools });
const listOfTexts = { type: "array", items: text };
const writes = (client: string, name: string, schema: object): [string, () => Promise<Response>] => [
  `a file is written with the tool of ${client}`,
  calling(file, wire(name, schema)),
];

const dialects = {
  chat: (directive: string, stream = true) => chat({ ...say(`[demo: ${directive}]`), stream }),
  responses: (directive: string, stream = true) => responses({ input: `[demo: ${directive}]`, stream }),
  messages: (directive: string, stream = true) => messages({ ...say(`[demo: ${directive}]`), stream }),
};
const ending = async (answer: Response) =>
  new Response((await answer.text()).split("\n\n").slice(-4).join("\n\n"), answer);
const faults = ["end", "no-done", "no-finish", "after-done", "error-event", "first-error"];

// biome-ignore format: a table is read by its rows
const answered: [situation: string, send: () => Promise<Response>][] = [
  ["the exchange of a token", () => exchange()],
  ["what an account has left", () => rest("/copilot_internal/user", `token ${account().githubToken}`)],
  ["the name of an account", () => rest("/user", `token ${account().githubToken}`)],
  ["chat: GPT, whole", () => chat({})],
  ["chat: GPT, as a stream", () => chat({ stream: true, stream_options: { include_usage: true } })],
  ["chat: GPT with calls, as a stream", () => chat({ ...cityChoice, tools: chatTools, stream: true })],
  ["chat: a tool whose name has a capital", () => chat({ ...say("weather?"), tools: [wire("GetWeather", weather)] })],
  ["chat: Claude with calls, whole", () => chat({ model: "claude-sonnet-4.5", ...cityChoice, tools: chatTools })],
  ["chat: Claude that thinks, with calls, as a stream", () => chat({ model: "claude-sonnet-4.5", ...cityChoice, tools: chatTools, stream: true, thinking_budget: 2000 })],
  ["chat: Gemini that thinks", () => chat({ model: "gemini-2.5-pro", ...say("think") })],
  ["chat: Gemini, as a stream", () => chat({ model: "gemini-2.5-pro", stream: true })],
  ["chat: an id of 40 characters", () => chat(withCall("x".repeat(40)))],
  ["chat: an id of 41 characters", () => chat(withCall("x".repeat(41)))],
  ["chat: the second of two equal prompts", () => twice(() => chat(say(long)))],
  ["chat: the second of two equal prompts with a key", () => twice(() => chat({ ...say(long), prompt_cache_key: "k" }))],
  ["responses: with calls, whole", () => responses({ model: "gpt-5.1", reasoning: { effort: "low", summary: "auto" }, input: "weather?", tools: responseTools })],
  ["responses: with calls, as a stream", () => responses({ model: "gpt-5.1", reasoning: { effort: "low", summary: "auto" }, input: "weather?", tools: responseTools, stream: true })],
  ["responses: a long input", () => responses({ input: long })],
  ["responses: the second of two equal prompts", () => twice(() => responses({ input: long }))],
  ["messages: whole", () => messages({ ...budget(2000), ...cityChoice, tools: [tool] })],
  ["messages: as a stream", () => messages({ ...budget(2000), ...cityChoice, tools: [tool], stream: true })],
  ["messages: Opus, as a stream", () => messages({ model: "claude-opus-4.6", stream: true })],
  ["messages: the second of two equal prompts with a mark", () => twice(() => messages(block({ text: long, cache_control: mark })))],
  ["embeddings", () => embed({ input: ["a", "a", "b"], dimensions: 4 })],
  ["chat: the fourth of four equal prompts", () => twice(() => twice(() => chat(say(long))))],
  ["chat: a file in a folder that is named with a capital", () => chat({ messages: [{ role: "system", content: "Working directory: /home/me/project" }, { role: "user", content: "write a file hello.txt with the text Hi there" }], tools: [wire("Write", object({ file_path: text, content: text }))] })],
  ["the faults on request", () => chat(say("[demo: what]"))],
  ["charged: Opus, asked by a person", charged("claude-opus-4.6", "user")],
  ["charged: Haiku, asked by a person", charged("claude-haiku-4.5", "user")],
  ["charged: Opus, asked by an agent", charged("claude-opus-4.6", "agent")],
  ["charged: Opus, when nobody says who asks", charged("claude-opus-4.6")],
  ["charged: a free model", charged("gpt-4.1", "user")],
  ["an empty quota: a premium model, asked by a person", charged("claude-sonnet-4.5", "user", "exhausted")],
  ["an empty quota: a premium model, asked by an agent", charged("claude-sonnet-4.5", "agent", "exhausted")],
  ["an empty quota: a free model", charged("gpt-4.1", "user", "exhausted")],
  ["an empty quota: overage that is paid", charged("claude-sonnet-4.5", "user", "overage")],
  ["responses: items that come back to their own account", replayed((item) => item)],
  ["responses: items that come back without their ids", replayed(({ id, ...item }) => item)],
  ["responses: items of another account", replayed((item) => item, "plus-demo")],
  ["responses: items with another id of their reasoning", replayed(named("rs_x"))],
  writes("Claude Code", "Write", object({ file_path: text, content: text })),
  writes("Codex", "exec_command", object({ cmd: text, workdir: text }, ["cmd"])),
  writes("an older Codex", "shell", object({ command: listOfTexts })),
  writes("a client with bash", "bash", object({ command: text, description: text })),
  writes("Cline", "editor", object({ path: text, old_text: { anyOf: [text, { type: "null" }] }, new_text: text }, ["path", "new_text"])),
  writes("Cline without an editor", "run_commands", object({ commands: listOfTexts })),
  writes("a patch function", "apply_patch", object({ input: text })),
  writes("an editor that only replaces, which cannot", "edit", object({ path: text, old_string: text, new_string: text })),
  ["a tool that must be called", () => chat({ tools: chatTools, tool_choice: "required" })],
  ["a tool that need not be called", () => chat({ tools: chatTools, tool_choice: "auto" })],
  ...Object.entries(dialects).flatMap(([name, ask]) => faults.map((fault): (typeof refusals)[number] => [`${name}: [demo: ${fault}]`, async () => ending(await ask(fault))])),
  ["the models of generation A", () => models("A")],
  ["the models of generation C", () => models("C")],
];

testWritten(
  "demo/answers.txt",
  [...refusals, ...accepted, ...answered].map(([situation, send]) => [situation, async () => whole(await send())]),
);

describe("the upstream remembers", () => {
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

test("the scripted model calls a tool that is named with what its schema requires", async () => {
  const inner = object({ on: { type: "boolean" }, maybe: { anyOf: [{ type: "null" }, text] } });
  const members = { when: { type: "string", format: "date" }, level: { enum: ["low", "high"] }, many: listOfTexts };
  const schema = { ...object({ ...members, inner: { $ref: "#/$defs/inner" } }), $defs: { inner } };
  const { choices } = await json(calling("call lookup please", wire("lookup", schema))());
  expect(JSON.parse(choices[0].message.tool_calls[0].function.arguments)).toEqual({
    ...{ when: "2026-01-31", level: "low", many: ["demo"] },
    inner: { on: true, maybe: "demo" },
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

  test.each(Object.entries(dialects))(
    "a fault on request of %s breaks the connection, or says what means nothing",
    async (_, ask) => {
      for (const [directive, stream] of [["reset"], ["cut"], ["cut", false]] as const)
        await expect(ask(directive, stream).then((answer) => answer.text())).rejects.toMatchObject({
          code: "ECONNRESET",
        });
      expect(await (await ask("bad-json")).text()).toContain('data: {"broken\n\n');
      expect(await (await ask("ping")).text()).toMatch(/^(: ping|event: ping)$/m);
    },
  );
});
