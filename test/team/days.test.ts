/** Scenario: days of an owner and two members on servers of a team; in the proof tier many more. */
import { expect, test } from "bun:test";
import { openTeamHome, simulateDays } from "../support/days";
import { describeWithPostgres } from "../support/postgres";
import { proof } from "../support/proof";

describeWithPostgres("a team", () => {
  test(
    "on each day every request uses its own person's accounts, and each person's budget is exact",
    async () => {
      await using home = await openTeamHome();
      const counts = await simulateDays({ env: home.env, days: proof ? 200 : 12, members: ["anna", "ben"] });
      expect(counts.served).toBeGreaterThan(proof ? 1_000 : 30);
    },
    20 * 60_000,
  );
});
