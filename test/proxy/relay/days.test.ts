/** Property: days by a clock that is given, in the proof tier so many that what is rare happens too. */
import { expect, test } from "bun:test";
import { openHome, simulateDays } from "../../support/days";
import { proof } from "../../support/proof";

test(
  "each day has one row an exchange, exact budgets and nothing sent twice, whatever happens on it",
  async () => {
    using home = openHome();
    const counts = await simulateDays({ env: home.env, days: proof ? 1_000 : 40 });
    // How many are served is a matter of chance: 188 to 419 in forty runs, and seldom less where accounts run out early.
    expect(counts.served! + counts.refused!, "requests of the days").toBeGreaterThan(100);
    expect(counts.served).toBeGreaterThan(20);
    if (proof) for (const [what, count] of Object.entries(counts)) expect(count, what).toBeGreaterThan(5);
  },
  20 * 60_000,
);
