/** Scenario: what becomes of requests at a limit that ends: refused with the time, or held until it does. */
import { expect, test } from "bun:test";
import { startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";

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
