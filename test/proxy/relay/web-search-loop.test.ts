/**
 * Scenario: the loop of tools that run while the model answers: what goes upstream between the answers, how it ends, and
 * what a tool that is not used changes; from `fixtures/scenes/loop.txt`, and here while a search runs.
 */
import { expect, test } from "bun:test";
import { isAllowedPage } from "../../../src/proxy/server-tools/web-search";
import { eventsIn } from "../../support/event-stream";
import type { Json } from "../../support/json";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";
import { until } from "../../support/until";

testScenes("loop");

const ask = (more: object = {}): Json => ({
  model: "claude-sonnet-4.6",
  max_tokens: 4000,
  messages: [{ role: "user", content: "Please search the web for red pandas." }],
  tools: [{ type: "web_search_20250305", name: "web_search" }],
  ...more,
});

/** A search that goes on until its call is hung up. */
function holdSearches(proxy: RunningProxy, times = 1) {
  const state = { begun: 0, aborted: 0 };
  proxy.demo.intercept(
    "/responses",
    ({ body }, request) => {
      if (!JSON.stringify((body as Json).tools).includes('"web_search"')) return undefined;
      state.begun++;
      return new Promise<undefined>((resolve) =>
        request.signal.addEventListener("abort", () => {
          state.aborted++;
          resolve(undefined);
        }),
      );
    },
    times,
  );
  return state;
}

test("while a search runs, the owner can stop it alone, or the whole reply", async () => {
  await using proxy = await startProxy();
  const searches = holdSearches(proxy, 2);
  const first = proxy.post("/v1/messages", ask());
  await until(() => searches.begun === 1, "the search has begun");
  const [whole, child] = proxy.app.inFlight.running();
  expect(child).toMatchObject({ parent_id: whole!.request_id, path: "web_search", upstream_model: "gpt-5-mini" });
  expect(JSON.stringify([whole, child])).not.toContain("pandas");
  proxy.app.inFlight.cancel(child!.request_id);
  const reply = (await (await first).json()) as Json;
  expect(JSON.stringify(reply.content)).toContain("unavailable");
  expect(reply.stop_reason).toBe("end_turn");

  const second = proxy.post("/v1/messages", ask({ stream: true }));
  await until(() => searches.begun === 2, "the second search has begun");
  proxy.app.inFlight.cancel(proxy.app.inFlight.running()[0]!.request_id);
  expect(eventsIn(await (await second).text()).at(-1)).toMatchObject({ type: "error" });
  await until(() => searches.aborted === 2, "both searches are given up");
});

test("the client gets signs of life while a search runs", async () => {
  await using proxy = await startProxy();
  proxy.app.limits.keepAlive = 40;
  holdSearches(proxy);
  const gone = new AbortController();
  const body = ask({ stream: true });
  const response = await proxy.post("/v1/messages", body, { signal: gone.signal });
  const reader = response.body!.getReader();
  let text = "";
  while (!/server_tool_use[\s\S]*event: ping/.test(text)) text += new TextDecoder().decode((await reader.read()).value);
  gone.abort();
  await until(() => proxy.app.inFlight.count === 0, "no request runs");
});

const page = (path: string) => `https://www.example.com${path}`;

test.each<[string, string[], string[]]>([
  ["example.com", ["/", "/a"], []],
  ["example.com/", ["/", "/a"], []],
  ["example.com/*", ["/", "/a", "/a/b"], []],
  ["*.example.com", ["/a"], []],
  ["https://example.com/blog", ["/blog", "/blog/1", "/blog?page=2"], ["/", "/blogger"]],
  ["example.com/blog/", ["/blog/1"], ["/blogger"]],
  ["example.com/*/articles", ["/en/articles", "/en/articles/1", "/a/b/articles"], ["/articles", "/en/articlesque"]],
  ["example.com/blog/*-pandas", ["/blog/red-pandas"], ["/blog/pandas"]],
])("limits of sites: %s allows and blocks what is below it", (limit, below, others) => {
  for (const path of below) {
    expect([path, isAllowedPage(page(path), { allowedDomains: [limit] })]).toEqual([path, true]);
    expect([path, isAllowedPage(page(path), { blockedDomains: [limit] })]).toEqual([path, false]);
  }
  for (const path of others) {
    expect([path, isAllowedPage(page(path), { allowedDomains: [limit] })]).toEqual([path, false]);
    expect([path, isAllowedPage(page(path), { blockedDomains: [limit] })]).toEqual([path, true]);
  }
  expect(isAllowedPage("https://notexample.com/blog", { allowedDomains: [limit] })).toBe(false);
});
