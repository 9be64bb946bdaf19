/** Scenario: how long requests and pages wait for the history, whatever is done to it. */
import { Database } from "bun:sqlite";
import { beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { columnNames } from "../../../src/books/history/entry";
import { openHistory } from "../../../src/books/history/history";
import { historyOf } from "../../../src/books/history/member-history";
import { askChat, run } from "../../support/command";
import { entry } from "../../support/history-rows";
import { leastOf, took } from "../../support/least";
import { temporaryFolder } from "../../support/temporary-folder";
import { until } from "../../support/until";

let folder: string;
let path: string;
beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder, "admin.sqlite");
});

const open = () => openHistory(path, { retentionDays: () => 14, maxRows: () => 1e6, warn: () => {}, now: Date.now });
const rowsIn = async (url: string) =>
  ((await (await fetch(`${url}/api/admin/meta`)).json()) as { row_count: number }).row_count;

/** So many rows like the first, which has this id. */
function multiply(count: number): void {
  const history = open();
  history.add(entry({ request_id: "first", started_at_ms: Date.now() }));
  history.flush();
  history.close();
  using database = new Database(path);
  const columns = columnNames.filter((name) => name !== "request_id").join(", ");
  database.run(
    `INSERT INTO requests (request_id, ${columns})
     WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ${count - 1})
     SELECT 'seeded-' || n, ${columns} FROM number, requests WHERE request_id = 'first'`,
  );
}

/** How long each question took, asked one after the other until something is over: the 95th percentile and the slowest, in ms. */
async function waitsWhile(
  ask: () => Promise<Response>,
  work: Promise<unknown>,
): Promise<{ p95: number; slowest: number; count: number }> {
  const waits: number[] = [];
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  while (!isOver)
    waits.push(
      await took(async () => {
        const response = await ask();
        await response.arrayBuffer();
        expect(response.status).toBe(200);
      }),
    );
  await over;
  waits.sort((one, other) => one - other);
  return { p95: waits[Math.floor(waits.length * 0.95)]!, slowest: waits.at(-1)!, count: waits.length };
}

test("while another program holds the history for 2.5 s, 95 % of requests take less than 100 ms and all less than 400", async () => {
  const slowest = await leastOf(400, async () => {
    await using command = run(["start", "--demo", "--json", "--port", "0"]);
    const { url } = await command.ready();
    const ask = () => askChat(url);
    await waitsWhile(ask, Bun.sleep(200));
    const before = await rowsIn(url);
    using locker = new Database(join(command.home, "data", "demo", "admin.sqlite"));
    locker.run("PRAGMA busy_timeout = 1000");
    locker.run("BEGIN EXCLUSIVE");
    const waits = await waitsWhile(
      ask,
      Bun.sleep(2_500).then(() => locker.run("ROLLBACK")),
    );
    await until(async () => (await rowsIn(url)) >= before + waits.count, "every row is written");
    expect(command.stderr().match(/history cannot be written/g)?.length ?? 0).toBeLessThan(2);
    return Math.max(waits.slowest, 4 * waits.p95);
  });
  expect(slowest).toBeLessThan(400);
});

test("while 60,000 of 250,000 rows go, 95 % of requests take less than 100 ms, and they are gone within 15 s", async () => {
  multiply(250_000);
  await using command = run(["start", "--json", "--port", "0"], { env: { DRAGOMAN_HOME: folder } });
  const { url } = await command.ready();
  // At a start it is done a minute later; a change of the cap does it at once.
  const change = { method: "POST", body: '{"maxRows":190000}', headers: { "content-type": "application/json" } };
  expect((await fetch(`${url}/api/admin/config`, change)).status).toBe(200);
  const gone = took(() => until(async () => (await rowsIn(url)) <= 190_000, "what is too much has gone"));
  const { p95 } = await waitsWhile(() => fetch(`${url}/health`), gone);
  expect([p95 < 100, (await gone) < 15_000]).toEqual([true, true]);
  expect(await rowsIn(url)).toBe(190_000);
});

test("while another program holds a lock, 500 rows are taken in less than 50 ms, and a flush gives up within 400", () => {
  const history = open();
  history.add(entry());
  history.flush();
  using locker = new Database(path);
  locker.run("BEGIN IMMEDIATE");
  const startedAt = performance.now();
  for (let count = 0; count < 500; count += 1) history.add(entry({ request_id: `row-${count}` }));
  expect(performance.now() - startedAt).toBeLessThan(50);
  const waitedAt = performance.now();
  expect(history.flush()).toBe(false);
  expect(performance.now() - waitedAt).toBeLessThan(400);
  locker.run("ROLLBACK");
  history.close();
});

test("a member who asks without end holds up another for less than 60 ms", async () => {
  const local = open();
  for (const member of ["anna", "ben"]) local.add(entry({ member }));
  local.flush();
  const slow = Object.assign(Object.create(local) as typeof local, {
    async totals(filters: Parameters<typeof local.totals>[0]) {
      await Bun.sleep(1);
      return local.totals(filters);
    },
  });
  const [anna, ben] = [historyOf(slow, "anna"), historyOf(slow, "ben")];
  const asked = Promise.allSettled(Array.from({ length: 600 }, async () => anna.totals({})));
  expect(await leastOf(60, () => took(() => ben.totals({})))).toBeLessThan(60);
  await asked;
  local.close();
});
