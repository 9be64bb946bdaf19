/**
 * Scenario: what the scripts of the pages do, in a real Chromium: lists that count what is new, keys that move,
 * searches and folds.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { withBrowser } from "../../support/browser";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { until } from "../../support/until";

const keys = [
  { name: "laptop", key: "k-of-the-laptop-0001" },
  { name: "phone", key: "k-of-the-phone-0001" },
];

async function ask(proxy: RunningProxy, key: string): Promise<void> {
  const answer = await proxy.post(
    "/v1/chat/completions",
    { model: "gpt-5-mini", messages: [{ role: "user", content: "Hi" }] },
    { headers: { "x-api-key": key } },
  );
  await answer.text();
  proxy.app.history.flush();
}

const inBrowser = await withBrowser();

inBrowser.describe("with a script", () => {
  let proxy: RunningProxy;
  beforeAll(async () => {
    proxy = await startProxy({ config: { auth: { apiKeys: keys } } });
    await ask(proxy, keys[0]!.key);
  });
  afterAll(() => proxy?.[Symbol.asyncDispose]());

  /** A page, which closes with its context. */
  async function open(path: string, width = 1280, from = proxy) {
    const { page, context } = await inBrowser.open(from.url + path, { viewport: { width, height: 900 } });
    return Object.assign(page, { [Symbol.asyncDispose]: () => context.close() });
  }

  test("the list of requests counts what is new and shows it at a click; a row leads to its request anywhere", async () => {
    await using page = await open("/admin/requests?key_name=laptop");
    const fresh = page.locator(".fresh a");
    const rows = await page.locator(".requests tbody th").count();
    expect(await fresh.isVisible()).toBe(false);
    await ask(proxy, keys[1]!.key);
    await ask(proxy, keys[0]!.key);
    await ask(proxy, keys[0]!.key);
    await page.locator(".fresh a", { hasText: "2 new requests" }).waitFor();
    await fresh.click();
    await page.waitForLoadState();
    expect(await page.locator(".requests tbody th").count()).toBe(rows + 2);
    await page.locator('tbody tr [data-label="Result"]').first().click({ force: true });
    await page.waitForURL(/\/admin\/requests\/[\w-]+$/);
  });

  test("a page that follows requests says that it is out of date while the server is away", async () => {
    const away = await startProxy();
    await using page = await open("/admin/requests?follow=1", 1280, away);
    await page.locator("a.button.on").waitFor();
    expect(await page.getByText("dragoman does not answer").count()).toBe(0);
    await away[Symbol.asyncDispose]();
    await page.getByText("dragoman does not answer, so this page is not up to date.").waitFor();
  });

  test("keys lead through the list: j and k move, Enter opens, slash filters, ? says so", async () => {
    await using page = await open("/admin/requests");
    const links = page.locator(".requests tbody th a");
    await page.keyboard.press("j");
    expect(await page.locator(":focus").getAttribute("href")).toBe(await links.nth(0).getAttribute("href"));
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    await page.keyboard.press("j");
    const second = await links.nth(1).getAttribute("href");
    await page.keyboard.press("?");
    await page.locator("dialog[open]", { hasText: "next row" }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("/");
    expect(await page.locator("search :focus").count()).toBe(1);
    // What is typed into a field is no key.
    await page.keyboard.press("j");
    await links.nth(1).focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(`**${second}`);
  });

  test("Connect opens one tool at a time, and finds it by its name; Models finds a model", async () => {
    await using page = await open("/admin/connect");
    expect(await page.locator(".guide[open]").count()).toBe(1);
    await page.locator("[data-filter]").fill("zed");
    expect(await page.locator(".guide:visible").count()).toBe(1);
    await page.locator(".guide:visible summary").first().click();
    expect(await page.locator(".guide[open]").count()).toBe(1);
    await page.goto(`${proxy.url}/admin/models`);
    await page.locator("[data-filter]").fill("opus");
    const shown = await page.locator(".models tbody tr:visible").allTextContents();
    expect(shown.length).toBeGreaterThan(1);
    for (const text of shown) expect(text).toContain("opus");
    expect(await page.locator(".vendor:visible").count()).toBe(1);
  });

  test("the link of a key inside a row leads to the key's requests", async () => {
    await using page = await open("/admin/requests");
    await page.locator('tbody tr [data-label="Key"] a', { hasText: "laptop" }).first().click();
    await page.waitForURL(/key_name=laptop/);
  });

  test("the overview follows the requests, and what was opened stays open", async () => {
    await using page = await open("/admin");
    const today = () => page.locator(".periods .figure").first().textContent();
    const before = Number.parseInt((await today())!, 10);
    await page
      .locator("#live details")
      .first()
      .evaluate((part) => part.setAttribute("open", ""));
    await ask(proxy, keys[0]!.key);
    await page
      .locator(".periods .figure", { hasText: new RegExp(`^${before + 1}$`) })
      .first()
      .waitFor();
    expect(await page.locator("#live details").first().getAttribute("open")).toBe("");
  });

  test("a page that follows shows what ends while it is being fetched, and the focus stays on a button", async () => {
    await using page = await open("/admin/requests?follow=1&key_name=phone");
    const rows = page.locator(".requests tbody th");
    const before = await rows.count();
    const controller = new AbortController();
    const runs = proxy
      .post(
        "/v1/chat/completions",
        { model: "gpt-5-mini", messages: [{ role: "user", content: "[demo: slow-headers 60]" }] },
        { headers: { "x-api-key": keys[1]!.key }, signal: controller.signal },
      )
      .catch(() => "gone");
    await page.locator("#live button", { hasText: "Cancel" }).focus();
    await page.route("**/admin/requests?follow=1*", async (route) => {
      const answer = await route.fetch();
      await ask(proxy, keys[1]!.key);
      await Bun.sleep(100);
      await route.fulfill({ response: answer });
      await page.unroute("**/admin/requests?follow=1*");
    });
    await ask(proxy, keys[1]!.key);
    await until(async () => (await rows.count()) === before + 2, "both rows are shown");
    expect(await page.locator(":focus").textContent()).toBe("Cancel");
    controller.abort();
    await runs;
  });

  test("a list that was hidden counts what came meanwhile", async () => {
    await using page = await open("/admin/requests?key_name=phone");
    const become = (hidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, "hidden", { value: ${hidden}, configurable: true });
        dispatchEvent(new Event("visibilitychange"));`);
    await become(true);
    await ask(proxy, keys[1]!.key);
    await become(false);
    await page.locator(".fresh a", { hasText: "1 new request" }).waitFor();
  });

  test("a page with a new key that is loaded again makes no second one", async () => {
    await using page = await open("/admin/keys");
    await page.fill('form.config input[name="name"]', "desktop");
    await page.click('button:has-text("Create key")');
    await page.waitForSelector("#new-key");
    // The script is loaded: from then on a reload asks for the page, and does not send the form again.
    await page.waitForLoadState("load");
    await page.reload();
    expect(await page.locator(".note.bad").count()).toBe(0);
    expect(await page.locator("tbody tr").count()).toBe(3);
  });

  test("on a phone the button of the filters is in sight", async () => {
    await using page = await open("/admin/requests", 390);
    const { x, width } = (await page.locator(".filters .go").boundingBox())!;
    expect([x >= 0, x + width <= 390]).toEqual([true, true]);
  });

  test("on a phone the menu shows where one is, and the sections of the config are folded", async () => {
    await using page = await open("/admin/config", 390);
    const { x, width } = (await page.locator("nav .here").boundingBox())!;
    expect([x >= 0, x + width <= 390]).toEqual([true, true]);
    expect(await page.locator(".fold[open]").count()).toBe(0);
    await page.locator(".more > summary").click();
    for (const link of await page.locator(".bar nav a").all()) {
      const box = (await link.boundingBox())!;
      expect([await link.textContent(), box.x >= 0 && box.x + box.width <= 390]).toEqual([expect.any(String), true]);
    }
    await page.locator(".more > summary").click();
    await page.getByRole("heading", { name: "History and logs" }).click();
    await page.getByLabel("retentionDays").fill("0");
    await page.getByRole("heading", { name: "History and logs" }).click();
    await page.getByRole("button", { name: "Review changes" }).click();
    // What is wrong is in sight again.
    await page.getByLabel("retentionDays").waitFor();
  });

  test.each([768, 390])("at %d px no label of the cache page lies over its value", async (width) => {
    await using page = await open("/admin/cache", width);
    const overlaps = await page.evaluate(`[...document.querySelectorAll(".rows [data-label]")].filter((cell) => {
      const label = getComputedStyle(cell, "::before");
      return Number.parseFloat(label.width) > Number.parseFloat(getComputedStyle(cell).paddingLeft);
    }).map((cell) => cell.dataset.label)`);
    expect(overlaps).toEqual([]);
  });
});
