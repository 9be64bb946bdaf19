/**
 * Scenario: GitHub says that it has blocked an account, or what it may ask for: whichever endpoint says so; from
 * `fixtures/scenes/blocked.txt`, and here while a token is asked for.
 */
import { expect, test } from "bun:test";
import { startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";
import { until } from "../../support/until";

testScenes("blocked");

const exchange = "/copilot_internal/v2/token";
const chat = "/chat/completions";
const hello = { model: "claude-sonnet-4.6", messages: [{ role: "user", content: "Hello" }] };

test("what comes later does not end it: an exchange that fails or succeeds meanwhile", async () => {
  for (const late of [() => new Response("", { status: 500 }), () => undefined]) {
    await using proxy = await startProxy({ accounts: ["octo-demo", "work-demo"] });
    const answered = Promise.withResolvers<void>();
    proxy.demo.intercept(exchange, async () => {
      await answered.promise;
      return late();
    });
    proxy.demo.intercept("/copilot_internal/user", () =>
      Response.json({ message: "Sorry. Your account was suspended" }, { status: 403 }),
    );
    const asked = proxy.post("/v1/chat/completions", hello);
    await until(() => proxy.demo.journal.some(({ path }) => path === exchange), "a token is asked for");
    await fetch(`${proxy.url}/usage`);
    answered.resolve();
    expect((await asked).status).toBe(403);
    expect((await proxy.post("/v1/chat/completions", hello)).status).toBe(403);
    expect(proxy.demo.journal.filter(({ path }) => path === chat)).toEqual([]);
    expect(proxy.lines.filter((line) => line.includes("EVERYTHING HAS STOPPED"))).toHaveLength(1);
  }
});
