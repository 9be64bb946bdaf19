/** Rows: paths that try to leave the house; `fixtures/books/refused.txt` has names of providers and ids that are none. */
import { afterAll, expect, test } from "bun:test";
import { startProxy } from "../support/proxy";
import { sendRaw } from "../support/raw-socket";
import { attack } from "./assert-healthy";

const proxy = await startProxy({ config: { anthropicApiKey: "k-alpha-0123456789", logLevel: "info" } });
afterAll(() => proxy[Symbol.asyncDispose]());

const ask = (path: string, headers = "") =>
  sendRaw(proxy.url, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`, { quiet: 40 });

test.each([
  "/admin/../../etc/passwd",
  "/admin/..%2f..%2fconfig.json",
  "/admin/%2e%2e/config.json",
  "/admin/....//",
  "/admin/%00",
  "/admin//etc/passwd",
  "/admin/assets/../../dist2/x",
  "/admin/..%2fsrc%2fmain.ts",
  "/.env",
  "/.git/config",
  "/config.json",
  "/admin.sqlite",
  "/admin/app.js.map",
  "//admin",
  "/ADMIN",
  "/admin;x",
  "/%61dmin",
  "/api%2fadmin%2fconfig",
])("the path %s leads to nothing", async (path) => {
  const { statuses, text } = await ask(path);
  expect(statuses).toEqual([404]);
  expect(text).not.toContain("root:");
  expect(text).not.toContain("k-alpha");
});

test("backslashes lead to the front page at most", async () => {
  const { statuses, text } = await ask("/admin/..\\..\\");
  expect([statuses, text]).toEqual([[200], expect.stringContaining('"name":"dragoman"')]);
  expect(text).not.toContain("k-alpha");
  expect(text).not.toContain("root:");
});

test("the guard sees the path that is run, however it was spelt", async () => {
  for (const path of [
    "/v1/../api/admin/config",
    "/api/admin/meta/",
    "/v1/%2e%2e/api/admin/meta",
    "/admin/../api/admin/meta",
  ]) {
    const { statuses, text } = await ask(path, "X-Forwarded-For: 192.0.2.9\r\n");
    expect([path, statuses[0]!]).toEqual([path, 403]);
    expect(text).not.toContain("dbPath");
  }
});

test("a page of a request whose id does not decode is 400 and says so", async () => {
  const answer = await attack(proxy, "/admin/requests/%E0%A4%A");
  expect([answer.status, answer.text]).toEqual([400, expect.stringContaining("does not decode")]);
});
