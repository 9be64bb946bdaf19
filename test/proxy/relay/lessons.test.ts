/**
 * Scenario: what a refusal has taught is paid for once: the next turn goes up as the upstream takes it, and its row
 * says so again.
 */
import { describe, expect, test } from "bun:test";
import { hourMs } from "../../../src/lib/format";
import { Lessons } from "../../../src/proxy/upstream/copilot/lessons";
import type { Json } from "../../support/json";
import type { RunningProxy } from "../../support/proxy";
import { timed } from "./bench";

const two = { accounts: ["octo-demo", "work-demo"], demo: { generation: "C" } } as const;
const rest = (proxy: RunningProxy, at: number) =>
  proxy.app.accounts[at]!.setState({ name: "cooling", until: proxy.app.now() + 20_000, reason: "For a test." });

/** Who was asked for the newest request, with the status; and whether its row says that reasoning was left out. */
function tries(proxy: RunningProxy): [string[], boolean] {
  const { attempts, fixups } = proxy.rows(1)[0]!;
  const made = JSON.parse(attempts) as { account: string; status?: number }[];
  return [
    made.map(({ account, status }) => `${account.replace("-demo", "")} ${status}`),
    JSON.parse(fixups).includes("foreign-items"),
  ];
}

interface Talk {
  /** Asks the next question of the conversation. */
  turn(proxy: RunningProxy): Promise<void>;
  /** How often reasoning stands in the last request that the upstream took. */
  reasoningSent(proxy: RunningProxy): number;
}

const lastTaken = ({ demo }: RunningProxy): Json =>
  demo.journal.findLast(({ status, body }) => status === 200 && (body as Json)?.model)!.body;

function messagesTalk(model: string, first = "Think about it."): Talk {
  const messages: Json[] = [{ role: "user", content: first }];
  return {
    async turn(proxy) {
      const answer = await proxy.post("/v1/messages", {
        model,
        max_tokens: 4000,
        thinking: { type: "adaptive", display: "summarized" },
        messages,
      });
      expect(answer.status).toBe(200);
      messages.push({ role: "assistant", content: ((await answer.json()) as Json).content });
      messages.push({ role: "user", content: "Think again." });
    },
    reasoningSent: (proxy) =>
      lastTaken(proxy).messages.flatMap(({ content }: Json) =>
        [content].flat().filter((block: Json) => block.type === "thinking"),
      ).length,
  };
}

function responsesTalk(model: string): Talk {
  const person = (text: string) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] });
  const input: Json[] = [person("Think about it.")];
  return {
    async turn(proxy) {
      const answer = await proxy.post("/v1/responses", {
        model,
        input,
        store: false,
        include: ["reasoning.encrypted_content"],
        reasoning: { effort: "high" },
      });
      expect(answer.status).toBe(200);
      input.push(...((await answer.json()) as Json).output, person("Think again."));
    },
    reasoningSent: (proxy) => lastTaken(proxy).input.filter(({ type }: Json) => type === "reasoning").length,
  };
}

const talks = {
  "Anthropic's API, Sonnet 5.5": () => messagesTalk("claude-sonnet-5.5"),
  "Anthropic's API, Haiku 5.5": () => messagesTalk("claude-haiku-5.5"),
  "the Responses API, GPT-6.2": () => responsesTalk("gpt-6.2-sol"),
};

describe.each(Object.entries(talks))("reasoning of another account: %s", (_, make) => {
  test("is refused once, and left out from then on; what the new account made goes up", async () => {
    await using proxy = await timed(two);
    const talk = make();
    await talk.turn(proxy);
    await talk.turn(proxy);
    expect([tries(proxy), talk.reasoningSent(proxy)]).toEqual([[["octo 200"], false], 1]);
    rest(proxy, 0);
    await talk.turn(proxy);
    expect([tries(proxy)[0].slice(1), tries(proxy)[1], talk.reasoningSent(proxy)]).toEqual([["work 200"], true, 0]);
    for (let turn = 1; turn <= 3; turn++) {
      await talk.turn(proxy);
      expect([tries(proxy), talk.reasoningSent(proxy)]).toEqual([[["work 200"], true], turn]);
    }
  });

  test("another conversation keeps its own", async () => {
    await using proxy = await timed(two);
    const moved = make();
    await moved.turn(proxy);
    rest(proxy, 0);
    await moved.turn(proxy);
    expect(tries(proxy)[1]).toBe(true);
    const settled = make();
    for (let turn = 0; turn < 3; turn++) {
      await settled.turn(proxy);
      expect([tries(proxy), settled.reasoningSent(proxy)]).toEqual([[["work 200"], false], turn]);
    }
  });

  test("is remembered for an hour after the last turn", async () => {
    await using proxy = await timed(two);
    const talk = make();
    await talk.turn(proxy);
    rest(proxy, 0);
    await talk.turn(proxy);
    for (let turn = 0; turn < 3; turn++) {
      proxy.pass(0.9 * hourMs);
      await talk.turn(proxy);
      expect(tries(proxy)).toEqual([["work 200"], true]);
    }
    proxy.pass(hourMs);
    await talk.turn(proxy);
    expect(tries(proxy)[0].length).toBe(2);
    await talk.turn(proxy);
    expect(tries(proxy)[0].length).toBe(1);
  });
});

test("reasoning that no account takes, as after an edit of what came before, is paid for once with each account", async () => {
  await using proxy = await timed(two);
  const talk = messagesTalk("claude-opus-5.5");
  await talk.turn(proxy);
  let refusals = 0;
  const isStale = (body: Json) => JSON.stringify(body.messages[1] ?? "").includes('"signature"');
  proxy.demo.intercept(
    "/v1/messages",
    ({ body }) => {
      if (!isStale(body)) return undefined;
      refusals++;
      const message =
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.";
      return Response.json({ type: "error", error: { type: "invalid_request_error", message } }, { status: 400 });
    },
    Number.POSITIVE_INFINITY,
  );
  for (let turn = 0; turn < 3; turn++) await talk.turn(proxy);
  expect([refusals, tries(proxy)]).toEqual([1, [["octo 200"], true]]);
});

const plain = { model: "claude-sonnet-4.6", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] };
const look = { name: "look", input_schema: { type: "object" } };
const searched = { type: "tool_search_tool_regex_20251119", name: "tool_search_tool_regex" };
const said = (code: string, message: string) => ({ error: { code, message } });
const cases: [what: string, body: Json, note: string, objection: (body: Json) => object | undefined][] = [
  [
    "an effort",
    { ...plain, output_config: { effort: "high" } },
    "effort",
    (body) =>
      body.output_config?.effort === "high"
        ? said("invalid_reasoning_effort", "output_config.effort: supported values: [low medium]")
        : undefined,
  ],
  [
    "a tool",
    { ...plain, tools: [searched, look] },
    "server-tools",
    (body) =>
      body.tools?.some(({ type }: Json) => type === searched.type)
        ? said("invalid_request_body", "rejected tool(s): tool_search_tool_regex")
        : undefined,
  ],
  [
    "a forced call",
    { ...plain, tools: [look], tool_choice: { type: "any" } },
    "forced-choice",
    (body) =>
      body.tool_choice?.type === "any"
        ? said("", 'tool_choice: type "tool" and "any" are not supported for this model.')
        : undefined,
  ],
  [
    "a system message in the conversation",
    {
      ...plain,
      model: "claude-opus-4.8",
      messages: [
        { role: "user", content: "Hello" },
        { role: "system", content: "Be brief." },
        { role: "assistant", content: "Hello." },
        { role: "user", content: "Go on." },
      ],
    },
    "system-role",
    (body) =>
      body.messages.some(({ role }: Json) => role === "system")
        ? said("", 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter.')
        : undefined,
  ],
];

test.each(cases)(
  "what a model refuses whoever asks: %s: is refused once in an hour, in each conversation the same",
  async (_, body, note, objection) => {
    await using proxy = await timed({ accounts: ["work-demo"], demo: { generation: "C" } });
    let refusals = 0;
    proxy.demo.intercept(
      "/v1/messages",
      (seen) => {
        const error = objection(seen.body);
        if (error) refusals++;
        return error && Response.json(error, { status: 400 });
      },
      Number.POSITIVE_INFINITY,
    );
    const ask = async (more: Json = {}) => {
      expect((await proxy.post("/v1/messages", { ...body, ...more })).status).toBe(200);
      const { attempts, fixups } = proxy.rows(1)[0]!;
      return [JSON.parse(attempts).length, JSON.parse(fixups).includes(note)];
    };
    expect(await ask()).toEqual([2, true]);
    expect(await ask()).toEqual([1, true]);
    expect(await ask({ system: "Another conversation." })).toEqual([1, true]);
    proxy.pass(hourMs);
    expect(await ask()).toEqual([2, true]);
    expect(refusals).toBe(2);
  },
);

test("a forced call that only thinking forbids is forced where there is none", async () => {
  await using proxy = await timed({ accounts: ["work-demo"], demo: { generation: "C" } });
  const words = "Thinking may not be enabled when tool_choice forces tool use.";
  const sent: string[] = [];
  proxy.demo.intercept(
    "/v1/messages",
    ({ body }) => {
      const { tool_choice: choice, thinking } = body as Json;
      sent.push(`${choice?.type} ${thinking?.type}`);
      const isRefused = choice?.type === "any" && thinking?.type === "adaptive";
      return isRefused ? Response.json(said("", words), { status: 400 }) : undefined;
    },
    Number.POSITIVE_INFINITY,
  );
  const forced = { ...plain, model: "claude-opus-4.8", tools: [look], tool_choice: { type: "any" } };
  const thinking = { type: "adaptive" };
  for (const more of [{ thinking }, { thinking }, {}])
    expect((await proxy.post("/v1/messages", { ...forced, ...more })).status).toBe(200);
  expect(sent).toEqual(["any adaptive", "auto adaptive", "auto adaptive", "any undefined"]);
});

test("what a provider refuses is remembered for it, a schema too", async () => {
  const asked: string[] = [];
  const refusal = (body: Json) => {
    if (body.reasoning_effort === "high") return said("invalid_reasoning_effort", "effort: supported values: [low]");
    return JSON.stringify(body.tools).includes("[")
      ? said("invalid_function_parameters", "Invalid schema for function 'look': a list is no type")
      : undefined;
  };
  using provider = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      if (request.method === "GET") return Response.json({ data: [{ id: "m" }] });
      const body: Json = await request.json();
      const error = refusal({ ...body, tools: body.tools[0] });
      asked.push(error ? error.error.code : "taken");
      if (error) return Response.json(error, { status: 400 });
      const message = { role: "assistant", content: "Hello." };
      return Response.json({
        ...{ id: "c", object: "chat.completion", created: 0, model: "m" },
        choices: [{ index: 0, message, finish_reason: "stop" }],
      });
    },
  });
  await using proxy = await timed({
    config: { providers: { own: { type: "chat", baseUrl: `http://127.0.0.1:${provider.port}/v1` } } },
  });
  const parameters = { type: "object", properties: { a: { type: ["string", "null"] } } };
  const body = {
    model: "own/m",
    messages: [{ role: "user", content: "Hi" }],
    reasoning_effort: "high",
    tools: [{ type: "function", function: { name: "look", parameters } }],
  };
  for (let turn = 0; turn < 2; turn++) expect((await proxy.post("/v1/chat/completions", body)).status).toBe(200);
  expect(asked).toEqual(["invalid_reasoning_effort", "invalid_function_parameters", "taken", "taken"]);
});

test("the memory of lessons forgets after an hour: the conversation's own after its last use, the model's after it was learnt", () => {
  let now = 0;
  const lessons = new Lessons(() => now);
  lessons.learn({ kind: "item", scope: "a", about: "mark", value: true });
  lessons.learn({ kind: "effort", scope: "a", value: ["low"] });
  for (const expected of [["low"], undefined]) {
    now += 0.7 * hourMs;
    expect([lessons.of("item", "a", "mark"), lessons.of("effort", "a")]).toEqual([true, expected]);
    expect(lessons.knows("a")).toBe(true);
  }
  now += hourMs;
  expect([lessons.of("item", "a", "mark"), lessons.knows("a")]).toEqual([undefined, false]);
});

test("the memory of lessons keeps apart what is of another model, account, kind and mark", () => {
  const lessons = new Lessons(() => 0);
  lessons.learn({ kind: "item", scope: "a", about: "mark", value: true });
  expect(lessons.of("item", "b", "mark")).toBeUndefined();
  expect(lessons.of("item", "a", "other")).toBeUndefined();
  expect(lessons.of("choice", "a", "mark")).toBeUndefined();
  expect([lessons.knows("a"), lessons.knows("b")]).toEqual([true, false]);
});

test("the memory of lessons adds up the tools that a model rejects, and stays small", () => {
  const lessons = new Lessons(() => 0);
  for (const name of ["one", "two", "one"]) lessons.learn({ kind: "tools", scope: "a", value: [name] });
  expect(lessons.of("tools", "a")).toEqual(["one", "two"]);
  for (let at = 0; at < 500; at++) lessons.learn({ kind: "tools", scope: "a", value: [`tool ${at}`] });
  expect(lessons.of("tools", "a")).toHaveLength(100);
  for (let at = 0; at < 30_000; at++) lessons.learn({ kind: "item", scope: "b", about: `${at}`, value: true });
  expect([lessons.of("item", "b", "5000"), lessons.of("item", "b", "29999")]).toEqual([undefined, true]);
  expect(lessons.of("tools", "a")).toBeUndefined();
});
