/**
 * Scenario: the bill of a prompt: a session of Claude Code 2.1.330 with two subagents and a compaction, and a turn of
 * Codex 0.169, with the headers that these clients sent to the demo (2026-11). Their prompts were shortened.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Prompt } from "../../../src/admin/api/prompts";
import type { ShownEntry } from "../../../src/admin/api/requests";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { percent } from "../../../src/lib/format";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { entry } from "../../support/history-rows";
import { inProcess } from "../../support/in-process";
import { type RunningProxy, startProxy } from "../../support/proxy";

const canary = "xylophone-canary";
const session = "3dd6ba18-91d4-42f2-b341-79a64c0c2cf1";
const [first, second] = ["5d5feebe-5a08-441f-93bc-adafc8fd38ce", "a1b9b8d5-6fb7-492e-8d5d-62565beea127"];
const agents = ["aab808bc7a80bf486", "a2ada2c8e529ecabb"];

let proxy: RunningProxy;

beforeAll(async () => {
  const [account] = demoAccounts();
  proxy = await startProxy({
    demo: { accounts: [{ ...account!, plan: "individual_pro", quota: quotas.credits() }], generation: "C" },
    config: { logLevel: "debug" },
  });
  for (const [hints, text] of claudeSession) {
    const answer = await fetch(`${proxy.url}/v1/messages?beta=true`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "anthropic-version": "2023-06-01",
        "user-agent": "claude-cli/2.1.330 (external, sdk-cli)",
        "x-claude-code-session-id": session,
        ...hints,
      },
      body: JSON.stringify({
        model: "claude-sonnet-4-6",
        max_tokens: 200,
        messages: [{ role: "user", content: `${text} ${canary}` }],
      }),
    });
    expect(answer.status).toBe(200);
    await answer.text();
  }
  const turn = {
    turn_id: "01a208f6-74f6-7da1-b222-7264db032151",
    root_turn_id: "01a208f6-74f6-7da1-b222-7264db032150",
  };
  for (const client_metadata of [{ ...turn, turn_id: turn.root_turn_id }, turn]) {
    const answer = await fetch(`${proxy.url}/v1/responses`, {
      method: "POST",
      headers: { "content-type": "application/json", "user-agent": "codex_exec/0.169.0 (Debian 12.0.0; x86_64)" },
      body: JSON.stringify({ model: exampleModels.gpt, input: `hello ${canary}`, client_metadata }),
    });
    expect(answer.status).toBe(200);
    await answer.text();
  }
  proxy.app.history.flush();
});
afterAll(() => proxy[Symbol.asyncDispose]());

const main = { "x-claude-code-request-class": "main", "x-claude-code-prompt-id": first };
const subagent = (at: number) => ({
  "x-claude-code-request-class": "subagent",
  "x-claude-code-agent-type": "Explore",
  "x-claude-code-agent-id": agents[at]!,
  "x-claude-code-prompt-id": first,
});
const compaction = { "x-claude-code-request-class": "compaction", "x-claude-code-compaction": "manual" };
const long = "Look at everything. ".repeat(400);

const claudeSession: [Record<string, string>, string][] = [
  [main, "call Agent twice in parallel"],
  [subagent(0), `${long} one`],
  [subagent(1), `${long} two`],
  [main, "go on"],
  [{ ...main, "x-claude-code-prompt-id": second }, "thanks"],
  [compaction, "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."],
  [{ ...compaction, "x-claude-code-session-id": "another" }, "CRITICAL: Respond with TEXT ONLY."],
];

interface Page {
  items: Prompt[];
  without_prompt: Pick<Prompt, "request_count" | "cost">;
  next_cursor_id: number | null;
  has_more: boolean;
}
const get = async <Answer>(path: string) => (await (await fetch(`${proxy.url}${path}`)).json()) as Answer;
const prompts = (query = "") => get<Page>(`/api/admin/prompts${query}`);
const rows = async (query = "") => (await get<{ items: ShownEntry[] }>(`/api/admin/requests${query}`)).items;
const sum = (values: (number | null)[]) => values.reduce<number>((total, value) => total + (value ?? 0), 0);

test("the requests of a prompt are found by the ids of the client, and nobody else's", async () => {
  const { items } = await prompts();
  expect(items.map(({ client_name, request_count }) => [client_name, request_count])).toEqual([
    ["codex_exec/0.169.0", 2],
    ["claude-cli/2.1.330", 2],
    ["claude-cli/2.1.330", 4],
  ]);
  expect(items[2]!.session).toBe(items[1]!.session);
  expect(items.every(({ prompt }) => /^[0-9a-f]{12}$/.test(prompt))).toBe(true);
});

test("the sums are those of the rows, to the last billionth", async () => {
  const { items, without_prompt } = await prompts();
  const all = await rows();
  expect(all).toHaveLength(claudeSession.length + 2);
  for (const item of items) {
    const own = await rows(`?prompt=${item.prompt}`);
    expect(item.cost).toEqual({ credits: sum(own.map(({ cost }) => cost)) });
    for (const name of ["input_tokens", "output_tokens"] as const)
      expect([name, item[name]]).toEqual([name, sum(own.map((row) => row[name]))]);
    expect(item.request_count).toBe(own.length);
    expect(sum(item.parts.map(({ cost }) => cost.credits!))).toBe(item.cost.credits!);
    expect(sum(item.parts.map(({ request_count }) => request_count))).toBe(item.request_count);
  }
  const listed = sum([...items, without_prompt].map(({ cost }) => cost.credits!));
  expect(listed).toBe(sum(all.map(({ cost }) => cost)));
  expect(without_prompt.request_count).toBe(1);
});

test("a sentence names the largest reason", async () => {
  const { items } = await prompts();
  const [, , { why, parts }] = items as [Prompt, Prompt, Prompt];
  const [largest] = parts;
  expect([largest!.kind, largest!.agent_type]).toEqual(["subagent", "Explore"]);
  const share = largest!.cost.credits! / sum(parts.map(({ cost }) => cost.credits!));
  expect(why).toStartWith(`${percent(share)} in Explore subagents (2 requests)`);
  expect(items[0]!.why).toBe("All of it in the conversation itself.");
  expect(items[1]!.why).toMatch(/^\d+% in a compaction; \d+% in the conversation itself\.$/);
});

test("the hint decides who caused the request, where it says so", async () => {
  const all = (await rows()).toReversed();
  expect(all.map(({ kind, agent_type, initiator }) => [kind, agent_type, initiator])).toEqual([
    ["main", null, "user"],
    ["subagent", "Explore", "agent"],
    ["subagent", "Explore", "agent"],
    ["main", null, "user"],
    ["main", null, "user"],
    ["compaction", null, "agent"],
    ["compaction", null, "agent"],
    ["main", null, "user"],
    ["main", null, "user"],
  ]);
  expect(all[6]!.prompt).toBeNull();
  expect(all[5]).toMatchObject({ prompt: all[4]!.prompt, initiator_reason: "the client summarizes the conversation" });
});

test("pages follow one another without a gap", async () => {
  const all = (await prompts()).items.map(({ prompt }) => prompt);
  const found: string[] = [];
  for (let cursor: number | null | undefined; cursor !== null; ) {
    const page = await prompts(`?limit=1${cursor === undefined ? "" : `&cursor_id=${cursor}`}`);
    found.push(...page.items.map(({ prompt }) => prompt));
    cursor = page.next_cursor_id;
  }
  expect(found).toEqual(all);
  expect((await prompts("?client_name=codex_exec%2F0.169.0")).items).toHaveLength(1);
});

test("the pages show the bill and each request", async () => {
  const { items } = await prompts();
  const list = await (await fetch(`${proxy.url}/admin/prompts`)).text();
  expect(list).toContain(items[2]!.why);
  expect(list).toContain("1 request</a> named no prompt");
  const dearest = await (await fetch(`${proxy.url}/admin/prompts?order=dearest&limit=1&period=24h`)).text();
  const most = items.toSorted((one, other) => (other.cost.credits ?? 0) - (one.cost.credits ?? 0))[0]!;
  expect(dearest).toContain(`/admin/prompts/${most.prompt}"`);
  expect(dearest).toContain("cursor_id=1");
  const page = await (await fetch(`${proxy.url}/admin/prompts/${items[2]!.prompt}`)).text();
  expect(page.split("Subagent: Explore</a>").length - 1).toBe(2);
  expect((await fetch(`${proxy.url}/admin/prompts/0`)).status).toBe(404);
});

test("`dragoman usage prompts` says the same", async () => {
  const { items } = await prompts();
  writeFileSync(join(proxy.home, "running.json"), JSON.stringify({ url: proxy.url, pid: 1 }));
  const { code, stdout, stderr } = await inProcess(["usage", "prompts"], { DRAGOMAN_HOME: proxy.home });
  expect([code, stderr]).toEqual([
    0,
    expect.stringMatching(/1 request named no prompt, .*: what they belong to is unknown/),
  ]);
  for (const { why } of items) expect(stdout).toContain(why.slice(0, 30));
});

test("no word of a prompt and none of the client's ids is kept or shown", async () => {
  const { items } = await prompts();
  const shown = await Promise.all(
    ["/api/admin/prompts", "/api/admin/requests", "/admin/prompts", `/admin/prompts/${items[2]!.prompt}`].map(
      async (path) => (await fetch(`${proxy.url}${path}`)).text(),
    ),
  );
  const files = (readdirSync(proxy.home, { recursive: true }) as string[]).filter((name) => name.includes(".sqlite"));
  expect(files).not.toEqual([]);
  const kept = files.map((name) => readFileSync(join(proxy.home, name), "latin1"));
  for (const secret of [canary, session, first, second, ...agents])
    expect([...shown, ...kept, proxy.lines.join("\n")].filter((text) => text.includes(secret))).toEqual([]);
});

test("what was lost without the cache is said for each reason with its own credits", async () => {
  const credits = (amount: number) => amount * 1e9;
  const own = { prompt: "feedfeedfeed", kind: "main", started_at_ms: Date.now(), cost: credits(25) } as const;
  for (const missed of [
    {},
    { cache_miss: "tools", cache_lost_cost: credits(10) },
    { cache_miss: "expired", cache_lost_cost: credits(11), cache_idle_ms: 7 * 60_000 },
    { cache_miss: "expired", cache_lost_cost: credits(6), cache_idle_ms: 9 * 60_000 },
  ])
    proxy.history.add(entry({ ...own, ...missed }));
  proxy.history.flush();
  const { items } = await prompts();
  expect(items.find(({ prompt }) => prompt === own.prompt)!.why).toBe(
    "All of it in the conversation itself; 17 AI credits because the cache had gone cold after 9 minutes; 10 AI credits because the tools changed.",
  );
});
