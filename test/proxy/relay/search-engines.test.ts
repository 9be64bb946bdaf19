/** Scenario: web searches by engines of the config, which are servers on loopback here. */
import { describe, expect, test } from "bun:test";
import type { Json } from "../../support/json";
import { startProxy } from "../../support/proxy";
import { until } from "../../support/until";

const key = "engine-key-0123456789";

/** A server that answers as an engine, and keeps what it was sent. */
function startEngine(answer: (request: Request) => Response | Promise<Response>) {
  const seen: { url: URL; method: string; headers: Headers; body: Json }[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const text = await request.clone().text();
      seen.push({
        url: new URL(request.url),
        method: request.method,
        headers: request.headers,
        body: text === "" ? undefined : JSON.parse(text),
      });
      return answer(request);
    },
  });
  return { url: server.url.origin, seen, [Symbol.asyncDispose]: () => server.stop(true) };
}

const ask = (more: object = {}): Json => ({
  model: "claude-sonnet-4.6",
  max_tokens: 1000,
  messages: [{ role: "user", content: "Please search the web for red pandas." }],
  tools: [{ type: "web_search_20250305", name: "web_search", ...more }],
});

const resultIn = ({ content }: Json) => content.find(({ type }: Json) => type === "web_search_tool_result").content;

const pages = [
  { title: "Red panda", url: "https://pandas.example.com/red", text: "Small and red.", age: "May 2026" },
  { title: "Others", url: "https://example.org/other", text: "Black and white." },
];
const long = { title: "T".repeat(301), url: "https://long.example/", text: "X".repeat(2001), age: "A".repeat(61) };

describe.each([
  {
    name: "brave",
    answer: { web: { results: [...pages, long].map(({ text, ...page }) => ({ ...page, description: text })) } },
    isAsked({ url, headers }: Json) {
      expect(url.pathname).toBe("/res/v1/web/search");
      expect(url.searchParams.get("q")).toBe("red pandas -site:example.org");
      expect(url.searchParams.get("country")).toBe("DE");
      expect(headers.get("x-subscription-token")).toBe(key);
    },
  },
  {
    name: "tavily",
    answer: {
      results: [...pages, long].map(({ text, age, ...page }) => ({ ...page, content: text, published_date: age })),
    },
    isAsked({ url, method, headers, body }: Json) {
      expect([url.pathname, method, headers.get("authorization")]).toEqual(["/search", "POST", `Bearer ${key}`]);
      expect(body).toMatchObject({ query: "red pandas", exclude_domains: ["example.org"] });
    },
  },
  {
    name: "searxng",
    answer: {
      results: [...pages, long].map(({ text, age, ...page }) => ({ ...page, content: text, publishedDate: age })),
    },
    isAsked({ url }: Json) {
      expect([url.pathname, url.searchParams.get("format")]).toEqual(["/search", "json"]);
      expect(url.searchParams.get("q")).toBe("red pandas -site:example.org");
    },
  },
])("$name", ({ name, answer, isAsked }) => {
  test("finds pages, within the client's limits; the search has a row", async () => {
    await using engine = startEngine(() => Response.json(answer));
    const settings = { name, url: engine.url, ...(name === "searxng" ? {} : { apiKey: key }) };
    await using proxy = await startProxy({ config: { webSearchEngine: settings, webSearchModel: "off" } });
    const limits = { blocked_domains: ["example.org"], user_location: { type: "approximate", country: "DE" } };
    const reply = await (await proxy.post("/v1/messages", ask(limits))).json();
    expect(resultIn(reply)).toMatchObject([
      { url: pages[0]!.url, title: "Red panda", page_age: "May 2026" },
      { url: long.url, title: "T".repeat(300), page_age: "A".repeat(60) },
    ]);
    isAsked(engine.seen[0]);
    expect(JSON.stringify(proxy.demo.journal.at(-1)!.body)).toMatch(/Small and red\..*[^X]X{2000}[^X]/);

    const row = proxy.rows().find(({ parent_id }) => parent_id !== null);
    expect(row).toMatchObject({
      path: "web_search",
      upstream_endpoint: `search:${name}`,
      upstream_model: name,
      initiator: "agent",
      http_status: 200,
      account_id: null,
    });
    expect(JSON.parse(row!.attempts)).toMatchObject([{ account: null, status: 200 }]);
    const shown = await (await fetch(`${proxy.url}/api/admin/config`)).text();
    expect(shown + JSON.stringify(proxy.rows()) + proxy.lines.join()).not.toContain(key);
  });
});

test.each([
  ["brave", "pandas ".repeat(50).trim(), true],
  ["brave", "pandas ".repeat(51).trim(), false],
  ["brave", "p".repeat(400), true],
  ["brave", "p".repeat(401), false],
  ["tavily", "p ".repeat(200).trim(), true],
  ["tavily", "p".repeat(401), false],
  ["searxng", "p".repeat(401), true],
])(
  "a query that is longer than the engine accepts is an error of the tool that says so, and it is not asked: %s, %s",
  async (name, query, isAccepted) => {
    await using engine = startEngine(() => Response.json({ web: { results: pages }, results: pages }));
    const settings = { name, url: engine.url, ...(name === "searxng" ? {} : { apiKey: key }) };
    await using proxy = await startProxy({ config: { webSearchEngine: settings } });
    const messages = [{ role: "user", content: `Please search the web for ${query}.` }];
    const reply = (await (await proxy.post("/v1/messages", { ...ask(), messages })).json()) as Json;
    expect(engine.seen).toHaveLength(isAccepted ? 1 : 0);
    if (isAccepted) expect(resultIn(reply)).toBeArray();
    else expect(resultIn(reply)).toEqual({ type: "web_search_tool_result_error", error_code: "query_too_long" });
  },
);

test("a query that is longer than the engine accepts is one with the sites that are allowed; blocked ones without room are left out of the results instead", async () => {
  await using engine = startEngine(() => Response.json({ web: { results: pages } }));
  const settings = { name: "brave", url: engine.url, apiKey: key };
  await using proxy = await startProxy({ config: { webSearchEngine: settings } });
  const search = async (limits: object) => resultIn(await (await proxy.post("/v1/messages", ask(limits))).json());
  const sites = Array.from({ length: 60 }, (_, at) => `s${at}.example`);
  expect(await search({ allowed_domains: sites })).toMatchObject({ error_code: "query_too_long" });
  expect(engine.seen).toHaveLength(0);
  expect(await search({ blocked_domains: [...sites, "example.org"] })).toMatchObject([{ url: pages[0]!.url }]);
  const sent = engine.seen[0]!.url.searchParams.get("q")!;
  expect(sent.length <= 400 && sent.split(" ").length <= 50).toBe(true);
  expect(sent).toStartWith("red pandas -site:s0.example -site:s1.example");
});

test.each([
  [() => new Response("slow down", { status: 429 }), "too_many_requests"],
  [() => new Response("who are you, red pandas?", { status: 401 }), "unavailable"],
  [() => new Response("<html>", { headers: { "content-type": "text/html" } }), "unavailable"],
  [() => Response.json([]), "unavailable"],
])("an engine that fails is an error of the tool", async (answer, code) => {
  await using engine = startEngine(answer);
  const settings = { name: "brave", apiKey: key, url: engine.url };
  await using proxy = await startProxy({ config: { webSearchEngine: settings } });
  const reply = (await (await proxy.post("/v1/messages", ask())).json()) as Json;
  expect(resultIn(reply)).toEqual({ type: "web_search_tool_result_error", error_code: code });
  expect(reply.stop_reason).toBe("end_turn");
  const row = proxy.rows().find(({ parent_id }) => parent_id !== null)!;
  expect(row.error_message).toContain("Brave Search");
  expect(JSON.stringify(proxy.rows()) + proxy.lines.join()).not.toContain("red pandas");
});

test("an engine that fails is left when the client hangs up", async () => {
  let isGone = false;
  await using engine = startEngine(
    (request) =>
      new Promise(() =>
        request.signal.addEventListener("abort", () => {
          isGone = true;
        }),
      ),
  );
  const settings = { name: "searxng", url: engine.url };
  await using proxy = await startProxy({ config: { webSearchEngine: settings } });
  const gone = new AbortController();
  const asked = proxy.post("/v1/messages", ask(), { signal: gone.signal }).catch(() => undefined);
  await until(() => engine.seen.length === 1, "the engine is asked");
  gone.abort();
  await asked;
  await until(() => isGone && proxy.app.inFlight.count === 0, "the search is given up");
  expect(proxy.rows().map(({ http_status }) => http_status)).toEqual([499, 499]);
});

test("an engine without what it needs is refused by the config", async () => {
  await using proxy = await startProxy();
  for (const [webSearchEngine, param] of [
    [{ name: "brave" }, "webSearchEngine.apiKey"],
    [{ name: "searxng" }, "webSearchEngine.url"],
    [{ name: "searxng", url: "http://169.254.169.254" }, "webSearchEngine.url"],
    [{ name: "altavista" }, "webSearchEngine.name"],
  ] as const) {
    const response = await proxy.post("/api/admin/config", { webSearchEngine });
    const { error } = (await response.json()) as Json;
    expect([response.status, error.param]).toEqual([400, param]);
  }
});

test("Codex' own search needs an engine only, no account; the metrics name the engine", async () => {
  await using engine = startEngine(() =>
    Response.json({ results: pages.map(({ text, ...page }) => ({ ...page, content: text })) }),
  );
  await using proxy = await startProxy({
    accounts: [],
    config: { webSearchEngine: { name: "searxng", url: engine.url } },
  });
  const answer = await proxy.post("/v1/alpha/search", { commands: { search_query: [{ q: "red pandas" }] } });
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("Small and red.")]);
  const metrics = await (await fetch(`${proxy.url}/metrics`)).text();
  expect(metrics).toMatch(/upstream="searxng"/);
  expect(metrics).not.toMatch(/upstream="copilot"/);
});

test("an engine's long titles and addresses are cut or left out: they are paid for as a part of the prompt", async () => {
  const long = "x".repeat(100_000);
  const results = [
    { url: "https://a.example.com/", title: `Title ${long}`, content: long, publishedDate: long },
    { url: `https://b.example.com/${long}`, title: "B" },
  ];
  await using engine = startEngine(() => Response.json({ results }));
  await using proxy = await startProxy({ config: { webSearchEngine: { name: "searxng", url: engine.url } } });
  expect((await proxy.post("/v1/messages", ask())).status).toBe(200);
  const last = JSON.stringify(proxy.demo.journal.at(-1)!.body);
  expect(last).toContain("https://a.example.com/");
  expect(last).not.toContain("b.example.com");
  expect(last.length).toBeLessThan(8_000);
});

test("an engine that the owner has chosen goes before a model that searches by itself", async () => {
  await using engine = startEngine(() =>
    Response.json({ results: [{ url: "https://engine.example/", title: "E", content: "Red." }] }),
  );
  await using proxy = await startProxy({ config: { webSearchEngine: { name: "searxng", url: engine.url } } });
  const reply = await proxy.post("/v1/messages", { ...ask(), model: "gpt-5.2" });
  expect(await reply.text()).toContain("https://engine.example/");
});
