/**
 * Scenario: the bill of a prompt, what is known of a cost, and what belongs to which prompt; from `fixtures/scenes/bills.txt`
 * and `costs.txt`, and here at a command line, while requests run at once, and for sessions without requests.
 */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Prompt } from "../../../src/admin/api/prompts";
import { SessionPrompts } from "../../../src/books/live/session-prompts";
import { entry } from "../../support/history-rows";
import { inProcess } from "../../support/in-process";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";
import { until } from "../../support/until";

testScenes("bills");
testScenes("costs");

const ask = async (proxy: RunningProxy, requestClass: string, prompt?: string) => {
  const headers = {
    "user-agent": "claude-cli/2.1.332 (external, cli)",
    "x-claude-code-session-id": "3dd6ba18-91d4-42f2-b341-79a64c0c2cf1",
    "x-claude-code-request-class": requestClass,
    ...(prompt && { "x-claude-code-prompt-id": prompt }),
  };
  const messages = [{ role: "user", content: "Run ls in this folder with Bash." }];
  const body = { model: "claude-sonnet-4-6", max_tokens: 200, messages };
  expect((await proxy.post("/v1/messages?beta=true", body, { headers })).status).toBe(200);
};
const promptsOf = async ({ url }: RunningProxy) =>
  ((await (await fetch(`${url}/api/admin/prompts`)).json()) as { items: Prompt[] }).items;

test("a title that is asked for before the prompt's first request belongs to it, if it ends after that has begun", async () => {
  await using proxy = await startProxy();
  const asked = Promise.withResolvers<undefined>();
  proxy.demo.intercept("/v1/messages", () => asked.promise);
  const early = ask(proxy, "auxiliary");
  await until(() => proxy.app.inFlight.count === 1, "the title is asked for");
  await ask(proxy, "main", "first");
  asked.resolve(undefined);
  await early;
  expect((await promptsOf(proxy)).map(({ request_count }) => request_count)).toEqual([2]);
});

test("`dragoman usage prompts` says what the bill says", async () => {
  await using proxy = await startProxy();
  await ask(proxy, "compaction");
  await ask(proxy, "main", "first");
  await ask(proxy, "compaction");
  writeFileSync(join(proxy.home, "running.json"), JSON.stringify({ url: proxy.url, pid: 1 }));
  const { code, stdout, stderr } = await inProcess(["usage", "prompts"], { DRAGOMAN_HOME: proxy.home });
  expect([code, stderr]).toEqual([
    0,
    expect.stringMatching(/1 request named no prompt, .*: what they belong to is unknown/),
  ]);
  const [{ why }] = (await promptsOf(proxy)) as [Prompt];
  expect(stdout).toContain(why.slice(0, 30));
});

test("what was lost without the cache is said for each reason with its own credits", async () => {
  await using proxy = await startProxy();
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
  const items = await promptsOf(proxy);
  expect(items.find(({ prompt }) => prompt === own.prompt)!.why).toBe(
    "All of it in the conversation itself; 17 AI credits because the cache had gone cold after 9 minutes; 10 AI credits because the tools changed.",
  );
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
