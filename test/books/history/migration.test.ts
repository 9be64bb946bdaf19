/** Scenario: a history of an older dragoman: its rows stay, and take what newer rows have beside. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { columnNames } from "../../../src/books/history/entry";
import { migrations } from "../../../src/books/history/migrations";
import { portionColumns, portionDay, portionTable } from "../../../src/books/history/portions";
import { entry, noon } from "../../support/history-rows";
import { eachAnew } from "./bench";

const here = eachAnew();
const { open } = here;
let database: Database;

beforeEach(() => {
  database = new Database(here.path, { strict: true });
  // The first step makes the columns of today.
  migrations[0]!(database);
});
afterEach(() => {
  database.close();
  expect(here.warnings).toEqual([]);
});

function insert(...entries: ReturnType<typeof entry>[]): void {
  const present = database.query<{ name: string }, []>("SELECT name FROM pragma_table_info('requests')").all();
  const names = columnNames.filter((name) => present.some((column) => column.name === name));
  const statement = database.query(`INSERT INTO requests (${names}) VALUES (${names.map(() => "?")})`);
  database.transaction(() => {
    for (const each of entries) statement.run(...names.map((name) => each[name]));
  })();
}

test("sums of portions from before unknown costs were counted stay, and those that come are counted", async () => {
  const table = portionTable("portions", { text: "TEXT", integer: "INTEGER" });
  database.run(`${table}; ALTER TABLE portions DROP COLUMN unknown_cost; PRAGMA user_version = 1`);
  const day = portionDay(noon);
  database.run(
    `INSERT INTO portions (${portionColumns.replace(", unknown_cost", "")}) VALUES (${day}, '', '', 'tools', '', 2, 9, 4, 7)`,
  );
  const opened = open();
  const tools = { kind: "tools", tool: null, upstream_model: null } as const;
  expect(await opened.portions({})).toEqual([
    { ...tools, requests: 2, tokens: 9, cached: 4, cost: 7, cost_at_least: false },
  ]);
  opened.add(entry({ upstream_model: null, portions: '[["tools",null,1,5,0,null,null]]' }));
  opened.flush();
  expect(await opened.portions({})).toEqual([
    { ...tools, requests: 3, tokens: 14, cached: 4, cost: 7, cost_at_least: true },
  ]);
});

test("a history without a column of today and without the rollup answers from its rows, and is added up in the background", async () => {
  database.run("ALTER TABLE requests DROP COLUMN cost; PRAGMA user_version = 1");
  const at = (index: number) => noon - Math.floor(index / 100) * 3_600_000;
  insert(
    ...Array.from({ length: 3_000 }, (_, index) =>
      entry({ account_id: index % 3 ? "ada" : "bob", started_at_ms: at(index), client_name: null }),
    ),
  );
  const opened = open();
  const periods = "SELECT count(*) AS count FROM rollup_periods WHERE complete";
  for (const expected of [0, 29]) {
    expect(database.query<{ count: number }, []>(periods).get()!.count).toBe(expected);
    const { groups, totals } = await opened.statistics({}, ["account_id", "client_name"]);
    expect(groups.map(({ key, request_count }) => [key.account_id, key.client_name, request_count])).toEqual([
      ["ada", null, 2_000],
      ["bob", null, 1_000],
    ]);
    expect([totals.cost, totals.unknown.cost]).toEqual([{}, 3_000]);
    const page = await opened.list({ account_id: "bob" }, 3);
    expect(page.items.map(({ id }) => id)).toEqual([2_998, 2_995, 2_992]);
    await opened.prune();
  }
});
