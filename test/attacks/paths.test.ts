/** Rows: paths that try to leave the house. */
import { afterAll, expect, test } from "bun:test";
import { startProxy } from "../support/proxy";
import { sendRaw } from "../support/raw-socket";
import { attack, errorOf } from "./assert-healthy";

const proxy = await startProxy({ config: { anthropicApiKey: "k-alpha-0123456789", logLevel: "info" } });
const guarded = await startProxy({ config: { auth: { apiKeys: ["k-alpha-0123456789"] } } });
afterAll(async () => {
  for (const each of [proxy, guarded]) await each[Symbol.asyncDispose]();
});

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

const names = "nope __proto__ constructor toString hasOwnProperty %2e%2e%2fadmin a%2fb %F0%9F%98%80 admin api".split(
  " ",
);

test.each(names)("%s is no provider, in the error of the Messages API", async (name) => {
  const body = JSON.stringify({
    model: "claude-sonnet-4.6",
    max_tokens: 9,
    messages: [{ role: "user", content: "Hello" }],
  });
  const headers = { "content-type": "application/json" };
  for (const path of [`/${name}/v1/messages`, `/${name}/v1/messages/count_tokens`]) {
    const answer = await attack(proxy, path, { method: "POST", body, headers });
    expect([path, answer.status, errorOf(path, answer).type]).toEqual([path, 404, "not_found_error"]);
  }
  expect((await attack(proxy, `/${name}/v1/models`)).status).toBe(404);
});

const broken = ["%E0%A4%A", "%zz", "a%", "%ff"];
const paths = ["/v1/models/:id", "/usage/:accountIndex", "/:provider/v1/models", "/api/admin/requests/:requestId"];
test.each(broken.flatMap((part) => paths.map((path) => [part, path] as const)))(
  "%s, which does not decode, is 400 in %s, and only callers with a key are told so",
  async (part, template) => {
    const [name] = /:\w+/.exec(template)!;
    const path = template.replace(name, part);
    const answer = await attack(proxy, path);
    const message = expect.stringContaining(`The \`${name.slice(1)}\` in this path does not decode`);
    expect([answer.status, errorOf(path, answer).message]).toEqual([400, message]);
    expect((await attack(guarded, path)).status).toBe(path.startsWith("/api") ? 400 : 401);
  },
);

test("a page of a request whose id does not decode is 400 and says so", async () => {
  const answer = await attack(proxy, "/admin/requests/%E0%A4%A");
  expect([answer.status, answer.text]).toEqual([400, expect.stringContaining("does not decode")]);
});
