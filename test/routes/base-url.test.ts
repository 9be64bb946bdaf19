/** Scenario: what clients and people get whose base URL is not quite right. */
import { expect, test } from "bun:test";
import { served } from "../../src/routes/clients";
import { startProxy } from "../support/proxy";

const bodies = {
  "/chat/completions": { model: "gpt-5-mini", messages: [{ role: "user", content: "Hi" }] },
  "/messages": { model: "gpt-5-mini", max_tokens: 50, messages: [{ role: "user", content: "Hi" }] },
  "/messages/count_tokens": { model: "gpt-5-mini", messages: [{ role: "user", content: "Hi" }] },
  "/responses": { model: "gpt-5-mini", input: "Hi" },
  "/embeddings": { model: "text-embedding-3-small", input: "Hi" },
};

test("every path of /v1 is served without it too, and refuses a client without its key there", async () => {
  await using proxy = await startProxy({ config: { auth: { apiKeys: ["k-of-the-owner-0001"] } } });
  const headers = { "x-api-key": "k-of-the-owner-0001" };
  for (const [path, body] of Object.entries(bodies)) {
    const sent = { method: "POST", body: JSON.stringify(body) };
    const answer = await fetch(proxy.url + path, { ...sent, headers });
    expect([path, answer.status]).toEqual([path, 200]);
    const usual = (await (await fetch(`${proxy.url}/v1${path}`, { ...sent, headers })).json()) as object;
    expect([path, Object.keys((await answer.json()) as object)]).toEqual([path, Object.keys(usual)]);
    expect([path, (await fetch(proxy.url + path, sent)).status]).toEqual([path, 401]);
    expect((await fetch(proxy.url + path, { headers, method: "PUT" })).status).toBe(405);
  }
  expect((await fetch(`${proxy.url}/models`, { headers })).status).toBe(200);
  expect((await fetch(`${proxy.url}/models/gpt-5-mini`, { headers })).status).toBe(200);
});

test("an error of a path without /v1 has the shape of its dialect", async () => {
  await using proxy = await startProxy();
  const refused = async (path: string) =>
    (await (await fetch(proxy.url + path, { method: "POST", body: "{" })).json()) as object;
  expect(await refused("/messages")).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
  expect(await refused("/chat/completions")).toMatchObject({ error: { type: "invalid_request_error" } });
});

test.each([
  ["/v1/v1/chat/completions", "/v1/chat/completions"],
  ["/api/v1/responses", "/v1/responses"],
  ["/openai/v1/embeddings", "/v1/embeddings"],
  ["/v1//chat/completions", "/v1/chat/completions"],
  ["/v1///messages//count_tokens", "/v1/messages/count_tokens"],
  ["/v1//models/gpt-5-mini", "/v1/models/gpt-5-mini"],
  ["/openai//v1//embeddings", "/v1/embeddings"],
  ["/v1/v1beta/models/gpt-5-mini:generateContent", "/v1beta/models/gpt-5-mini:generateContent"],
  ["/v1/health/", "/health"],
  ["/v1//modles/", "/v1/models"],
  ["/v1/modles", "/v1/models"],
  ["/v1/completions", "/v1/chat/completions"],
  ["/v1/chat", "/v1/chat/completions"],
  ["/message", "/v1/messages"],
  ["/v1", undefined],
  ["/v1/nothing", undefined],
  ["/favicon.ico", undefined],
])("what is not served at %s is told, with the path that was meant", async (path, meant) => {
  await using proxy = await startProxy();
  const answer = await fetch(proxy.url + path);
  const { error } = (await answer.json()) as { error: { message: string } };
  const hint = meant === undefined ? "" : ` Did you mean ${meant}?`;
  expect([answer.status, error.message]).toEqual([404, `No such path: ${path}.${hint} GET / lists the paths.`]);
});

test.each([
  ["//v1/messages", "/v1/messages"],
  ["///responses", "/responses"],
  ["//", "/"],
])("a slash too many at the beginning, which fetch would take away, is told too: %s", (path, meant) => {
  expect(served.nearest(path)).toBe(meant);
});

test("a page of an allowed origin may call the paths without /v1, and a page of another may not", async () => {
  await using proxy = await startProxy({ config: { allowedOrigins: ["https://mine.example"] } });
  const ask = (origin: string) => fetch(`${proxy.url}/models`, { headers: { origin } });
  const mine = await ask("https://mine.example");
  expect([mine.status, mine.headers.get("access-control-allow-origin")]).toEqual([200, "https://mine.example"]);
  expect((await ask("https://other.example")).status).toBe(403);
});

test("a browser that opens the address is sent to the pages, and a program gets the list of paths", async () => {
  await using proxy = await startProxy();
  const accept = "text/html,application/xhtml+xml,*/*;q=0.8";
  const page = await fetch(proxy.url, { headers: { accept }, redirect: "manual" });
  expect([page.status, page.headers.get("location")]).toEqual([303, "/admin"]);
  expect((await (await fetch(proxy.url)).json()) as object).toMatchObject({ endpoints: expect.any(Array) });
});
