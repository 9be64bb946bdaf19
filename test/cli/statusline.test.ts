/** Scenario: `dragoman statusline` and `GET /usage/line?session=`: what a session really cost. */
import { afterAll, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../src/demo/accounts";
import { formatAmount } from "../../src/lib/format";
import { asProcess } from "../support/in-process";
import { startProxy } from "../support/proxy";

const session = "3dd6ba18-91d4-42f2-b341-79a64c0c2cf1";

const [account, other] = demoAccounts();
const proxy = await startProxy({
  demo: { accounts: [{ ...account!, plan: "individual_pro", quota: quotas.credits() }, other!], generation: "C" },
  accounts: [account!.login, other!.login],
  config: { auth: { apiKeys: ["secret-key"] } },
});
// Another session asks before it and after it.
for (const [id, prompt] of [
  ["before", "p-0 and much more than the others"],
  ...["p-1", "p-1", "p-2"].map((each) => [session, each] as const),
  ["after", "p-3 and more"],
] as const) {
  const answer = await proxy.post(
    "/v1/messages",
    { model: "claude-sonnet-4-6", max_tokens: 50, messages: [{ role: "user", content: `say ${prompt}` }] },
    {
      headers: { "x-api-key": "secret-key", "x-claude-code-session-id": id, "x-claude-code-prompt-id": prompt },
    },
  );
  expect(answer.status).toBe(200);
  await answer.text();
}
afterAll(() => proxy[Symbol.asyncDispose]());

async function statusline(stdin: string, env: Record<string, string>): Promise<[code: number, line: string]> {
  const { code, stdout } = await asProcess(["statusline"], env, { stdin });
  return [code, stdout];
}
const given = (session_id: string) =>
  JSON.stringify({ hook_event_name: "Status", session_id, cost: { total_cost_usd: 9 } });
const env = () => ({ ANTHROPIC_BASE_URL: proxy.url, ANTHROPIC_AUTH_TOKEN: "secret-key" });

test("it says what the last prompt and the session cost, and what is left of the account in use", async () => {
  const costs = proxy
    .rows()
    .slice(1, 4)
    .map(({ cost }) => cost!);
  const [code, line] = await statusline(given(session), env());
  expect(code).toBe(0);
  const all = costs.reduce((sum, cost) => sum + cost, 0);
  expect(line).toStartWith(`${formatAmount(costs[0]!)} cr prompt · ${formatAmount(all)} cr session · `);
  expect(line).toMatch(/ · octo-demo: 1,1\d\d cr left\n$/);
  expect(`cache 59:59 · ${line}`.length).toBeLessThanOrEqual(80);
  const asked = await fetch(`${proxy.url}/usage/line?session=${session}&format={account}`, {
    headers: { "x-api-key": "secret-key" },
  });
  expect(await asked.text()).toEndWith(" · octo-demo\n");
});

test("it says nothing of a session that it does not know, nor when the server is away, nor without its JSON", async () => {
  expect(await statusline(given("another"), env())).toEqual([0, ""]);
  expect(await statusline(given(session), { ...env(), ANTHROPIC_BASE_URL: "http://127.0.0.1:9" })).toEqual([0, ""]);
  expect(await statusline(given(session), { ...env(), ANTHROPIC_AUTH_TOKEN: "wrong" })).toEqual([0, ""]);
  expect(await statusline("no JSON", env())).toEqual([0, ""]);
});

test("how long the cache keeps the prompt counts down from its last use", async () => {
  const { history } = proxy;
  const { entry } = await import("../support/history-rows");
  const { sessionHash } = await import("../../src/proxy/relay/session-id");
  const at = (secondsAgo: number, name: string) => ({
    session: sessionHash(name),
    cached_tokens: 5_000,
    started_at_ms: Date.now() - secondsAgo * 1_000 - 1_000,
    duration_ms: 1_000,
  });
  history.add(entry(at(60, "warm")));
  history.add(entry(at(301, "cold")));
  const line = async (name: string) =>
    (await fetch(`${proxy.url}/usage/line?session=${name}`, { headers: { "x-api-key": "secret-key" } })).text();
  expect(await line("warm")).toMatch(/^cache (?:4:00|3:5\d) · /);
  expect(await line("cold")).toStartWith("cache cold · ");
});
