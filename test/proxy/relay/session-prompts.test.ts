/**
 * Scenario: requests of Claude Code 2.1.332 that name no prompt: the checks of its auto mode, the title of the session,
 * a compaction. Their headers and the beginnings of their instructions are the client's own (2026-11); the texts were
 * shortened.
 */
import { expect, test } from "bun:test";
import type { Prompt } from "../../../src/admin/api/prompts";
import { SessionPrompts } from "../../../src/books/live/session-prompts";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { sessionHash } from "../../../src/proxy/relay/session-id";
import { type ProxyOptions, type RunningProxy, startProxy } from "../../support/proxy";
import { until } from "../../support/until";

const start = (options: ProxyOptions = {}) => {
  const [account] = demoAccounts();
  return startProxy({
    demo: { generation: "C", accounts: [{ ...account!, plan: "individual_pro", quota: quotas.credits() }] },
    ...options,
  });
};

const session = "3dd6ba18-91d4-42f2-b341-79a64c0c2cf1";
const body = (more: object = {}) => ({
  model: "claude-sonnet-4-6",
  max_tokens: 200,
  messages: [{ role: "user", content: "Run ls in this folder with Bash." }],
  ...more,
});
const billing = { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.332; cch=00000;" };
const check = body({
  system: [
    billing,
    {
      type: "text",
      text: `You are a security monitor for autonomous AI coding agents.\n\n${"## Context. ".repeat(900)}`,
    },
  ],
});
const schema = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };
const title = body({
  system: [billing, { type: "text", text: 'Return JSON with a single "title" field.' }],
  output_config: { format: { type: "json_schema", schema } },
});

type Headers = Record<string, string>;
const classed = (name: string, more: Headers = {}) => ({
  "user-agent": "claude-cli/2.1.332 (external, cli)",
  "x-claude-code-session-id": session,
  "x-claude-code-request-class": name,
  ...more,
});
const main = (prompt: string, more: Headers = {}) => classed("main", { "x-claude-code-prompt-id": prompt, ...more });

async function ask(proxy: RunningProxy, headers: Headers, sent: object = body()): Promise<void> {
  const answer = await proxy.post("/v1/messages?beta=true", sent, { headers });
  expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)]);
}

const promptsOf = async (proxy: RunningProxy, headers: Headers = {}) =>
  (await (await fetch(`${proxy.url}/api/admin/prompts`, { headers })).json()) as {
    items: Prompt[];
    without_prompt: { request_count: number };
  };

test("a prompt's bill has the checks, the title and the compaction of its session, each under its own words", async () => {
  await using proxy = await start();
  await ask(proxy, main("first"));
  await ask(proxy, classed("auxiliary"), title);
  for (const _ of [1, 2, 3]) await ask(proxy, classed("auxiliary"), check);
  await ask(proxy, main("first"));
  await ask(proxy, classed("auxiliary"));
  await ask(proxy, classed("side_reply"));
  await ask(proxy, main("second"));
  await ask(proxy, classed("compaction", { "x-claude-code-compaction": "manual" }));

  const { items, without_prompt } = await promptsOf(proxy);
  expect(without_prompt.request_count).toBe(0);
  const parts = ({ parts }: Prompt) =>
    parts.map(({ kind, request_count }): [string | null, number] => [kind, request_count]).sort();
  expect(items.map(parts)).toEqual([
    [
      ["compaction", 1],
      ["main", 1],
    ],
    [
      ["auxiliary", 2],
      ["check", 3],
      ["main", 2],
      ["title", 1],
    ],
  ]);
  const costs = proxy.rows().map(({ cost }) => cost!);
  expect(items[0]!.cost.credits! + items[1]!.cost.credits!).toBe(costs.reduce((all, cost) => all + cost, 0));
  expect(items[1]!.why).toMatch(/^\d+% in auto mode’s checks \(3 requests\); /);
  const page = await (await fetch(`${proxy.url}/admin/prompts/${items[1]!.prompt}`)).text();
  for (const words of ["Auto mode’s checks", "Titles", "Beside the conversation"]) expect(page).toContain(words);
  const [said] = (await (await fetch(`${proxy.url}/usage/line?session=${session}`)).text()).split(" prompt");
  expect(said).toBe(`${Number((items[0]!.cost.credits! / 1e9).toPrecision(3))} cr`);
  expect(proxy.rows().filter(({ kind }) => kind === "check")[0]).toMatchObject({
    initiator: "agent",
    initiator_reason: "the client's auto mode checks a tool call",
  });
});

test.each(["claude-sonnet-4-6", "gpt-5.4", "gpt-4.1"])("in the demo a check by %s lets the tool run", async (model) => {
  await using proxy = await startProxy();
  const asked = { role: "user", content: "<transcript>\nUser: [demo: help] call ls\nBash ls\n</transcript>" };
  const sent = { ...check, model, messages: [asked], stop_sequences: [] };
  const answer = await proxy.post("/v1/messages", sent, { headers: classed("auxiliary") });
  const { content, stop_reason } = (await answer.json()) as { content: { text: string }[]; stop_reason: string };
  expect([content.map(({ text }) => text), stop_reason]).toEqual([["<severity>0</severity>"], "end_turn"]);
});

test("a title that is asked for before the prompt's first request belongs to it, if it ends after that has begun", async () => {
  await using proxy = await start();
  const asked = Promise.withResolvers<void>();
  proxy.demo.intercept("/v1/messages", async () => {
    await asked.promise;
    return undefined;
  });
  const early = ask(proxy, classed("auxiliary"), title);
  await until(() => proxy.app.inFlight.count === 1, "the title is asked for");
  await ask(proxy, main("first"));
  asked.resolve();
  await early;
  const { items } = await promptsOf(proxy);
  expect(items.map(({ request_count }) => request_count)).toEqual([2]);
});

test("what names no prompt stays without one in another session, with another key, and without a session", async () => {
  const keys = { laptop: "k-laptop-0123456789", desk: "k-desk-0123456789" };
  await using proxy = await start({
    config: { auth: { apiKeys: Object.entries(keys).map(([name, key]) => ({ name, key })) } },
  });
  const by = (key: string) => ({ "x-api-key": key });
  await ask(proxy, main("first", by(keys.laptop)));
  await ask(proxy, classed("auxiliary", by(keys.desk)), check);
  await ask(proxy, classed("auxiliary", { ...by(keys.laptop), "x-claude-code-session-id": "another" }), check);
  const { "x-claude-code-session-id": _, ...sessionless } = classed("auxiliary", by(keys.laptop));
  await ask(proxy, sessionless, check);
  await ask(proxy, classed("auxiliary", by(keys.laptop)), check);
  const rows = proxy.rows().toReversed();
  expect(rows.map(({ prompt }) => prompt !== null)).toEqual([true, false, false, false, true]);
  expect(rows[4]!.prompt).toBe(rows[0]!.prompt);
  expect(rows[0]!.session).toBe(sessionHash(session));
});

const of = (member: string | null, name = "s1", keyName: string | null = null) => ({
  member,
  keyName,
  session: name,
});

test("the prompt that runs in a session is the member's, the key's and the session's own", () => {
  const prompts = new SessionPrompts(() => 0);
  prompts.begin(of("m1"), "one");
  prompts.begin(of("m2"), "two");
  prompts.begin(of(null), "owner's");
  prompts.begin({ member: "m1", keyName: null }, "none");
  expect(
    [of("m1"), of("m2"), of(null), of("m3"), of("m1", "s2"), of("m1", "s1", "key")].map((each) =>
      prompts.runningIn(each),
    ),
  ).toEqual(["one", "two", "owner's", undefined, undefined, undefined]);
  expect(prompts.runningIn({ member: "m1", keyName: null })).toBeUndefined();
});

test("the prompt that runs in a session is the last one that began, and runs for an hour after its last request", () => {
  let now = 0;
  const prompts = new SessionPrompts(() => now);
  prompts.begin(of(null), "one");
  prompts.begin(of(null), "two");
  prompts.end(of(null), "one");
  expect(prompts.runningIn(of(null))).toBe("two");
  now = 1_800_000;
  prompts.end(of(null), "two");
  now += 3_599_999;
  expect(prompts.runningIn(of(null))).toBe("two");
  now += 1;
  expect(prompts.runningIn(of(null))).toBeUndefined();
});

test("the prompt that runs in a session is forgotten for those of thousands of other sessions", () => {
  const prompts = new SessionPrompts(() => 0);
  for (let at = 0; at < 6_000; at++) prompts.begin(of(null, `s${at}`), "p");
  expect(prompts.runningIn(of(null, "s0"))).toBeUndefined();
  expect(prompts.runningIn(of(null, "s5999"))).toBe("p");
});
