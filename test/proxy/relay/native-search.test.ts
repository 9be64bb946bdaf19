/**
 * Scenario: a model that searches the web by itself does so for clients of every dialect, where their wish can be said
 * to it.
 */
import { describe, expect, test } from "bun:test";
import type { Json } from "../../support/json";
import { type RunningProxy, startProxy } from "../../support/proxy";

const model = "gpt-5.2";
/** A chat client is served by chat completions where the model has them, and they have no search. */
const responsesOnly = "gpt-5.3-codex";
const wish = "Please search the web for red pandas.";
const search = { type: "web_search_20250305", name: "web_search" };
const lookup = { name: "lookup", input_schema: { type: "object" } };
const messages = [{ role: "user", content: wish }];
const ask = (more: object = {}): Json => ({ model, max_tokens: 2000, messages, tools: [search, lookup], ...more });
const place = { type: "approximate", city: "Vienna", country: "AT" };

/** What models were sent, the oldest first. */
const sentTo = (proxy: RunningProxy): Json[] =>
  proxy.demo.journal.map(({ body }) => body as Json).filter((body) => body?.model);
const typesOf = ({ tools }: Json): string[] => tools.map(({ type }: Json) => type);

describe("in one answer", () => {
  /** A Gemini client gets the text, and not which pages it cites. */
  const page = "https://example.com/demo";
  test.each<[string, string, Json, shows: string]>([
    ["Messages", "/v1/messages", ask(), page],
    ["chat", "/v1/chat/completions", { model: responsesOnly, messages, web_search_options: {} }, page],
    [
      "Gemini",
      `/v1beta/models/${model}:generateContent`,
      { contents: [{ parts: [{ text: wish }] }], tools: [{ googleSearch: {} }] },
      "red pandas",
    ],
  ])("for a client of %s, also while dragoman's own searches are off", async (_name, path, body, shows) => {
    for (const webSearchModel of ["auto", "off"]) {
      await using proxy = await startProxy({ config: { webSearchModel } });
      const response = await proxy.post(path, body);
      expect(response.status).toBe(200);
      expect(await response.text()).toContain(shows);
      const sent = sentTo(proxy);
      expect(sent.map((each) => each.model)).toEqual([body.model ?? model]);
      expect(typesOf(sent[0])).toContain("web_search");
      const [row, ...others] = proxy.rows();
      expect([row!.searches, row!.dropped, others]).toEqual([1, "[]", []]);
    }
  });

  test("with the sites that are allowed, the person's place and a forced choice", async () => {
    await using proxy = await startProxy();
    const tool = { ...search, allowed_domains: ["example.com", "example.org"], user_location: place };
    const choice = { type: "tool", name: "web_search" };
    expect((await proxy.post("/v1/messages", ask({ tools: [tool], tool_choice: choice }))).status).toBe(200);
    const [sent] = sentTo(proxy);
    expect(sent.tools).toEqual([
      { type: "web_search", filters: { allowed_domains: ["example.com", "example.org"] }, user_location: place },
    ]);
    expect(sent.tool_choice).toEqual({ type: "web_search" });
    expect(sent.include).toContain("reasoning.encrypted_content");
  });

  test("which the client gets in its own form, and sends back", async () => {
    await using proxy = await startProxy();
    const reply = (await (await proxy.post("/v1/messages", ask())).json()) as Json;
    const [call, result] = reply.content.filter(({ type }: Json) => type !== "text" && type !== "thinking");
    expect(call).toMatchObject({ type: "server_tool_use", name: "web_search", input: { query: "red pandas" } });
    expect(result).toMatchObject({
      type: "web_search_tool_result",
      tool_use_id: call.id,
      content: [{ type: "web_search_result", url: "https://example.com/demo" }],
    });
    expect(reply.content.at(-1).citations).toMatchObject([
      { type: "web_search_result_location", url: "https://example.com/demo", title: "DEMO result" },
    ]);
    expect(reply.usage.server_tool_use).toEqual({ web_search_requests: 1, web_fetch_requests: 0 });
    const history = [...messages, { role: "assistant", content: reply.content }, { role: "user", content: "Thanks." }];
    expect((await proxy.post("/v1/messages", ask({ messages: history }))).status).toBe(200);
    expect(JSON.stringify(sentTo(proxy).at(-1))).not.toContain("srvtoolu_none");
  });

  // As Grok answers on xAI's own Responses API (recorded 2025-12).
  test("and a citation without a place or a title is one of the whole text, named by its address", async () => {
    await using proxy = await startProxy();
    const text = "Red pandas climb.";
    const annotations = [{ type: "url_citation", url: "https://example.com/demo" }];
    const said = { type: "message", role: "assistant", content: [{ type: "output_text", text, annotations }] };
    proxy.demo.intercept(
      "/responses",
      () => Response.json({ id: "resp_1", object: "response", model, status: "completed", output: [said] }),
      3,
    );
    const url_citation = { url: "https://example.com/demo", title: "https://example.com/demo", start_index: 0 };
    const body = { model: responsesOnly, messages, web_search_options: {} };
    const reply = (await (await proxy.post("/v1/chat/completions", body)).json()) as Json;
    expect(reply.choices[0].message.annotations).toEqual([
      { type: "url_citation", url_citation: { ...url_citation, end_index: text.length } },
    ]);
    const { content } = (await (await proxy.post("/v1/messages", ask())).json()) as Json;
    expect(content[0].citations).toMatchObject([{ type: "web_search_result_location", url: url_citation.url }]);
  });

  test("and what the upstream read and did not list is not nothing in the next turn", async () => {
    await using proxy = await startProxy();
    const looks = [
      { type: "search", query: "pandas" },
      { type: "open_page", url: "https://example.com/pandas" },
      { type: "find_in_page", url: "https://example.com/pandas", pattern: "red" },
    ];
    const output = [
      ...looks.map((action, at) => ({ type: "web_search_call", id: `ws_${at}`, status: "completed", action })),
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Red.", annotations: [] }] },
    ];
    proxy.demo.intercept("/responses", () =>
      Response.json({ id: "resp_1", object: "response", model, status: "completed", output }),
    );
    const reply = (await (await proxy.post("/v1/messages", ask())).json()) as Json;
    const results = reply.content.filter(({ type }: Json) => type === "web_search_tool_result");
    const page = [expect.objectContaining({ url: "https://example.com/pandas" })];
    expect(results.map(({ content }: Json) => content)).toEqual([[], page, page]);
    const history = [...messages, { role: "assistant", content: reply.content }, { role: "user", content: "And?" }];
    expect((await proxy.post("/v1/messages", ask({ messages: history }))).status).toBe(200);
    const told = JSON.stringify(sentTo(proxy).at(-1).input);
    expect(told).not.toContain("No page was found");
    expect(told).toContain("The result is not kept here.");
    expect(told).toContain("https://example.com/pandas");
  });

  test("and a search that failed is an error in the result", async () => {
    await using proxy = await startProxy();
    const failed = { type: "web_search_call", id: "ws_1", status: "failed", action: { type: "search", query: "x" } };
    const said = {
      type: "message",
      role: "assistant",
      content: [{ type: "output_text", text: "No.", annotations: [] }],
    };
    proxy.demo.intercept("/responses", () =>
      Response.json({ id: "resp_1", object: "response", model, status: "completed", output: [failed, said] }),
    );
    const reply = (await (await proxy.post("/v1/messages", ask())).json()) as Json;
    expect(reply.content[1].content).toMatchObject({ error_code: "unavailable" });
  });
});

describe("dragoman searches itself", () => {
  test.each<[string, object]>([
    ["sites that are blocked", { blocked_domains: ["other.example"] }],
    ["a limit of uses", { max_uses: 3 }],
    ["a path among the sites", { allowed_domains: ["example.com/demo"] }],
    ["a wildcard among the sites", { allowed_domains: ["example.com/*"] }],
  ])("for %s, which the model's own search does not know", async (_wish, limits) => {
    await using proxy = await startProxy();
    const body = ask({ tools: [{ ...search, ...limits }, lookup] });
    expect(await (await proxy.post("/v1/messages", body)).text()).toContain("https://example.com/demo");
    expect(sentTo(proxy).map((each) => each.model)).toEqual([model, "gpt-5-mini", model]);
    expect(typesOf(sentTo(proxy)[0])).toEqual(["function", "function"]);
  });

  test("with an engine that the owner has chosen", async () => {
    await using engine = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => Response.json({ results: [{ url: "https://engine.example/", title: "E", content: "Red." }] }),
    });
    const webSearchEngine = { name: "searxng", url: engine.url.origin };
    await using proxy = await startProxy({ config: { webSearchEngine } });
    expect(await (await proxy.post("/v1/messages", ask())).text()).toContain("https://engine.example/");
    expect(typesOf(sentTo(proxy)[0])).toEqual(["function", "function"]);
  });
});

test("no model searches with web search off", async () => {
  await using proxy = await startProxy({ config: { useResponsesApiWebSearch: false } });
  expect((await proxy.post("/v1/messages", ask())).status).toBe(200);
  expect(typesOf(sentTo(proxy)[0])).toEqual(["function"]);
  expect(proxy.rows()[0]!.dropped).toContain("web_search");
});
