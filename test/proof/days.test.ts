/**
 * Scenario: the days of `test/proxy/relay/days.test.ts` and `test/team/days.test.ts`, so many that what is rare happens
 * too.
 */
import { expect, test } from "bun:test";
import { openHome, openTeamHome, simulateDays } from "../support/days";
import { describeWithPostgres } from "../support/postgres";

const limitMs = 20 * 60_000;

test(
  "each of 1,000 days has one row an exchange, exact budgets and nothing sent twice, whatever happens on it",
  async () => {
    using home = openHome();
    const counts = await simulateDays({ env: home.env, days: 1_000 });
    console.log(counts);
    for (const [what, count] of Object.entries(counts)) expect(count, what).toBeGreaterThan(5);
  },
  limitMs,
);

describeWithPostgres("a team", () => {
  test(
    "on each of 200 days every request uses its own person's accounts, and each person's budget is exact",
    async () => {
      await using home = await openTeamHome();
      const counts = await simulateDays({ env: home.env, days: 200, members: ["anna", "ben"] });
      console.log(counts);
      expect(counts.served).toBeGreaterThan(1_000);
    },
    limitMs,
  );
});
