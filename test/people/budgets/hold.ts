/** A process that reserves one request of a budget, says so on stdout, and then waits to be killed. */

import { budgetSchema } from "../../../src/config/budget-schema";
import { openLedger } from "../../../src/people/budgets/ledger";
import { patiently } from "../../../src/people/budgets/unable";
import { unpriced } from "../../support/amounts";

const [path = "", steps = "reserve", limit = "100"] = process.argv.slice(2);
const budget = budgetSchema().parse({ name: "all", unit: "requests", limit: Number(limit), per: "month" });
const ledger = openLedger(path, { now: Date.now, warn: (sentence) => console.error(sentence) });
const subject = { account: null, key: null, model: "m" };
const held: string[] = [];
for (const step of steps.split(",")) {
  // As every request of the product does: beside three others, the lock can take longer than one try waits.
  const result = await patiently(() => ledger.reserve([budget], subject, unpriced));
  if ("exceeded" in result) {
    console.log("exceeded");
    continue;
  }
  held.push(result.reservation.id);
  if (step === "settle") await patiently(() => ledger.settle(result.reservation, unpriced));
  if (step === "release") await patiently(() => ledger.release(result.reservation));
  console.log(step);
}
console.log("done");
setInterval(() => {}, 1_000);
