/** Property: days by a clock that is given; `test/proof/days.test.ts` lives through many more. */
import { expect, test } from "bun:test";
import { openHome, simulateDays } from "../../support/days";

test("each of 40 days has one row an exchange, exact budgets and nothing sent twice, whatever happens on it", async () => {
  using home = openHome();
  const counts = await simulateDays({ env: home.env, days: 40 });
  // How many are served is a matter of chance: 188 to 419 in forty runs, and seldom less where accounts run out early.
  expect(counts.served! + counts.refused!, "requests of the days").toBeGreaterThan(100);
  expect(counts.served).toBeGreaterThan(20);
});
