/**
 * Scenario: what other tests lean on in the demo: the forms of its answers, what it refuses, its faults, and what it
 * lets a test see.
 */

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { version } from "../../package.json";
import { type DemoAccount, quotas } from "../../src/demo/accounts";
import { type Demo, type DemoOptions, startDemo } from "../../src/demo/demo";
import { directives } from "../../src/demo/faults";
import { testBlocks, unfolded } from "../support/blocks";
import { testWritten } from "../support/written";

// biome-ignore lint/suspicious/noExplicitAny: these are the wire's own shapes, looked at from outside
type Wire = any;

const root = join(import.meta.dir, "../..");

let demo: Demo;
let clock: number;
let seen: string[];

beforeEach(() => open());
afterEach(() => demo.stop());

function open(options: DemoOptions = {}) {
  demo?.stop();
  clock = Date.UTC(2026, 6, 20, 10);
  seen = [];
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

/** GitHub is asked with its own token, the model host with its. */
async function get(path: string, { login, headers }: Sending): Promise<Response> {
  const { githubToken, host } = account(login);
  const isOfGitHub = /^\/(?:user|copilot_internal)/.test(path);
  const authorization = isOfGitHub ? `token ${githubToken}` : `Bearer ${await bearer(login)}`;
  const url = host === "business" && !isOfGitHub ? demo.businessUrl : demo.url;
  return fetch(url + path, { redirect: "manual", headers: { ...editor, authorization, ...headers } });
}

const chat = (body: object, sending?: Sending) =>
  post("/chat/completions", { model: "gpt-4.1", ...say("hello"), ...body }, sending);
const responses = (body: object, sending?: Sending) =>
  post("/responses", { model: "gpt-5.2", input: "hello", ...body }, sending);
const messages = (body: object, sending?: Sending) =>
  post("/v1/messages", { model: "claude-sonnet-4.5", max_tokens: 4000, ...say("hello"), ...body }, sending);
const embed = (body: object, sending?: Sending) =>
  post("/embeddings", { model: "text-embedding-3-small", input: ["a", "b"], ...body }, sending);
const say = (content: string) => ({ messages: [{ role: "user", content }] });
const listed = async (login?: string): Promise<Wire[]> => {
  const host = account(login).host === "business" ? demo.businessUrl : demo.url;
  const authorization = `Bearer ${await bearer(login)}`;
  return (await json(fetch(`${host}/models`, { headers: { ...editor, authorization } }))).data;
};

test("GitHub ends a Copilot token at its end, and when a test says so", async () => {
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

test("an account of Auto alone may leave the model out in chat, and nowhere else", async () => {
  account().auto = { only: true, protocols: ["omission"], pool: ["gpt-5-mini"] };
  const all = [chat, responses, messages].map(async (ask) => (await ask({ model: undefined })).status);
  expect(await Promise.all(all)).toEqual([200, 400, 400]);
});

test("the model list differs by plan and by account", async () => {
  account("work-demo").models = ["gpt-4.1", "claude-haiku-4.5"];
  account().plan = "free";
  expect((await listed("work-demo")).map(({ id }) => id)).toEqual(["claude-haiku-4.5", "gpt-4.1"]);
  expect((await listed()).map(({ id }) => id)).not.toContain("claude-sonnet-4.6");
});

const begun = ["user", "assistant"].map((role) => ({ role, content: "a" }));
const budget = (budget_tokens: number, more = {}) => ({ thinking: { type: "enabled", budget_tokens, ...more } });
const elsewhere = (path: string) => () => post(path, {}, { host: demo.businessUrl });

const random = new RegExp(
  [
    String.raw`(?<=\b(?:req|msg|toolu)_(?:vrtx|bdrk)_01)\w+`,
    String.raw`(?<=\b(?:call|tooluse|toolu|resp|rs|msg|fc|chatcmpl|auto|hydra)[-_])(?!vrtx|bdrk)[\w-]{12,}`,
    String.raw`(?<=device_code(?:=|":"))\w{40}|[\da-f]{8}-[\da-f]{4}-[\da-f-]{22}|\b[\da-f]{32,}\b`,
    String.raw`(?<=")[\w+/-]{150,}={0,2}(?=")|(?<=content )[\w-]{8}(?=\.{3})`,
  ].join("|"),
  "g",
);
/** What differs from run to run is numbered in the order in which it comes. */
function plain(text: string): string {
  const numbered = (each: string) => `…${(seen.includes(each) ? seen.indexOf(each) : seen.push(each) - 1) + 1}`;
  return text
    .replaceAll(demo.urls.individual, "http://individual.test")
    .replaceAll(demo.urls.business, "http://business.test")
    .replace(random, numbered);
}
const whole = async (answer: Response): Promise<string> => {
  const names = [
    "content-type",
    "retry-after",
    "x-quota-snapshot-premium_interactions",
    "x-copilot-used-model",
    "x-ratelimit-exceeded",
  ];
  const headers = names.flatMap((name) => (answer.headers.has(name) ? [`${name}: ${answer.headers.get(name)}`] : []));
  return plain([String(answer.status), ...headers, "", await answer.text()].join("\n"));
};
const models = async (generation: DemoOptions["generation"]) => {
  open({ generation });
  account().plan = "enterprise";
  return new Response((await listed()).map((each) => JSON.stringify(each)).join("\n"));
};
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
  ...["/chat/completions", "/responses", "/v1/messages", "/embeddings"].map((path): (typeof answered)[number] => [`${path} of another plan's host`, elsewhere(path)]),
  ...Object.entries(dialects).flatMap(([name, ask]) => faults.map((fault): (typeof answered)[number] => [`${name}: [demo: ${fault}]`, async () => ending(await ask(fault))])),
  ["the models of generation A", () => models("A")],
  ["the models of generation C", () => models("C")],
];

type Situation = Sending & DemoOptions & { quota?: keyof typeof quotas; account?: Partial<DemoAccount>; pass?: number };

/** Requests, each with its answer: `:` by whom, with which headers and after how many seconds, then what is asked. */
testBlocks("demo/requests.txt", async (block) => {
  const played: string[] = [];
  let sending: Sending = {};
  for (const line of block.split("\n").filter((each) => !each.startsWith("  |"))) {
    played.push(line);
    const said = unfolded(line).replace(/…(\d+)/g, (_, at) => seen[at - 1]!);
    if (said.startsWith(": ")) {
      const { generation, quota, account: changes, pass = 0, ...others }: Situation = JSON.parse(said.slice(2));
      if (generation) open({ generation });
      clock += pass * 1000;
      Object.assign(account(others.login), changes, quota && { quota: quotas[quota]() });
      sending = others;
    }
    if (!said.startsWith("> ")) continue;
    const [, method, path, dialect = "", given = "{}"] = /^> (?:([A-Z]+) (\S+)|(\w+)) ?(.*)$/.exec(said)!;
    const body = Object.entries(JSON.parse(given || "{}")).map(([name, value]) => [name, value ?? undefined]);
    const ask = { chat, responses, messages, embeddings: embed }[dialect];
    const asked = Object.fromEntries(body);
    const answer = ask ? ask(asked, sending) : method === "GET" ? get(path!, sending) : post(path!, asked, sending);
    const lines = (await whole(await answer)).trimEnd().split("\n");
    played.push(...lines.map((each) => `  | ${each}`.trimEnd()));
  }
  return played.join("\n");
});

testWritten(
  "demo/answers.txt",
  answered.map(([situation, send]) => [situation, async () => whole(await send())]),
);

test("the upstream remembers its own thinking on messages, also when its text was omitted, and on chat", async () => {
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

describe("a fault on request", () => {
  test("each one that a test or the README writes is there: the demo answers any other with the list of them", async () => {
    const unknown: string[] = [];
    for (const file of ["README.md", ...new Bun.Glob("test/**/*.{ts,tsx,txt,json}").scanSync(root)])
      for (const [written, name] of (await Bun.file(join(root, file)).text()).matchAll(/\[demo: ([\w-]+)(?=[ \]])/g))
        if (!directives.some((row) => row.name === name)) unknown.push(`${file}: ${written}`);
    expect([...new Set(unknown)]).toEqual(["test/fixtures/demo/requests.txt: [demo: what"]);
  });

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
