/** Scenario: what clients and people get whose base URL is not quite right. */
import { expect, test } from "bun:test";
import { served } from "../../src/routes/clients";
import { startProxy } from "../support/proxy";
import { testScenes } from "../support/scenes";

testScenes("paths");

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

test.each([
  ["//v1/messages", "/v1/messages"],
  ["///responses", "/responses"],
  ["//", "/"],
])("a slash too many at the beginning, which fetch would take away, is told too: %s", (path, meant) => {
  expect(served.nearest(path)).toBe(meant);
});

test("a browser that opens the address is sent to the pages, and a program gets the list of paths", async () => {
  await using proxy = await startProxy();
  const accept = "text/html,application/xhtml+xml,*/*;q=0.8";
  const page = await fetch(proxy.url, { headers: { accept }, redirect: "manual" });
  expect([page.status, page.headers.get("location")]).toEqual([303, "/admin"]);
  expect((await (await fetch(proxy.url)).json()) as object).toMatchObject({ endpoints: expect.any(Array) });
});
