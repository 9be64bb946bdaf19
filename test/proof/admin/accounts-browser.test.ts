/** Rows: the accounts in a real Chromium: signing in without a reload, and the buttons by keyboard. */
import { expect, test } from "bun:test";
import { violations, withBrowser } from "../../support/browser";
import { startProxy } from "../../support/proxy";

const inBrowser = await withBrowser();

inBrowser.describe("in a browser", () => {
  test("a sign-in shows a code to copy, waits, and is done without a reload; axe agrees in each state", async () => {
    const approved = Promise.withResolvers<void>();
    await using proxy = await startProxy({
      accounts: ["work-demo"],
      demo: { device: { interval: 0, pending: 1 } },
      clock: { sleep: () => approved.promise },
    });
    const permissions = ["clipboard-read", "clipboard-write"];
    await using opened = await inBrowser.open(`${proxy.url}/admin/accounts`, { permissions });
    const { page, faults } = opened;
    expect(await violations(page)).toEqual([]);
    await page.getByRole("button", { name: "Sign in", exact: true }).press("Enter");
    await page.getByText("Waiting for your approval").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("button", { name: "Copy" }).press("Enter");
    await page.getByRole("button", { name: "Copied" }).waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe("DEMO-0001");
    await page.evaluate("window.notReloaded = true");
    approved.resolve();
    await page.getByRole("heading", { name: "Signed in as octo-demo" }).waitFor();
    await page.getByRole("heading", { name: "Enter this code" }).waitFor({ state: "hidden" });
    expect(await page.evaluate("window.notReloaded")).toBe(true);
    expect(await violations(page)).toEqual([]);
    expect(faults).toEqual([]);
  });

  test("a page that waits for a sign-in says so when nobody knows it any more, as after a restart", async () => {
    await using proxy = await startProxy({ demo: { device: { interval: 0, pending: 1_000 } } });
    await using opened = await inBrowser.open(`${proxy.url}/admin/accounts`);
    const { page } = opened;
    await page.getByRole("button", { name: "Sign in", exact: true }).press("Enter");
    await page.getByText("Waiting for your approval").waitFor();
    const unknown = `${proxy.url}/admin/accounts/sign-in/of-another-run`;
    await page.route("**/accounts/sign-in/*", (route) => route.continue({ url: unknown }));
    await page.getByText("There is no such sign-in.").waitFor();
  });

  test.each([true, false])("an account is paused, moved and removed, with script: %p", async (javaScriptEnabled) => {
    await using proxy = await startProxy({ accounts: ["octo-demo", "work-demo"] });
    const viewport = { width: 360, height: 740 };
    await using opened = await inBrowser.open(`${proxy.url}/admin/accounts`, { javaScriptEnabled, viewport });
    const { page } = opened;
    await page.getByRole("button", { name: "Pause octo-demo" }).press("Enter");
    await page.getByRole("button", { name: "Resume octo-demo" }).waitFor();
    await page.getByRole("button", { name: "Move up: work-demo" }).press("Enter");
    await page.getByRole("button", { name: "Move up: octo-demo" }).waitFor();
    expect(proxy.app.accounts.map(({ id, state }) => [id, state.name])).toEqual([
      ["work-demo", "ready"],
      ["octo-demo", "paused"],
    ]);
    await page.locator("summary", { hasText: "Remove…" }).last().press("Enter");
    await page.getByRole("button", { name: "Remove octo-demo", exact: true }).press("Enter");
    await page.getByRole("heading", { name: "github.com/octo-demo was removed" }).waitFor();
    expect(proxy.app.accounts.map(({ id }) => id)).toEqual(["work-demo"]);
  });
});
