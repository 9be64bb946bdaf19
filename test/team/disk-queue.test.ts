/** Scenario: what waits on the disk for the database: it has an end, and what finds no room is counted. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import type { Entry } from "../../src/books/history/entry";
import { Postgres } from "../../src/team/connection";
import { openDiskQueues } from "../../src/team/disk-queue";
import type { Settlement } from "../../src/team/ledger-queries";
import { RowWriter } from "../../src/team/row-writer";
import { Settlements } from "../../src/team/settlements";
import { entry } from "../support/history-rows";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

const room = { request: 2 * 2 ** 20, settlement: 3 * 2 ** 20 };
const settlement: Settlement = { budget: "all", kind: "", member: "", item: "", start_ms: 0, amount: 7, unknown: 0 };

test("rows of an outage go to the disk up to its bound, then to memory, and those beyond are counted", async () => {
  const path = join(temporaryFolder(), "waiting");
  const warnings: string[] = [];
  const warn = (sentence: string) => void warnings.push(sentence);
  const queues = openDiskQueues(path, warn, room);
  // Nobody listens there.
  const postgres = new Postgres({ url: "postgres://nobody@127.0.0.1:9/none" });
  const writer = new RowWriter({ postgres, warn, openQueue: () => queues.queue("request") });
  let added = 0;
  const add = (count: number) => {
    for (; count > 0; count -= 1, added += 1) writer.add(entry({ request_id: `request-${added}` }));
  };
  writer.add(entry({ request_id: "long", client_name: "x".repeat(9_999) }));
  added += 1;
  add(299);
  const onDisk = () => queues.queue("request").size;
  await until(() => onDisk() === 300, "the rows are on the disk");
  expect(queues.queue<Entry>("request").take(1)).toMatchObject([["long", { client_name: "x".repeat(256) }]]);
  add(9_000);
  await until(() => warnings.some((sentence) => sentence.includes("takes no more")), "the disk is full");
  const kept = onDisk();
  expect(kept).toBeGreaterThan(300);
  expect(writer.waiting).toBe(added);
  add(10_000);
  expect(writer.lost).toBe(added - kept - 10_000);
  expect(writer.lost).toBeGreaterThan(0);
  expect([writer.waiting + writer.lost, onDisk()]).toEqual([added, kept]);

  // What was used of budgets still has room.
  const settlements = new Settlements({
    postgres,
    warn,
    server: crypto.randomUUID(),
    openQueue: () => queues.queue("settlement"),
  });
  settlements.keep(Bun.randomUUIDv7(), [settlement]);
  expect(settlements.waiting).toBe(1);
  const keepMany = () => {
    for (let count = 20_000; count > 0; count -= 1) settlements.keep(Bun.randomUUIDv7(), [settlement]);
  };
  expect(keepMany).toThrow("takes no more");

  settlements.close();
  writer.close();
  expect(warnings.at(-1)).toBe("10,000 requests of the end are missing in the history.");
  queues.close();
  await postgres.close();
});
