/**
 * The files of `fixtures/scenes/`: under a title what happens between clients, the proxy and the upstream, a step in each
 * line. `test/README.md` has the words of a step.
 */

import { afterAll, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Portion, portionsIn } from "../../src/books/history/portions";
import { type DemoAccount, demoAccounts, quotas } from "../../src/demo/accounts";
import type { DemoOptions } from "../../src/demo/state";
import type { ClientDialect } from "../../src/dialects/hub/conversation";
import { autoAccounts } from "./auto-accounts";
import { blocksIn, joined, milliseconds, stepsIn, unfolded, wordsIn, wrapped } from "./blocks";
import { type Offers, offerOnly } from "./catalogue";
import { eventStream, namedEvent } from "./event-stream";
import type { Json } from "./json";
import { type ProxyOptions, type RunningProxy, startProxy } from "./proxy";
import { readBroken, readReply } from "./read-reply";
import { fixtures } from "./streams";
import { until } from "./until";

/** The line with `:` behind the title. */
interface Setup extends Pick<ProxyOptions, "config" | "env"> {
  /** The scene is played once with each of these: `$name` in its lines becomes the value. */
  each?: Record<string, Named>[];
  /** What else `$name` stands for. */
  let?: Record<string, Named>;
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
  /** Of the app's limits, what differs. */
  limits?: Json;
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
  /** It does not come, or nothing after its events. */
  hangs?: boolean;
}

/** An object or a list stands for its JSON. */
type Named = string | number | boolean | Json[] | { [member: string]: Json };

const isWritten = Boolean(process.env.UPDATE);
const generation = /^\/(?:chat\/completions|responses|v1\/messages)$/;
/** What is asked of a model, and counts of it. */
const sends = /^\/(?:chat\/completions|responses|v1\/messages(?:\/count_tokens)?)$/;
const always = Number.POSITIVE_INFINITY;
const said = (role: string, text: string) => ({ role, content: text });
const loginOf = (name: string) => `${name}-demo`;

export function testScenes(name: string): void {
  const file = `scenes/${name}.txt`;
  const blocks = blocksIn(file);
  for (const [at, block] of blocks.entries()) {
    const [title = "", ...all] = block.split("\n");
    const [first = "", ...rest] = stepsIn(all);
    const setup: Setup = first.startsWith(": ") ? JSON.parse(joined(first).slice(2)) : {};
    const steps = first.startsWith(": ") ? rest : [first, ...rest];
    const playWith = (values: Record<string, Named>) => {
      const named = { ...setup.let, ...values };
      const asText = (value: Named) => (typeof value === "object" ? JSON.stringify(value) : String(value));
      const put = (text: string) => text.replace(/\$(\w+)/g, (whole, key) => asText(named[key] ?? whole));
      return play(JSON.parse(put(JSON.stringify({ ...setup, each: undefined, let: undefined }))), steps, put);
    };
    if (!setup.each)
      test(title, async () => {
        const played = await playWith({});
        blocks[at] = block.replace(steps.join("\n"), () => played.join("\n"));
      });
    else
      test.each(setup.each.map((each) => [JSON.stringify(each), each] as const))(`${title}: %s`, (_, each) =>
        playWith(each),
      );
  }
  if (isWritten) afterAll(() => writeFileSync(join(fixtures, file), `${blocks.join("\n\n")}\n`));
}

/** @returns The steps with what came of them. @param put Puts what names stand for into a line. */
async function play(setup: Setup, steps: readonly string[], put: (line: string) => string): Promise<string[]> {
  await using stage = await openStage(setup);
  const played: string[] = [];
  for (const written of steps) {
    const line = joined(written);
    played.push(written);
    if (line.startsWith("# ")) continue;
    const [, many, step, wanted] = /^(?:> (?:(\d+)x )?|! |& )(.*?)(?: = (\{.*\}))?$/.exec(unfolded(put(line))) ?? [];
    if (step === undefined) throw new Error(`No step of a scene: ${line}`);
    const words = wordsIn(step);
    if (line.startsWith("! ")) await stage.happen(words);
    else if (line.startsWith("& ")) await stage.begin(words);
    else
      for (let turn = 0; turn < Number(many ?? 1); turn++) {
        const expected: Json = JSON.parse(wanted ?? "{}");
        const found = await stage.ask(words, expected);
        if (isWritten)
          played[played.length - 1] = Bun.deepEquals(found, expected) ? written : wrapped(withOutcome(line, found));
        else expect({ step, ...found }).toEqual({ step, ...expected });
      }
  }
  return played;
}

function withOutcome(line: string, found: Json): string {
  const asked = line.replace(/ = \{.*\}$/, "");
  return Object.keys(found).length > 0 ? `${asked} = ${JSON.stringify(found)}` : asked;
}

async function openStage(setup: Setup) {
  let ahead = 0;
  let behind = 0;
  // Whole milliseconds, so that sums of them are exact.
  const [begunAt, start] = [Date.parse("2026-11-10T06:00:00Z"), Math.round(performance.now())];
  const monotonic = () => (setup.isLive ? performance.now() : start) + ahead;
  const now = () => Math.round(begunAt + monotonic() - start) - behind;
  const clock = { now, monotonic, random: () => 0.5 };
  const accounts = accountsOf(setup);
  const provider = setup.provider || JSON.stringify(setup).includes("$own") ? startProvider() : undefined;
  const own = setup.provider && { type: setup.provider, baseUrl: "$own", apiKey: "k-own-0123456789", ...setup.own };
  const withOwn = <Of>(value: Of): Of =>
    value && JSON.parse(JSON.stringify(value).replaceAll("$own", () => provider?.server.url.origin ?? ""));
  const proxy = await startProxy({
    clock,
    demo: { accounts, generation: setup.generation, now },
    env: withOwn(setup.env),
    config: withOwn({ ...(own && { providers: { own } }), ...setup.config }),
  });
  if (setup.offers) offerOnly(proxy.demo, setup.offers);
  change(proxy.app.limits, setup.limits ?? {});
  const begun = new Map<string, Begun>();
  const held = Promise.withResolvers<undefined>();
  let left = 0;
  const talks = new Map<string, Json[]>();
  const tokens: string[] = [];
  const ids = new Map<string, string>();
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
        if (given.hangs && !given.events) await held.promise;
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
    /** A fault of the file is told the second time. */
    edit: async (text: Json) => {
      writeFileSync(join(proxy.home, "config.json"), typeof text === "string" ? text : JSON.stringify(text));
      for (let time = 0; time < 2; time += 1) await proxy.app.config.reload();
    },
    /** So many lists of models have these alone. */
    offer: (lists: string, offers: Offers) => offerOnly(proxy.demo, offers, 2 * Number(lists)),
    /** A request that runs from now on, and has reached the upstream. */
    run: async (name: string, ...words: Json[]) => {
      begun.set(name, send(words));
      const { calls } = begun.get(name)!;
      const isSent = () => proxy.demo.journal.slice(calls).some(({ path }) => generation.test(path));
      await until(isSent, `${name} has reached the upstream`);
    },
    "let-go": () => until(() => proxy.demo.open === 0, "the upstream has no open requests"),
    told: (name: string, words: string) =>
      until(() => begun.get(name)!.text.includes(words), `the client of ${name} is told: ${words}`),
    "hang-up": (name: string) => begun.get(name)!.leaving.abort(),
    cancel: () => proxy.app.inFlight.cancel(proxy.app.inFlight.running()[0]!.request_id),
    drain: () => void proxy.drain(),
  };
  const revoked: DemoAccount[] = [];
  const tokenOf = (name: string) => accounts.find(({ login }) => login === loginOf(name))!.githubToken;

  async function ask(words: Json[], expected: Json): Promise<Json> {
    const asked = begun.get(words[0]) ?? send(words);
    begun.delete(words[0]);
    const response = (await asked.answer) ?? (await gone(asked));
    const made = proxy.rows().slice(0, proxy.rows().length - asked.rows);
    const text = response.bodyUsed ? asked.text : await response.text();
    const isStream = /event-stream/.test(response.headers.get("content-type") ?? "");
    const isRead = asked.keep || expected.reply !== undefined;
    const reply = isStream ? isRead && (await readReply(asked.client, asked.model, text)) : jsonIn(response, text);
    if (response.ok) asked.keep?.(reply);
    for (const row of made) expectPartsOf(row);
    if (/^\/api\/admin\/prompts(?:\?|$)/.test(asked.model))
      for (const bill of reply?.items ?? []) expectSums(bill, proxy.rows());
    const id = response.headers.get("x-request-id");
    const row = made.find(({ parent_id, request_id }) => parent_id === null && (!id || request_id === id));
    return outcomeOf(
      { client: asked.client, response, text, reply, row, rows: made },
      { proxy, calls: proxy.demo.journal.slice(asked.calls), expected, tokens, ids, provider },
    );
  }

  /** What a client sends, and has got of the answer so far. */
  function send(words: Json[]): Begun {
    const { method, path, body, headers, leave, keep } = requestOf(words, talks);
    const [client, model] = words;
    const [calls, rows] = [proxy.demo.journal.length, proxy.rows().length];
    const leaving = new AbortController();
    const asked: Begun = {
      ...{ client, model, leave, leaving, calls, rows, keep, text: "" },
      answer: get().catch(() => undefined),
    };
    return asked;
    async function get() {
      if (leave) holdUntilGone(leave, leaving);
      const response = await proxy.post(
        path
          .replace("$last", () => proxy.rows(1)[0]!.request_id)
          .replace("$prompt", () => proxy.rows().find(({ prompt }) => prompt)!.prompt!)
          .replace("$running", () => proxy.app.inFlight.running()[0]!.request_id),
        body,
        { method, headers, signal: leaving.signal },
      );
      const decoder = new TextDecoder();
      for await (const piece of response.body ?? []) asked.text += decoder.decode(piece, { stream: true });
      return response;
    }
  }

  /** A request that waits for the end of a limit, or whose answer has begun. */
  async function begin([name, ...words]: Json[]) {
    const { count } = proxy.app.waitingRoom;
    begun.set(name, send(words));
    const isTold = () => begun.get(name)!.text !== "";
    await until(() => proxy.app.waitingRoom.count > count || isTold(), `${name} waits, or is told something`);
  }

  /** The client hangs up while the upstream has not answered at this path. */
  function holdUntilGone(path: string, leaving: AbortController) {
    proxy.demo.intercept(path, (_, { signal }) => {
      leaving.abort();
      signal.addEventListener("abort", () => left++);
      return held.promise;
    });
  }

  /** In place of an answer that nobody got: what its row says. */
  async function gone({ leave }: Begun): Promise<Response> {
    await until(() => proxy.app.inFlight.count === 0, "the request has its row");
    if (leave && generation.test(leave)) await until(() => left > 0, "the upstream's connection is given up");
    held.resolve(undefined);
    const { http_status, error_type } = proxy.rows(1)[0]!;
    return Response.json({ error: { code: error_type } }, { status: http_status });
  }

  if (setup.accounts?.some((name) => name in autoAccounts())) await events.learn!();
  return {
    ask,
    begin,
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
  { after, headers, text, json, events, hangs }: Answer,
) {
  const all = { ...(after !== undefined && { "retry-after": String(after) }), ...headers };
  if (events) {
    const written = events.map((event) =>
      event.type && !event.choices ? namedEvent(event) : `data: ${JSON.stringify(event)}\n\n`,
    );
    const bytes = new TextEncoder().encode(written.join(""));
    return eventStream(hangs ? new ReadableStream({ start: (next) => next.enqueue(bytes) }) : bytes);
  }
  const type = text && /^(?:data|event):/.test(text) ? "text/event-stream" : "application/json";
  if (text !== undefined)
    return new Response(text, { status, headers: { ...(status === 200 && { "content-type": type }), ...all } });
  return Response.json(json ?? { error: { ...(code && { code }), message } }, { status, headers: all });
}

/** It speaks chat completions and Messages, and counts, where it is not told what to answer. */
function startProvider() {
  const answers: (() => Promise<Response>)[] = [];
  /** In the whole scene, the bodies of requests, and what stands before them. */
  const seen: Json[] = [];
  const heard: Json[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname: path, search, searchParams } = new URL(request.url);
      if (path === "/models") return Response.json(ownReplies.models);
      const { headers } = request;
      const text = await request.text();
      heard.push({
        ...{ path, search, text, names: namesOf(headers) },
        ...{ query: Object.fromEntries(searchParams), headers: Object.fromEntries(headers) },
      });
      if (request.method === "POST") seen.push(JSON.parse(text));
      return (
        (await answers.shift()?.()) ?? Response.json(ownReplies[/[a-z_]+$/.exec(path)![0]] ?? ownReplies.completions)
      );
    },
  });
  return { server, answers, seen, heard };
}

/** All of them, in order. */
const namesOf = (headers: Headers) => [...headers.keys()].sort().join(" ");

const ownReplies: Json = {
  models: { data: [] },
  completions: {
    ...{ id: "c", object: "chat.completion", created: 1, model: "m" },
    choices: [{ index: 0, message: said("assistant", "Good day."), finish_reason: "stop" }],
  },
  messages: {
    ...{ id: "msg_1", type: "message", role: "assistant", model: "m" },
    ...{ content: [{ type: "text", text: "Good day." }], stop_reason: "end_turn", stop_sequence: null },
    usage: { input_tokens: 12, cache_read_input_tokens: 100, output_tokens: 5 },
  },
  count_tokens: { input_tokens: 1234 },
};

const jsonIn = (response: Response, text: string): Json =>
  /json/.test(response.headers.get("content-type") ?? "") ? JSON.parse(text) : undefined;

interface Speech {
  path: string;
  body(turns: Json[]): Json;
  /** What its client adds to the conversation. */
  reply?(body: Json): Json[];
  /** What its client says of the calls in the last turns. */
  results?(turns: Json[], text: string): Json[];
}

const clients: Record<string, Speech> = {
  chat: {
    path: "/v1/chat/completions",
    body: (messages) => ({ messages }),
    reply: ({ choices }) => [choices[0].message],
    results: (turns, content) =>
      turns.at(-1).tool_calls.map(({ id }: Json) => ({ role: "tool", tool_call_id: id, content })),
  },
  responses: {
    path: "/v1/responses",
    body: (input) => ({ input }),
    reply: ({ output }) => output,
    results(turns, output) {
      const isAnswered = ({ call_id }: Json) =>
        turns.some((turn) => turn.type === "function_call_output" && turn.call_id === call_id);
      const calls = turns.filter((turn) => turn.type === "function_call" && !isAnswered(turn));
      return calls.map(({ call_id }) => ({ type: "function_call_output", call_id, output }));
    },
  },
  messages: {
    path: "/v1/messages",
    body: (messages) => ({ max_tokens: 500, messages }),
    reply: ({ content }) => [{ role: "assistant", content }],
    results(turns, content) {
      const calls = turns.at(-1).content.filter(({ type }: Json) => type === "tool_use");
      return [
        said(
          "user",
          calls.map(({ id }: Json) => ({ type: "tool_result", tool_use_id: id, content })),
        ),
      ];
    },
  },
  count: { path: "/v1/messages/count_tokens", body: (messages) => ({ messages }) },
  compact: { path: "/v1/responses/compact", body: (input) => ({ input }), reply: ({ output }) => output },
  embeddings: { path: "/v1/embeddings", body: (turns) => ({ input: turns[0].content }) },
  gemini: {
    path: "",
    body: (turns) => ({
      contents: turns.map((turn) =>
        turn.parts ? turn : { role: turn.role === "user" ? "user" : "model", parts: [{ text: turn.content }] },
      ),
    }),
    // As Gemini CLI does: thoughts stay with the client.
    reply: ({ candidates }) => [
      { role: "model", parts: candidates[0].content.parts.filter(({ thought }: Json) => !thought) },
    ],
    results(turns, output) {
      const calls = turns.at(-1).parts.flatMap(({ functionCall }: Json) => functionCall ?? []);
      const parts = calls.map(({ id, name }: Json) => ({ functionResponse: { id, name, response: { output } } }));
      return [{ role: "user", parts }];
    },
  },
};

const referenceTo = ({ id }: Json) => ({ type: "item_reference", id });

/** With other values of members wherever they have these names; null leaves them out. */
const edited = (value: Json, values: Json = {}): Json =>
  JSON.parse(JSON.stringify(value), (name, member) => (name in values ? (values[name] ?? undefined) : member));
const untimed = { ms: "*", duration_ms: "*", first_byte_ms: "*", waited_ms: "*" };

/** A method with a path; or a dialect, a model, what was said in turn, and more members of the body. */
function requestOf([client, model, ...words]: Json[], talks: Map<string, Json[]>) {
  const {
    headers = {},
    leave,
    results,
    edit,
    references,
    ...more
  }: Json = typeof words.at(-1) === "object" ? words.pop() : {};
  if (client === "GET") return { method: client, path: model, body: undefined, headers };
  if (/^[A-Z]+$/.test(client)) return { method: client, path: model, body: words[0] ?? more, headers };
  const talk = words[0]?.startsWith?.("+") ? words.shift() : undefined;
  const speech = clients[client]!;
  const before = edited(talks.get(talk) ?? [], edit);
  const turns = words.map((text, at) => said(at % 2 === 0 ? "user" : "assistant", text));
  const now = results ? [...speech.results!(before, results), ...turns] : turns;
  const sent = references ? before.map((item: Json) => (item.id ? referenceTo(item) : item)) : before;
  const all = [...sent, ...(before.length > 0 || now.length > 0 ? now : [said("user", "Hello")])];
  const keep =
    talk &&
    ((reply: Json) => {
      const added = speech.reply!(reply);
      talks.set(talk, added.some(({ type }) => type === "compaction") ? added : [...all, ...added]);
    });
  const { stream, ...others } = more;
  const method = stream ? "streamGenerateContent?alt=sse" : "generateContent";
  const path = speech.path || `/v1beta/models/${model}:${method}`;
  const body = speech.path ? { model, ...speech.body(all), ...more } : { ...speech.body(all), ...others };
  return { method: "POST", path, body, headers, leave, keep };
}

/** A request of a client. */
interface Begun {
  client: ClientDialect;
  model: string;
  /** A path of the upstream, which has not answered when the client leaves. */
  leave: string | undefined;
  leaving: AbortController;
  /** Its answer once it is whole; undefined for a client that hung up. */
  answer: Promise<Response | undefined>;
  /** Of the answer, so far. */
  text: string;
  /** How many there were before it. */
  calls: number;
  rows: number;
  /** Keeps the answer as a part of its conversation. */
  keep: ((reply: Json) => void) | undefined;
}

interface Scene {
  proxy: RunningProxy;
  /** What the upstream was asked for this request. */
  calls: Json[];
  expected: Json;
  /** Of Auto's sessions, in the order in which they were sent. */
  tokens: string[];
  /** Names of the random ids that were seen. */
  ids: Map<string, string>;
  provider: ReturnType<typeof startProvider> | undefined;
}

interface Seen {
  client: ClientDialect;
  response: Response;
  text: string;
  /** As its client reads it, also a stream. */
  reply: Json;
  row: Json;
  rows: Json[];
}

/**
 * What always has to be as expected, without what is plain: status 200 by the first account, with all accounts ready. And
 * what the expected outcome names besides.
 */
function outcomeOf(
  { client, response, text, reply, row, rows }: Seen,
  { proxy, calls, expected, tokens, ids, provider }: Scene,
): Json {
  const { code, type, status } = reply?.error ?? {};
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
  /** The id of the request has a name, with which those of its searches begin. */
  const named = (strings: Json): Json =>
    mapped(strings, (value) => (row && typeof value === "string" ? value.replace(row.request_id, "$$id") : value));
  /** By each name within the expected outcome what there is of it. */
  const each = (what: string, of: (name: string) => unknown) =>
    Object.fromEntries(Object.keys(expected[what]).map((name) => [name, of(name)]));
  const bodiesAt = (path: string) => proxy.demo.journal.filter((seen) => seen.path === path).map(({ body }) => body);
  const others: Record<string, () => unknown> = {
    says: () => ([expected.says].flat().every((part) => text.includes(part)) ? expected.says : text),
    text: () => text,
    left: () => response.headers.get("x-dragoman-budget-remaining"),
    never: () => {
      const kept = JSON.stringify(proxy.rows()) + proxy.lines.join("") + filesIn(proxy.home);
      return expected.never.filter((part: string) => !kept.includes(part));
    },
    reply: () => withNamedIds(reply, ids),
    broken: () => withNamedIds(readBroken(client, text), ids),
    headers: () => Object.fromEntries(response.headers),
    names: () => namesOf(response.headers),
    row: () => withJson(row),
    rows: () => rows.map((made) => named(withJson(made))),
    whole: () => rows.map((made) => edited(named(withJson(made)), untimed)),
    sent: () => withNamedIds(sent.at(-1)?.body, ids),
    offered: () => offeredIn(sent.at(-1)?.body),
    holds: () => each("holds", (part) => timesIn(JSON.stringify(sent.at(-1)?.body) ?? "", part)),
    tells: () => each("tells", (part) => timesIn(text, part)),
    calls: () =>
      withNamedIds(
        calls
          .filter(({ path }) => sends.test(path))
          .map(({ headers, bytes, ...call }) => ({ ...call, headers: named(headers), tools: toolsIn(call.body) })),
        ids,
      ),
    provided: () => withNamedIds(provider?.seen, ids),
    heard: () => provider?.heard,
    running: () => proxy.app.inFlight.running(),
    tokens: () => calls.flatMap(({ headers }) => placeOf(headers["copilot-session-token"], tokens)),
    posted: () => each("posted", (path) => bodiesAt(path)),
    asked: () => each("asked", (path) => bodiesAt(path).length),
    log: () => each("log", (part) => proxy.lines.filter((line) => line.includes(part)).length),
  };
  const also = Object.keys(expected).filter((name) => !(name in always));
  return {
    ...Object.fromEntries(Object.entries(always).filter(([, value]) => value !== undefined && value !== null)),
    ...Object.fromEntries(also.map((name) => [name, pick(others[name]!(), expected[name])])),
  };
}

/** The parts of a prompt, with its reply, are what was counted and charged for it, but for what is rounded. */
function expectPartsOf({ portions, input_tokens, cached_tokens, cost }: Json): void {
  if (portions === null) return;
  // A surcharge is in the others already.
  const parts = portionsIn(portions).filter(({ kind }) => kind !== "surcharge");
  const prompt = parts.filter(({ kind }) => kind !== "output");
  const sum = (of: readonly Portion[], name: "tokens" | "cached" | "cost") => sumOf(of.map((part) => part[name]));
  expect([sum(prompt, "tokens"), sum(prompt, "cached")]).toEqual([input_tokens, cached_tokens ?? 0]);
  if (parts.every((part) => part.cost !== null)) expect(Math.abs(sum(parts, "cost") - cost)).toBeLessThan(50);
}

/** The sums of a prompt's bill are those of its rows, and those of its parts. */
function expectSums({ prompt, parts, ...bill }: Json, rows: Json[]): void {
  const own = rows.filter((row) => row.prompt === prompt);
  const sum = (name: string) => sumOf(own.map((row) => row[name]));
  expect([bill.input_tokens, bill.output_tokens]).toEqual([sum("input_tokens"), sum("output_tokens")]);
  const told = [bill.cost.credits ?? 0, bill.request_count];
  expect(told).toEqual([sum("cost"), own.length]);
  const costs = parts.map(({ cost }: Json) => cost.credits);
  expect(told).toEqual([sumOf(costs), sumOf(parts.map((part: Json) => part.request_count))]);
}

const sumOf = (values: (number | null)[]) => values.reduce<number>((sum, value) => sum + (value ?? 0), 0);

/** Random ids have letters in the order in which they were seen: `call_A`. */
function withNamedIds(value: Json, ids: Map<string, string>): Json {
  const name = (id: string, kind: string) => {
    const alike = [...ids.values()].filter((other) => other.startsWith(`${kind}_`));
    const letter = String.fromCharCode(65 + (alike.length % 26));
    if (!ids.has(id)) ids.set(id, `${kind}_${letter}${alike.length < 26 ? "" : Math.floor(alike.length / 26)}`);
    return ids.get(id)!;
  };
  const text = JSON.stringify(value);
  return text && JSON.parse(text.replace(/\b(call|fc|msg|rs|srvtoolu|toolu|tsc|tso|ws)_(?:bdrk_)?\w{16,}\b/g, name));
}

function placeOf(token: string | undefined, tokens: string[]): number | [] {
  if (token === undefined) return [];
  if (!tokens.includes(token)) tokens.push(token);
  return tokens.indexOf(token);
}

const timesIn = (text: string, part: string) => text.split(part).length - 1;
const toolsIn = ({ tools = [] }: Json): string[] =>
  tools.map((tool: Json) => tool.name ?? tool.function?.name ?? tool.type);

/** All but what the owner wrote. */
const filesIn = (home: string): string =>
  readdirSync(home, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== "config.json")
    .map(({ name, parentPath }) => readFileSync(join(parentPath, name), "latin1"))
    .join("");

/** The names of the tools that the model has in its prompt; not of a search among those that wait. */
const offeredIn = ({ tools = [] }: Json): string[] =>
  toolsIn({ tools: tools.filter((tool: Json) => !tool.defer_loading) }).filter(
    (name) => !name.startsWith("tool_search"),
  );

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

/** An object with other values. */
const mapped = (object: Json, of: (value: Json) => Json): Json =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name, of(value)]));

const withJson = (row: Json): Json =>
  mapped(row ?? {}, (value) => (/^[[{]/.test(String(value)) ? JSON.parse(String(value)) : value));

/**
 * Of the actual value what the expected one has members for, or all where that is `only` so. `~text` is in a string, `!text`
 * is not, null is missing.
 */
function pick(actual: Json, expected: Json): Json {
  if (typeof expected === "string" && /^[~!]/.test(expected)) {
    const text = typeof actual === "string" ? actual : (JSON.stringify(actual) ?? "");
    return text.includes(expected.slice(1)) === expected.startsWith("~") ? expected : actual;
  }
  if (expected === "*" && actual !== undefined && actual !== null) return expected;
  if (typeof expected !== "object" || expected === null) return actual ?? null;
  if ("only" in expected) return { only: actual ?? null };
  if (Array.isArray(expected))
    return Array.isArray(actual) && actual.length === expected.length
      ? actual.map((each, at) => pick(each, expected[at]))
      : actual;
  return Object.fromEntries(Object.entries(expected).map(([name, value]) => [name, pick(actual?.[name], value)]));
}
