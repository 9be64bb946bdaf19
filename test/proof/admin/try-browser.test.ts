/** Scenario: the page Try in a real Chromium: by keyboard, with script and without. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { overflowOf, violations, withBrowser } from "../../support/browser";
import { type RunningProxy, startProxy } from "../../support/proxy";

const inBrowser = await withBrowser();

let proxy: RunningProxy;
beforeAll(async () => {
  proxy = await startProxy({ demo: { pace: 1 } });
});
afterAll(() => proxy[Symbol.asyncDispose]());

inBrowser.describe("in a browser", () => {
  const open = (options: Parameters<typeof inBrowser.open>[1] = {}) =>
    inBrowser.open(`${proxy.url}/admin/try`, options);
  test.each(["light", "dark"] as const)(
    "by keyboard: sent, shown as it arrives, with cost, timeline and command, %s",
    async (colorScheme) => {
      await using opened = await open({
        colorScheme,
        viewport: { width: colorScheme === "dark" ? 360 : 1280, height: 900 },
      });
      const { page, faults } = opened;
      expect(await violations(page)).toEqual([]);
      await page.getByLabel("Model", { exact: true }).selectOption("claude-sonnet-4.6");
      await page.getByLabel("Prompt").fill("Tell me <b>who</b> you are.");
      await page.getByLabel("Prompt").press("Control+Enter");
      await page.getByText(/^Done after \d+\.\d s\.$/).waitFor();
      expect(await page.locator("#try-text").textContent()).toContain("DEMO");
      await page.getByRole("heading", { name: "Usage and cost" }).waitFor();
      await page.getByRole("heading", { name: "Timeline" }).waitFor();
      expect(await page.locator("#curl-text").textContent()).toStartWith(`curl -N ${proxy.url}/v1/messages -H`);
      expect(await page.locator("#try-raw").textContent()).toContain("event: message_stop");
      expect(await page.getByRole("link", { name: "All about this request" }).getAttribute("href")).toBe(
        `/admin/requests/${proxy.rows()[0]!.request_id}`,
      );
      expect(await violations(page)).toEqual([]);
      expect(await overflowOf(page)).toBe(0);
      expect(faults).toEqual([]);
    },
  );

  test("a stop reaches the upstream; an error is shown in its words", async () => {
    await using opened = await open();
    const { page, faults } = opened;
    await page.getByLabel("Prompt").fill("[demo: silence 20]");
    await page.getByRole("button", { name: "Send" }).press("Enter");
    await page.getByRole("button", { name: "Stop" }).press("Enter");
    await page.getByText(/^Stopped after/).waitFor();
    await page.getByLabel("Prompt").fill("[demo: 400-model]");
    await page.getByRole("button", { name: "Send" }).press("Enter");
    await page.getByText(/^Failed after .*: /).waitFor();
    expect(await page.locator("#try-status").getAttribute("class")).toBe("note bad");
    expect(await page.locator("#try-answer").isHidden()).toBe(true);
    expect(faults).toEqual([]);
  });

  test("the page for trying a prompt says without a script that it needs one, and makes the command", async () => {
    await using opened = await open({ javaScriptEnabled: false });
    const { page } = opened;
    expect(await page.locator("noscript").textContent()).toContain("This page needs a script");
    await page.getByLabel("API", { exact: true }).selectOption("responses");
    await page.getByLabel("Prompt").fill("It's me");
    await page.getByRole("button", { name: "Make the command" }).press("Enter");
    await page.getByRole("heading", { name: "The same with curl" }).waitFor();
    expect(await page.locator("#curl-text").textContent()).toContain(`"input":"It'\\''s me"`);
    expect(await page.getByLabel("API", { exact: true }).inputValue()).toBe("responses");
  });
});
