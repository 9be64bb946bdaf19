/**
 * The files of `fixtures/scenes/`: under a title what happens between clients, the proxy and the upstream, a step in each
 * line. `test/README.md` has the words of a step.
 */

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type DemoAccount, demoAccounts, quotas } from "../../src/demo/accounts";
import type { DemoOptions } from "../../src/demo/state";
import { autoAccounts } from "./auto-accounts";
import { milliseconds } from "./blocks";
import { type Offers, offerOnly } from "./catalogue";
import { eventStream, namedEvent } from "./event-stream";
import type { Json } from "./json";
import { type ProxyOptions, type RunningProxy, startProxy } from "./proxy";
import { fixtures } from "./streams";
import { until } from "./until";

/** The line with `:` behind the title. */
interface Setup extends Pick<ProxyOptions, "config" | "env"> {
  /** The scene is played once with each of these: `$name` in its lines becomes the value. */
  each?: Record<string, string | number>[];
  /** What else `$name` stands for. */
  let?: Record<string, string | number>;
  /** By the first word of their logins, of the demo's accounts and those with Auto: `octo` alone when missing. */
  accounts?: string[];
  quota?: keyof typeof quotas;
  sku?: string;
  generation?: DemoOptions["generation"];
  offers?: Offers;
  /** Of all accounts: what Auto offers them beyond what it does. */
  auto?: object;
  /** The provider `own` is one of this type, and speaks chat completions. */
  provider?: string;
  /** What else its owner says of it: its models, say. */
  own?: object;
  /** Its clock runs, too, where a request waits for a timer. */
  isLive?: boolean;
}

interface Answer {
  /** Of the upstream; that of any generation when missing. */
  at?: string;
  /** 1 when missing, but without end where only some requests get it. */
  times?: number;
  /** For this account alone. */
  of?: string;
  /** Only for a body that has each of these texts. */
  if?: string[];
  unless?: string[];
  /** In seconds. */
  after?: number;
  headers?: Record<string, string>;
  /** In place of the error in JSON: a text, JSON, or the events of a stream. */
  text?: string;
  json?: object;
  events?: Json[];
  /** The demo's own answer, without which the others would be asked for. */
  own?: boolean;
  /** In milliseconds. */
  delay?: number;
}

const generation = /^\/(?:chat\/completions|responses|v1\/messages)$/;
const always = Number.POSITIVE_INFINITY;
const said = (role: string, text: string) => ({ role, content: text });
const loginOf = (name: string) => `${name}-demo`;

export function testScenes(name: string): void {
  const blocks = readFileSync(join(fixtures, "scenes", `${name}.txt`), "utf8").split(/\n\n+/);
  for (const block of blocks) {
    const [title = "", first = "", ...rest] = block.trimEnd().split("\n");
    const setup: Setup = first.startsWith(": ") ? JSON.parse(first.slice(2)) : {};
    const lines = (first.startsWith(": ") ? rest : [first, ...rest]).filter((line) => !line.startsWith("# "));
    const playWith = (values: Record<string, string | number>) => {
      const named = { ...setup.let, ...values };
      const put = (text: string) => text.replace(/\$(\w+)/g, (whole, key) => String(named[key] ?? whole));
      return play(JSON.parse(put(JSON.stringify({ ...setup, each: undefined, let: undefined }))), lines.map(put));
    };
    if (!setup.each) test(title, () => playWith({}));
    else
      test.each(setup.each.map((each) => [JSON.stringify(each), each] as const))(`${title}: %s`, (_, each) =>
        playWith(each),
      );
  }
}

async function play(setup: Setup, lines: readonly string[]): Promise<void> {
  await using stage = await openStage(setup);
  for (const line of lines) {
    const [, many, step, wanted] = /^(?:> (?:(\d+)x )?|! )(.*?)(?: = (\{.*\}))?$/.exec(line) ?? [];
    if (step === undefined) throw new Error(`No step of a scene: ${line}`);
    const whole = step.replace(/<<(\d+) x (.*?)>>/g, (_, times, text) => text.repeat(Number(times)));
    const words = (whole.match(/"(?:[^"\\]|\\.)*"|[{[].*$|\S+/g) ?? []).map((word) =>
      /^["{[]/.test(word) ? JSON.parse(word) : word,
    );
    if (line.startsWith("! ")) await stage.happen(words);
    else
      for (let turn = 0; turn < Number(many ?? 1); turn++) {
        const expected: Json = JSON.parse(wanted ?? "{}");
        expect({ step, ...(await stage.ask(words, expected)) }).toEqual({ step, ...expected });
      }
  }
}

async function openStage(setup: Setup) {
  let ahead = 0;
  let behind = 0;
  const [begunAt, start] = [Date.parse("2026-11-10T06:00:00Z"), performance.now()];
  const monotonic = () => (setup.isLive ? performance.now() : start) + ahead;
  const now = () => Math.round(begunAt + monotonic() - start) - behind;
  const clock = { now, monotonic, random: () => 0.5 };
  const accounts = accountsOf(setup);
  const provider = setup.provider ? startProvider() : undefined;
  const own = provider && {
    type: setup.provider,
    baseUrl: provider.server.url.origin,
    apiKey: "k-own-0123456789",
    ...setup.own,
  };
  const proxy = await startProxy({
    clock,
    demo: { accounts, generation: setup.generation, now },
    env: setup.env,
    config: { ...(own && { providers: { own } }), ...setup.config },
  });
  if (setup.offers) offerOnly(proxy.demo, setup.offers);
  const talks = new Map<string, Json[]>();
  const tokens: string[] = [];
  const accountOf = (name: string) => proxy.app.accounts.find(({ id }) => id === loginOf(name))!;

  /** What happens beside the requests, by the first word. */
  const events: Record<string, (...words: Json[]) => unknown> = {
    pass: (time: string) => {
      ahead += milliseconds(time);
    },
    "set-back": (time: string) => {
      behind += milliseconds(time);
    },
    answer: (status: string, ...more: Json[]) => {
      const given: Answer = typeof more.at(-1) === "object" ? more.pop() : {};
      const [code, message] = more as string[];
      const respond = async () => {
        if (given.delay) await Bun.sleep(given.delay);
        return responseOf(Number(status), code, message, given);
      };
      if (given.at === "own") return provider!.answers.push(...Array.from({ length: given.times ?? 1 }, () => respond));
      proxy.demo.intercept(
        given.at ?? generation,
        ({ account, headers, body }) => {
          const text = JSON.stringify(body) ?? "";
          if (given.of && account !== loginOf(given.of) && !headers.authorization?.endsWith(tokenOf(given.of)))
            return undefined;
          if (given.if?.some((part) => !text.includes(part)) || given.unless?.some((part) => text.includes(part)))
            return undefined;
          return given.own ? undefined : respond();
        },
        given.times ?? (given.of || given.if || given.unless ? always : 1),
      );
    },
    account: (name: string, changes: Json) => change(accounts.find(({ login }) => login === loginOf(name))!, changes),
    revoke: (name: string) => {
      const at = proxy.demo.accounts.findIndex(({ login }) => login === loginOf(name));
      revoked.push(...proxy.demo.accounts.splice(at, 1));
    },
    restore: () => proxy.demo.accounts.unshift(...revoked.splice(0)),
    state: (name: string, state: string, time: string, more: Json = {}) =>
      accountOf(name).setState({
        name: state,
        ...(time && { until: now() + milliseconds(time) }),
        reason: "For a test.",
        ...more,
      } as never),
    learn: () => Promise.all(proxy.app.accounts.map((account) => account.quota())),
    expire: () => proxy.demo.expireTokens(),
    "end-auto": () => proxy.demo.endAutoTokens(),
    config: (changes: Json) => proxy.app.config.change(changes),
  };
  const revoked: DemoAccount[] = [];
  const tokenOf = (name: string) => accounts.find(({ login }) => login === loginOf(name))!.githubToken;

  async function ask(words: Json[], expected: Json): Promise<Json> {
    const { method, path, body, headers, leave, keep } = requestOf(words, talks);
    const [calls, rows] = [proxy.demo.journal.length, proxy.rows().length];
    const send = (signal?: AbortSignal) => proxy.post(path, body, { method, headers, signal });
    const response = leave ? await left(send, leave) : await send();
    const text = await response.text();
    const made = proxy.rows().slice(0, proxy.rows().length - rows);
    keep?.(text);
    const seen = { response, text, row: made.find(({ parent_id }) => parent_id === null), rows: made };
    return outcomeOf(seen, {
      proxy,
      calls: proxy.demo.journal.slice(calls),
      expected,
      tokens,
      provided: provider?.seen,
    });
  }

  /** The client hangs up while the upstream has not answered at this path. */
  async function left(send: (signal: AbortSignal) => Promise<Response>, path: string): Promise<Response> {
    const held = Promise.withResolvers<undefined>();
    const client = new AbortController();
    let isAsked = false;
    proxy.demo.intercept(path, () => {
      isAsked = true;
      return held.promise;
    });
    const answer = send(client.signal).catch(() => "left");
    await until(() => isAsked, "the upstream is asked");
    client.abort();
    expect(await answer).toBe("left");
    await until(() => proxy.app.inFlight.count === 0, "the request has its row");
    held.resolve(undefined);
    const { http_status, error_type } = proxy.rows(1)[0]!;
    return Response.json({ error: { code: error_type } }, { status: http_status });
  }

  if (setup.accounts?.some((name) => name in autoAccounts())) await events.learn!();
  return {
    ask,
    happen: async ([name, ...words]: Json[]) => {
      await events[name]!(...words);
    },
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await provider?.server.stop(true);
    },
  };
}

function accountsOf({ accounts = ["octo"], quota, sku, auto }: Setup): DemoAccount[] {
  const all: DemoAccount[] = [...demoAccounts(), ...Object.values(autoAccounts())];
  return accounts.map((name) => {
    const account = all.find(({ login }) => login === loginOf(name))!;
    const offer = account.auto && { auto: { ...account.auto, ...auto } };
    return { ...account, ...(quota && { quota: quotas[quota]() }), ...(sku !== undefined && { sku }), ...offer };
  });
}

/** Members of objects within stay as they are. */
function change(target: Json, changes: Json): void {
  for (const [name, value] of Object.entries(changes))
    if (typeof value === "object" && value !== null && !Array.isArray(value) && target[name])
      change(target[name], value);
    else target[name] = value;
}

function responseOf(
  status: number,
  code = "",
  message = "Told by GitHub.",
  { after, headers, text, json, events }: Answer,
) {
  const all = { ...(after !== undefined && { "retry-after": String(after) }), ...headers };
  if (events)
    return eventStream(
      events
        .map((event) => (event.type && !event.choices ? namedEvent(event) : `data: ${JSON.stringify(event)}\n\n`))
        .join(""),
    );
  if (text !== undefined) return new Response(text, { status, headers: all });
  return Response.json(json ?? { error: { ...(code && { code }), message } }, { status, headers: all });
}

/** It speaks chat completions. */
function startProvider() {
  const answers: (() => Promise<Response>)[] = [];
  const seen: Json[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      if (request.method === "GET") return Response.json({ data: [] });
      seen.push(await request.json());
      return (
        (await answers.shift()?.()) ??
        Response.json({
          ...{ id: "c", object: "chat.completion", created: 1, model: "m" },
          choices: [{ index: 0, message: said("assistant", "Good day."), finish_reason: "stop" }],
        })
      );
    },
  });
  return { server, answers, seen };
}

const clients: Record<string, [path: string, body: (turns: Json[]) => Json, replyIn: (body: Json) => Json[]]> = {
  chat: ["/v1/chat/completions", (messages) => ({ messages }), ({ choices }) => [choices[0].message]],
  responses: ["/v1/responses", (input) => ({ input }), ({ output }) => output],
  messages: [
    "/v1/messages",
    (messages) => ({ max_tokens: 500, messages }),
    ({ content }) => [{ role: "assistant", content }],
  ],
  count: ["/v1/messages/count_tokens", (messages) => ({ messages }), () => []],
  compact: ["/v1/responses/compact", (input) => ({ input }), () => []],
  embeddings: ["/v1/embeddings", (turns) => ({ input: turns[0].content }), () => []],
  gemini: [
    "",
    (turns) => ({
      contents: turns.map(({ role, content }) => ({
        role: role === "user" ? role : "model",
        parts: [{ text: content }],
      })),
    }),
    () => [],
  ],
};

/** `GET` or `POST` with a path; or a dialect, a model, what was said in turn, and more members of the body. */
function requestOf([client, model, ...words]: Json[], talks: Map<string, Json[]>) {
  const { headers = {}, leave, ...more }: Json = typeof words.at(-1) === "object" ? words.pop() : {};
  if (client === "GET") return { method: "GET", path: model, body: undefined, headers };
  if (client === "POST") return { method: "POST", path: model, body: words[0] ?? more, headers };
  const talk = words[0]?.startsWith?.("+") ? words.shift() : undefined;
  const turns = words.map((text, at) => said(at % 2 === 0 ? "user" : "assistant", text));
  const all = [...(talks.get(talk) ?? []), ...(turns.length > 0 ? turns : [said("user", "Hello")])];
  const [path, bodyOf, replyIn] = clients[client]!;
  const google = `/v1beta/models/${model}:generateContent`;
  const keep = talk && ((text: string) => void talks.set(talk, [...all, ...replyIn(JSON.parse(text))]));
  return {
    method: "POST",
    path: path || google,
    body: { ...(path && { model }), ...bodyOf(all), ...more },
    headers,
    leave,
    keep,
  };
}

interface Scene {
  proxy: RunningProxy;
  /** What the upstream was asked for this request. */
  calls: Json[];
  expected: Json;
  /** Of Auto's sessions, in the order in which they were sent. */
  tokens: string[];
  /** What the provider was asked in the whole scene. */
  provided: Json[] | undefined;
}

interface Seen {
  response: Response;
  text: string;
  row: Json;
  rows: Json[];
}

/**
 * What always has to be as expected, without what is plain: status 200 by the first account, with all accounts ready. And
 * what the expected outcome names besides.
 */
function outcomeOf({ response, text, row, rows }: Seen, { proxy, calls, expected, tokens, provided }: Scene): Json {
  const json: Json = /json/.test(response.headers.get("content-type") ?? "") ? JSON.parse(text) : undefined;
  const { code, type, status } = json?.error ?? {};
  const tries = row && attemptsOf(row);
  const states = Object.fromEntries(proxy.app.accounts.flatMap(stateOf));
  const always = {
    status: response.status === 200 ? undefined : response.status,
    code: status ?? code ?? type,
    after: response.headers.has("retry-after") ? Number(response.headers.get("retry-after")) : undefined,
    retry: response.headers.get("x-should-retry"),
    model: response.headers.get("x-dragoman-model"),
    tries: tries === `${proxy.app.accounts[0]?.id.replace("-demo", "")} 200` ? undefined : tries,
    accounts: Object.keys(states).length > 0 ? states : undefined,
  };
  const sent = calls.filter(({ method, path }) => method === "POST" && generation.test(path));
  const named: Record<string, () => unknown> = {
    says: () => ([expected.says].flat().every((part) => text.includes(part)) ? expected.says : text),
    text: () => text,
    never: () => {
      const kept = JSON.stringify(proxy.rows()) + proxy.lines.join("");
      return expected.never.filter((part: string) => !kept.includes(part));
    },
    reply: () => json,
    row: () => withJson(row),
    rows: () => rows.map(withJson),
    sent: () => sent.at(-1)?.body,
    offered: () => offeredIn(sent.at(-1)?.body),
    holds: () => {
      const body = JSON.stringify(sent.at(-1)?.body) ?? "";
      return Object.fromEntries(Object.keys(expected.holds).map((part) => [part, body.split(part).length - 1]));
    },
    calls: () => sent,
    provided: () => provided,
    tokens: () => calls.flatMap(({ headers }) => placeOf(headers["copilot-session-token"], tokens)),
    posted: () =>
      Object.fromEntries(
        Object.keys(expected.posted).map((path) => [
          path,
          proxy.demo.journal.filter((seen) => seen.path === path).map(({ body }) => body),
        ]),
      ),
    asked: () =>
      Object.fromEntries(
        Object.keys(expected.asked).map((path) => [
          path,
          proxy.demo.journal.filter((seen) => seen.path === path).length,
        ]),
      ),
    log: () =>
      Object.fromEntries(
        Object.keys(expected.log).map((part) => [part, proxy.lines.filter((line) => line.includes(part)).length]),
      ),
  };
  const also = Object.keys(expected).filter((name) => !(name in always));
  return {
    ...Object.fromEntries(Object.entries(always).filter(([, value]) => value !== undefined && value !== null)),
    ...Object.fromEntries(also.map((name) => [name, pick(named[name]!(), expected[name])])),
  };
}

function placeOf(token: string | undefined, tokens: string[]): number | [] {
  if (token === undefined) return [];
  if (!tokens.includes(token)) tokens.push(token);
  return tokens.indexOf(token);
}

/** The names of the tools that the model has in its prompt; not of a search among those that wait. */
const offeredIn = ({ tools = [] }: Json): string[] =>
  tools
    .filter((tool: Json) => !tool.defer_loading)
    .map((tool: Json) => tool.name ?? tool.function?.name)
    .filter((name: string) => !name.startsWith("tool_search"));

const attemptsOf = (row: Json): string =>
  JSON.parse(row.attempts)
    .map(({ account, model, status, error }: Json) =>
      [account?.replace("-demo", ""), model, status ?? error].filter(Boolean).join(" "),
    )
    .join(", ");

function stateOf({ id, state, limitedModels }: RunningProxy["app"]["accounts"][number]): [string, string][] {
  const limits = limitedModels.map(({ model }) => model);
  const what = [...(state.name === "ready" ? [] : [state.name]), ...(limits.length > 0 ? [`without ${limits}`] : [])];
  return what.length > 0 ? [[id.replace("-demo", ""), what.join(", ")]] : [];
}

const withJson = (row: Json): Json =>
  Object.fromEntries(
    Object.entries(row ?? {}).map(([name, value]) => [
      name,
      /^[[{]/.test(String(value)) ? JSON.parse(String(value)) : value,
    ]),
  );

/** Of the actual value what the expected one has members for. `~text` is in a string, `!text` is not, null is missing. */
function pick(actual: Json, expected: Json): Json {
  if (typeof expected === "string" && /^[~!]/.test(expected)) {
    const text = typeof actual === "string" ? actual : (JSON.stringify(actual) ?? "");
    return text.includes(expected.slice(1)) === expected.startsWith("~") ? expected : actual;
  }
  if (expected === "*" && actual !== undefined && actual !== null) return expected;
  if (typeof expected !== "object" || expected === null) return actual ?? null;
  if (Array.isArray(expected))
    return Array.isArray(actual) && actual.length === expected.length
      ? actual.map((each, at) => pick(each, expected[at]))
      : actual;
  return Object.fromEntries(Object.entries(expected).map(([name, value]) => [name, pick(actual?.[name], value)]));
}
