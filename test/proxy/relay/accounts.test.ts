/**
 * Scenario: which account serves, what happens when one cannot, and what the client is told when none can: from
 * `fixtures/scenes/accounts.txt`, and here where this machine's clock counts.
 */
import { expect, test } from "bun:test";
import { startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";
import { until } from "../../support/until";

testScenes("accounts");

const chat = "/chat/completions";
const hello = { model: "claude-sonnet-4.6", messages: [{ role: "user", content: "Hello" }] };
const refuse = (status: number, code: string, after: string) =>
  Response.json({ error: { code, message: "No quota." } }, { status, headers: { "retry-after": after } });

test("the reset of one account alone is told by this machine's clock", async () => {
  await using proxy = await startProxy();
  // In the middle of a minute, so that a second more or less is the same minute.
  const reset = new Date(new Date(Date.now() + 3 * 3600_000).setSeconds(30, 0));
  proxy.demo.intercept(chat, () => refuse(402, "quota_exceeded", reset.toUTCString()));
  const { error } = (await (await proxy.post("/v1/chat/completions", hello)).json()) as { error: { message: string } };
  const clock = `${String(reset.getHours()).padStart(2, "0")}:${String(reset.getMinutes()).padStart(2, "0")} `;
  expect(error.message).toMatch(new RegExp(`^No quota. This account's quota is used up until (?:.*, )?${clock}`));
});

test("a client that hangs up while it is waited for is let go", async () => {
  await using proxy = await startProxy();
  proxy.demo.intercept(chat, () => refuse(429, "rate_limited", "2"));
  const leaving = new AbortController();
  const left = proxy.post("/v1/chat/completions", hello, { signal: leaving.signal }).catch(() => "left");
  const asked = () => proxy.demo.journal.filter(({ path }) => path === chat).length;
  await until(() => asked() === 1, "the upstream is asked");
  leaving.abort();
  expect(await left).toBe("left");
  await until(() => proxy.rows()[0]?.http_status === 499, "the row says that the client left");
  expect([proxy.app.inFlight.count, asked()]).toEqual([0, 1]);
});
