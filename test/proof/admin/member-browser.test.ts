/** Scenario: the pages of a member in a real Chromium: entered with the key, used on a phone, and left. */
import { expect } from "bun:test";
import { menuGroups } from "../../../src/admin/pages/access";
import { pageEndpoints } from "../../../src/admin/pages/plugin";
import { overflowOf, violations, withBrowser } from "../../support/browser";
import { entry } from "../../support/history-rows";
import { addMember, withTeamStores } from "../../support/members";
import { describeWithDatabases } from "../../support/shared-postgres";
import { individuals, startTeam } from "../../support/teams";

const inBrowser = await withBrowser();

describeWithDatabases("a member in a browser", (postgres) => {
  inBrowser.test(
    "signs in with the key, finds every page of the menu whole, moves an account, and signs out",
    async () => {
      await using team = await startTeam(postgres, { accounts: individuals("octo-demo") });
      team.demo.device.pending = 1_000_000;
      const anna = await withTeamStores(team, async (stores) => {
        const member = await addMember(stores, team, "anna", individuals("anna-one", "anna-two"));
        const history = stores.openHistory({ retentionDays: () => 30, maxRows: () => 1e9, warn: () => {} });
        const own = { member: member.id, key_name: "anna/key-1", account_id: "anna-one", cache_miss: "tools" };
        history.add(entry({ ...own, started_at_ms: Date.now() - 60_000, session: "0123456789ab" }));
        await history.flush();
        return member;
      });
      const server = await team.server({ env: { ADMIN_TOKEN: "t-admin-0123456789" } });
      // Under another name nobody is the owner without the token.
      await using opened = await inBrowser.open(`${server.url.replace("127.0.0.1", "elsewhere.test")}/admin`, {
        viewport: { width: 360, height: 740 },
        colorScheme: "dark",
      });
      const { page, faults } = opened;
      await page.getByLabel("Admin token or key").fill(anna.key);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      expect(await page.locator(".leave .who").textContent()).toBe("anna");

      const links = await page
        .locator("nav[aria-label=Pages] a")
        .evaluateAll((all) => all.map((each) => each.textContent));
      const titles = menuGroups.flatMap((group) =>
        pageEndpoints().flatMap((each) =>
          each.title && each.group === group && each.role === "member" ? [each.title] : [],
        ),
      );
      expect(links).toEqual(titles);
      for (const name of links) {
        const link = page.locator("nav[aria-label=Pages]").locator("a", { hasText: new RegExp(`^${name}$`) });
        if (!(await link.isVisible())) await page.locator(".more summary").click();
        await link.click();
        await page.getByRole("heading", { level: 1, name: name! }).waitFor();
        // The other pages are the owner's, which axe reads in browser.test.ts.
        const found = ["Overview", "Accounts"].includes(name!) ? await violations(page) : [];
        expect([name, found, await overflowOf(page), faults]).toEqual([name, [], 0, []]);
      }

      await page.getByRole("link", { name: "Accounts", exact: true }).click();
      await page.getByRole("button", { name: "Move down: anna-one" }).click();
      await page.getByRole("button", { name: "Move up: anna-one" }).waitFor();
      expect(await page.locator("article.account h3").allTextContents()).toEqual(["anna-two", "anna-one"]);
      await page.getByRole("button", { name: "Sign in", exact: true }).click();
      await page.getByText("DEMO-0001").waitFor();
      await page.getByRole("button", { name: "Cancel" }).click();
      await page.goto(`${new URL(page.url()).origin}/admin/config`);
      await page.getByRole("heading", { name: "Access denied" }).waitFor();
      await page.getByRole("link", { name: "Go to your overview" }).click();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByLabel("Admin token or key").waitFor();
    },
    60_000,
  );
});
