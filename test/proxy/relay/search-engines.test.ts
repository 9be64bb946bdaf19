/** Scenario: web searches by engines of the config, which are servers on loopback here. */
import { expect, test } from "bun:test";
import { startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";
import { until } from "../../support/until";

testScenes("engines");

test("an engine is left when the client hangs up", async () => {
  const asked = Promise.withResolvers<void>();
  let isGone = false;
  using engine = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      asked.resolve();
      return new Promise(() =>
        request.signal.addEventListener("abort", () => {
          isGone = true;
        }),
      );
    },
  });
  const settings = { name: "searxng", url: engine.url.origin };
  await using proxy = await startProxy({ config: { webSearchEngine: settings } });
  const client = new AbortController();
  const body = {
    model: "claude-sonnet-4.6",
    max_tokens: 1000,
    messages: [{ role: "user", content: "Please search the web for red pandas." }],
    tools: [{ type: "web_search_20250305", name: "web_search" }],
  };
  const answer = proxy.post("/v1/messages", body, { signal: client.signal }).catch(() => undefined);
  await asked.promise;
  client.abort();
  await answer;
  await until(() => isGone && proxy.app.inFlight.count === 0, "the search is given up");
  expect(proxy.rows().map(({ http_status }) => http_status)).toEqual([499, 499]);
});
