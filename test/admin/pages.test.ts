/**
 * Scenario: the owner's pages as a browser without script gets them: who sees them, what they show, and what they never
 * show.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AccountItem } from "../../src/admin/api/accounts";
import { fields } from "../../src/admin/pages/config/form";
import { forecastOf } from "../../src/admin/pages/forecast";
import { pageEndpoints } from "../../src/admin/pages/plugin";
import { describeFixup } from "../../src/admin/pages/request/fixups";
import { whatToDo } from "../../src/admin/pages/request/what-to-do";
import { niceTop } from "../../src/admin/ui/chart";
import { nameColumns } from "../../src/books/history/entry";
import type { Entry } from "../../src/books/history/history";
import { compact, dollars, duration, formatAmount, percent, shorten, significant, span } from "../../src/lib/format";
import { run } from "../support/command";
import { fieldsIn, formTokenIn } from "../support/form-fields";
import { entry } from "../support/history-rows";
import { type RunningProxy, startProxy } from "../support/proxy";
import { temporaryFolder } from "../support/temporary-folder";

const now = Date.now();
const minute = 60_000;
const token = "t-admin-0123456789";
const pages = pageEndpoints()
  .filter(({ title, teamOnly }) => title && !teamOnly)
  .map(({ path }) => path);

let full: RunningProxy;
let empty: RunningProxy;
let hostile: RunningProxy;
let guarded: RunningProxy;

const evil = `"><svg onload=alert(1)></script><script>alert(2)</script><img src=x onerror=alert(3)>`;
const odd = `\u202e\u200bname`;

beforeAll(async () => {
  full = await startProxy({ accounts: ["octo-demo", "work-demo", "plus-demo"] });
  for (let index = 0; index < 130; index += 1)
    full.app.history.add(
      entry({
        request_id: `full-${index}`,
        started_at_ms: now - (130 - index) * 40 * minute,
        account_id: index % 3 ? "octo-demo" : "work-demo",
        upstream_model: index % 4 ? "claude-sonnet-4.6" : "gpt-5-mini",
        ...(index % 10 === 0
          ? {
              http_status: 429,
              error_type: "rate_limited",
              error_message: "Too much.",
              cost: null,
              input_tokens: null,
              output_tokens: null,
            }
          : {}),
      }),
    );
  full.app.history.flush();
  empty = await startProxy({ accounts: [] });
  hostile = await startProxy({
    config: { modelAliases: { [evil]: "gpt-5-mini" }, upstreamHeaders: { "x-odd": evil } },
  });
  const texts = Object.fromEntries(nameColumns.map((name) => [name, evil]));
  const more = { initiator_reason: evil, stop_reason: evil, client_dialect: evil, upstream_dialect: evil };
  const lists = {
    attempts: JSON.stringify([{ account: evil, error: evil, ms: 3 }]),
    fixups: JSON.stringify([evil, `refused:${evil}`]),
    dropped: JSON.stringify([evil]),
  };
  const failure = { http_status: 400, error_type: evil, error_message: evil };
  hostile.app.history.add(
    entry({ request_id: "evil", started_at_ms: now, ...texts, ...more, ...lists, ...failure } as Partial<Entry>),
  );
  hostile.app.history.add(
    entry({ request_id: "odd", started_at_ms: now, client_name: odd, client_model: "x".repeat(250) }),
  );
  hostile.app.history.flush();
  for (const field of ["service_tier", 'odd"<b>']) hostile.app.unsupportedParams.learn("gpt-5-mini", field);
  guarded = await startProxy({ env: { ADMIN_TOKEN: token } });
});
afterAll(async () => {
  for (const each of [full, empty, hostile, guarded]) await each[Symbol.asyncDispose]();
});

const get = (proxy: RunningProxy, path: string, headers: Record<string, string> = {}) =>
  fetch(proxy.url + path, { headers, redirect: "manual" });
const textOf = async (proxy: RunningProxy, path: string, headers: Record<string, string> = {}) =>
  (await get(proxy, path, headers)).text();
/** As a person reads it. */
const wordsOf = (html: string) =>
  html
    .replace(/<(datalist|title)[\s\S]*?<\/\1>/g, " ")
    .replace(/<[^>]+>/g, " ")
    .replace(/\s+/g, " ");
const send = (proxy: RunningProxy, path: string, form: Record<string, string>, headers: Record<string, string> = {}) =>
  fetch(proxy.url + path, { method: "POST", body: new URLSearchParams(form), headers, redirect: "manual" });

/** The random name of a folder of the test may contain `NaN`. */
const withoutFolders = (words: string) => words.replaceAll(/dragoman-\w+/g, "");
const noValue = /undefined|NaN|\[object|Infinity/;

/** Everything in a page that could run, load or style something, as a browser reads it. */
async function activeIn(html: string): Promise<string[]> {
  const found: string[] = [];
  await new HTMLRewriter()
    .on("*", {
      element(element) {
        const { tagName, attributes } = element;
        for (const [name, value] of attributes) {
          if (/^on|^style$|^srcdoc$/i.test(name)) found.push(`${tagName} ${name}`);
          if (/^(?:href|src|action)$/.test(name) && !/^(?:\/(?!\/)|[?#]|https:\/\/github\.com\/)/.test(value))
            found.push(`${tagName} ${name}=${value}`);
        }
        if (["style", "iframe", "object", "embed", "base", "img"].includes(tagName)) found.push(tagName);
        if (tagName === "script" && !/^\/admin\/assets\/(?:admin|try)\.js\?/.test(element.getAttribute("src") ?? ""))
          found.push("script");
      },
    })
    .transform(new Response(html))
    .text();
  return found;
}

describe("every page", () => {
  test.each(pages)("%s renders with data, marked as a demo, with nothing inline", async (path) => {
    const response = await get(full, path);
    const html = await response.text();
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(html).toStartWith('<!doctype html><html lang="en">');
    expect(html).toEndWith("</html>");
    expect(html).toContain("<title>DEMO · ");
    expect(wordsOf(html)).toContain("DEMO");
    expect(html.match(/<h1/g)).toHaveLength(1);
    expect(html).not.toContain("<!--part-->");
    expect(withoutFolders(wordsOf(html))).not.toMatch(noValue);
    expect(await activeIn(html)).toEqual([]);
  });

  test.each(pages)(
    "the cells of %s have the labels of their columns, and plain amounts stand under one another",
    async (path) => {
      for (const [table] of (await textOf(full, path)).matchAll(/<table.*?<\/table>/gs)) {
        const heads = [...table.matchAll(/<th scope="col"[^>]* data-label="([^"]*)"/g)].map(([, name]) => name);
        for (const [row] of table.split("<tbody>")[1]!.matchAll(/<tr.*?<\/tr>/gs)) {
          const cells = [...row.matchAll(/<td(?: data-label="([^"]*)")?(?: class="([^"]*)")?>(.?)/gs)];
          expect(cells.map(([, label]) => label)).toEqual(heads.slice(1));
          for (const [, , look = "", first] of cells)
            if (look.includes("right")) expect(look.includes("num")).toBe(first !== "<");
        }
      }
    },
  );

  test("a tab leads to the page on which it is the one that is marked", async () => {
    const tabsIn = (html: string) =>
      [...html.matchAll(/<nav class="tabs".*?<\/nav>/gs)].map(([nav]) =>
        [...nav.matchAll(/<a href="([^"]+)"( aria-current="true")?/g)].map(([, href, mark]) => ({
          href: href!,
          isChosen: !!mark,
        })),
      );
    let count = 0;
    for (const path of pages)
      for (const [at, tabs] of tabsIn(await textOf(full, path)).entries())
        for (const { href } of tabs) {
          const chosen = tabsIn(await textOf(full, href.replaceAll("&amp;", "&")))[at]!.filter(
            ({ isChosen }) => isChosen,
          );
          expect(chosen).toEqual([{ href, isChosen: true }]);
          count += 1;
        }
    expect(count).toBeGreaterThan(10);
  });

  test.each(pages)("%s renders without any account and any request", async (path) => {
    const response = await get(empty, path);
    const words = wordsOf(await response.text());
    expect(response.status).toBe(200);
    expect(withoutFolders(words)).not.toMatch(noValue);
  });

  test("says what to do where there is nothing", async () => {
    const overview = await textOf(empty, "/admin");
    const words = wordsOf(overview);
    expect(words.split("No account is signed in")).toHaveLength(2);
    // The one blue button is what comes next.
    expect(overview.match(/class="button primary"[^>]*/g)).toEqual([expect.stringContaining("/admin/accounts#add")]);
    expect(wordsOf(await textOf(empty, "/admin/try"))).toContain("No account is signed in, so there is no model");
    expect(words).not.toContain("Accounts, history and config are well");
    expect(wordsOf(await textOf(empty, "/admin/requests"))).toContain("No requests yet");
    expect(wordsOf(await textOf(empty, "/admin/models"))).toContain("Run dragoman auth to sign in");
    expect(wordsOf(await textOf(empty, "/admin/accounts"))).toContain("dragoman auth add");
    expect(wordsOf(await textOf(full, "/admin/requests?upstream_model=none-such"))).toContain("No matching requests");
  });

  test.each(pages)("%s allows nothing but its own, and is not kept", async (path) => {
    const { headers } = await get(full, path);
    expect(headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
    expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("access-control-allow-origin")).toBeNull();
  });

  test("weighs less than 100 kB with everything it loads", async () => {
    const assets = await Promise.all(
      ["admin.css", "admin.js", "icon.svg"].map((name) => textOf(full, `/admin/assets/${name}`)),
    );
    const shared = assets.join("").length;
    for (const path of pages)
      expect([path, (await textOf(full, path)).length + shared < 100_000]).toEqual([path, true]);
  });
});

describe("style and script", () => {
  test("are served with their types, and nothing else of the folder's neighbourhood", async () => {
    expect((await get(full, "/admin/assets/admin.css")).headers.get("content-type")).toStartWith("text/css");
    expect((await get(full, "/admin/assets/admin.js")).headers.get("content-type")).toStartWith("text/javascript");
    expect((await get(full, "/admin/assets/icon.svg")).headers.get("x-content-type-options")).toBe("nosniff");
    for (const path of [
      "",
      "/nope.css",
      "/..%2fpages.tsx",
      "/%2e%2e/pages.tsx",
      "/..%2f..%2f..%2fpackage.json",
      "/.env",
    ])
      expect((await get(full, `/admin/assets${path}`)).status).toBe(404);
  });

  test("are kept by the browser at the address that a page gives, and not at that of another version", async () => {
    const page = await textOf(full, "/admin");
    const links = [...page.matchAll(/(?:href|src)="(\/admin\/assets\/[a-z.]+\?)([^"]+)"/g)];
    expect(links).toHaveLength(3);
    for (const [, path, tag] of links) {
      const kept = async (sent: string) => (await get(full, path + sent)).headers.get("cache-control");
      expect([await kept(tag!), await kept("older"), await kept("")]).toEqual([
        "public, max-age=31536000, immutable",
        "no-store",
        "no-store",
      ]);
    }
  });

  test("load nothing from other servers", async () => {
    for (const name of ["admin.css", "admin.js"])
      expect(await textOf(full, `/admin/assets/${name}`)).not.toMatch(/https?:|@import|url\(/);
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

describe("what others chose", () => {
  const places = [
    ...pages,
    "/admin/requests/evil",
    "/admin/requests/odd",
    `/admin/requests?client_model=${encodeURIComponent(evil)}&path=${encodeURIComponent(evil)}`,
    `/admin/requests?period=${encodeURIComponent(evil)}&follow=${encodeURIComponent(evil)}`,
    ...["constructor", "__proto__"].map((period) => `/admin/requests?period=${period}`),
    `/admin?measure=${encodeURIComponent(evil)}`,
    `/admin/config?saved=${encodeURIComponent(evil)}&change=${encodeURIComponent(evil)}`,
    `/admin/requests/${encodeURIComponent(evil)}`,
    `/admin/${encodeURIComponent(evil)}`,
  ];
  test.each(places)("is text, never markup: %s", async (path) => {
    const answer = await get(hostile, path);
    const html = await answer.text();
    expect(answer.status).toBeLessThan(500);
    expect(html).not.toMatch(/<svg onload|<img src=x|<script>|<\/script><script|<b>"/);
    expect(await activeIn(html)).toEqual([]);
  });

  test("is shown, shortened, and cannot turn the direction of writing", async () => {
    const list = await textOf(hostile, "/admin/requests");
    expect(list).toContain("&lt;svg onload=alert(1)&gt;");
    expect(list).not.toContain("\u202e");
    expect(wordsOf(list)).not.toContain("x".repeat(100));
    expect(wordsOf(await textOf(hostile, "/admin/requests/odd"))).toContain("��name");
    const models = wordsOf(await textOf(hostile, "/admin/models"));
    expect(models).toContain("does not support service_tier ; removed from requests until");
    expect(models).toContain('does not support odd"&lt;b&gt; ;');
  });

  test("is refused by name where it is no filter", async () => {
    const response = await get(full, "/admin/requests?status=abc");
    expect(response.status).toBe(400);
    expect(wordsOf(await response.text())).toContain("status: must be");
  });
});

test("a link on another site leads to a page of ours that says nothing, and on from there", async () => {
  const navigation: Record<string, string> = {
    "sec-fetch-site": "cross-site",
    "sec-fetch-mode": "navigate",
    "sec-fetch-dest": "document",
  };
  const response = await get(full, "/admin/requests?has_error=1", navigation);
  const html = await response.text();
  expect(response.status).toBe(200);
  expect(html).toContain('href="/admin/requests?has_error=1"');
  expect(html).not.toContain("octo-demo");
  const others = [{ ...navigation, "sec-fetch-mode": "no-cors" }, { origin: "https://evil.example" }];
  for (const headers of others as Record<string, string>[])
    expect(await textOf(full, "/admin", headers)).not.toContain("octo-demo");
});

test("behind a proxy that speaks TLS, the address that is shown is the one the browser has", async () => {
  const headers = { host: "ai.example.org", "x-forwarded-for": "10.0.0.9", "x-forwarded-proto": "https" };
  const shown = await textOf(guarded, "/admin/connect", { ...headers, "x-admin-token": token });
  expect(shown).toContain("<code>https://ai.example.org</code>");
  expect(shown).not.toContain("http://ai.example.org");
});

describe("signing in", () => {
  const outside = { "x-forwarded-for": "10.0.0.9" };
  const signIn = (sent: string, next = "/admin/requests") =>
    send(guarded, "/admin/sign-in", { token: sent, next }, outside);

  test("gives a cookie that is not the token, for these pages only, until it is given back", async () => {
    const response = await signIn(token);
    expect([response.status, response.headers.get("location")]).toEqual([303, "/admin/requests"]);
    const cookie = response.headers.get("set-cookie")!;
    expect(cookie).toMatch(
      /^dragoman_admin_\d+=[\w.-]{60,200}; Path=\/admin; HttpOnly; SameSite=Strict; Max-Age=43200$/,
    );
    expect(cookie).not.toContain(token);
    const signedIn = { ...outside, cookie: cookie.split(";")[0]! };
    const html = await textOf(guarded, "/admin", signedIn);
    expect(html).toContain("Sign out");
    expect(html).not.toContain(token);
    expect((await get(guarded, "/admin/requests/export?format=json", signedIn)).status).toBe(200);
    expect((await get(guarded, "/api/admin/meta", signedIn)).status).toBe(401);

    expect((await send(guarded, "/admin/sign-out", {}, signedIn)).status).toBe(403);
    const out = await send(guarded, "/admin/sign-out", { form_token: formTokenIn(html) }, signedIn);
    expect([out.status, out.headers.get("set-cookie")]).toEqual([303, expect.stringContaining("Max-Age=0")]);
    expect((await get(guarded, "/admin", signedIn)).status).toBe(401);
  });

  test("says that a token is wrong, and leads nowhere else", async () => {
    for (const wrong of ["", "no", token.slice(0, -1), `${token}x`, "ä\r\nx"]) {
      const response = await signIn(wrong);
      expect([response.status, response.headers.get("set-cookie")]).toEqual([401, null]);
      expect(await response.text()).toContain("wrong");
    }
    for (const next of [
      "https://evil.example",
      "//evil.example",
      "/admin/../v1",
      "/\\evil.example",
      "/adminevil",
      "javascript:alert(1)",
    ])
      expect((await signIn(token, next)).headers.get("location")).toBe("/admin");
  });
});

describe("a form", () => {
  test("a form must carry what only our own pages know, and come as a form", async () => {
    const form = "application/x-www-form-urlencoded";
    for (const [body, type, status] of [
      ["logLevel=debug", form, 403],
      ["form_token=&logLevel=debug", form, 403],
      ["form_token=x&logLevel=debug", form, 403],
      ["{}", "application/json", 415],
      ["x".repeat(2_000_000), form, 413],
    ] as const) {
      const init = { method: "POST", body, headers: { "content-type": type } };
      expect((await fetch(`${full.url}/admin/config`, init)).status).toBe(status);
    }
  });
});

describe("the config form", () => {
  const canary = "k-canary-0123456789";
  let proxy: RunningProxy;
  let html: string;
  let form: Record<string, string>;

  beforeAll(async () => {
    proxy = await startProxy({
      config: {
        auth: { apiKeys: [canary] },
        logLevel: "warn",
        providers: { other: { type: "anthropic", baseUrl: "http://127.0.0.1:9", apiKey: `${canary}-p` } },
      },
    });
  });
  afterAll(() => proxy[Symbol.asyncDispose]());
  beforeEach(async () => {
    html = await textOf(proxy, "/admin/config");
    form = await fieldsIn(html);
  });

  test("the config form has every key with what it means, its default and what is set, and no secret", () => {
    for (const { name } of fields) expect(html).toMatch(new RegExp(`name="${name}[".]`));
    expect(Object.keys(form)).toContain("providers.0.baseUrl");
    expect([form.logLevel, form.retentionDays, form["auth.apiKeys"]]).toEqual(["warn", "14", "…6789"]);
    expect(wordsOf(html)).toContain("How many days a request stays in the history. Default: 14.");
    expect(html).not.toContain(canary);
  });

  test("the config form shows the changes, and applies them after confirmation", async () => {
    const sendOn = async (change: Record<string, string>) => {
      const now = await fieldsIn(await textOf(proxy, "/admin/config"));
      const shown = await (await send(proxy, "/admin/config", { ...now, ...change })).text();
      const confirm = await fieldsIn(shown);
      return { shown: wordsOf(shown), confirm: () => send(proxy, "/admin/config/save", confirm) };
    };
    const { shown, confirm } = await sendOn({
      retentionDays: "30",
      modelAliases: "fast = gpt-5-mini\nbig=claude-opus-4.6",
      fallbacks: "big = gpt-5.4, gpt-5-mini",
    });
    for (const change of [
      "retentionDays 14 30",
      "fallbacks none big = gpt-5.4, gpt-5-mini",
      "modelAliases none fast = gpt-5-mini big = claude-opus-4.6",
    ])
      expect(shown).toContain(change);
    expect(shown).not.toContain("logLevel");
    expect(proxy.app.config.current.retentionDays).toBe(14);

    const done = await confirm();
    expect([done.status, done.headers.get("location")]).toEqual([
      303,
      "/admin/config?saved=retentionDays,modelAliases,fallbacks",
    ]);
    expect(proxy.app.config.current).toMatchObject({
      retentionDays: 30,
      modelAliases: { fast: "gpt-5-mini" },
      fallbacks: { big: ["gpt-5.4", "gpt-5-mini"] },
      logLevel: "warn",
    });
    expect(proxy.app.config.stored.auth).toEqual({ apiKeys: [canary] });
    expect(wordsOf(await textOf(proxy, "/admin/config?saved=retentionDays"))).toContain("Saved: retentionDays.");

    await (await sendOn({ retentionDays: "14", modelAliases: "", fallbacks: "" })).confirm();
    expect(Object.keys(proxy.app.config.stored)).not.toContain("retentionDays");
  });

  test("the config form takes new secrets without ever sending them back", async () => {
    const fresh = "k-fresh-9876543210";
    const response = await send(proxy, "/admin/config", {
      ...form,
      "auth.apiKeys": `${form["auth.apiKeys"]}\n${fresh}`,
    });
    const shown = await response.text();
    expect(shown).not.toContain(fresh);
    expect(shown).not.toContain(canary);
    expect(wordsOf(shown)).toContain("auth.apiKeys …6789 …6789 …3210");
    const edited = await send(proxy, "/admin/config/save", { ...(await fieldsIn(shown)), edit: "1" });
    expect(await edited.text()).not.toContain(fresh);
    await send(proxy, "/admin/config/save", await fieldsIn(shown));
    expect(proxy.app.config.current.auth.apiKeys).toEqual([canary, fresh]);
    expect((await send(proxy, "/admin/config/save", await fieldsIn(shown))).headers.get("location")).toBe(
      "/admin/config?unchanged=1",
    );
  });

  test("the config form names what is wrong at the top and beside the field, which has the focus, and keeps what was typed", async () => {
    const wrong: [Record<string, string>, string][] = [
      [{ retentionDays: "0" }, "retentionDays"],
      [{ retentionDays: "many" }, "retentionDays"],
      [{ allowedOrigins: "*" }, "allowedOrigins"],
      [{ modelAliases: "nothing" }, "modelAliases"],
      [
        {
          "providers.1.name": "v1",
          "providers.1.type": "anthropic",
          "providers.1.baseUrl": "https://h",
          "providers.1.apiKey": "abcdefgh",
        },
        "providers",
      ],
      [{ "providers.0.baseUrl": "https://elsewhere.example" }, "providers.other.apiKey"],
      [{ "providers.1.baseUrl": "https://h" }, "providers: an entry has no name"],
    ];
    for (const [change, named] of wrong) {
      const response = await send(proxy, "/admin/config", { ...form, ...change });
      const page = await response.text();
      expect([named, response.status]).toEqual([named, 400]);
      expect(wordsOf(page)).toContain(`The changes were not saved. ${named}`);
      const faulty =
        /<(?:input|textarea)[^>]*? id="(f-[^"]+)"[^>]*? aria-describedby="\1-fault \1-about" aria-invalid="true" autofocus/;
      expect(faulty.exec(page)?.[1]).toBe(named.startsWith("providers") ? undefined : `f-${named}`);
      expect(page.split('class="fault"').length).toBe(2);
      const typed = await fieldsIn(page);
      for (const [name, value] of Object.entries(change)) if (!name.endsWith("apiKey")) expect(typed[name]).toBe(value);
    }
    expect(proxy.app.config.current.retentionDays).toBe(14);
  });

  test("the config form does not write over what was changed meanwhile", async () => {
    const before = await textOf(proxy, "/admin/config");
    const shown = await (await send(proxy, "/admin/config", { ...(await fieldsIn(before)), maxRows: "1000" })).text();
    await proxy.app.config.change({ logLevel: "error" });
    const response = await send(proxy, "/admin/config/save", await fieldsIn(shown));
    expect(response.status).toBe(409);
    const again = await response.text();
    expect(wordsOf(again)).toContain("has changed since you read it");
    expect(proxy.app.config.current.maxRows).toBe(200_000);
    // Nor does a page that was loaded before that change: only what the person typed there is shown and saved.
    for (const page of [again, before]) {
      const review = await (await send(proxy, "/admin/config", { ...(await fieldsIn(page)), maxRows: "1000" })).text();
      expect(wordsOf(review)).toContain("1 setting will change");
      await send(proxy, "/admin/config/save", await fieldsIn(review));
      expect(proxy.app.config.current).toMatchObject({ maxRows: 1_000, logLevel: "error" });
      await proxy.app.config.change({ maxRows: null });
    }
    await proxy.app.config.change({ logLevel: "warn" });
  });

  test("the config form adds a preset by its name alone, and keeps lists of models and fields", async () => {
    const save = async (change: Record<string, string>) => {
      const now = await fieldsIn(await textOf(proxy, "/admin/config"));
      const shown = await (await send(proxy, "/admin/config", { ...now, ...change })).text();
      return send(proxy, "/admin/config/save", await fieldsIn(shown));
    };
    const before = proxy.app.config.current.providers;
    const models = 'qwen3\r\n{"id":"glm","vision":true}';
    await save({
      "providers.1.name": "ollama",
      "providers.1.models": models,
      "providers.1.unsupportedParams": "a\nb.*.c",
    });
    expect(proxy.app.config.current.providers.ollama).toEqual({
      type: "chat",
      baseUrl: "http://127.0.0.1:11434/v1",
      auth: "bearer",
      maxTokens: "max_tokens",
      thinking: "reasoning",
      models: ["qwen3", { id: "glm", vision: true }],
      unsupportedParams: ["a", "b.*.c"],
    });
    const unchanged = await send(proxy, "/admin/config", await fieldsIn(await textOf(proxy, "/admin/config")));
    expect(unchanged.headers.get("location")).toBe("/admin/config?unchanged=1");
    await save({ "providers.1.remove": "on" });
    expect(proxy.app.config.current.providers).toEqual(before);
  });
});

describe("the list of requests", () => {
  test("the list of requests follows its filters, with sums that follow too", async () => {
    const words = wordsOf(await textOf(full, "/admin/requests?has_error=1"));
    expect(words).toMatch(/Requests 13 13 failed/);
    expect(words).toContain("Result: failed");
    expect(words).not.toContain("200 end_turn");
    const [from, to] = [now - 60 * 40 * minute, now - 50 * 40 * minute];
    const between = (await full.app.history.list({ from_ms: from, to_ms: to }, 200)).items.length;
    for (const [query, rows] of [
      [`from_ms=${from}&to_ms=${to}&limit=200`, between],
      ["period=&upstream_model=&account_id=work-demo&from=&to=&status=&limit=25", 25],
    ])
      expect(
        (await textOf(full, `/admin/requests?${query}`)).match(/<th scope="row"><a href="\/admin\/requests\//g),
      ).toHaveLength(rows as number);
  });

  test.each([
    ["", false],
    ["?status_class=4xx", true],
    ["?path=%2Fv1%2Fmessages", true],
    ["?upstream_model=gpt-5-mini&has_error=1", false],
    ["?period=24h", false],
  ])("the list of requests shows the further filters where one of them is set: %j", async (query, open) => {
    expect(/<details open>\s*<summary>More filters/.test(await textOf(full, `/admin/requests${query}`))).toBe(open);
  });

  test("each filter that is set has a link that takes it away, and one link takes all", async () => {
    const set = ["has_error", "status_class", "upstream_model"];
    const page = await textOf(full, "/admin/requests?has_error=1&status_class=4xx&upstream_model=gpt-5-mini");
    const links = [.../<ul class="chips".*?<\/ul>/s.exec(page)![0].matchAll(/href="([^"]+)"/g)];
    const left = links.map(([, href]) =>
      [...new URL(href!.replaceAll("&amp;", "&"), full.url).searchParams.keys()].filter((name) => set.includes(name)),
    );
    expect(left.map((names) => names.sort().join()).sort()).toEqual(
      ["", ...set.map((gone) => set.filter((name) => name !== gone).join())].sort(),
    );
  });

  test("the list of requests is paged by a key, and shows each request once", async () => {
    const seen: string[] = [];
    let path: string | undefined = "/admin/requests?limit=50";
    while (path) {
      const html = await textOf(full, path);
      seen.push(...[...html.matchAll(/<th scope="row"><a href="\/admin\/requests\/(full-\d+)"/g)].map(([, id]) => id!));
      path = /href="([^"]+)" rel="next"/.exec(html)?.[1]?.replaceAll("&amp;", "&");
    }
    expect(seen).toEqual(Array.from({ length: 130 }, (_, index) => `full-${129 - index}`));
  });

  test("the list of requests knows where to ask how many rows are new, with its filters", async () => {
    const [, path] = /data-count="([^"]+)"/.exec(await textOf(full, "/admin/requests?has_error=1&limit=5"))!;
    const address = path!.replaceAll("&amp;", "&");
    expect(address).toMatch(/^\/admin\/requests\/new\?has_error=1&limit=5&after_id=\d+$/);
    expect(await textOf(full, address)).toBe("");
    const newest = Number(/after_id=(\d+)/.exec(address)![1]);
    const before = (count: number) => textOf(full, address.replace(/\d+$/, String(newest - count)));
    expect(await before(1)).toBe("1 new request");
    expect(await before(newest)).toBe("At least 5 new requests");
    expect(await textOf(full, "/admin/requests/new?has_error=1")).toBe("13 new requests");
  });

  test("the list of requests says when it follows, and without script loads itself anew", async () => {
    const html = await textOf(full, "/admin/requests?follow=1");
    expect(html).toContain('data-follow="/admin/requests/live"');
    expect(html).toContain('<noscript><meta http-equiv="refresh" content="5"></noscript>');
    const feed = await get(full, "/admin/requests/live");
    expect(feed.headers.get("content-type")).toStartWith("text/event-stream");
    await feed.body!.cancel();
  });
});

test("a median is called one that is not exact, on both pages", async () => {
  expect(wordsOf(await textOf(full, "/admin"))).toMatch(
    /Time to first byte .* about [\d.]+ m?s 95% within about [\d.]+ m?s/,
  );
  expect(wordsOf(await textOf(full, "/admin/requests"))).toMatch(
    /Median time to first byte about [\d.]+ m?s 95% within about [\d.]+ m?s/,
  );
});

describe("a number on the overview", () => {
  test("leads to the requests behind it", async () => {
    const html = await textOf(full, "/admin");
    const links = [
      ...html.matchAll(
        /(?<!class="figure" )href="(\/admin\/requests\?[^"]*)"[^>]*>(?:<span class="num">)?([\d,]+)(?: failed)?</g,
      ),
    ];
    expect(links.length).toBeGreaterThan(3);
    for (const [, path, number] of links) {
      const words = wordsOf(await textOf(full, path!.replaceAll("&amp;", "&")));
      expect(words).toContain(`Requests ${number} `);
    }
  });

  test("a number on the overview is shown as unknown, never as 0", async () => {
    const proxy = await startProxy({ accounts: [] });
    proxy.app.history.add(
      entry({ started_at_ms: now - minute, cost: null, input_tokens: null, output_tokens: null, first_byte_ms: null }),
    );
    proxy.app.history.flush();
    const words = wordsOf(await textOf(proxy, "/admin"));
    expect(words).toContain(
      "Requests AI credits Tokens in Tokens out Time to first byte Today 1 unknown unknown unknown unknown",
    );
    // Accounts that pay by credits report none.
    expect(words).not.toContain("Premium requests");
    await proxy[Symbol.asyncDispose]();
  });
});

describe("one request", () => {
  test("shows the changes as sentences, its cost, and why it failed", async () => {
    full.app.history.add(
      entry({
        request_id: "one",
        started_at_ms: now - minute,
        fixups: '["model-name","refused:tools.*.strict"]',
        dropped: '["store"]',
        cached_tokens: 4,
      }),
    );
    full.app.history.flush();
    const words = wordsOf(await textOf(full, "/admin/requests/one"));
    for (const text of [
      "The field tools.*.strict was removed because the upstream rejects it.",
      "Cached input 4",
      "AI credits $0.013",
    ])
      expect(words).toContain(text);
    expect(wordsOf(await textOf(full, "/admin/requests/full-0"))).toContain("rate_limited Too much.");
    expect((await get(full, "/admin/requests/none-such")).status).toBe(404);
  });

  // biome-ignore format: a table is read by its rows
  const timelines: [row: Partial<Entry>, words: string][] = [
    [{ attempts: '[{"account":"ada","status":429,"error":"rate_limited","ms":200},{"account":"eve","status":200,"ms":300}]' }, "as a stream. Routed To /chat/completions , model claude-sonnet-4.6 ; translated from messages to chat, because the model does not support messages. Billed as a user turn: the last message is a person's . Attempt 1 ada answered 429 with rate_limited after 200 ms. Attempt 2 + 200 ms eve answered 200 after 300 ms. First byte + 321 ms The rest of the response took 913 ms. End + 1.2 s 200 end_turn"],
    [{ stop_reason: null, stream: 0, client_dialect: "chat", initiator: "agent", initiator_reason: null, fallbacks: '[{"model":"gpt-5","status":429,"why":"Too many."}]', auto: '{"by":"auto","why":"short","discount":0.1}', attempts: '[{"account":null,"model":"gpt-5-mini","status":200,"ms":300}]' }, "without streaming. Routed To /chat/completions , model claude-sonnet-4.6 ; passed through without translation. Billed as an agent turn: no reason was recorded . In place of gpt-5 Status 429: Too many. Auto GitHub Copilot chose the model for this conversation; its reason: short . GitHub announces a discount of 10% on it. Attempt The provider, asked for gpt-5-mini , answered 200 after 300 ms. First byte + 321 ms The rest of the response took 913 ms. End + 1.2 s 200 The upstream gave no stop reason."],
    [{ http_status: 400, error_type: "invalid_request", stop_reason: null, first_byte_ms: null, upstream_endpoint: null, attempts: "[]" }, "as a stream. Routed The request ended before an upstream was chosen. End + 1.2 s 400 invalid_request"],
  ];
  test.each(timelines)("has a timeline that says what happened, and no more (row %#)", async (row, words) => {
    const own = entry(row);
    full.app.history.add(own);
    full.app.history.flush();
    const [timeline] = /<ol class="timeline">[\s\S]*?<\/ol>/.exec(
      await textOf(full, `/admin/requests/${own.request_id}`),
    )!;
    const begin = "Claude Code 2.0 requested claude-sonnet-4-6 at /v1/messages , ";
    expect(wordsOf(timeline).trim()).toEndWith(begin + words);
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
  ])("that failed with %s and %i has advice of its own", (error_type, http_status, words) => {
    expect(whatToDo({ error_type, http_status })).toContain(words);
  });

  test.each([
    [4, "system", "Not all of the prompt was found in the cache. The system prompt changed."],
    [0, "account", "The prompt was not found in the cache. Another account served."],
    [
      0,
      "expired",
      "The prompt was not found in the cache. More time passed than the cache keeps a prompt, but less than",
    ],
    [0, "expired_long", "The prompt was not found in the cache. More than an hour passed."],
  ] as const)(
    "whose prompt had %i tokens in the cache says why it had not all: %s",
    async (cached_tokens, cache_miss, words) => {
      const own = entry({ cached_tokens, cache_miss });
      full.app.history.add(own);
      full.app.history.flush();
      expect(wordsOf(await textOf(full, `/admin/requests/${own.request_id}`))).toContain(words);
    },
  );

  test("the page of a request with web searches shows each with its engine and cost, and never the query", async () => {
    await using proxy = await startProxy({ demo: { generation: "C" } });
    const body = {
      model: "claude-sonnet-4.6",
      max_tokens: 1000,
      messages: [{ role: "user", content: "Search the web for red pandas." }],
      tools: [{ type: "web_search_20250305", name: "web_search" }],
    };
    await (await proxy.post("/v1/messages", body)).text();
    const [parent, child] = proxy.rows();
    const list = await textOf(proxy, "/admin/requests");
    expect(wordsOf(list)).toContain("1 web search");
    expect(wordsOf(list)).not.toContain("attempts");
    const page = await textOf(proxy, `/admin/requests/${parent!.request_id}`);
    expect(page).toContain(`href="/admin/requests/${child!.request_id}"`);
    expect(wordsOf(page)).toMatch(/web_search gpt-6-luna 200 completed [\d.]+ cr/);
    const searchPage = await textOf(proxy, `/admin/requests/${child!.request_id}`);
    expect(searchPage).toContain(`href="/admin/requests/${parent!.request_id}"`);
    expect(wordsOf(searchPage)).toContain("web_search for another request");
    expect(list + page + searchPage).not.toContain("red pandas");
  });

  test("that runs can be watched and cancelled", async () => {
    await using proxy = await startProxy({ demo: { pace: 200 } });
    const messages = [{ role: "user", content: "Tell me a long story." }];
    const answer = await proxy.post("/v1/chat/completions", { model: "claude-sonnet-4.6", stream: true, messages });
    const [running] = proxy.app.inFlight.running();
    const path = `/admin/requests/${running!.request_id}`;
    expect(wordsOf(await textOf(proxy, "/admin/requests"))).toContain("1 request running");
    expect(await textOf(proxy, "/admin")).toMatch(/href="\/admin\/requests\?follow=1"[^>]*>1 request running</);
    const page = await textOf(proxy, path);
    expect(wordsOf(page)).toContain("In progress");
    const response = await send(proxy, `${path}/cancel`, { form_token: formTokenIn(page) });
    expect([response.status, response.headers.get("location")]).toEqual([303, path]);
    await answer.text();
    expect(wordsOf(await textOf(proxy, path))).toContain("The owner of this proxy cancelled the request.");
    expect((await send(proxy, `${path}/cancel`, { form_token: formTokenIn(page) })).status).toBe(404);
  });
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

test("each client's settings stand ready, with the limits of the live catalogue and the command that writes them", async () => {
  await using proxy = await startProxy();
  const text = await (await fetch(`${proxy.url}/admin/connect`)).text();
  expect(text).toContain('model = "gpt-5.4"\nmodel_context_window = 272000\n');
  expect(text).toContain('"limit": { "context": 200000, "input": 168000, "output": 32000 }');
  expect(text).toContain("<code>dragoman connect codex --write</code>");
  expect(text).toContain('experimental_bearer_token = "unused"');
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

test("a page that cannot be shown, or not whole, leads to the one that helps", async () => {
  for (const [path, status, shown] of [
    [
      "/admin/requests/00000000-0000-0000-0000-000000000000",
      404,
      '<a href="/admin/requests">Go to the page Requests</a>',
    ],
    ["/admin/nope", 404, '<a href="/admin">Go to the page Overview</a>'],
    ["/admin/connect", 200, "No account is signed in, so there are no models to choose from yet."],
    ["/admin/connect", 200, '<a href="/admin/accounts#add">Sign in</a>'],
  ] as const) {
    const page = await get(empty, path);
    expect([page.status, await page.text()]).toEqual([status, expect.stringContaining(shown)]);
  }
});

test("requests that were refused here add no unit to the totals of an account that is billed in another", async () => {
  await using proxy = await startProxy({ accounts: [] });
  const add = (row: Partial<Entry>) => proxy.app.history.add(entry({ started_at_ms: now - minute, ...row }));
  add({ cost: 2_000_000_000 });
  add({ cost: 0, cost_unit: "premium", http_status: 400, error_type: "invalid_request" });
  proxy.app.history.flush();
  for (const path of ["/admin", "/admin/requests"]) {
    const words = wordsOf(await textOf(proxy, path));
    expect([path, words]).toEqual([path, expect.stringMatching(/(?:AI credits|Today 2 1 failed) 2\b/)]);
    expect([path, words.includes("Premium requests")]).toEqual([path, false]);
  }
  add({ cost: 3e9, cost_unit: "premium" });
  proxy.app.history.flush();
  expect(wordsOf(await textOf(proxy, "/admin/requests"))).toContain("Premium requests 3");
});
