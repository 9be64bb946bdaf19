/**
 * Scenario: what a row says its prompt was made of: tokens that add up to the upstream's count, what they cost, and
 * what changed.
 */
import { expect, test } from "bun:test";
import { type Portion, portionsIn } from "../../../src/books/history/portions";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { endedPrompt } from "../../../src/proxy/relay/portions";
import { measurePrompt } from "../../../src/proxy/tokens/measured-prompt";
import { CacheWatch } from "../../../src/proxy/upstream/cache-watch";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { type TimedProxy, timed } from "./bench";

const words = (text: string, count: number) => `${text} `.repeat(count);
const [account] = demoAccounts();
const start = () => timed({ demo: { accounts: [{ ...account!, quota: quotas.credits() }], generation: "C" } });
const last = (proxy: TimedProxy) => {
  const row = proxy.rows()[0]!;
  return { ...row, parts: portionsIn(row.portions) };
};
const tokensOf = (parts: Portion[], kind: string, tool: string | null = null) =>
  parts.find((part) => part.kind === kind && part.tool === tool)?.tokens;
const sum = (parts: Portion[], name: "tokens" | "cached" | "cost") =>
  parts
    .filter(({ kind }) => kind !== "output" && kind !== "surcharge")
    .reduce((total, part) => total + (part[name] ?? 0), 0);

const schema = { type: "object", properties: { path: { type: "string", description: words("A path.", 40) } } };
const github = ["create_issue", "list_issues"].map((name) => `mcp__github__${name}`);
const toolNames = [...github, "Read"];
const result = words("A line of the file.", 300);

/** The same conversation in each dialect: a tool was called, and an image shown. */
const bodies: Record<string, { path: string; body: object }> = {
  messages: {
    path: "/v1/messages",
    body: {
      model: exampleModels.claude,
      max_tokens: 100,
      system: [{ type: "text", text: words("Be brief.", 500), cache_control: { type: "ephemeral" } }],
      tools: toolNames.map((name) => ({ name, description: "Reads.", input_schema: schema })),
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: `<system-reminder>${words("Mind this.", 50)}</system-reminder>` },
            { type: "text", text: words("Look at the file.", 20) },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "text", text: "I look." },
            { type: "tool_use", id: "t1", name: "Read", input: { path: "a" } },
          ],
        },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: result }] }],
        },
      ],
    },
  },
  chat: {
    path: "/v1/chat/completions",
    body: {
      model: exampleModels.gemini,
      tools: toolNames.map((name) => ({
        type: "function",
        function: { name, description: "Reads.", parameters: schema },
      })),
      messages: [
        { role: "system", content: words("Be brief.", 500) },
        { role: "user", content: `<system-reminder>${words("Mind this.", 50)}</system-reminder>` },
        { role: "user", content: words("Look at the file.", 20) },
        {
          role: "assistant",
          content: "I look.",
          tool_calls: [{ id: "t1", type: "function", function: { name: "Read", arguments: '{"path":"a"}' } }],
        },
        { role: "tool", tool_call_id: "t1", content: result },
      ],
    },
  },
  responses: {
    path: "/v1/responses",
    body: {
      model: exampleModels.gpt,
      instructions: words("Be brief.", 500),
      tools: toolNames.map((name) => ({ type: "function", name, description: "Reads.", parameters: schema })),
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: `<environment_context>${words("Mind this.", 50)}</environment_context>` },
          ],
        },
        { role: "user", content: [{ type: "input_text", text: words("Look at the file.", 20) }] },
        { role: "assistant", content: [{ type: "output_text", text: "I look." }] },
        { type: "function_call", call_id: "t1", name: "Read", arguments: '{"path":"a"}' },
        { type: "function_call_output", call_id: "t1", output: result },
      ],
    },
  },
  gemini: {
    path: `/v1beta/models/${exampleModels.gemini}:generateContent`,
    body: {
      systemInstruction: { parts: [{ text: words("Be brief.", 500) }] },
      tools: [{ functionDeclarations: toolNames.map((name) => ({ name, description: "Reads.", parameters: schema })) }],
      contents: [
        {
          role: "user",
          parts: [
            { text: `<system-reminder>${words("Mind this.", 50)}</system-reminder>` },
            { text: words("Look at the file.", 20) },
          ],
        },
        { role: "model", parts: [{ text: "I look." }, { functionCall: { name: "Read", args: { path: "a" } } }] },
        { role: "user", parts: [{ functionResponse: { name: "Read", response: { output: result } } }] },
      ],
    },
  },
};

test.each(Object.keys(bodies))(
  "the portions of a %s prompt add up to what the upstream counted and charged",
  async (dialect) => {
    await using proxy = await start();
    const { path, body } = bodies[dialect]!;
    const response = await proxy.post(path, body);
    expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
    const { parts, input_tokens, output_tokens, cost, marked_tokens } = last(proxy);
    expect(sum(parts, "tokens")).toBe(input_tokens!);
    expect(tokensOf(parts, "output")).toBe(output_tokens!);
    const charged = parts.reduce((total, part) => total + part.cost!, 0);
    expect(Math.abs(charged - cost!)).toBeLessThan(50);
    // In proportion to their lengths.
    const [ofSystem, ofResult] = [tokensOf(parts, "system")!, tokensOf(parts, "results", "Read")!];
    expect(ofResult / ofSystem).toBeCloseTo(result.length / words("Be brief.", 500).length, 1);
    const github = parts.find(({ tool }) => tool === "mcp__github");
    expect(github).toMatchObject({ kind: "tools", count: 2 });
    for (const kind of ["person", "client", "answers"]) expect(tokensOf(parts, kind)).toBeGreaterThan(0);
    expect(parts.find(({ kind }) => kind === "calls")).toMatchObject({ tool: "Read", count: 1 });
    if (dialect === "messages")
      expect(marked_tokens!).toBe(
        sum(
          parts.filter(({ kind }) => kind === "tools" || kind === "system"),
          "tokens",
        ),
      );
    else expect(marked_tokens).toBe(0);
  },
);

const turn = (turns: number, more: object = {}) => ({
  ...bodies.messages!.body,
  ...more,
  model: exampleModels.small,
  messages: [
    { role: "user", content: words("Look at the file.", 20) },
    ...Array.from({ length: turns }, (_, at) => [
      { role: "assistant", content: [{ type: "tool_use", id: `t${at}`, name: "Read", input: { path: `a${at}` } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: `t${at}`, content: result }] },
    ]).flat(),
  ],
});
const headers = { "x-claude-code-session-id": "5b3c1c1e-52c4" };

test("each portion says what of it was cached, and how much it grew", async () => {
  await using proxy = await start();
  await (await proxy.post("/v1/messages", turn(4), { headers })).text();
  const first = last(proxy);
  expect(first.parts.every(({ grown }) => grown === null)).toBe(true);
  await (await proxy.post("/v1/messages", turn(5), { headers })).text();
  const second = last(proxy);
  expect(sum(second.parts, "tokens")).toBe(second.input_tokens!);
  expect(sum(second.parts, "cached")).toBe(second.cached_tokens!);
  const results = second.parts.find(({ kind }) => kind === "results")!;
  expect(results.grown).toBe(results.tokens - tokensOf(first.parts, "results", "Read")!);
  expect(results.grown!).toBeGreaterThan(300);
  // The cache has the beginning: all of the tools, and not the newest result.
  const tools = second.parts.find(({ tool }) => tool === "mcp__github")!;
  expect([tools.cached, tools.grown]).toEqual([tools.tokens, expect.closeTo(0, -1)]);
  expect(results.cached).toBeLessThan(results.tokens);
  const html = async (path: string) => (await fetch(`${proxy.url}${path}`)).text();
  const page = await html(`/admin/requests/${second.request_id}`);
  for (const said of ["Tools: github (MCP)", "Tool results: Read", "since the request before", "This reply"])
    expect(page).toContain(said);
  expect(await html("/admin")).toContain("What it went into, last 7 days");
});

test("a text of megabytes counts by its bytes, and a tool that only the model named has no name", async () => {
  await using proxy = await start();
  const long = words("zq", 400_000);
  const messages = [
    { role: "user", content: "Look." },
    { role: "assistant", content: [{ type: "tool_use", id: "t", name: "zq secret words", input: {} }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: long }] },
  ];
  const model = { ...(await proxy.app.catalogue.models()).find(({ id }) => id === exampleModels.small)! };
  const response = await proxy.post("/v1/messages", { ...turn(0), messages, model: model.id });
  await response.text();
  const { parts, portions } = last(proxy);
  expect(parts.find(({ kind }) => kind === "results")!.tokens).toBeGreaterThan(0.95 * sum(parts, "tokens"));
  expect(portions).not.toContain("zq");
});

test("a conversation that goes on of many tools the largest are named, and the others are added up", async () => {
  await using proxy = await start();
  const tools = Array.from({ length: 300 }, (_, at) => ({
    name: `mcp__s${at}__do`,
    input_schema: schema,
    description: words("x", at),
  }));
  await (await proxy.post("/v1/messages", turn(0, { tools }))).text();
  const { parts, portions, input_tokens } = last(proxy);
  expect(sum(parts, "tokens")).toBe(input_tokens!);
  expect(parts.filter(({ kind }) => kind === "tools").map(({ count }) => count)).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 292]);
  expect(portions!.length).toBeLessThan(2_000);
});

test("what the dearer rate of a long prompt added is a part of its cost, with the discount of the whole", () => {
  const usual = { input: 3, output: 15, cachedInput: 0.3, cacheWrite: undefined, cacheWriteHour: undefined };
  const price = {
    premium: true,
    tokens: { ...usual, per: 1 },
    long: { ...usual, input: 6, output: 30, cachedInput: 0.6, above: 1_000 },
  };
  const measured = measurePrompt(
    { tools: undefined, messages: [{ by: "user", content: "Hello." }] },
    new Uint8Array(),
    undefined,
  );
  const surchargeOf = (input: number, charged: number) => {
    const cost = { unit: "credits", amount: charged } as const;
    const prompt = { address: "prompt", measured } as const;
    const usage = { input, output: 10, cachedInput: 0, nanoCredits: charged };
    const { portions } = endedPrompt(new CacheWatch(() => 0), { prompt, usage, price, cost, turn: undefined });
    return portions!.find(({ kind }) => kind === "surcharge")?.cost;
  };
  // At the dearer rate 2,000 × 6 + 10 × 30, at the usual one half of that; here 10 % less was charged.
  expect(surchargeOf(2_000, 0.9 * 12_300e9)).toBe((0.9 * 12_300e9) / 2);
  expect(surchargeOf(1_000, 3_150e9)).toBeUndefined();
});

test("a call's input counts by the length of its JSON", () => {
  const input = {
    ...Object.fromEntries([...words("abcdefgh", 5)].map((_, at) => [`key${at}`, ""])),
    edits: [{ old: "a", new: null }],
  };
  const content = [{ type: "tool_use", id: "t", name: "Edit", input }];
  const { groups, runs } = measurePrompt(
    { tools: undefined, messages: [{ by: "model", content, item: { role: "assistant", content } }] },
    new Uint8Array(),
    undefined,
  );
  expect(groups).toMatchObject([{ kind: "calls", count: 1 }]);
  const [, bytes] = runs;
  expect(bytes! / JSON.stringify(input).length).toBeWithin(0.95, 1.05);
});
