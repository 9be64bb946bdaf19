/** Paths that try to leave the house. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type RunningProxy, startProxy } from "../support/proxy";
import { sendRaw } from "../support/raw-socket";

let proxy: RunningProxy;
beforeAll(async () => {
  proxy = await startProxy({
    config: { anthropicApiKey: "k-alpha-0123456789", logLevel: "info" },
  });
});
afterAll(() => proxy[Symbol.asyncDispose]());

const ask = (path: string, headers = "") =>
  sendRaw(proxy.url, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`, { quiet: 40 });

test.each([
  "PA01: /admin/../../etc/passwd",
  "PA01: /admin/..%2f..%2fconfig.json",
  "PA01: /admin/%2e%2e/config.json",
  "PA01: /admin/....//",
  "PA01: /admin/%00",
  "PA01: /admin//etc/passwd",
  "PA02: /admin/assets/../../dist2/x",
  "PA02: /admin/..%2fsrc%2fmain.ts",
  "PA03: /.env",
  "PA03: /.git/config",
  "PA03: /config.json",
  "PA03: /admin.sqlite",
  "PA03: /admin/app.js.map",
  "PA04: //admin",
  "PA04: /ADMIN",
  "PA04: /admin;x",
  "PA04: /%61dmin",
  "PA04: /api%2fadmin%2fconfig",
])("%s is nothing", async (name) => {
  const { statuses, text } = await ask(name.slice(6));
  expect(statuses).toEqual([404]);
  expect(text).not.toContain("root:");
  expect(text).not.toContain("k-alpha");
});

test("PA01: backslashes lead to the front page at most", async () => {
  const { statuses, text } = await ask("/admin/..\\..\\");
  expect([statuses, text]).toEqual([[200], expect.stringContaining('"name":"dragoman"')]);
  expect(text).not.toContain("k-alpha");
  expect(text).not.toContain("root:");
});

test("PA05: the guard sees the path that is run, however it was spelt", async () => {
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
