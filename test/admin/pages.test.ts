/** Scenario: what whole pages do not show: styles and scripts, a sign-in, a request that is cancelled. */
import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pageEndpoints } from "../../src/admin/pages/plugin";
import { describeFixup } from "../../src/admin/pages/request/fixups";
import { run } from "../support/command";
import { formTokenIn } from "../support/form-fields";
import { entry } from "../support/history-rows";
import { startProxy } from "../support/proxy";
import { temporaryFolder } from "../support/temporary-folder";

const token = "t-admin-0123456789";
const pages = pageEndpoints()
  .filter(({ title, teamOnly }) => title && !teamOnly)
  .map(({ path }) => path);

const guarded = await startProxy({ env: { ADMIN_TOKEN: token }, demo: { pace: 200 } });
afterAll(() => guarded[Symbol.asyncDispose]());

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(guarded.url + path, { headers, redirect: "manual" });
const textOf = async (path: string, headers: Record<string, string> = {}) => (await get(path, headers)).text();
const send = (path: string, form: Record<string, string>, headers: Record<string, string> = {}) =>
  fetch(guarded.url + path, { method: "POST", body: new URLSearchParams(form), headers, redirect: "manual" });

test("style and script are served with their types, and nothing else of the folder's neighbourhood", async () => {
  expect((await get("/admin/assets/admin.css")).headers.get("content-type")).toStartWith("text/css");
  expect((await get("/admin/assets/admin.js")).headers.get("content-type")).toStartWith("text/javascript");
  expect((await get("/admin/assets/icon.svg")).headers.get("x-content-type-options")).toBe("nosniff");
  for (const path of ["", "/nope.css", "/..%2fpages.tsx", "/%2e%2e/pages.tsx", "/..%2f..%2f..%2fpackage.json", "/.env"])
    expect((await get(`/admin/assets${path}`)).status).toBe(404);
});

test("style and script are kept by the browser at the address that a page gives, and not at that of another version", async () => {
  const page = await textOf("/admin");
  const links = [...page.matchAll(/(?:href|src)="(\/admin\/assets\/[a-z.]+\?)([^"]+)"/g)];
  expect(links).toHaveLength(3);
  for (const [, path, tag] of links) {
    const kept = async (sent: string) => (await get(path + sent)).headers.get("cache-control");
    expect([await kept(tag!), await kept("older"), await kept("")]).toEqual([
      "public, max-age=31536000, immutable",
      "no-store",
      "no-store",
    ]);
  }
});

test("style and script load nothing from other servers", async () => {
  for (const name of ["admin.css", "admin.js"])
    expect(await textOf(`/admin/assets/${name}`)).not.toMatch(/https?:|@import|url\(/);
});

test("the program serves them from whatever folder it is started in, and stops at a signal", async () => {
  const cwd = temporaryFolder();
  writeFileSync(join(cwd, "tsconfig.json"), '{"compilerOptions":{"jsx":"react","jsxImportSource":"elsewhere"}}');
  await using command = run(["start", "--demo", "--json", "--port", "0"], { cwd });
  const { url } = await command.ready();
  for (const path of [...pages, "/admin/assets/admin.css", "/admin/assets/admin.js"])
    expect([path, (await fetch(url + path)).status]).toEqual([path, 200]);
  command.process.kill("SIGTERM");
  expect(await command.exited).toBe(0);
});

test("a sign-in gives a cookie that is not the token, for these pages only, until it is given back", async () => {
  const outside = { "x-forwarded-for": "10.0.0.9" };
  const response = await send("/admin/sign-in", { token, next: "/admin/requests" }, outside);
  expect([response.status, response.headers.get("location")]).toEqual([303, "/admin/requests"]);
  const cookie = response.headers.get("set-cookie")!;
  expect(cookie).toMatch(/^dragoman_admin_\d+=[\w.-]{60,200}; Path=\/admin; HttpOnly; SameSite=Strict; Max-Age=43200$/);
  expect(cookie).not.toContain(token);
  const signedIn = { ...outside, cookie: cookie.split(";")[0]! };
  const html = await textOf("/admin", signedIn);
  expect(html).toContain("Sign out");
  expect(html).not.toContain(token);
  expect((await get("/admin/requests/export?format=json", signedIn)).status).toBe(200);
  expect((await get("/api/admin/meta", signedIn)).status).toBe(401);

  expect((await send("/admin/sign-out", {}, signedIn)).status).toBe(403);
  const out = await send("/admin/sign-out", { form_token: formTokenIn(html) }, signedIn);
  expect([out.status, out.headers.get("set-cookie")]).toEqual([303, expect.stringContaining("Max-Age=0")]);
  expect((await get("/admin", signedIn)).status).toBe(401);
});

test("a request that runs is cancelled on its page", async () => {
  const messages = [{ role: "user", content: "Tell me a long story." }];
  const answer = await guarded.post("/v1/chat/completions", { model: "claude-sonnet-4.6", stream: true, messages });
  const path = `/admin/requests/${answer.headers.get("x-request-id")}`;
  const form = { form_token: formTokenIn(await textOf(path)) };
  const response = await send(`${path}/cancel`, form);
  expect([response.status, response.headers.get("location")]).toEqual([303, path]);
  await answer.text();
  expect(await textOf(path)).toContain("The owner of this proxy cancelled the request.");
  expect((await send(`${path}/cancel`, form)).status).toBe(404);
});

test("every fixup that a request can have is explained in a sentence", async () => {
  const named = new Set<string>();
  for (const file of new Bun.Glob("src/dialects/*/*.ts").scanSync(`${import.meta.dir}/../..`)) {
    const text = await Bun.file(`${import.meta.dir}/../../${file}`).text();
    for (const [, name] of text.matchAll(/(?:tell|fixups\.add|mended)\("([\w-]+)"\)/g)) named.add(name!);
    for (const [, rules] of text.matchAll(/const rules: Record<string, .*> = \{\n([\s\S]*?)\n\};/g))
      for (const [, quoted, bare] of rules!.matchAll(/^ {2}(?:"([\w-]+)"|(\w+))[:,]/gm)) named.add((quoted ?? bare)!);
  }
  expect(named.size).toBeGreaterThan(50);
  // It refuses, and changes nothing.
  named.delete("one-answer");
  expect(
    [...named].filter((name) => describeFixup(name, { client_model: "a", upstream_model: "b" }) === undefined),
  ).toEqual([]);
});

/** The words of a page. */
const wordsOf = (page: string) =>
  page
    .replace(/<(style|script)[\s\S]*?<\/\1>/g, "")
    .replace(/<[^>]+>/g, " ")
    .replace(/\s+/g, " ");

test("the cache page does not speak of later turns before there was one", async () => {
  await using proxy = await startProxy();
  const turns = (cached_tokens: number, ...sessions: string[]) => {
    for (const session of sessions)
      proxy.app.history.add(entry({ started_at_ms: Date.now(), session, input_tokens: 9, cached_tokens }));
    proxy.history.flush();
  };
  const misses = async () =>
    /Cache misses (.*?) By model/.exec(wordsOf(await (await fetch(`${proxy.url}/admin/cache`)).text()))?.[1];
  turns(0, "a", "b", "c", "d", "e");
  expect(await misses()).toBe("No conversation has had a second turn yet.");
  turns(0, "a");
  expect(await misses()).toStartWith("None is known, and nothing was read from the cache");
  turns(5, "a");
  expect(await misses()).toStartWith("None. Every later turn");
});

test("the notes of the Connect page have code where the notes have it, and no backticks", async () => {
  const page = await textOf("/admin/connect");
  // PowerShell continues a line with one.
  const notes = wordsOf(page.replace(/<pre[\s\S]*?<\/pre>/g, ""));
  expect(notes.match(/.{20}`.{20}/g)).toBeNull();
  expect(page).toContain("<code>allowedHosts</code>");
});

test("the sign-in page does not say that this machine is another one", async () => {
  await using proxy = await startProxy({ env: { ADMIN_TOKEN: token }, adminAuth: "always" });
  const page = wordsOf(await (await fetch(`${proxy.url}/admin`)).text());
  expect(page).toContain("--admin-auth=always");
  expect(page).not.toContain("You are connecting from another machine");
});

test("a model id with a shell command in it stands in no line that is to be copied", async () => {
  await using proxy = await startProxy();
  const model = (id: string) => ({
    id,
    model_picker_enabled: true,
    supported_endpoints: ["/v1/messages", "/responses", "/chat/completions"],
    capabilities: { type: "chat" },
  });
  proxy.demo.intercept("/models", () => Response.json({ data: [model("claude; touch /tmp/p"), model("claude-good")] }));
  const text = await (await fetch(`${proxy.url}/admin/connect`)).text();
  expect(text).toContain("ANTHROPIC_MODEL=claude-good");
  expect(text).not.toContain("touch /tmp/p");
});
