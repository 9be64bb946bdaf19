/**
 * Scenario: the owner's pages in a real Chromium: used by a person, with script and without, and attacked by other
 * pages.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { pageEndpoints } from "../../../src/admin/pages/plugin";
import { cacheMisses } from "../../../src/proxy/upstream/cache-watch";
import { overflowOf, violations, withBrowser } from "../../support/browser";
import { entry } from "../../support/history-rows";
import { evil, worlds } from "../../support/page-worlds";
import { type RunningProxy, startProxy } from "../../support/proxy";

const inBrowser = await withBrowser();

const now = Date.now();
const minute = 60_000;
const token = "t-admin-0123456789";
const pages = pageEndpoints().flatMap(({ path, title }) => (title === undefined ? [] : [path]));

let proxy: RunningProxy;
let guarded: RunningProxy;

beforeAll(async () => {
  proxy = await startProxy({ accounts: ["octo-demo", "work-demo"], demo: { pace: 1 } });
  for (let index = 0; index < 120; index += 1)
    proxy.app.history.add(
      entry({
        request_id: `row-${index}`,
        started_at_ms: now - (120 - index) * 20 * minute,
        account_id: index % 2 ? "octo-demo" : "work-demo",
        upstream_model: index % 3 ? "claude-sonnet-4.6" : "gpt-5-mini",
        cached_tokens: index % 2 ? 7 : 0,
        cache_miss: index % 2 ? null : (cacheMisses[index % cacheMisses.length] ?? null),
        session: index % 5 ? "0123456789ab" : null,
        ...(index % 12 === 0 ? { http_status: 429, error_type: "rate_limited", error_message: "Too much." } : {}),
      }),
    );
  proxy.app.history.flush();
  guarded = await startProxy({ env: { ADMIN_TOKEN: token } });
});
afterAll(async () => {
  await proxy?.[Symbol.asyncDispose]();
  await guarded?.[Symbol.asyncDispose]();
});

interface From extends NonNullable<Parameters<typeof inBrowser.open>[1]> {
  from?: { url: string };
  host?: string;
}
const open = (path: string, { from = proxy, host = "127.0.0.1", ...options }: From = {}) =>
  inBrowser.open(addressOf(from, path, host), { viewport: { width: 1280, height: 900 }, ...options });

const addressOf = (of: { url: string }, path: string, host = "127.0.0.1") =>
  `http://${host}:${new URL(of.url).port}${path}`;

inBrowser.describe("axe finds nothing to complain of", () => {
  const places = [
    ...pages,
    "/admin/requests/row-0",
    "/admin/requests/row-1",
    "/admin/requests?has_error=1&follow=1&status=429",
    "/admin/requests?path=none",
  ];
  test.each(["light", "dark"] as const)(
    "in any page, %s",
    async (colorScheme) => {
      await using opened = await open("/admin", { colorScheme });
      const { page, faults } = opened;
      for (const path of places) {
        await page.goto(addressOf(proxy, path));
        expect([path, await violations(page), faults]).toEqual([path, [], []]);
      }
      await page.goto(addressOf(proxy, "/admin/config"));
      await page.getByRole("heading", { name: "History and logs" }).click();
      await page.getByLabel("retentionDays").fill("20");
      await page.getByRole("button", { name: "Review changes" }).click();
      await page.getByRole("heading", { name: "Review changes" }).waitFor();
      expect(await violations(page)).toEqual([]);
      await using outside = await open("/admin", { colorScheme, from: guarded, host: "elsewhere.test" });
      expect(await outside.page.title()).toContain("Sign in");
      expect(await violations(outside.page)).toEqual([]);
    },
    60_000,
  );

  test("at 360 px nothing is wider than the screen", async () => {
    await using opened = await open("/admin", { viewport: { width: 360, height: 740 } });
    for (const path of places) {
      await opened.page.goto(addressOf(proxy, path));
      expect([path, await overflowOf(opened.page)]).toEqual([path, 0]);
    }
  });
});

inBrowser.describe("a name stands on one line", () => {
  let named: RunningProxy;
  beforeAll(async () => {
    named = await startProxy({ accounts: ["octo-demo"], demo: { pace: 1 } });
    const failed = { http_status: 400, error_type: "context_length_exceeded", error_message: "Too long." };
    const long = { account_id: "an-account-of-many-letters", client_name: "codex_cli_rs/0.169.0" };
    named.app.history.add(entry({ started_at_ms: now, upstream_model: "gemini-3.1-pro-preview", ...long, ...failed }));
    named.app.history.flush();
  });
  afterAll(() => named[Symbol.asyncDispose]());

  test.each([
    ["a client's, on a phone", 390, "/admin", ".shares tbody .value"],
    ["a model's, on a phone", 390, "/admin/models", ".models tbody a code"],
    ["a dialect's, on a phone", 390, "/admin/requests", ".requests th small"],
    ["an endpoint's", 1280, "/admin/models", ".models .endpoint"],
    ["an error's", 1280, "/admin/requests", '[data-label="Result"] .fault .value'],
  ])("a long name stays on its line: %s", async (_, width, path, selector) => {
    await using opened = await open(path, { from: named, viewport: { width, height: 900 } });
    await opened.page.locator(selector).first().waitFor();
    const lines =
      (await opened.page.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)})].map((each) => {
      const words = document.createRange();
      words.selectNodeContents(each);
      return new Set([...words.getClientRects()].map(({ top }) => top)).size;
    })`)) as number[];
    expect(lines.filter((count) => count !== 1)).toEqual([]);
  });
});

inBrowser.describe("a person", () => {
  test("filters, pages, and opens a request", async () => {
    await using opened = await open("/admin/requests");
    const { page, faults } = opened;
    const rows = page.locator("table.rows tbody tr");
    expect(await rows.count()).toBe(25);
    // Chosen is applied.
    await page.getByLabel("Result").selectOption("1");
    await page.waitForURL("**/admin/requests?has_error=1");
    expect(await rows.count()).toBe(10);
    await page.getByRole("link", { name: "Remove the filter Result: failed" }).click();
    for (let paged = 0; paged < 4; paged += 1) await page.getByRole("link", { name: "Older" }).click();
    await page.getByRole("link", { name: "Newest" }).waitFor();
    expect(await rows.count()).toBe(20);
    await rows.last().getByRole("link").click();
    await page.waitForURL("**/admin/requests/row-0");
    expect(await page.getByRole("region", { name: "Why it failed" }).textContent()).toContain("Too much.");
    expect(faults).toEqual([]);
  });

  test("goes through the pages by keyboard, past the menu if wanted", async () => {
    await using opened = await open("/admin");
    const { page } = opened;
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Skip to content");
    await page.keyboard.press("Enter");
    expect(await page.evaluate("document.activeElement.id")).toBe("main");
    await page.goto(addressOf(proxy, "/admin"));
    for (let presses = 0; presses < 4; presses += 1) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/admin/requests");
  });

  test("follows what happens, as it happens", async () => {
    await using opened = await open("/admin/requests");
    const { page, faults } = opened;
    await page.getByRole("link", { name: "Follow live" }).click();
    await page.waitForURL("**follow=1");
    const first = page.locator("table.rows tbody tr").first();
    const before = await first.textContent();
    await page.evaluate("window.same = true");
    const answer = proxy.post(
      "/v1/chat/completions",
      { model: "gpt-5-mini", stream: true, messages: [{ role: "user", content: "Hello! Who are you?" }] },
      { headers: { "user-agent": "follower/1.0" } },
    );
    await (await answer).text();
    await page.locator("tr", { hasText: "follower/1.0" }).waitFor();
    expect(await first.textContent()).not.toBe(before);
    // Never loaded anew.
    expect(await page.evaluate("window.same")).toBe(true);
    // The row may be shown by what came before the news that it has finished.
    await page.locator("#live-status", { hasText: "1 request has finished" }).waitFor({ state: "attached" });
    expect(faults).toEqual([]);
  });

  test("copies a snippet that is filled in", async () => {
    await using opened = await open("/admin/connect", { permissions: ["clipboard-read", "clipboard-write"] });
    const { page } = opened;
    const copied = async (name: string) => {
      await page.getByRole("button", { name: `Copy for Claude Code, ${name}` }).click();
      return page.evaluate<string>("navigator.clipboard.readText()");
    };
    const { env } = JSON.parse(await copied("~/.claude/settings.json"));
    expect(env.ANTHROPIC_BASE_URL).toBe(proxy.url);
    await page.locator("#guide-claude-code").getByText("bash, zsh").click();
    expect(await copied("bash, zsh")).toStartWith(`export ANTHROPIC_BASE_URL=${proxy.url}\n`);
  });

  test.each([true, false])(
    "changes the config, with script: %p",
    async (javaScriptEnabled) => {
      await using opened = await open("/admin/config", { javaScriptEnabled });
      const { page, faults } = opened;
      await page.getByRole("heading", { name: "History and logs" }).click();
      await page.getByRole("heading", { name: "Access" }).click();
      await page.getByLabel("logLevel").selectOption("warn");
      await page.getByLabel("allowedOrigins").fill("http://localhost:3000");
      await page.getByRole("button", { name: "Review changes" }).click();
      await page.getByRole("heading", { name: "Review changes" }).waitFor();
      expect(await page.locator("table.diff").textContent()).toMatch(/logLevel\s*info\s*warn/);
      expect(proxy.app.config.current.logLevel).toBe("info");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Saved: logLevel, allowedOrigins.").waitFor();
      expect(proxy.app.config.current).toMatchObject({ logLevel: "warn", allowedOrigins: ["http://localhost:3000"] });
      expect(faults).toEqual([]);
      await proxy.app.config.change({ logLevel: null, allowedOrigins: null });
    },
    30_000,
  );

  test("without script filters and pages all the same", async () => {
    await using opened = await open("/admin/requests", { javaScriptEnabled: false });
    const { page } = opened;
    await page.getByLabel("Model", { exact: true }).fill("gpt-5-mini");
    await page.getByLabel("Account").fill("work-demo");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.waitForURL("**upstream_model=gpt-5-mini**");
    expect(await page.locator("table.rows tbody tr").count()).toBe(20);
    expect(await page.getByRole("region", { name: "Totals" }).textContent()).toContain("20");
  });

  test.each([true, false])(
    "signs in from elsewhere, and out again, with script: %p",
    async (javaScriptEnabled) => {
      await using opened = await open("/admin/health", { from: guarded, host: "elsewhere.test", javaScriptEnabled });
      const { page, context, faults } = opened;
      await page.getByLabel("Admin token").fill("wrong");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("alert").waitFor();
      await page.getByLabel("Admin token").fill(token);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { name: "Health", level: 1 }).waitFor();
      expect(page.url()).toBe(addressOf(guarded, "/admin/health", "elsewhere.test"));
      const [cookie, ...others] = await context.cookies();
      expect(others).toEqual([]);
      expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict", path: "/admin" });
      expect(cookie!.value).not.toContain(token);
      if (javaScriptEnabled)
        expect(
          await page.evaluate(
            "[document.cookie, localStorage.length, sessionStorage.length, location.href.includes('t-admin')]",
          ),
        ).toEqual(["", 0, 0, false]);
      await page.getByRole("link", { name: "Accounts" }).click();
      await page.getByRole("heading", { name: "Accounts", level: 1 }).waitFor();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByLabel("Admin token").waitFor();
      expect(faults).toEqual([]);
    },
    30_000,
  );
});

inBrowser.describe("an attacker", () => {
  test("cannot run anything by names of models, paths, clients and errors", async () => {
    await using hostile = await worlds.odd();
    const query = encodeURIComponent(evil);
    for (const path of [
      "/admin",
      "/admin/requests",
      `/admin/requests?client_model=${query}#${query}`,
      "/admin/requests/evil",
      "/admin/connect",
      `/admin/${query}`,
    ]) {
      await using opened = await open(path, { from: hostile });
      await opened.page.waitForTimeout(50);
      expect([path, opened.faults]).toEqual([path, []]);
      expect(await opened.page.locator("img, script:not([src])").count()).toBe(0);
    }
  });

  test("on another site reads nothing, changes nothing, and frames nothing", async () => {
    const { port } = new URL(proxy.url);
    const read = `<script>
      const seen = [];
      const tell = () => { document.title = JSON.stringify(seen); };
      (async () => {
        for (const path of ["/admin", "/admin/requests", "/api/admin/meta", "/api/admin/live", "/admin/requests/live"])
          try { seen.push(path + " " + (await (await fetch("http://127.0.0.1:${port}" + path)).text()).length); } catch { seen.push(path + " refused"); }
        const form = new URLSearchParams({ logLevel: "debug", change: "x" });
        for (const path of ["/admin/config", "/admin/config/save", "/admin/sign-out"])
          await fetch("http://127.0.0.1:${port}" + path, { method: "POST", body: form, mode: "no-cors", credentials: "include" }).catch(() => {});
        tell();
      })();
    </script><iframe src="http://127.0.0.1:${port}/admin"></iframe>
    <a href="http://127.0.0.1:${port}/admin/health">link</a>
    <form method="post" action="http://127.0.0.1:${port}/admin/config"><input name="logLevel" value="debug"><button>send</button></form>`;
    using elsewhere = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Response(read, { headers: { "content-type": "text/html" } }),
    });
    await using opened = await inBrowser.open("about:blank");
    const { page } = opened;
    for (const site of [`http://evil.test:${elsewhere.port}/`, `http://localhost:${elsewhere.port}/`]) {
      await page.goto(site);
      await page.waitForFunction("document.title.startsWith('[')");
      expect(JSON.parse(await page.title())).toEqual(
        ["/admin", "/admin/requests", "/api/admin/meta", "/api/admin/live", "/admin/requests/live"].map(
          (path) => `${path} refused`,
        ),
      );
      expect(page.frames().map((frame) => frame.url())).not.toContain(`http://127.0.0.1:${port}/admin`);
      await page.getByRole("button", { name: "send" }).click();
      await page.getByRole("heading", { name: "Access denied" }).waitFor();
      await page.goto(site);
      await page.getByRole("link", { name: "link" }).click();
      await page.getByRole("heading", { name: "Continue to dragoman?" }).waitFor();
      expect(await page.content()).not.toContain("Data folder");
      await page.getByRole("link", { name: "Continue" }).click();
      await page.getByRole("heading", { name: "Health", level: 1 }).waitFor();
    }
    expect(proxy.app.config.current.logLevel).toBe("info");
  });

  test("gains nothing by a name of his own that leads here", async () => {
    await using opened = await open("/admin", { host: "evil.test" });
    expect(await opened.page.getByRole("heading", { level: 1 }).textContent()).toBe("Access denied");
    const tried = await opened.page.evaluate(async () => {
      const answers = ["/admin/requests", "/admin/config", "/api/admin/meta", "/token", "/usage"].map(
        async (path) => (await fetch(path)).status,
      );
      return Promise.all(answers);
    });
    expect(tried).toEqual([403, 403, 403, 403, 403]);
  });
});
