/** Scenario: the schema of an SQLite file: each step once, by one of several processes, also where one is killed. */
import type { Database } from "bun:sqlite";
import { beforeEach, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type Migration, openDatabase, SqliteFile } from "../../../src/lib/sqlite";
import { temporaryFolder } from "../../support/temporary-folder";

const source = join(import.meta.dir, "../../../src/lib/sqlite.ts");
const first: Migration = (database) => {
  database.run("CREATE TABLE notes (id INTEGER PRIMARY KEY, said TEXT); INSERT INTO notes (said) VALUES ('kept')");
};
const second: Migration = (database) => {
  database.run("ALTER TABLE notes ADD COLUMN loud INTEGER; UPDATE notes SET loud = 1");
};

const content = { name: "file of notes", consequence: "a new one was started" };

let folder: string;
let path: string;

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder, "admin.sqlite");
});

function look<T>(migrations: Migration[], look: (database: Database) => T): T {
  const database = openDatabase(path, { migrations, content, warn() {} });
  try {
    return look(database);
  } finally {
    database.close();
  }
}

const state = (database: Database) => [
  database.query("PRAGMA user_version").get(),
  database.query("SELECT * FROM notes").all(),
];

const old = [{ user_version: 1 }, [{ id: 1, said: "kept" }]];
const current = [{ user_version: 2 }, [{ id: 1, said: "kept", loud: 1 }]];

test("a new file goes through every step, an older one through those it lacks, each once", () => {
  expect(look([first], state)).toEqual(old);
  expect(look([first, second], state)).toEqual(current);
  expect(look([first, second], state)).toEqual(current);
});

test("a step that fails leaves the old schema, whole", () => {
  look([first], state);
  const broken: Migration = (database) => {
    second(database);
    throw new Error("The step failed.");
  };
  expect(() => look([first, broken], state)).toThrow("The step failed.");
  expect(look([first], state)).toEqual(old);
});

test("several processes that migrate at the same instant do each step once", async () => {
  look([first], state);
  const code = `import { openDatabase } from ${JSON.stringify(source)};
    openDatabase(${JSON.stringify(path)}, { warn() {}, content: {}, migrations: [() => {}, (database) => {
      database.run("INSERT INTO notes (said) VALUES ('once')");
      Bun.sleepSync(60);
    }] }).close();`;
  const children = Array.from({ length: 4 }, () => Bun.spawn([process.execPath, "-e", code], { stderr: "inherit" }));
  expect(await Promise.all(children.map((child) => child.exited))).toEqual([0, 0, 0, 0]);
  expect(look([first, second], (database) => database.query("SELECT said FROM notes").all())).toHaveLength(2);
});

test("every connection waits briefly for a lock, writes ahead, and trusts no schema", () => {
  const pragmas = ["busy_timeout", "journal_mode", "synchronous", "trusted_schema", "foreign_keys"];
  const values = look([first], (database) =>
    pragmas.map((pragma) => Object.values(database.query<Record<string, unknown>, []>(`PRAGMA ${pragma}`).get()!)[0]),
  );
  expect(values).toEqual([100, "wal", 1, 0, 1]);
});

test("processes that make the file at the same instant all get it", async () => {
  const code = `import { openDatabase } from ${JSON.stringify(source)};
    while (Date.now() < Number(process.argv[1])) {}
    openDatabase(process.argv[2], { warn() {}, content: {}, migrations: [(database) => database.run("CREATE TABLE notes (id)")] }).close();`;
  for (let round = 0; round < 3; round += 1) {
    const together = String(Date.now() + 250);
    const children = Array.from({ length: 4 }, () =>
      Bun.spawn([process.execPath, "-e", code, together, `${path}${round}`], { stderr: "inherit" }),
    );
    expect(await Promise.all(children.map((child) => child.exited))).toEqual([0, 0, 0, 0]);
  }
});

test("a damaged file is moved aside once, also if two find the damage at the same time", () => {
  const warnings: string[] = [];
  const warn = (sentence: string) => void warnings.push(sentence);
  const rescued: unknown[] = [];
  const rescue = (damaged: Database) => {
    rescued.push(state(damaged));
    return undefined;
  };
  const opened = () => new SqliteFile(path, { migrations: [first], content, warn, rescue });
  const [one, other] = [opened(), opened()];
  const fail = () => {
    throw Object.assign(new Error("malformed"), { code: "SQLITE_CORRUPT" });
  };
  expect(() =>
    one.use((database) => {
      database.run("INSERT INTO notes (said) VALUES ('told')");
      expect(() => other.use(fail)).toThrow("malformed");
      fail();
    }),
  ).toThrow("malformed");
  expect(rescued).toEqual(Array(2).fill([{ user_version: 1 }, [expect.anything(), { id: 2, said: "told" }]]));
  expect(readdirSync(folder).filter((name) => /^admin\.sqlite\.corrupt-\d+$/.test(name))).toHaveLength(1);
  expect(warnings).toEqual([
    expect.stringMatching(
      /^The file of notes was damaged\. It was moved to .*corrupt-\d+, and a new one was started\.$/,
    ),
  ]);
  for (const file of [one, other]) {
    expect(file.use(state)).toEqual(old);
    file.close();
    expect(() => file.use(state)).toThrow("is closed");
  }
});
