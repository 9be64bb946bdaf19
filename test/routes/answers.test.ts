/** Scenario: what answers have in common, and the paths that need no model. */
import { afterAll, expect, test } from "bun:test";
import { startProxy } from "../support/proxy";

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

const hello = { model: "gpt-5-mini", messages: [{ role: "user", content: "Hello" }] };

test("an answer carries an id of ours, which is the row's, whatever id was sent", async () => {
  for (const sent of ["<script>", "a".repeat(10_000)]) {
    const response = await proxy.post("/v1/chat/completions", hello, { headers: { "x-request-id": sent } });
    const id = response.headers.get("x-request-id")!;
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(proxy.rows()[0]!.request_id).toBe(id);
  }
});

test.each([
  ["/nothing", "GET", 404],
  ["/v1/chat/completions", "GET", 405],
  ["/v1/models", "POST", 405],
  ["/v1/models/", "GET", 404],
  ["/api/admin/nope", "GET", 404],
  ["/api/admin/config", "DELETE", 405],
])("the path %s asked by %s is answered with %i in the shape of the API", async (path, method, wanted) => {
  const response = await fetch(proxy.url + path, { method });
  expect(response.status).toBe(wanted);
  expect(await response.json()).toMatchObject({ error: { message: expect.any(String), type: expect.any(String) } });
  expect(response.headers.get("x-request-id")).toBeTruthy();
});

test.each([
  ["/v1/messages/nothing", "messages"],
  ["/prov/v1/nothing", "messages"],
  ["/v1beta/nothing", "gemini"],
  ["/v1beta/models/vendor/x:sing", "gemini"],
  ["/v1/models/x:sing", "gemini"],
  ["/v1/nothing", "openai"],
  ["/responses/nothing", "openai"],
  ["/nothing", "openai"],
])("%s, which is no path, is 404 in the shape of the %s API, whose paths begin like it", async (path, shape) => {
  const response = await proxy.post(path, {});
  const body = (await response.json()) as { type?: string; error: { status?: string; param?: null } };
  const shown = body.type === "error" ? "messages" : body.error.status ? "gemini" : "openai";
  expect([response.status, shown]).toEqual([404, shape]);
});

test("the front page says DEMO, and health says how we are", async () => {
  expect(await (await fetch(proxy.url)).json()).toMatchObject({
    name: "dragoman",
    demo: expect.stringContaining("DEMO"),
  });
  expect(await (await fetch(`${proxy.url}/health`)).json()).toEqual({
    status: "ok",
    version: "0.0.0-test",
    demo: true,
    accounts: ["ready"],
    history: "ok",
  });
});

test("the token is the upstream's, never the account's own, and is not cached", async () => {
  const response = await fetch(`${proxy.url}/token`);
  expect(response.headers.get("cache-control")).toBe("no-store");
  const { token, expires_at } = (await response.json()) as { token: string; expires_at: number };
  expect(token).toStartWith("tid=");
  expect(expires_at).toBeGreaterThan(Date.now() / 1000);
  expect(expires_at).toBeLessThan(Date.now() / 1000 + 7200);
});
