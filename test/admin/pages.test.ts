/** Scenario: what whole pages do not show: styles and scripts, a sign-in, a request that is cancelled, words, forecasts. */
import { afterAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AccountItem } from "../../src/admin/api/accounts";
import { forecastOf } from "../../src/admin/pages/forecast";
import { pageEndpoints } from "../../src/admin/pages/plugin";
import { describeFixup } from "../../src/admin/pages/request/fixups";
import { whatToDo } from "../../src/admin/pages/request/what-to-do";
import { niceTop } from "../../src/admin/ui/chart";
import { compact, dollars, duration, formatAmount, percent, shorten, significant, span } from "../../src/lib/format";
import { run } from "../support/command";
import { formTokenIn } from "../support/form-fields";
import { startProxy } from "../support/proxy";
import { temporaryFolder } from "../support/temporary-folder";

const minute = 60_000;
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

describe("style and script", () => {
  test("are served with their types, and nothing else of the folder's neighbourhood", async () => {
    expect((await get("/admin/assets/admin.css")).headers.get("content-type")).toStartWith("text/css");
    expect((await get("/admin/assets/admin.js")).headers.get("content-type")).toStartWith("text/javascript");
    expect((await get("/admin/assets/icon.svg")).headers.get("x-content-type-options")).toBe("nosniff");
    for (const path of [
      "",
      "/nope.css",
      "/..%2fpages.tsx",
      "/%2e%2e/pages.tsx",
      "/..%2f..%2f..%2fpackage.json",
      "/.env",
    ])
      expect((await get(`/admin/assets${path}`)).status).toBe(404);
  });

  test("are kept by the browser at the address that a page gives, and not at that of another version", async () => {
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

  test("load nothing from other servers", async () => {
    for (const name of ["admin.css", "admin.js"])
      expect(await textOf(`/admin/assets/${name}`)).not.toMatch(/https?:|@import|url\(/);
  });
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

test.each([
  ["client_closed", 499, "Nothing is wrong here"],
  ["cancelled", 499, "Somebody cancelled it"],
  ["context_length_exceeded", 400, "Compact the conversation in the client"],
  ["budget_unavailable", 503, "The database could not be asked"],
  ["budget_exceeded", 429, "The page Budgets says"],
  ["quota_exceeded", 402, "when the quota resets"],
  ["overloaded_error", 529, "Clients try again by themselves"],
  ["user_model_rate_limited", 429, "a second account shares the load"],
  ["too_many_running", 429, "Wait for one to end"],
  ["model_not_allowed", 403, "`modelAliases`"],
  ["invalid_api_key", 401, "no key that is known here"],
  ["no_account", 503, "Sign in on the page Accounts"],
  ["upstream_timeout", 504, "The connection ended before the answer did"],
  ["upstream_bad_event", 502, "could not be read"],
  ["something_else", 413, "The request is too large"],
  ["something_else", 418, "Try again."],
])("a request that failed with %s and %i has advice of its own", (error_type, http_status, words) => {
  expect(whatToDo({ error_type, http_status })).toContain(words);
});

describe("words and numbers", () => {
  test("a number keeps the three digits that count", () => {
    const said = <T>(format: (value: T) => unknown, values: T[]) => values.map((value) => format(value)).join(", ");
    expect(said(significant, [0, 0.0421, 4.214, 42.14, 0.000_004])).toBe("0, 0.042, 4.21, 42.1, 0.000004");
    expect([significant(4_214), ...[9_999, 12_345].map(compact)]).toEqual(["4,214", "9,999", "12.3k"]);
    expect(said(compact, [1_234_567, 999_999_999])).toBe("1.23M, 1B");
    expect(said(dollars, [1_250_000_000, 57e9, 5e13])).toBe("$0.013, $0.57, $500");
    expect(formatAmount(1_250_000_000)).toBe("1.25");
    expect(said(percent, [0, 0.9999, 1, 0.5, 0.034])).toBe("0%, 99.9%, 100%, 50%, 3.4%");
    expect(said(percent, [0.0043, 0.05, 0.0996, 0.7188, 0.949999998])).toBe("0.4%, 5.0%, 10%, 72%, 95%");
    expect(said(percent, [0.9949, 0.996, 0.9999999, 1.2])).toBe("99%, 99.6%, 99.9%, 120%");
    expect(said(duration, [3, 1_234, 12_345, 90_000, 7_200_000])).toBe("3 ms, 1.2 s, 12 s, 1 min 30 s, 2 h 0 min");
    expect(said(span, [10_000, minute, 120 * minute])).toBe("less than a minute, 1 minute, 2 hours");
    expect([span(72 * 60 * minute), shorten("a\u0000b\u202ec", 10)]).toEqual(["3 days", "a�b�c"]);
    expect([0, 1, 3, 26, 101].map(niceTop)).toEqual([1, 1, 4, 40, 200]);
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

  test("a forecast carries on what was used since the last reset", () => {
    const at = Date.UTC(2026, 10, 15);
    const early = Date.UTC(2026, 9, 30, 5);
    for (const [runtime, more, now, expected] of [
      [{ remaining: 225 }, {}, at, { kind: "lasts" }],
      [{ remaining: 100 }, {}, at, { kind: "ends" }],
      [{ remaining: 300 }, {}, at, { kind: "lasts", left: 300 }],
      [{ remaining: 0 }, {}, at, { kind: "exhausted" }],
      [{ remaining: null }, {}, at, { kind: "unknown" }],
      [{ remaining: 200 }, { reset_at_ms: null }, at, { kind: "unknown" }],
      [{ remaining: 200 }, {}, early, { kind: "unknown", why: "too early to estimate" }],
      [{ remaining: null, unlimited: true }, {}, at, { kind: "unlimited" }],
      [{ remaining: 0, entitlement: 0 }, { unit: "credits" }, at, { kind: "unknown" }],
    ] as const) {
      const known = { entitlement: 300, unlimited: false, failed: false };
      const account = { runtime: { ...known, ...runtime }, reset_at_ms: Date.UTC(2026, 10, 30), ...more };
      expect([account, forecastOf(account as AccountItem, now)]).toEqual([account, expect.objectContaining(expected)]);
    }
  });

  test.each([
    // 45 of 300 in three days of February: the month began on the 1st, whatever a calendar on the wall says.
    ["a month after a short one", "2027-03-01T00:00Z", "2027-02-04T00:00Z", 255, "2027-02-21"],
    // 14 days of 28 since 28 February.
    ["a reset on a day the month before has not", "2027-03-31T00:00Z", "2027-03-14T00:00Z", 155, "2027-03-28"],
    ["a turn of the year", "2027-01-31T12:00Z", "2027-01-10T12:00Z", 100, "2027-01-15"],
    ["a leap year", "2028-03-30T00:00Z", "2028-03-10T00:00Z", 150, "2028-03-20"],
  ])("a forecast over %s is the same in every zone", (_, reset, now, remaining, expected) => {
    const before = process.env.TZ;
    try {
      for (const zone of ["UTC", "America/New_York", "America/Los_Angeles", "Asia/Tokyo", "Pacific/Kiritimati"]) {
        process.env.TZ = zone;
        const account = {
          runtime: { entitlement: 300, remaining, unlimited: false, failed: false },
          unit: "premium",
          reset_at_ms: Date.parse(reset),
        } as AccountItem;
        const forecast = forecastOf(account, Date.parse(now));
        expect(forecast.kind === "ends" && new Date(forecast.at).toISOString().slice(0, 10)).toBe(expected);
      }
    } finally {
      process.env.TZ = before ?? "UTC";
    }
  });
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
