/** Scenario: `POST /v1/alpha/search`, as Codex' tool `web.run` calls it. */
import { afterAll, expect, test } from "bun:test";
import { startProxy } from "../support/proxy";
import { until } from "../support/until";

const proxy = await startProxy({ clock: { now: () => Date.UTC(2026, 10, 22, 12) } });
afterAll(() => proxy[Symbol.asyncDispose]());

const settings = {
  user_location: { type: "approximate", country: "NO" },
  external_web_access: true,
  allowed_callers: ["direct"],
};
const ask = async (commands: object, more: object = {}, running = proxy) => {
  const answer = await running.post("/v1/alpha/search", { id: "s", model: "gpt-5.4", commands, settings, ...more });
  return { status: answer.status, json: (await answer.json()) as { output: string; error: { param: string } } };
};
const searches = (from: number) =>
  proxy.demo.journal
    .slice(from)
    .flatMap(({ path, body }) => (path === "/responses" ? [body as Record<string, unknown>] : []));

test("queries are searched side by side, each with its row, and answered with what the pages say", async () => {
  const from = proxy.demo.journal.length;
  const { status, json } = await ask({
    search_query: [
      { q: "red pandas", recency: 7 },
      { q: "blue whales", domains: ["example.com"] },
    ],
    response_length: "short",
  });
  expect(status).toBe(200);
  expect(json.output).toMatch(/^## red pandas\n\[.+\]\(https:\/\/example\.com\/.*\)\n.+/);
  expect(json.output).toContain("\n\n## blue whales\n");
  const sent = searches(from).map((body) => JSON.stringify(body));
  expect(sent).toHaveLength(2);
  expect(sent.join()).toContain("red pandas (of the last 7 days)");
  expect(sent.join()).toContain('"filters":{"allowed_domains":["example.com"]}');
  expect(sent.join()).toContain('"country":"NO"');
  const [request, ...children] = proxy
    .rows()
    .slice(0, 3)
    .sort((one) => (one.path === "/v1/alpha/search" ? -1 : 1));
  expect(request).toMatchObject({ http_status: 200, client_model: "gpt-5.4", upstream_model: null });
  for (const child of children)
    expect(child).toMatchObject({ path: "web_search", initiator: "agent", parent_id: request!.request_id });
});

test("pages, weather, prices and scores are searched for; the time is known, and the rest is said to be missing", async () => {
  const from = proxy.demo.journal.length;
  const { json } = await ask({
    open: [{ ref_id: "https://example.com/a?b=1" }, { ref_id: "turn0search0" }],
    find: [{ ref_id: "https://example.com/a", pattern: "install" }],
    finance: [{ ticker: "AMD", type: "equity", market: "USA" }],
    time: [{ utc_offset: "+03:00" }, { utc_offset: "-0530" }],
    screenshot: [{ ref_id: "turn1view0", pageno: 0 }],
  });
  const sent = searches(from)
    .map((body) => JSON.stringify(body))
    .join();
  for (const part of ["what is said on the page https://example.com/a?b=1", "install", "AMD USA equity price today"])
    expect(sent).toContain(part);
  expect(searches(from)).toHaveLength(3);
  expect(json.output).toContain("## turn0search0\nGive the page's whole address");
  expect(json.output).toContain("## time +03:00\n2026-11-22 15:00:00");
  expect(json.output).toContain("## time -0530\n2026-11-22 06:30:00");
  expect(json.output).toContain("## screenshot\nThis command is not available here.");
});

test("the answer is as long as the client has room, and the sites are those that the settings allow", async () => {
  const { json } = await ask({ search_query: [{ q: "red pandas" }] }, { max_output_tokens: 10 });
  expect(json.output).toHaveLength(40);
  const filters = { filters: { allowed_domains: ["example.com"] } };
  const from = proxy.demo.journal.length;
  const other = await ask(
    {
      search_query: [
        { q: "x", domains: ["evil.example"] },
        { q: "y", domains: ["docs.example.com"] },
      ],
    },
    { settings: filters },
  );
  expect(other.json.output).toContain("## x\nThe settings do not allow these sites.");
  expect(
    searches(from)
      .map((body) => JSON.stringify(body))
      .join(),
  ).toContain('["docs.example.com"]');
});

test("a search that fails is told to the model, not to the person", async () => {
  await using off = await startProxy({ config: { webSearchModel: "off" } });
  const { status, json } = await ask({ search_query: [{ q: "red pandas" }] }, {}, off);
  expect([status, json.output]).toEqual([
    200,
    "## red pandas\nThe tool is not available now. Do not try again; answer with what is known.",
  ]);
  expect((await ask({ search_query: [{ q: "" }] })).json.output).toContain("The input of this call is not valid.");
  expect((await ask({})).json.output).toBe("There was nothing to look up.");
});

test("what is no request is refused with the name of the field; a key is needed where one is configured", async () => {
  expect(await ask([])).toMatchObject({ status: 400, json: { error: { param: "commands" } } });
  expect(await ask({ search_query: Array(9).fill({ q: "a" }) })).toMatchObject({ status: 400 });
  const wrong = await ask(
    { search_query: [{ q: "a" }] },
    { settings: { filters: { allowed_domains: "example.com" } } },
  );
  expect(wrong).toMatchObject({ status: 400, json: { error: { param: "settings.filters.allowed_domains" } } });
  await using guarded = await startProxy({ config: { auth: { apiKeys: ["key-one"] } } });
  expect((await ask({ time: [{ utc_offset: "+00:00" }] }, {}, guarded)).status).toBe(401);
});

test("a client that leaves ends its searches", async () => {
  await using running = await startProxy();
  running.demo.intercept("/responses", () => new Promise<Response>(() => {}));
  const controller = new AbortController();
  const body = { commands: { search_query: [{ q: "red pandas" }] } };
  const answer = running.post("/alpha/search", body, { signal: controller.signal });
  await until(() => running.demo.open === 1, "the upstream is asked");
  controller.abort();
  expect(await answer.catch(({ name }: Error) => name)).toBe("AbortError");
  await until(
    () => running.demo.open === 0 && running.rows().length === 2,
    "the upstream's connection is closed and both rows are written",
  );
  expect(running.rows().map(({ http_status }) => http_status)).toEqual([499, 499]);
});
