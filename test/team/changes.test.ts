/** How a server follows what others change: the reads of one table. */
import { expect, test } from "bun:test";
import { createLogger } from "../../src/lib/logger";
import { Changes } from "../../src/team/changes";
import { Postgres } from "../../src/team/connection";
import { until } from "../support/until";

test("whoever asks for the newest changes gets them, however often others ask", async () => {
  // Nothing here asks the database.
  const postgres = new Postgres({ url: "postgres://nobody@127.0.0.1:1/none" });
  const changes = new Changes(
    postgres,
    createLogger(() => "error"),
  );
  let written = 0;
  let underWay = 0;
  let most = 0;
  let reads = 0;
  changes.follow("ended_page_sign_ins", 0, async () => {
    most = Math.max(most, ++underWay);
    reads += 1;
    const found = written;
    await Bun.sleep(10);
    underWay -= 1;
    return found;
  });
  let read = 0;
  changes.follow("accounts", 0, async () => (read = written));
  const answers: Promise<void>[] = [];
  // As strangers ask who send cookies that nobody gave them.
  const flood = setInterval(() => answers.push(changes.catchUp("ended_page_sign_ins")), 1);
  try {
    await until(() => reads > 2, "others ask");
    for (let round = 0; round < 5; round += 1) {
      written += 1;
      const before = reads;
      await changes.catchUp("ended_page_sign_ins");
      // The one that was under way, and the next.
      expect(reads - before).toBeLessThanOrEqual(2);
    }
  } finally {
    clearInterval(flood);
  }
  await Promise.all(answers);
  expect(most).toBe(1);
  await changes.catchUp("accounts");
  expect(read).toBe(written);
  changes.close();
  await postgres.close();
});

test("a read that fails fails for those who asked for it, and the next one is made all the same", async () => {
  const postgres = new Postgres({ url: "postgres://nobody@127.0.0.1:1/none" });
  const changes = new Changes(
    postgres,
    createLogger(() => "error"),
  );
  const begun: number[] = [];
  changes.follow("accounts", 0, async (since) => {
    begun.push(since);
    await Bun.sleep(5);
    if (begun.length === 1) throw new Error("broken");
    return since + 1;
  });
  const outcomes = await Promise.allSettled([1, 2, 3].map(() => changes.catchUp("accounts")));
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
  await changes.catchUp("accounts");
  expect(begun).toEqual([0, 0, 1]);
  changes.close();
  await postgres.close();
});
