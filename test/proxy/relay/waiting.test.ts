/** Scenario: what becomes of requests at a limit that ends: refused with the time, or held until it does. */
import { expect, test } from "bun:test";
import { startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";
import { until } from "../../support/until";

testScenes("waiting");

test("a request that was sent before its owner wanted waiting is refused by its limit, and not by an error of ours", async () => {
  await using proxy = await startProxy();
  const arrived = Promise.withResolvers<void>();
  const turned = Promise.withResolvers<void>();
  proxy.demo.intercept("/chat/completions", async () => {
    arrived.resolve();
    await turned.promise;
    return new Response("slow down", { status: 429, headers: { "retry-after": "30" } });
  });
  const answer = proxy.post("/v1/chat/completions", {
    model: "gpt-4.1",
    stream: true,
    messages: [{ role: "user", content: "hello" }],
  });
  await arrived.promise;
  await proxy.app.config.change({ whenLimited: "wait" });
  turned.resolve();
  expect((await answer).status).toBe(429);
});

test("a request whose turn ends at another limit waits for that one too", async () => {
  await using proxy = await startProxy({ config: { whenLimited: "wait" } });
  const [account] = proxy.app.accounts;
  account!.setState({ name: "cooling", until: Date.now() + 60_000, reason: "For a test." });
  const body = { model: "gpt-4.1", messages: [{ role: "user", content: "hello" }] };
  const answer = proxy.post("/v1/chat/completions", body);
  const waitsFor = (why: RegExp) => () => why.test(proxy.app.inFlight.running()[0]?.waited_for ?? "");
  await until(waitsFor(/For a test/), "it waits for the first limit");
  const limited = { error: { code: "user_global_rate_limited" } };
  proxy.demo.intercept("/chat/completions", () =>
    Response.json(limited, { status: 429, headers: { "retry-after": "60" } }),
  );
  account!.setState({ name: "ready" });
  await until(waitsFor(/user_global/), "it waits for the second limit");
  account!.setState({ name: "ready" });
  expect((await answer).status).toBe(200);
  expect(proxy.rows()[0]).toMatchObject({ attempts: expect.stringMatching(/"status":429.*"status":200/) });
});
