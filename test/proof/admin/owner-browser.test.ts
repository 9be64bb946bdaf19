/**
 * Scenario: the owner's page Members in a real Chromium: inviting, limiting and removing, with and without a script,
 * wide and narrow.
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { overflowOf, violations, withBrowser } from "../../support/browser";
import { entry } from "../../support/history-rows";
import { addMember, withTeamStores } from "../../support/members";
import { describeWithDatabases } from "../../support/shared-postgres";
import { individuals, startTeam, type Team, type TeamServer } from "../../support/teams";

const inBrowser = await withBrowser();

describeWithDatabases("the page Members in a browser", (postgres) => {
  let team: Team;
  let server: TeamServer;
  beforeAll(async () => {
    team = await startTeam(postgres);
    await withTeamStores(team, async (stores) => {
      const anna = await addMember(stores, team, "anna", individuals("anna-demo", "anna-second"));
      await addMember(stores, team, "a.very-long.name@some-department.example", individuals("ben-demo"));
      await stores.members.setLimits("anna", { models: ["claude-*", "gpt-5*"], key_days: 90 });
      await stores.members.invite("cleo");
      const history = stores.openHistory({ retentionDays: () => 90, maxRows: () => 1e9, warn: () => {} });
      const row = { member: anna.id, key_name: "anna/key-1", cost: 12_340_000_000 };
      for (let at = 0; at < 20; at += 1)
        history.add(entry({ ...row, request_id: crypto.randomUUID(), started_at_ms: Date.now() - at * 1_000 }));
      await history.flush();
    });
    server = await team.server();
  });
  afterAll(async () => {
    await team[Symbol.asyncDispose]();
  });

  inBrowser.test.each([
    { name: "wide", javaScriptEnabled: true, viewport: { width: 1280, height: 900 }, colorScheme: "light" as const },
    { name: "narrow", javaScriptEnabled: false, viewport: { width: 360, height: 740 }, colorScheme: "dark" as const },
  ])(
    "a member is invited, limited, taken back and removed: $name",
    async ({ name, ...options }) => {
      await using opened = await inBrowser.open(`${server.url}/admin`, options);
      const { page, faults } = opened;
      const look = async (what: string) => {
        if (options.javaScriptEnabled) expect(await violations(page)).toEqual([]);
        expect([what, await overflowOf(page)]).toEqual([what, 0]);
      };

      await page.getByRole("link", { name: "Members" }).click();
      await page.getByRole("heading", { name: "Members", exact: true }).waitFor();
      await page.getByRole("link", { name: "anna", exact: true }).waitFor();
      await look("list");
      await page.getByLabel("Name").last().fill(`dora ${name}`);
      await page.getByLabel("Days per key").fill("none");
      await page.getByRole("button", { name: "Make invitation link" }).press("Enter");
      await page.getByText("Nobody was invited.").waitFor();
      await look("wrong");
      await page.getByLabel("Days per key").fill("30");
      await page.getByRole("button", { name: "Make invitation link" }).press("Enter");
      await page.getByRole("heading", { name: `“dora ${name}” is invited` }).waitFor();
      expect(await page.locator("#new-link").textContent()).toStartWith(`${server.url}/admin/join/`);
      await look("invited");
      await page.getByRole("link", { name: `dora ${name}` }).click();
      await page.getByRole("heading", { name: `dora ${name}` }).waitFor();
      await page.locator("summary", { hasText: "Take back…" }).press("Enter");
      await page.getByRole("button", { name: "Take back" }).press("Enter");
      await page.getByText("The invitation was taken back").waitFor();
      await page.getByText("has no account and no open invitation").waitFor();
      await look("withdrawn");
      await page.getByLabel("Models").fill("claude-*");
      await page.getByRole("button", { name: "Save limits" }).press("Enter");
      await page.waitForLoadState();
      expect(await page.getByLabel("Models").inputValue()).toBe("claude-*");
      expect(await page.getByLabel("Days per key").inputValue()).toBe("30");
      await page.locator("summary", { hasText: "Remove this member…" }).press("Enter");
      await look("confirm");
      await page.getByRole("button", { name: `Remove dora ${name}` }).press("Enter");
      await page.getByRole("heading", { name: `dora ${name} was removed` }).waitFor();
      await look("removed");
      await page.getByRole("link", { name: "anna", exact: true }).click();
      await page.getByRole("heading", { name: "anna", exact: true }).waitFor();
      await look("member");
      expect(faults).toEqual([]);
    },
    60_000,
  );
});
