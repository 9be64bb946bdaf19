/** Scenario: days of an owner and two members on servers of a team; `test/proof/days.test.ts` lives through many more. */
import { expect, test } from "bun:test";
import { openTeamHome, simulateDays } from "../support/days";
import { describeWithPostgres } from "../support/postgres";

describeWithPostgres("a team", () => {
  test("on each of 12 days every request uses its own person's accounts, and each person's budget is exact", async () => {
    await using home = await openTeamHome();
    const counts = await simulateDays({ env: home.env, days: 12, members: ["anna", "ben"] });
    expect(counts.served).toBeGreaterThan(30);
  });
});
