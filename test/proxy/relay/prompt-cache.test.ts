/**
 * Scenario: an agent's session of 30 requests in each dialect, to each upstream: how much of its input the upstream's
 * cache has. `fixtures/scenes/cache.txt` has the keys, the marks, and why a prompt was not in the cache.
 */
import { describe, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import type { Dialect, JsonObject } from "../../../src/dialects/hub/conversation";
import { clientPaths, upstreamPaths } from "../../../src/lib/api-paths";
import { isObject } from "../../../src/lib/json";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { offerOnly } from "../../support/catalogue";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { drawn } from "../../support/random";

const requests = 30;
const sessionId = "5b3c1c1e-52c4-4f5e-8a3c-0123456789ab";
const instructions = `You are an agent. ${"Read before you write, and say what you did. ".repeat(200)}`;
const tools = Array.from({ length: 12 }, (_, index) => ({
  name: `tool_${index}`,
  description: `Tool ${index} ${"reads a part of a file and returns its lines. ".repeat(8)}`,
  schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
}));
const task = "Say what these files are for.";
const fileText = (turn: number) => `File ${turn}: ${`line of file ${turn}, `.repeat(60)}`;
const input = (turn: number) => ({ path: `/src/file-${turn}.ts` });

type Session = (turns: number) => Record<string, unknown>;

/** What a client sends after so many calls; each request holds the one before as its beginning. */
const sessions: Record<Dialect, Session> = {
  chat: (turns) => ({
    messages: [
      { role: "system", content: instructions },
      { role: "user", content: task },
      ...eachTurn(turns, (turn) => [
        {
          role: "assistant",
          content: null,
          tool_calls: [
            {
              id: `call_${turn}`,
              type: "function",
              function: { name: "tool_1", arguments: JSON.stringify(input(turn)) },
            },
          ],
        },
        { role: "tool", tool_call_id: `call_${turn}`, content: fileText(turn) },
      ]),
    ],
    tools: tools.map(({ schema, ...tool }) => ({ type: "function", function: { ...tool, parameters: schema } })),
  }),
  responses: (turns) => ({
    instructions,
    input: [
      { type: "message", role: "user", content: [{ type: "input_text", text: task }] },
      ...eachTurn(turns, (turn) => [
        { type: "function_call", call_id: `call_${turn}`, name: "tool_1", arguments: JSON.stringify(input(turn)) },
        { type: "function_call_output", call_id: `call_${turn}`, output: fileText(turn) },
      ]),
    ],
    tools: tools.map(({ schema, ...tool }) => ({ type: "function", ...tool, parameters: schema, strict: false })),
  }),
  messages: (turns) => ({
    max_tokens: 1000,
    metadata: { user_id: JSON.stringify({ device_id: "a-device", account_uuid: "", session_id: sessionId }) },
    system: [{ type: "text", text: instructions }],
    messages: [
      { role: "user", content: task },
      ...eachTurn(turns, (turn) => [
        { role: "assistant", content: [{ type: "tool_use", id: `call_${turn}`, name: "tool_1", input: input(turn) }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: `call_${turn}`, content: fileText(turn) }] },
      ]),
    ],
    tools: tools.map(({ schema, ...tool }) => ({ ...tool, input_schema: schema })),
  }),
};

const eachTurn = (turns: number, write: (turn: number) => object[]): object[] =>
  Array.from({ length: turns }, (_, turn) => write(turn)).flat();

const claude = "claude-sonnet-4.6";
const gpt = exampleModels.small;
/** Of the older list, which offers it at /chat/completions, too. */
const older = "gpt-5.2";

interface Spent {
  /** Of the input. */
  cached: number;
  credits: number;
}

async function startAt(model: string, upstream: Dialect, promptCache: "auto" | "off"): Promise<RunningProxy> {
  const [account] = demoAccounts();
  const able = { ...account!, plan: "individual_pro", quota: quotas.credits() };
  const generation = model === older ? "A" : "C";
  const proxy = await startProxy({ demo: { accounts: [able], generation }, config: { promptCache } });
  offerOnly(proxy.demo, { [model]: [upstreamPaths[upstream]] });
  return proxy;
}

async function play(proxy: RunningProxy, client: Dialect, model: string): Promise<Spent> {
  for (let turn = 0; turn < requests; turn++) {
    const response = await proxy.post(clientPaths[client], { model, ...sessions[client](turn) });
    expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
  }
  const rows = proxy.rows();
  const sum = (column: "input_tokens" | "cached_tokens" | "cost") =>
    rows.reduce((total, row) => total + (row[column] ?? 0), 0);
  return { cached: sum("cached_tokens") / sum("input_tokens"), credits: sum("cost") / 1e9 };
}

describe("cached share and credits of 30 requests:", () => {
  const rows: [Dialect, Dialect, string, fixup: string][] = [
    ["messages", "responses", gpt, "cache-key"],
    ["messages", "chat", older, "cache-key"],
    ["chat", "messages", claude, "cache-marks-added"],
    ["responses", "messages", claude, "cache-marks-added"],
    ["responses", "chat", claude, "cache-marks-added"],
    ["chat", "chat", claude, "cache-marks-added"],
  ];
  test.each(drawn("sessions", rows))("%s → %s, %s", async (client, upstream, model, fixup) => {
    await using plain = await startAt(model, upstream, "off");
    const before = await play(plain, client, model);
    expect(plain.rows()[0]!.fixups).not.toContain(fixup);
    await using cached = await startAt(model, upstream, "auto");
    const after = await play(cached, client, model);
    expect(cached.rows()[0]).toMatchObject({ upstream_dialect: upstream, upstream_model: model });
    expect(cached.rows()[0]!.fixups).toContain(fixup);
    expect(before.cached).toBeLessThan(0.5);
    expect(after.cached).toBeGreaterThan(0.9);
    // The older list counts requests.
    if (model !== older) expect(after.credits).toBeLessThan(before.credits / 2);
  });
});

/** The newest request that the upstream got. */
const newest = (proxy: RunningProxy) => proxy.demo.journal.at(-1)!.body as JsonObject;

/** Everything the upstream's model reads, in order, without marks. A string is one text. */
function promptOf(body: JsonObject): string[] {
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : value === undefined ? [] : [value]);
  const turns = list(body.messages ?? body.input).flatMap((turn) => {
    if (!isObject(turn)) return [turn];
    const { content, ...others } = turn;
    const parts = typeof content === "string" ? [{ type: "text", text: content }] : list(content);
    return parts.length === 0 ? [turn] : parts.map((part) => [others, part]);
  });
  const parts = [...list(body.tools), ...list(body.instructions), ...list(body.system), ...turns];
  return parts.map((part) => JSON.stringify(part, (name, value) => (/cache_control$/.test(name) ? undefined : value)));
}

const reminder = (turn: number) => `<total_tokens>${1000 - turn} tokens left</total_tokens>`;
const added: Record<Dialect, (turn: number) => object> = {
  chat: (turn) => ({ role: "developer", content: reminder(turn) }),
  responses: (turn) => ({ type: "message", role: "developer", content: reminder(turn) }),
  messages: (turn) => ({ role: "system", content: reminder(turn) }),
};
test.each<[Dialect, Dialect, string]>([
  ["messages", "responses", gpt],
  ["messages", "chat", older],
  ["chat", "messages", claude],
  ["responses", "messages", claude],
  ["responses", "chat", claude],
  ["chat", "responses", gpt],
])(
  "each prompt begins with the one before, though the client adds reminders: %s → %s",
  async (client, upstream, model) => {
    await using proxy = await startAt(model, upstream, "auto");
    const field = client === "responses" ? "input" : "messages";
    let before: string[] = [];
    for (let turn = 0; turn < 4; turn++) {
      const body = sessions[client](turn);
      const turns = [...(body[field] as object[]), added[client](turn)];
      const response = await proxy.post(clientPaths[client], { model, ...body, [field]: turns });
      expect(response.status).toBe(200);
      const prompt = promptOf(newest(proxy));
      const last = prompt.findLastIndex((part) => part.includes("total_tokens"));
      // The reminder is the last thing the model reads; the next request does not have it.
      expect(last).toBe(prompt.length - 1);
      const lasting = prompt.slice(0, last);
      expect(lasting.slice(0, before.length)).toEqual(before);
      expect(lasting.length).toBeGreaterThan(before.length);
      before = lasting;
    }
  },
);
