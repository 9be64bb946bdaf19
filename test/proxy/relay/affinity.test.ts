/**
 * Rows: the memory of which account a conversation goes back to; `fixtures/scenes/requests.txt` and `conversations.txt`
 * have who serves.
 */
import { expect, test } from "bun:test";
import { startDemo } from "../../../src/demo/demo";
import { Account } from "../../../src/people/accounts/account";
import { openAffinity } from "../../../src/people/accounts/affinity";
import { handClock, hostsOf, keptLog, savedFrom } from "../../people/accounts/bench";

test("the memory is bounded: the oldest is forgotten first, and what is learnt again counts as new", async () => {
  const demo = startDemo();
  const { logger } = keptLog();
  const [octo, work] = demo.accounts.map(
    (account) => new Account(savedFrom(account), { hosts: hostsOf(demo), version: "1", logger, ...handClock() }),
  );
  const accounts = [octo!, work!];
  const affinity = openAffinity(3);
  for (const mark of ["a", "b", "c"]) affinity.remember(mark, octo!);
  affinity.remember("a", work!);
  affinity.remember("d", work!);
  expect(["a", "b", "c", "d"].map((mark) => affinity.accountFor([mark], accounts)?.id)).toEqual([
    "work-demo",
    undefined,
    "octo-demo",
    "work-demo",
  ]);
  expect(affinity.accountFor(["unknown", "c", "d"], accounts)).toBe(octo!);
  expect(affinity.accountFor(["c"], [work!, work!])).toBeUndefined(); // signed out meanwhile
  await demo.stop();
});
