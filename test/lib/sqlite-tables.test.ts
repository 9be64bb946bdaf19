/** Scenario: the tables of members in a file, whose transactions others neither see nor take part in. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { sql } from "../../src/lib/sql";
import { SqliteTables } from "../../src/lib/sqlite-tables";
import { temporaryFolder } from "../support/temporary-folder";

const content = { name: "file of members", consequence: "a test fails" };
const migrations = [(file: { run(text: string): unknown }) => void file.run("CREATE TABLE names (name, is_known)")];

let path: string;
let tables: SqliteTables;
let others: SqliteTables;
beforeEach(() => {
  path = join(temporaryFolder(), "members.sqlite");
  [tables, others] = [open(), open()];
});
afterEach(() => {
  for (const each of [tables, others]) each.close();
});

const open = () => new SqliteTables(path, { migrations, content, warn: (sentence) => expect(sentence).toBe("") });
const add = (name: string | undefined, isKnown = true) => sql`INSERT INTO dragoman.names VALUES (${name}, ${isKnown})`;
const namesIn = async (from: Pick<SqliteTables, "ask">) =>
  (await from.ask<{ name: string | null }>(sql`SELECT name FROM dragoman.names ORDER BY rowid`)).map(
    ({ name }) => name,
  );

test("a truth is a number, and what is missing is null", async () => {
  await tables.ask(add(undefined, false));
  expect(await others.ask(sql`SELECT * FROM dragoman.names`)).toEqual([{ name: null, is_known: 0 }]);
});

test("a transaction ends with its last question; until then nobody else asks, here or in another process", async () => {
  const later: Promise<unknown>[] = [];
  await namesIn(others);
  const asked = await tables.transact(async (inside) => {
    await inside.ask(add("anna"));
    later.push(namesIn(tables), others.transact(namesIn));
    await Bun.sleep(50);
    await inside.transact((more) => more.ask(add("ben")));
    await Bun.sleep(50);
    return namesIn(inside);
  });
  expect([asked, ...(await Promise.all(later))]).toEqual(Array(3).fill(["anna", "ben"]));
});

test("a transaction that fails leaves nothing, and the next one begins anew", async () => {
  const failing = tables.transact(async (inside) => {
    await inside.ask(add("anna"));
    await Bun.sleep(20);
    throw new Error("on purpose");
  });
  await expect(failing).rejects.toThrow("on purpose");
  await tables.transact((inside) => inside.ask(add("ben")));
  expect(await namesIn(others)).toEqual(["ben"]);
});

test("SQLite waits for no other process: that would hold the thread that serves everybody", async () => {
  expect(await tables.ask(sql`PRAGMA busy_timeout`)).toEqual([{ timeout: 0 }]);
});
