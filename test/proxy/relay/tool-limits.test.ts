/** Scenario: limits and ids of tools that run while the model answers: each belongs to one tool, and to one call. */
import { expect, test } from "bun:test";
import { isAllowedPage } from "../../../src/proxy/server-tools/web-search";
import { eventStream, namedEvent } from "../../support/event-stream";
import type { Json } from "../../support/json";
import { type RunningProxy, startProxy } from "../../support/proxy";

const search = { type: "web_search_20250305", name: "web_search" };
const lookup = { name: "lookup", input_schema: { type: "object" } };
const messages = [{ role: "user", content: "Please search the web for red pandas." }];
const ask = (more: object): Json => ({ model: "claude-sonnet-4.6", max_tokens: 4000, messages, ...more });
const namesOf = ({ tools = [] }: Json): string[] => tools.map((tool: Json) => tool.name ?? tool.function?.name);
/** What the model that answers was sent, the oldest first. */
const sentTo = (proxy: RunningProxy, model: string): Json[] =>
  proxy.demo.journal.map(({ body }) => body as Json).filter((body) => body?.model === model);

/** An answer of Claude's that calls these functions. */
function callsOf(...calls: [id: string, name: string, input: object][]): Response {
  const blocks = calls.flatMap(([id, name, input], index) => [
    namedEvent({ type: "content_block_start", index, content_block: { type: "tool_use", id, name, input: {} } }),
    namedEvent({
      type: "content_block_delta",
      index,
      delta: { type: "input_json_delta", partial_json: JSON.stringify(input) },
    }),
    namedEvent({ type: "content_block_stop", index }),
  ]);
  return eventStream(
    namedEvent({
      type: "message_start",
      message: { id: "msg_1", model: "c", usage: { input_tokens: 9, output_tokens: 1 } },
    }) +
      blocks.join("") +
      namedEvent({ type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 5 } }) +
      namedEvent({ type: "message_stop" }),
  );
}

test("a limit of uses takes its own tool away, and leaves the others", async () => {
  await using proxy = await startProxy();
  let turn = 0;
  proxy.demo.intercept(
    "/v1/messages",
    () => (++turn < 3 ? callsOf([`toolu_${turn}`, "web_search", { query: "pandas" }]) : undefined),
    9,
  );
  const finding = { type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" };
  const tools = [{ ...search, max_uses: 1 }, finding, lookup, { ...lookup, name: "rare", defer_loading: true }];
  const model = "claude-haiku-4.5";
  const reply = (await (await proxy.post("/v1/messages", ask({ model, tools }))).json()) as Json;
  const results = reply.content.filter(({ type }: Json) => type === "web_search_tool_result");
  expect(results.map(({ content }: Json) => content.error_code ?? "pages")).toEqual(["pages", "max_uses_exceeded"]);
  expect(sentTo(proxy, model).map(namesOf)).toEqual([
    ["web_search", "tool_search", "lookup"],
    ["web_search", "tool_search", "lookup"],
    ["tool_search", "lookup"],
  ]);
});

test("a limit of uses of a Responses request is `max_tool_calls`, which is not lost", async () => {
  await using proxy = await startProxy();
  proxy.demo.intercept(
    "/v1/messages",
    ({ body }) =>
      namesOf(body).includes("web_search")
        ? callsOf([`toolu_${crypto.randomUUID().slice(0, 8)}`, "web_search", { query: "pandas" }])
        : undefined,
    9,
  );
  const request = {
    model: "claude-sonnet-4.6",
    input: "Please search the web for red pandas.",
    tools: [{ type: "web_search" }],
    max_tool_calls: 1,
  };
  const reply = (await (await proxy.post("/v1/responses", request)).json()) as Json;
  expect(reply.status).toBe("completed");
  const rows = proxy.rows();
  expect(rows.filter(({ parent_id }) => parent_id !== null)).toHaveLength(1);
  expect(rows[0]!.dropped).toBe("[]");
});

test("ids of calls are different, though an upstream gives long ones that differ at their ends, or one twice", async () => {
  await using proxy = await startProxy();
  let turn = 0;
  const long = `call_${"x".repeat(30)}`;
  proxy.demo.intercept(
    "/v1/messages",
    () => {
      turn++;
      if (turn === 1)
        return callsOf([`${long}_0`, "web_search", { query: "a" }], [`${long}_1`, "web_search", { query: "b" }]);
      return turn === 2 ? callsOf([`${long}_1`, "web_search", { query: "c" }]) : undefined;
    },
    9,
  );
  const reply = (await (await proxy.post("/v1/messages", ask({ tools: [search] }))).json()) as Json;
  const ids = reply.content.filter(({ type }: Json) => type === "server_tool_use").map(({ id }: Json) => id);
  expect(new Set(ids).size).toBe(3);
  const results = reply.content.filter(({ type }: Json) => type === "web_search_tool_result");
  expect(results.map(({ tool_use_id }: Json) => tool_use_id)).toEqual(ids);
  const last = sentTo(proxy, "claude-sonnet-4.6").at(-1);
  const called = last.messages.flatMap(({ content }: Json) =>
    Array.isArray(content) ? content.flatMap(({ type, id }: Json) => (type === "tool_use" ? [id] : [])) : [],
  );
  expect(called).toEqual(ids);
});

test("a forced search of tools is forced under the name that it has here", async () => {
  await using proxy = await startProxy();
  const deferred = { name: "merge", description: "Merges.", input_schema: { type: "object" }, defer_loading: true };
  for (const [name, here] of [
    ["tool_search_tool_regex", "tool_search_regex"],
    ["tool_search_tool_bm25", "tool_search"],
  ]) {
    const tools = [{ type: `${name}_20251119`, name }, lookup, deferred];
    const body = ask({ model: "claude-haiku-4.5", tools, tool_choice: { type: "tool", name } });
    expect((await proxy.post("/v1/messages", body)).status).toBe(200);
    const [first, next] = sentTo(proxy, "claude-haiku-4.5").slice(-2);
    expect(first.tool_choice).toEqual({ type: "tool", name: here });
    expect(namesOf(first)).toContain(here!);
    expect(next.tool_choice).toBeUndefined();
  }
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
