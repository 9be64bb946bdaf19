/**
 * Scenario: what only a system message within a conversation can say: tools that come and go, an effort, how long a
 * reminder stays.
 */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { codecs } from "../../../src/dialects/codecs";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { ableModel } from "../../support/facts";
import type { Json } from "../../support/json";
import { startProxy } from "../../support/proxy";

const proxy = await startProxy({ demo: { generation: "C" } });
afterAll(() => proxy[Symbol.asyncDispose]());
beforeEach(() => {
  proxy.demo.journal.length = 0;
});

const schema = { type: "object", properties: { place: { type: "string" } } };
const tool = (name: string, more: Json = {}): Json => ({
  name,
  description: `Does what ${name} says.`,
  input_schema: schema,
  ...more,
});
const later = { defer_loading: true };
const reference = (name: string) => ({ type: "tool_reference", name });
const byValue = (name: string) => ({ type: "tool_definition", definition: tool(name) });
const addition = (which: Json) => ({ type: "tool_addition", tool: which });
const removal = (name: string) => ({ type: "tool_removal", tool: reference(name) });
const system = (...content: Json[]) => ({ role: "system", content });
const text = (words: string) => ({ type: "text", text: words });
const user = (words: string) => ({ role: "user", content: words });
const assistant = (words: string) => ({ role: "assistant", content: words });
const search = { type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" };

const betas = { "anthropic-beta": "mid-conversation-tool-changes-2026-07-01,inline-tools-2026-09-15" };
const claude = ["claude-opus-5.5", "claude-sonnet-4.6", "claude-haiku-4.5"];
const models = [...claude, "gpt-6-sol", exampleModels.gemini];

async function ask(body: Json, headers: Record<string, string> = {}): Promise<Json> {
  const response = await proxy.post("/v1/messages", { max_tokens: 2000, ...body }, { headers });
  const json = await response.json();
  expect({ status: response.status, json }).toMatchObject({ status: 200 });
  return proxy.demo.journal.findLast(({ body }) => (body as Json)?.model)!.body;
}

/** The tools that the model has in its prompt. */
const offered = ({ tools = [] }: Json): string[] =>
  tools
    .filter((each: Json) => !each.defer_loading && each.type !== search.type)
    .map((each: Json) => each.name ?? each.function?.name);

describe.each(models)("tools announced to %s in the conversation", (model) => {
  const asked = (...messages: Json[]) => ({
    model,
    tools: [search, tool("look"), tool("dig", later), tool("fly", later)],
    messages,
  });

  test.each([{}, betas])("are offered, by reference and by value %#", async (headers) => {
    const sent = await ask(
      asked(user("Hello"), system(text("A server connected."), addition(reference("dig")), addition(byValue("swim")))),
      headers,
    );
    expect(offered(sent).filter((name) => name !== "tool_search")).toEqual(["look", "dig", "swim"]);
    expect(JSON.stringify(sent)).toContain("A server connected.");
    expect(JSON.stringify(sent)).not.toMatch(/tool_addition|tool_definition|Left out/);
    const [call] = proxy.demo.journal.slice(-1);
    expect(String(call!.headers["anthropic-beta"])).not.toMatch(/tool-changes|inline-tools/);
  });

  test("are taken off again, and put back", async () => {
    const sent = await ask(
      asked(
        user("Hello"),
        system(addition(reference("dig")), addition(byValue("swim")), removal("look")),
        assistant("Hello."),
        system(removal("dig"), removal("swim")),
        user("And now?"),
        system(addition(reference("swim"))),
      ),
    );
    expect(offered(sent).filter((name) => name !== "tool_search")).toEqual(["swim"]);
  });

  test("are those of a compacted beginning, too, whose summary is kept", async () => {
    const block = {
      type: "compaction",
      content: "We looked at the map.",
      encrypted_content: "opaque",
      tool_changes: [addition(reference("dig")), addition(byValue("swim")), removal("look")],
    };
    const sent = await ask(asked({ role: "assistant", content: [block] }, user("Go on.")));
    expect(offered(sent).filter((name) => name !== "tool_search")).toEqual(["dig", "swim"]);
    expect(JSON.stringify(sent)).toContain("We looked at the map.");
    expect(JSON.stringify(sent)).not.toMatch(/opaque|tool_changes/);
  });

  test("count as part of the prompt, and those that wait do not", async () => {
    const count = async (body: Json) => {
      const response = await proxy.post("/v1/messages/count_tokens", body);
      return ((await response.json()) as Json).input_tokens as number;
    };
    const large = { description: "Many words about what it does. ".repeat(200) };
    const tools = [search, tool("look"), tool("dig", { ...later, ...large }), tool("fly", { ...later, ...large })];
    const hello = [user("Hello"), system(text("Hi."))];
    const announced = (...names: string[]) => system(...names.map((name) => addition(reference(name))));
    const waiting = await count({ model, tools, messages: hello });
    const one = await count({ model, tools, messages: [...hello, announced("dig")] });
    const both = await count({ model, tools, messages: [...hello, announced("dig", "fly")] });
    expect(waiting).toBeLessThan(600);
    expect(one - waiting).toBeGreaterThan(900);
    expect((both - waiting) / (one - waiting)).toBeWithin(1.8, 2.6);
  });
});

describe("an effort within the conversation", () => {
  const effort = (word: string) => ({ role: "system", content: [], output_config: { effort: word } });
  const result = [
    { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "look", input: {} }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "A lake." }] },
  ];
  const efforts = ({ output_config, reasoning, reasoning_effort }: Json) =>
    output_config?.effort ?? reasoning?.effort ?? reasoning_effort;
  // The first one takes system messages, but no effort in them.
  const strong = ["claude-haiku-5.5", "claude-sonnet-4.6", "gpt-6-sol", exampleModels.gemini];

  test.each(
    strong.flatMap((model) =>
      (
        [
          ["after a person's message", "low", [user("Hello"), effort("low")]],
          ["beside a change of tools", "low", [user("Hello"), { ...effort("low"), content: [removal("dig")] }]],
          ["before one", "low", [user("Hello"), assistant("Hello."), effort("low"), user("And now?")]],
          [
            "until it is changed",
            "medium",
            [user("Hello"), effort("low"), assistant("Hello."), user("And now?"), effort("medium")],
          ],
          ["through the calls of tools", "low", [user("Hello"), effort("low"), ...result]],
          ["not yet after a tool's result", "high", [user("Hello"), ...result, effort("low")]],
          [
            "from the person's next message on",
            "low",
            [user("Hello"), ...result, effort("low"), assistant("A lake."), user("And now?")],
          ],
        ] as [string, string, Json[]][]
      ).map(([when, word, messages]) => [when, model, word, messages] as const),
    ),
  )("counts %s, for %s", async (_, model, word, messages) => {
    const body = { model, tools: [tool("look")], thinking: { type: "adaptive" }, output_config: { effort: "high" } };
    const sent = await ask({ ...body, messages });
    expect(efforts(sent)).toBe(word);
    const said: Json[] = sent.messages ?? sent.input;
    expect(said.filter(({ content, role }) => role && role !== "assistant" && content?.length === 0)).toEqual([]);
    expect(JSON.stringify(said)).not.toMatch(/output_config/);
  });
});

describe("a model that takes system messages within the conversation", () => {
  const model = "claude-opus-5.5";
  const effort = { role: "system", content: [], output_config: { effort: "low" } };
  const reminder = { role: "system", content: "The build is red." };

  test("gets them where they follow a user's message, and the request stays as it is", async () => {
    const messages = [user("Hello"), reminder, assistant("Hello."), user("And now?"), reminder];
    const sent = await ask({ model, messages });
    expect(sent.messages).toEqual(messages);
    expect(JSON.parse(proxy.rows()[0]!.fixups ?? "[]")).not.toContain("system-role");
  });

  test.each([
    ["after the model's", [user("Hello"), assistant("Hello."), reminder, user("And now?")]],
    ["before a user's", [user("Hello"), reminder, user("And now?")]],
  ])("gets one that stands %s as a reminder in a user's", async (_, messages) => {
    const sent = await ask({ model, messages });
    expect(sent.messages.map(({ role }: Json) => role)).not.toContain("system");
    expect(JSON.stringify(sent.messages)).toContain("<system-reminder>\\nThe build is red.");
  });

  test("gets the effort where it was said, so that the prompt's beginning stays the same", async () => {
    const messages = [
      user("Hello"),
      effort,
      assistant("Hello."),
      user("And now?"),
      { ...reminder, ...effort, content: "Be quick." },
    ];
    const sent = await ask({ model, messages, output_config: { effort: "high" } });
    expect([sent.messages, sent.output_config]).toEqual([messages, { effort: "high" }]);
    expect(proxy.demo.journal.at(-1)!.headers["anthropic-beta"]).toContain("per-turn-control-2026-07-01");
  });

  test("gets it with the request where it was said elsewhere, or where the beta was refused", async () => {
    const elsewhere = await ask({ model, messages: [user("Hello"), assistant("Hello."), effort, user("And now?")] });
    expect(elsewhere.output_config).toEqual({ effort: "low" });
    const facts = ableModel(model, "Anthropic");
    const able = { ...facts, supports: { ...facts.supports, systemTurns: true, turnEfforts: true } };
    const refusedBetas = ["per-turn-control-2026-07-01"];
    const body = { model, max_tokens: 9, messages: [user("Hello"), effort] };
    const sent = codecs.messages.fixRequest(body, able, { webSearch: false, refusedBetas });
    expect([sent.messages, sent.output_config]).toEqual([[user("Hello")], { effort: "low" }]);
  });

  test("is asked without them once it has refused them", async () => {
    await using fronted = await startProxy({ demo: { generation: "C" }, fronted: true });
    const error = { type: "invalid_request_error", message: 'messages: Unexpected role "system".' };
    let asked = 0;
    fronted.front!.answers = (path) =>
      path === "/v1/messages" && asked++ === 0 ? JSON.stringify({ type: "error", error }) : undefined;
    const body = { model, max_tokens: 2000, messages: [user("Hello"), reminder, effort] };
    const response = await fronted.post("/v1/messages", body);
    expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
    const sent = fronted.demo.journal.findLast((call) => (call.body as Json)?.model)!.body as Json;
    expect(JSON.stringify(sent.messages)).toContain("<system-reminder>\\nThe build is red.");
    expect(sent.output_config).toEqual({ effort: "low" });
  });
});

describe("a reminder that is to be cleared", () => {
  const reminder = { role: "system", content: "The build is red.", clear_at: "next_user_message" };
  const lasting = { role: "system", content: "Be brief.", clear_at: "never" };

  test.each(models)("stays until the next user message, for %s", async (model) => {
    const now = JSON.stringify(await ask({ model, messages: [user("Hello"), reminder, lasting] }));
    expect(now).toContain("The build is red.");
    const after = JSON.stringify(
      await ask({ model, messages: [user("Hello"), reminder, lasting, assistant("Hello."), user("And now?")] }),
    );
    expect(after).not.toContain("The build is red.");
    for (const sent of [now, after]) {
      expect(sent).toContain("Be brief.");
      expect(sent).not.toContain("clear_at");
    }
  });
});
