/**
 * Scenario: the loop of web searches: what goes upstream between the answers, and how it ends when something fails or
 * stops.
 */
import { expect, test } from "bun:test";
import { eventStream, eventsIn, namedEvent } from "../../support/event-stream";
import type { Json } from "../../support/json";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { until } from "../../support/until";

const models = ["claude-sonnet-4.6", "gpt-5.3-codex", "gemini-3.1-pro-preview"];
/** With a limit of uses the search runs here, whatever the model. */
const search = { type: "web_search_20250305", name: "web_search", max_uses: 5 };
const lookup = { name: "lookup", input_schema: { type: "object" } };
const wish = "Please think, then search the web for red pandas.";

const ask = (model: string, more: object = {}): Json => ({
  model,
  max_tokens: 4000,
  thinking: { type: "enabled", budget_tokens: 1500 },
  messages: [{ role: "user", content: wish }],
  tools: [search, lookup],
  ...more,
});

/** What models were sent, the oldest first. */
const sentTo = (proxy: RunningProxy): Json[] =>
  proxy.demo.journal.map(({ body }) => body as Json).filter((body) => body?.model);

/** Everything that the model sees of the conversation. */
const promptIn = ({ messages, input }: Json): Json[] => messages ?? input;

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

test.each(models)("the next answer of %s is asked for with what the model thought and said, signed", async (model) => {
  await using proxy = await startProxy();
  const reply = (await (await proxy.post("/v1/messages", ask(model))).json()) as Json;
  expect(reply.content.map(({ type }: Json) => type).slice(0, 1)).toEqual(["thinking"]);
  const [first, , second] = sentTo(proxy);
  const prompt = promptIn(second);
  expect(prompt.slice(0, promptIn(first).length)).toEqual(promptIn(first));
  expect(second.tools).toEqual(first.tools);
  const said = JSON.stringify(prompt.slice(promptIn(first).length));
  const proof = { messages: "signature", input: "encrypted_content" }[second.input ? "input" : "messages"];
  expect(said).toContain(model.startsWith("gemini") ? "reasoning_opaque" : proof);
  expect(said).toContain("A demo can only follow its script.");
  if (model.startsWith("gpt")) expect(said).toContain('"phase":"commentary"');

  // What the client sends back is the same prompt, so that the upstream's cache has it.
  const messages = [
    { role: "user", content: wish },
    { role: "assistant", content: reply.content },
    { role: "user", content: "Thank you." },
  ];
  await (await proxy.post("/v1/messages", ask(model, { messages }))).text();
  const again = promptIn(sentTo(proxy).at(-1));
  const plain = (items: Json[]) => JSON.stringify(items).replaceAll('"phase":"commentary",', "");
  expect(plain(again.slice(0, prompt.length))).toBe(plain(prompt));
});

test("the next answer may have another search, up to the client's limit", async () => {
  await using proxy = await startProxy();
  // The model searches whenever it may.
  proxy.demo.intercept(
    "/v1/messages",
    ({ body }) => ((body as Json).tools.some(({ name }: Json) => name === "web_search") ? callOfSearch() : undefined),
    100,
  );
  const tools = [{ ...search, max_uses: 2 }, lookup];
  const reply = (await (await proxy.post("/v1/messages", ask("claude-sonnet-4.6", { tools }))).json()) as Json;
  const results = reply.content.filter(({ type }: Json) => type === "web_search_tool_result");
  expect(results.map(({ content }: Json) => content.error_code ?? content.length)).toEqual([1, 1, "max_uses_exceeded"]);
  expect(reply.usage).toMatchObject({ server_tool_use: { web_search_requests: 2 } });
  expect(reply.stop_reason).toBe("end_turn");
  expect(proxy.rows().filter(({ parent_id }) => parent_id !== null)).toHaveLength(2);
  const [parent] = proxy.rows();
  // Three answers of 10 tokens by the script above, and the demo's own.
  expect(reply.usage.input_tokens).toBeGreaterThan(30);
  expect(parent!.input_tokens).toBe(reply.usage.input_tokens);
  expect(JSON.parse(parent!.attempts)).toHaveLength(4);
});

/** An answer of Claude's that calls the function. */
function callOfSearch(): Response {
  const events: Json[] = [
    { type: "message_start", message: { id: "msg_1", model: "claude", usage: { input_tokens: 10, output_tokens: 1 } } },
    {
      type: "content_block_start",
      index: 0,
      content_block: {
        type: "tool_use",
        id: `toolu_${crypto.randomUUID().slice(0, 8)}`,
        name: "web_search",
        input: {},
      },
    },
    { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"query": "pandas"}' } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 5 } },
    { type: "message_stop" },
  ];
  return eventStream(events.map(namedEvent).join(""));
}

test("a reply that is cut off in a call has no search", async () => {
  await using proxy = await startProxy();
  proxy.demo.intercept("/v1/messages", async () => {
    const text = await callOfSearch().text();
    const cut = text.slice(0, text.indexOf("event: content_block_stop"));
    return eventStream(cut);
  });
  const response = await proxy.post("/v1/messages", ask("claude-sonnet-4.6", { stream: true }));
  expect(eventsIn(await response.text()).at(-1)).toMatchObject({ type: "error" });
  expect(proxy.rows().filter(({ parent_id }) => parent_id !== null)).toEqual([]);
});

test("the client's hang-up ends a search that runs", async () => {
  await using proxy = await startProxy();
  const searches = holdSearches(proxy);
  const gone = new AbortController();
  const body = ask("claude-sonnet-4.6", { stream: true });
  const response = await proxy.post("/v1/messages", body, { signal: gone.signal });
  const reader = response.body!.getReader();
  let text = "";
  while (!text.includes("server_tool_use")) text += new TextDecoder().decode((await reader.read()).value);
  await until(() => searches.begun === 1, "the search has begun");
  gone.abort();
  await until(() => searches.aborted === 1 && proxy.app.inFlight.count === 0, "the search is given up");
  const rows = proxy.rows();
  expect(rows.map(({ http_status }) => http_status)).toEqual([499, 499]);
  expect(rows.map(({ path }) => path).sort()).toEqual(["/v1/messages", "web_search"]);
});

test("while a search runs, the owner can stop it alone, or the whole reply", async () => {
  await using proxy = await startProxy();
  const searches = holdSearches(proxy, 2);
  const first = proxy.post("/v1/messages", ask("claude-sonnet-4.6"));
  await until(() => searches.begun === 1, "the search has begun");
  const [whole, child] = proxy.app.inFlight.running();
  expect(child).toMatchObject({ parent_id: whole!.request_id, path: "web_search", upstream_model: "gpt-5-mini" });
  expect(JSON.stringify([whole, child])).not.toContain("pandas");
  proxy.app.inFlight.cancel(child!.request_id);
  const reply = (await (await first).json()) as Json;
  expect(JSON.stringify(reply.content)).toContain("unavailable");
  expect(reply.stop_reason).toBe("end_turn");

  const second = proxy.post("/v1/messages", ask("claude-sonnet-4.6", { stream: true }));
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
  const body = ask("claude-sonnet-4.6", { stream: true });
  const response = await proxy.post("/v1/messages", body, { signal: gone.signal });
  const reader = response.body!.getReader();
  let text = "";
  while (!/server_tool_use[\s\S]*event: ping/.test(text)) text += new TextDecoder().decode((await reader.read()).value);
  gone.abort();
  await until(() => proxy.app.inFlight.count === 0, "no request runs");
});

test("what was generated before the next answer failed counts for the budgets", async () => {
  const budgets = [{ name: "All", unit: "credits", limit: 100, per: "day" }];
  await using proxy = await startProxy({ demo: { generation: "C" }, config: { budgets } });
  let answers = 0;
  proxy.demo.intercept("/v1/messages", () => (++answers === 2 ? new Response("{}", { status: 429 }) : undefined), 2);
  expect((await proxy.post("/v1/messages", ask("claude-sonnet-4.6"))).status).toBe(429);
  const rows = proxy.rows();
  expect(rows.map(({ cost }) => cost)).toEqual([expect.any(Number), expect.any(Number)]);
  const spent = rows.reduce((sum, { cost }) => sum + cost! / 1e9, 0);
  const [state] = await proxy.app.budgets.overview();
  expect(state!.used).toBeCloseTo(spent, 9);
});

test("a model that searches without end is stopped, however often the client allows it", async () => {
  await using proxy = await startProxy({ config: { webSearchEngine: { name: "searxng", url: "http://127.0.0.1:9" } } });
  const usage = { input_tokens: 1, output_tokens: 1 };
  const calls = Array.from({ length: 20 }, (_, index) => [
    {
      type: "content_block_start",
      index,
      content_block: { type: "tool_use", id: `toolu_${index}`, name: "web_search", input: {} },
    },
    { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: '{"query":"pandas"}' } },
    { type: "content_block_stop", index },
  ]);
  const events = [
    { type: "message_start", message: { id: "m", type: "message", role: "assistant", model: "m", content: [], usage } },
    ...calls.flat(),
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage },
    { type: "message_stop" },
  ];
  const text = events.map(namedEvent).join("");
  proxy.demo.intercept("/v1/messages", () => eventStream(text), 50);
  await proxy.post("/v1/messages", ask("claude-sonnet-4.6", { tools: [{ ...search, max_uses: 1_000_000 }] }));
  expect(proxy.rows().filter(({ parent_id }) => parent_id !== null)).toHaveLength(50);
});
