/**
 * Scenario: tools that are searched for: deferred by the client, or more than the model takes. Official SDKs read the
 * replies.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { matchInThread } from "../../../src/proxy/server-tools/match-threads";
import { searchTools } from "../../../src/proxy/server-tools/tool-search";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import type { Json } from "../../support/json";
import { type RunningProxy, startProxy } from "../../support/proxy";

const servers = ["github", "jira", "slack", "postgres", "calendar", "files"];
const verbs = ["create", "list", "delete", "update", "search", "archive", "close", "assign", "merge", "export"];
const things = ["issue", "comment", "channel", "table", "event"];

/** 300 tools as MCP servers have them. */
const many = servers.flatMap((server) =>
  verbs.flatMap((verb) =>
    things.map((thing) => ({
      name: `mcp__${server}__${verb}_${thing}`,
      description: `Lets the assistant ${verb} one ${thing} in the workspace of ${server}. Needs the permission to do so.`,
      schema: {
        type: "object",
        properties: {
          id: { type: "string", description: `The ${thing}'s id in ${server}.` },
          title: { type: "string", description: "What people read first." },
          labels: { type: "array", items: { type: "string" }, description: "Words to sort by." },
        },
        required: ["title"],
      },
    })),
  ),
);
const wanted = "mcp__slack__merge_channel";
const wish = "Find a tool that can merge a channel in slack.";
const own = { name: "look", description: "Looks at a place.", schema: { type: "object", properties: {} } };

const anthropicTool = ({ name, description, schema }: typeof own) => ({ name, description, input_schema: schema });
const functionTool = ({ name, description, schema }: typeof own) => ({
  type: "function" as const,
  name,
  description,
  parameters: schema,
  strict: false,
});
const later = { defer_loading: true };
const deferred = {
  messages: [anthropicTool(own), ...many.map((tool) => ({ ...anthropicTool(tool as never), ...later }))],
  responses: [functionTool(own), ...many.map((tool) => ({ ...functionTool(tool as never), ...later }))],
};

const anthropic = ({ url }: RunningProxy) => new Anthropic({ baseURL: url, apiKey: "k", maxRetries: 0 });
const openai = ({ url }: RunningProxy) => new OpenAI({ baseURL: `${url}/v1`, apiKey: "k", maxRetries: 0 });

/** What models were sent, the oldest first. */
const sentTo = (proxy: RunningProxy): Json[] =>
  proxy.demo.journal.map(({ body }) => body as Json).filter((body) => body?.model);
const namesIn = ({ tools = [] }: Json): string[] => tools.map((tool: Json) => tool.name ?? tool.function?.name);
const toolBytes = ({ tools }: Json): number => JSON.stringify(tools).length;
const fixupsOf = (proxy: RunningProxy): string => String(proxy.rows()[0]!.fixups);

describe("Anthropic's tool search", () => {
  const ask = (model: string, type = "tool_search_tool_bm25_20251119"): Json => ({
    model,
    max_tokens: 2000,
    messages: [{ role: "user", content: wish }],
    tools: [{ type, name: type.replace(/_\d+$/, "") }, ...deferred.messages],
  });

  test.each(["gpt-5.3-codex", "gemini-3.1-pro-preview", "claude-haiku-4.5"])(
    "Anthropic's tool search of %s finds the tool",
    async (model) => {
      await using proxy = await startProxy();
      const body = ask(model);
      const full = await anthropic(proxy).messages.create(body);
      // Gemini's calls come without a text.
      const parts = (full.content as Json[]).filter(({ type }) => type !== "text");
      expect(parts.map(({ type }) => type)).toEqual(["server_tool_use", "tool_search_tool_result", "tool_use"]);
      const [call, result, use] = parts;
      expect(call).toMatchObject({ name: "tool_search_tool_bm25", input: { query: "can merge a channel in slack" } });
      expect(result.tool_use_id).toBe(call.id);
      expect(result.content.type).toBe("tool_search_tool_search_result");
      expect(result.content.tool_references[0]).toEqual({ type: "tool_reference", tool_name: wanted });
      expect(result.content.tool_references.length).toBeLessThanOrEqual(5);
      expect(use.name).toBe(wanted);
      expect(full.stop_reason).toBe("tool_use");
      const [first, second] = sentTo(proxy);
      expect(namesIn(first)).toEqual(["tool_search", "look"]);
      expect(namesIn(second)).toEqual([
        ...namesIn(first),
        ...result.content.tool_references.map((one: Json) => one.tool_name),
      ]);
      expect(toolBytes(first)).toBeLessThan(JSON.stringify(body.tools).length / 50);
      expect(fixupsOf(proxy)).toContain("tools-deferred");

      const streamed = await anthropic(proxy).messages.stream(body).finalMessage();
      const plain = (content: Json) =>
        JSON.parse(JSON.stringify(content).replaceAll(/"(srvtoolu|toolu|call)_[\w-]+"/g, '""'));
      expect(plain(streamed.content)).toEqual(plain(full.content));

      // The history holds what was found: the tool is there again without a search.
      proxy.demo.journal.length = 0;
      const messages = [
        ...body.messages,
        { role: "assistant", content: full.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: "Merged." }] },
      ];
      const again = await anthropic(proxy).messages.create({ ...body, messages });
      expect(again.stop_reason).toBe("end_turn");
      expect(namesIn(sentTo(proxy)[0])).toEqual(namesIn(second));

      // A client that defers no tool now has the search in its history all the same, which the model does not know.
      proxy.demo.journal.length = 0;
      await anthropic(proxy).messages.create({ ...body, tools: [anthropicTool(own)], messages });
      expect(JSON.stringify(sentTo(proxy)[0])).not.toContain("tool_search_tool");

      // A Claude that searches itself takes the same history as its own.
      proxy.demo.journal.length = 0;
      await anthropic(proxy).messages.create({ ...body, model: "claude-sonnet-4.5", messages });
      expect(sentTo(proxy)[0].messages).toEqual(messages);
    },
  );

  test("takes a regular expression, and says so of one that is none", async () => {
    await using proxy = await startProxy();
    const regex = "tool_search_tool_regex_20251119";
    const asked = (query: string) =>
      anthropic(proxy).messages.create({
        ...ask("gpt-5.3-codex", regex),
        messages: [{ role: "user", content: `Find a tool for ${query}` }],
      });
    const [, call, result] = (await asked("merge_ch[a-z]+$")).content as Json[];
    expect(call.name).toBe("tool_search_tool_regex");
    expect(result.content.tool_references.map((one: Json) => one.tool_name)).toEqual(
      ["github", "jira", "slack", "postgres", "calendar"].map((server) => `mcp__${server}__merge_channel`),
    );
    const [, , failed] = (await asked("merge_(((")).content as Json[];
    expect(failed.content).toMatchObject({ type: "tool_search_tool_result_error", error_code: "invalid_tool_input" });
  });

  test("the tool search of a Claude that has it is left to the upstream, byte by byte", async () => {
    await using proxy = await startProxy();
    const body = ask("claude-sonnet-4.5");
    await (await proxy.post("/v1/messages", body)).text();
    expect(sentTo(proxy)[0].tools).toEqual(body.tools);
    expect(fixupsOf(proxy)).not.toContain("tools-deferred");
  });
});

test("a client's own search names the tools that its model has: Claude Code on a GPT model", async () => {
  await using proxy = await startProxy();
  const search = { name: "ToolSearch", description: "Searches.", input_schema: { type: "object", properties: {} } };
  const result = {
    type: "tool_result",
    tool_use_id: "toolu_1",
    content: [{ type: "tool_reference", tool_name: wanted }],
  };
  await anthropic(proxy).messages.create({
    model: "gpt-5.3-codex",
    max_tokens: 2000,
    tools: [search, ...deferred.messages],
    messages: [
      { role: "user", content: wish },
      { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "ToolSearch", input: {} }] },
      { role: "user", content: [result] },
    ],
  } as Json);
  expect(namesIn(sentTo(proxy)[0])).toEqual(["ToolSearch", "look", wanted]);
});

describe("OpenAI's tool search", () => {
  const ask = (model: string): Json => ({
    model,
    input: [{ role: "user", content: wish }],
    tools: [{ type: "tool_search" }, ...deferred.responses],
  });

  test.each(["claude-sonnet-4.5", "gemini-3.1-pro-preview", "gpt-5.2"])(
    "OpenAI's tool search of %s finds the tool",
    async (model) => {
      await using proxy = await startProxy();
      const body = ask(model);
      const full = await openai(proxy).responses.create(body);
      const items = (full.output as Json[]).filter(({ type }) => type !== "message");
      expect(items.map(({ type }) => type)).toEqual(["tool_search_call", "tool_search_output", "function_call"]);
      const [call, output, use] = items;
      expect(call).toMatchObject({
        execution: "server",
        status: "completed",
        arguments: { query: expect.any(String) },
      });
      expect(output).toMatchObject({ execution: "server", call_id: null, status: "completed" });
      expect(output.tools[0]).toMatchObject({ type: "function", name: wanted, defer_loading: true });
      expect(use.name).toBe(wanted);
      const [first] = sentTo(proxy);
      expect(namesIn(first)).toEqual(["tool_search", "look"]);
      expect(JSON.stringify(first)).not.toContain("defer_loading");

      const stream = openai(proxy).responses.stream(body);
      const streamed = await stream.finalResponse();
      expect(streamed.output.map(({ type }: Json) => type)).toEqual(full.output.map(({ type }: Json) => type));

      proxy.demo.journal.length = 0;
      const input = [
        ...body.input,
        ...full.output,
        { type: "function_call_output", call_id: use.call_id, output: "Ok." },
      ];
      const again = await openai(proxy).responses.create({ ...body, input });
      expect(again.status).toBe("completed");
      expect(namesIn(sentTo(proxy)[0]).slice(0, 3)).toEqual(["tool_search", "look", wanted]);
    },
  );

  test("the tool search of a GPT that has it is left to the upstream", async () => {
    await using proxy = await startProxy({ demo: { generation: "C" } });
    const body = ask(exampleModels.gpt);
    await (await proxy.post("/v1/responses", body)).text();
    expect(sentTo(proxy)[0]?.tools?.length).toBe(body.tools.length);
  });

  test("in namespaces, run by the client: Codex on a Claude model", async () => {
    await using proxy = await startProxy();
    const parameters = { type: "object", properties: { query: { type: "string" } }, required: ["query"] };
    const search = { type: "tool_search", execution: "client", description: "Finds tools.", parameters };
    const body: Json = { model: "claude-sonnet-4.5", input: [{ role: "user", content: wish }], tools: [search] };
    const full = await openai(proxy).responses.create(body);
    const call = (full.output as Json[]).at(-1);
    expect(call).toMatchObject({
      type: "tool_search_call",
      execution: "client",
      status: "completed",
      arguments: { query: "can merge a channel in slack" },
    });
    expect(call.call_id).toBeString();
    const streamed = await openai(proxy).responses.stream(body).finalResponse();
    expect((streamed.output as Json[]).at(-1)).toMatchObject({ type: "tool_search_call", arguments: call.arguments });

    const found = { type: "function", name: "merge_channel", description: "Merges.", parameters, defer_loading: true };
    const tools = [{ type: "namespace", name: "mcp__slack", description: "Slack.", tools: [found] }];
    const output = {
      type: "tool_search_output",
      call_id: call.call_id,
      execution: "client",
      status: "completed",
      tools,
    };
    const next = await openai(proxy).responses.create({ ...body, input: [...body.input, ...full.output, output] });
    expect((next.output as Json[]).at(-1)).toMatchObject({
      type: "function_call",
      namespace: "mcp__slack",
      name: "merge_channel",
    });
    expect(namesIn(sentTo(proxy).at(-1))).toEqual(["tool_search", "mcp__slack__merge_channel"]);
  });
});

const chat = (model: string): Json => ({
  model,
  messages: [{ role: "user", content: wish }],
  tools: many.map(({ name, description, schema }) => ({
    type: "function",
    function: { name, description, parameters: schema },
  })),
});

test.each(["gpt-4.1", "gemini-3.1-pro-preview"])(
  "more tools than the model takes are found by %s, unseen by a chat client",
  async (model) => {
    await using proxy = await startProxy();
    const reply = await openai(proxy).chat.completions.create(chat(model));
    const { tool_calls = [] } = reply.choices[0]!.message;
    expect(tool_calls.map((call: Json) => call.function.name)).toEqual([wanted]);
    const [first, second] = sentTo(proxy);
    expect(namesIn(first)).toHaveLength(97);
    expect(namesIn(second).slice(0, 97)).toEqual(namesIn(first));
    expect(namesIn(second)).toContain(wanted);
    expect(fixupsOf(proxy)).toContain("tools-over-limit");
  },
);

test.each(["gpt-4.1", "gpt-5.3-codex", "gemini-3.1-pro-preview"])(
  "a tool that has no room, and is one of those that %s may call, needs no search",
  async (model) => {
    await using proxy = await startProxy();
    const tools = [{ type: "function", function: { name: wanted } }];
    const tool_choice = { type: "allowed_tools", allowed_tools: { mode: "required", tools } };
    await openai(proxy).chat.completions.create({ ...chat(model), tool_choice } as Json);
    expect(namesIn(sentTo(proxy)[0]!)).toContain(wanted);
  },
);

test("a messages client sees nothing of a search that it did not ask for", async () => {
  await using proxy = await startProxy();
  const tools = many.map((tool) => anthropicTool(tool as never));
  const messages = [{ role: "user" as const, content: wish }];
  const body = { model: "gpt-5.3-codex", max_tokens: 2000, messages, tools } as Json;
  const full = await anthropic(proxy).messages.create(body);
  expect(full.content.map(({ type }: Json) => type)).toEqual(["text", "text", "tool_use"]);
  expect(full.content.at(-1)).toMatchObject({ name: wanted });
  const streamed = await anthropic(proxy).messages.stream(body).finalMessage();
  expect(streamed.content.at(-1)).toMatchObject({ name: wanted });
});

test("more tools than the model takes are refused in words if the config has it off", async () => {
  await using proxy = await startProxy({ config: { toolSearch: "off" } });
  const tools = many.map((tool) => anthropicTool(tool as never));
  const messages = [{ role: "user", content: wish }];
  const answer = await proxy.post("/v1/messages", { model: "gpt-5.3-codex", max_tokens: 2000, messages, tools });
  expect(answer.status).toBe(400);
  const { error } = (await answer.json()) as Json;
  expect(error.message).toContain("300 tools, but this model accepts at most 128");
  expect(error.message).toContain("toolSearch");
});

describe("searches in threads", () => {
  const candidates = Array.from({ length: 300 }, (_, at) => ({ name: `tool_${at}`, description: "é".repeat(4_000) }));
  const tools = candidates.map((tool) => ({ ...tool, inputs: [] }));
  const never = new AbortController().signal;
  /** By a pattern that would take half a minute. A search has five seconds; the proof tier waits for them. */
  const findSlowly = (signal: AbortSignal, limitMs: number) =>
    matchInThread({ query: "[\\p{L}]{1000}é", how: "regex", tools }, signal, limitMs);
  const find = (limitMs: number, signal = never) =>
    matchInThread({ query: "tool_7$", how: "regex", tools: tools.slice(0, 10) }, signal, limitMs);
  const outcomes: string[] = [];
  /** Notes how a search ends. */
  const noted = (name: string, work: Promise<unknown>) =>
    work.then(
      (names) => outcomes.push(`${name}: ${names}`),
      ({ message }) => outcomes.push(`${name}: ${message}`),
    );
  beforeEach(() => outcomes.splice(0));

  test("others search while slow patterns run until they are given up", async () => {
    const search = (query: string) =>
      searchTools(
        { signal: never },
        { id: "1", tool: "tool-search", input: { query } },
        { tool: "tool-search", candidates },
        "regex",
      );
    const slow = Promise.allSettled([1, 2, 3].map(() => findSlowly(never, 300)));
    expect(await search("tool_7$")).toEqual({ kind: "tools", names: ["tool_7"] });
    for (const { status } of await slow) expect(status).toBe("rejected");
    expect(await search("tool_7$")).toEqual({ kind: "tools", names: ["tool_7"] });
  });

  test("the time that a search waits for a thread is part of its limit", async () => {
    const slow = [1, 2, 3, 4].map(() => noted("slow", findSlowly(never, 800)));
    await Promise.all([noted("waiting", find(200)), ...slow]);
    expect(outcomes[0]).toBe("waiting: The search took too long.");
  });

  test("a client that has left keeps neither its place nor its thread", async () => {
    const clients = [1, 2, 3, 4, 5].map(() => new AbortController());
    const slow = clients.slice(1).map(({ signal }) => noted("slow", findSlowly(signal, 5_000)));
    const [gone, running] = clients;
    const left = noted("left", find(5_000, gone!.signal));
    const next = noted("next", find(5_000));
    gone!.abort(new Error("it has left"));
    await left;
    expect(outcomes).toEqual(["left: it has left"]);
    running!.abort(new Error("it has left"));
    await next;
    expect(outcomes.toSorted()).toEqual(["left: it has left", "next: tool_7", "slow: it has left"]);
    for (const client of clients) client.abort(new Error("it has left"));
    await Promise.all(slow);
    await expect(find(5_000, gone!.signal)).rejects.toThrow("it has left");
  });

  test("only so many wait", async () => {
    const client = new AbortController();
    const slow = [1, 2, 3, 4].map(() => noted("slow", findSlowly(client.signal, 5_000)));
    const waiting = Array.from({ length: 60 }, () => noted("waiting", find(5_000, client.signal)));
    await noted("one more", find(5_000));
    expect(outcomes).toEqual(["one more: Too many searches wait for a thread."]);
    client.abort(new Error("it has left"));
    await Promise.all([...slow, ...waiting]);
    expect(await find(5_000)).toEqual(["tool_7"]);
  });
});

test("a namespace of tools stays in the calls of a conversation that is translated because a search runs here", async () => {
  await using proxy = await startProxy({ demo: { generation: "C" } });
  const look = (name: string) => ({ type: "function", name, parameters: { type: "object", properties: {} } });
  const calls = [
    { call_id: "call_1", name: "read", namespace: "mcp__files" },
    { call_id: "call_2", name: "mcp__files__read" },
  ];
  // This model has no search of its own.
  const response = await proxy.post("/v1/responses", {
    model: exampleModels.small,
    store: false,
    tools: [
      { type: "namespace", name: "mcp__files", description: "Files.", tools: [look("read")] },
      look("mcp__files__read"),
      { type: "tool_search" },
      { ...look("far"), defer_loading: true },
    ],
    input: [
      { type: "message", role: "user", content: [{ type: "input_text", text: "Hi." }] },
      ...calls.flatMap((call) => [
        { type: "function_call", arguments: "{}", ...call },
        { type: "function_call_output", call_id: call.call_id, output: "found" },
      ]),
    ],
  });
  expect(response.status).toBe(200);
  const sent = proxy.demo.journal.at(-1)!.body as Json;
  expect(sent.tools.map(({ name }: Json) => name)).toContain("tool_search");
  const told = sent.input.filter(({ type }: Json) => type === "function_call");
  expect(told.map(({ name, namespace }: Json) => [name, namespace])).toEqual(
    calls.map(({ name, namespace }) => [name, namespace]),
  );
});
