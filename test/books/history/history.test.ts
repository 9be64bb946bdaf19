/** Scenario: the history of a data folder: exchanges, pages, what is removed, clocks that leap, and trouble on disk. */
import { Database } from "bun:sqlite";
import { beforeEach, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Entry } from "../../../src/books/history/history";
import { entry, noon } from "../../support/history-rows";
import { until } from "../../support/until";
import { eachAnew, fill } from "./bench";

const posix = process.platform !== "win32";
const day = 86_400_000;

const here = eachAnew();
const { open } = here;

/** Another program that has the file open. */
function other(): Database {
  const database = new Database(here.path);
  here.opened.push(database);
  return database;
}

const many = (count: number, differing: (index: number) => Partial<Entry> = () => ({})) =>
  Array.from({ length: count }, (_, index) => differing(index));
const tooOld = (count: number) => many(count, () => ({ started_at_ms: noon - 14 * day - 1 }));

test("after a large removal the file is small again", async () => {
  const history = open();
  fill(history, many(20_000));
  const size = () => statSync(here.path).size;
  expect(size()).toBeGreaterThan(2_000_000);
  here.rows = 100;
  await history.prune();
  expect(history.count()).toBe(100);
  expect(size()).toBeLessThan(1_000_000);
});

test("an exchange is on disk a moment later without anybody asking", async () => {
  const history = open();
  history.add(entry());
  expect(history.count()).toBe(0);
  await until(() => history.count() === 1, "the row is on the disk");
});

test("every way to read finds an exchange that still waits to be written", async () => {
  const history = open();
  const ways: ((id: string) => unknown)[] = [
    () => history.count(),
    () => noon - history.oldest()! + 1,
    (id) => history.get(id)!.id,
    () => history.after(0, 100).length,
    async () => (await history.list({}, 100)).items.length,
    async () => (await history.totals({})).request_count,
    async () => (await history.statistics({}, [])).totals.request_count,
  ];
  for (const [at, way] of ways.entries()) {
    history.add(entry({ started_at_ms: noon - 2 * at }));
    await new Promise(setImmediate);
    // It is written; what follows within a moment waits for others.
    history.add(entry({ request_id: `waiting-${at}`, started_at_ms: noon - 2 * at - 1 }));
    expect(await way(`waiting-${at}`)).toBe(2 * at + 2);
  }
});

test("an exchange with endless texts is cut, lists staying lists and characters whole", () => {
  const history = open();
  const attempts = JSON.stringify(many(500).map((_, ms) => ({ account: "ada", status: 429, ms })));
  fill(history, [
    { request_id: "long", client_name: "x".repeat(9_999), error_message: `${"e".repeat(999)}😀`, attempts },
    { request_id: "short", client_name: "x".repeat(256) },
  ]);
  const row = history.get("long")!;
  expect([row.client_name, row.error_message]).toEqual(["x".repeat(256), "e".repeat(999)]);
  expect(row.attempts.length).toBeLessThanOrEqual(4_000);
  expect(JSON.parse(row.attempts)[0]).toEqual({ account: "ada", status: 429, ms: 0 });
  expect(history.get("short")!.client_name).toHaveLength(256);
});

test("an exchange that the table cannot hold is warned of, and does not stop the next", () => {
  const history = open();
  history.add(entry({ request_id: "bad", duration_ms: Number.NaN }));
  history.add({ ...entry(), attempts: "x".repeat(9_999) });
  history.add(entry({ request_id: "good" }));
  expect(history.flush()).toBe(true);
  expect([history.get("bad"), history.get("good")?.request_id, history.count()]).toEqual([undefined, "good", 1]);
  expect(here.warnings).toHaveLength(2);
});

test("pages follow one another without gap or repetition, also while new rows arrive and the clock goes back", async () => {
  const history = open();
  const rows = many(25, (index) => ({ request_id: `r${index}`, started_at_ms: noon - index * 1_000 }));
  fill(history, rows);
  const seen: string[] = [];
  let cursor: number | undefined;
  for (;;) {
    const { items, next_cursor_id, has_more } = await history.list({}, 10, cursor);
    seen.push(...items.map((row) => row.request_id));
    expect(next_cursor_id).toBe(has_more ? items.at(-1)!.id : null);
    if (next_cursor_id === null) break;
    cursor = next_cursor_id;
    fill(history, [{}]);
  }
  expect(seen).toEqual(many(25).map((_, index) => `r${24 - index}`));
});

test("pages end exactly: a full last page says that nothing follows", async () => {
  const history = open();
  fill(history, many(10));
  expect(await history.list({}, 10)).toMatchObject({ has_more: false, next_cursor_id: null });
  expect(await history.list({}, 9)).toMatchObject({ has_more: true, next_cursor_id: 2 });
});

test("what is too old or too much goes: rows past their days, then all but the newest, the rest untouched", async () => {
  const history = open();
  const portions = '[["system",null,1,10,0,1,null]]';
  fill(history, [{ portions, started_at_ms: noon - 16 * day }, { portions }]);
  fill(history, tooOld(1_300));
  const kept = many(1_200, (index) => ({ request_id: `kept${index}`, started_at_ms: noon - 14 * day }));
  fill(history, kept);
  await history.prune();
  expect(history.count()).toBe(1_201);
  expect(await history.portions({})).toMatchObject([{ requests: 1 }]);
  here.rows = 100;
  await history.prune();
  expect((await history.list({}, 200)).items.map((row) => row.request_id)).toEqual(
    many(100).map((_, index) => `kept${1_199 - index}`),
  );
  here.rows = 100;
  await history.prune();
  expect([history.count(), here.warnings]).toEqual([100, []]);
});

test("what is too old or too much goes by itself while many rows arrive", async () => {
  here.rows = 1_500;
  const history = open();
  for (let batch = 0; batch < 6; batch += 1) {
    fill(history, many(1_000));
    await Bun.sleep(10);
  }
  await until(() => history.count() <= 2_500, "what is too much has gone");
  expect(history.count()).toBeGreaterThanOrEqual(1_500);
});

test("what is too old or too much goes in small steps, others having their turn between", async () => {
  const history = open();
  fill(history, tooOld(5_000));
  const counts: number[] = [];
  const look = other().query<{ rows: number }, []>("SELECT count(*) AS rows FROM requests");
  const ticking = setInterval(() => counts.push(look.get()!.rows), 0);
  await history.prune();
  clearInterval(ticking);
  expect(history.count()).toBe(0);
  // Many steps were seen from outside, each a small one.
  expect(new Set(counts).size).toBeGreaterThan(10);
  for (const [at, rows] of counts.entries()) expect((counts[at - 1] ?? 5_000) - rows).toBeLessThan(1_000);
});

test("what is too old or too much goes soon after the start of a process, without being asked", async () => {
  fill(open(), [...tooOld(250), ...many(50)]);
  here.opened.pop()!.close();
  const history = open();
  await until(() => history.count() === 50, "what is too old has gone");
  expect([history.count(), here.warnings]).toEqual([50, []]);
});

test("what is too old or too much goes later where another program writes for a while", async () => {
  const history = open();
  fill(history, tooOld(300));
  const locker = other();
  locker.run("BEGIN IMMEDIATE");
  const pruning = history.prune();
  await Bun.sleep(120);
  expect(history.count()).toBe(300);
  locker.run("ROLLBACK");
  await pruning;
  expect([history.count(), here.warnings]).toEqual([0, []]);
});

test("what is too old or too much may go while the history is closed", async () => {
  const history = open();
  fill(history, tooOld(3_000));
  const pruning = history.prune();
  history.close();
  await pruning;
  expect([here.warnings, readdirSync(here.folder)]).toEqual([[], ["admin.sqlite"]]);
});

describe("a clock that leaps", () => {
  let wall = noon;
  let monotonic = 0;
  const pass = (ms: number) => {
    wall += ms;
    monotonic += ms;
  };
  beforeEach(() => {
    wall = noon;
    monotonic = 0;
  });

  const clocked = () => open({ now: () => wall, monotonic: () => monotonic });

  test("ahead, and back again, removes nothing", async () => {
    const history = clocked();
    fill(history, many(100));
    for (const leap of [20 * day, 400 * day, 15 * day]) {
      wall = noon + leap;
      await history.prune();
      wall = noon;
      await history.prune();
      expect(history.count()).toBe(100);
    }
    pass(14 * day + 1);
    await history.prune();
    expect(history.count()).toBe(0);
  });

  test("a clock that leaps counts when it has lasted for a day: a machine may have slept, or been wrong before", async () => {
    const history = clocked();
    fill(history, many(100));
    wall += 20 * day;
    for (let hour = 0; hour < 23; hour += 1) {
      await history.prune();
      pass(day / 24);
    }
    expect(history.count()).toBe(100);
    pass(day / 24);
    await history.prune();
    expect(history.count()).toBe(0);
  });

  test("a clock that leaps does not stop what is too old by the other clock", async () => {
    const history = clocked();
    fill(history, [{ started_at_ms: noon - 14 * day + 1 }, {}]);
    wall += 30 * day;
    pass(2);
    await history.prune();
    expect((await history.list({}, 9)).items.map(({ id }) => id)).toEqual([2]);
  });

  test("between two runs removes nothing either: the newest row is too long ago to be sure", async () => {
    const before = clocked();
    fill(before, [{ started_at_ms: noon - 15 * day }, ...many(99)]);
    before.close();
    wall += 20 * day;
    const history = clocked();
    await history.prune();
    // What was too old by the newest row's time is.
    expect(history.count()).toBe(99);
    wall = noon;
    await history.prune();
    expect(history.count()).toBe(99);
  });

  test("a clock that leaps is no matter where the file was written lately by the same clock: rows that are all too old go", async () => {
    const now = Date.now();
    wall = now;
    const before = clocked();
    const rows = many(100, () => ({ started_at_ms: now - 15 * day }));
    fill(before, rows);
    before.close();
    const history = clocked();
    await history.prune();
    expect(history.count()).toBe(0);
  });
});

test("a lock of another program delays rows, and loses none", async () => {
  const history = open();
  fill(history, [{}]);
  const locker = other();
  locker.run("BEGIN IMMEDIATE");
  for (const one of many(500)) history.add(entry(one));
  expect(history.flush()).toBe(false);
  history.flush();
  expect([history.degraded, here.warnings.length]).toEqual([true, 1]);
  expect(here.warnings[0]).toContain("500 entries wait");
  locker.run("ROLLBACK");
  await until(() => history.count() === 501 && !history.degraded, "every row is written");
});

test("a lock while it opens is waited for; a longer one only delays rows", async () => {
  open().close();
  const locker = other();
  locker.run("PRAGMA journal_mode = DELETE");
  locker.run("BEGIN EXCLUSIVE");
  const history = open();
  history.add(entry());
  expect([history.flush(), history.degraded]).toEqual([false, true]);
  locker.run("ROLLBACK");
  expect([history.flush(), history.degraded, history.count()]).toEqual([true, false, 1]);
});

test("what cannot be written waits, 10,000 rows at most, and the rest is counted as lost", () => {
  const history = open();
  fill(history, [{}]);
  const locker = other();
  locker.run("BEGIN IMMEDIATE");
  for (const one of many(10_005)) history.add(entry(one));
  expect(history.flush()).toBe(false);
  expect(here.warnings[0]).toContain("10000 entries wait and 5 are lost");
  expect(history.lost).toBe(5);
  locker.run("ROLLBACK");
  expect(history.flush()).toBe(true);
  expect(history.count()).toBe(10_001);
});

test("an entry that SQLite refuses holds up no other, and is counted as lost", () => {
  const history = open();
  history.flush();
  other().run(
    "CREATE TRIGGER refusing BEFORE INSERT ON requests WHEN new.path = '/refused' BEGIN SELECT RAISE(ABORT, 'no'); END",
  );
  for (const path of ["/v1/messages", "/refused", "/v1/responses"]) history.add(entry({ path }));
  expect(history.flush()).toBe(true);
  expect([history.count(), history.lost, history.degraded]).toEqual([2, 1, false]);
  expect(here.warnings).toEqual(["A request could not be added to the history (no)."]);
});

const text = "not a database. ".repeat(1_000);
test.each<[string, "at once" | "when it is touched", (bytes: Buffer) => Buffer]>([
  ["no database at all", "at once", () => Buffer.from(text)],
  ["a header overwritten", "at once", (bytes) => bytes.fill(0x5a, 0, 100)],
  ["cut off within the header", "at once", (bytes) => bytes.subarray(0, 50)],
  ["the list of tables overwritten", "at once", (bytes) => bytes.fill(0x5a, 100, 4_096)],
  ["pages overwritten", "when it is touched", (bytes) => bytes.fill(0x5a, 4_096)],
  ["cut in the middle", "when it is touched", (bytes) => bytes.subarray(0, 4_096 * 3)],
])("%s: found %s, moved aside, and a new history begins, without the loss of a new row", (_, when, damage) => {
  const history = open();
  fill(history, many(500));
  history.close();
  writeFileSync(here.path, damage(readFileSync(here.path)));
  const again = open();
  again.add(entry({ request_id: "new" }));
  again.flush();
  again.flush();
  expect([again.get("new")?.request_id, again.degraded]).toEqual(["new", false]);
  if (when === "at once") expect([again.count(), here.warnings.length]).toEqual([1, 1]);
  const aside = readdirSync(here.folder).filter((name) => /^admin\.sqlite\.corrupt-\d+$/.test(name));
  expect(aside).toHaveLength(1);
  expect(here.warnings[0]).toContain(aside[0]!);
});

test.if(posix)("the data folder that is removed while running is made again with the next row", () => {
  here.path = join(here.folder, "home/admin.sqlite");
  const history = open();
  fill(history, many(3));
  rmSync(join(here.folder, "home"), { recursive: true });
  fill(history, [{}]);
  expect([history.count(), existsSync(here.path), history.degraded]).toEqual([1, true, false]);
});

test("a file that a newer dragoman has written is left alone: no history, one warning, and requests are not affected", async () => {
  open().close();
  const newer = other();
  newer.run("PRAGMA user_version = 99");
  newer.close();
  copyFileSync(here.path, join(here.folder, "before"));
  const history = open();
  history.add(entry());
  expect([history.flush(), await history.list({}, 50), history.get("x"), history.count(), history.degraded]).toEqual([
    true,
    { items: [], next_cursor_id: null, has_more: false },
    undefined,
    0,
    true,
  ]);
  await history.prune();
  history.close();
  expect(readFileSync(here.path)).toEqual(readFileSync(join(here.folder, "before")));
  expect(here.warnings).toEqual([expect.stringContaining("newer dragoman (schema 99, this one knows")]);
});

test("a folder or a pipe in place of the file: no history, one warning, at once", () => {
  mkdirSync(here.path);
  expect(open().degraded).toBe(true);
  if (posix) {
    here.path = join(here.folder, "pipe");
    Bun.spawnSync(["mkfifo", here.path]);
    expect(open().degraded).toBe(true);
  }
  expect(here.warnings.every((sentence) => sentence.includes("is not a file"))).toBe(true);
  expect(here.warnings).toHaveLength(posix ? 2 : 1);
});

test("the files of a history are their owner's alone, whatever the umask, and those that were not are tightened", () => {
  const umask = process.umask(0);
  try {
    here.path = join(here.folder, "new/admin.sqlite");
    const history = open();
    fill(history, many(10));
    const modes = () =>
      readdirSync(join(here.folder, "new")).map((name) => [
        name,
        statSync(join(here.folder, "new", name)).mode & 0o777,
      ]);
    expect(statSync(join(here.folder, "new")).mode & 0o777).toBe(0o700);
    expect(modes().sort()).toEqual([
      ["admin.sqlite", 0o600],
      ["admin.sqlite-shm", 0o600],
      ["admin.sqlite-wal", 0o600],
    ]);
    history.close();
    expect(modes()).toEqual([["admin.sqlite", 0o600]]);
    Bun.spawnSync(["chmod", "644", here.path]);
    fill(open(), [{}]);
    expect(modes().every(([, mode]) => mode === 0o600)).toBe(true);
  } finally {
    process.umask(umask);
  }
});

test("two stores that share one history file each see the rows of both", () => {
  const [one, two] = [open(), open()];
  fill(one, many(300));
  fill(two, many(300));
  fill(one, many(300));
  expect([one.count(), two.count(), here.warnings]).toEqual([900, 900, []]);
});

const source = join(import.meta.dir, "../../../src/books/history/history.ts");
const child = (code: string) =>
  Bun.spawn(
    [
      process.execPath,
      "-e",
      `import { openHistory } from ${JSON.stringify(source)};
         const [path, template] = process.argv.slice(-2);
         const history = openHistory(path, { retentionDays: () => 14, maxRows: () => 200_000, warn: (s) => console.error(s) });
         let n = 0;
         const add = (count) => { while (count--) history.add({ ...JSON.parse(template), request_id: process.pid + "-" + n++ }); };
         ${code}`,
      here.path,
      JSON.stringify(entry({ started_at_ms: Date.now() })),
    ],
    { stdout: "pipe", stderr: "pipe" },
  );

test("four processes that start in the same instant all write, and none complains", async () => {
  const children = many(4).map(() =>
    child(
      "for (let i = 0; i < 50; i++) { add(5); history.flush(); } while (!history.flush()) Bun.sleepSync(5); history.close();",
    ),
  );
  const complaints = await Promise.all(children.map((one) => new Response(one.stderr).text()));
  expect([complaints.filter((text) => !text.includes("entries wait")).join(""), open().count()]).toEqual(["", 1_000]);
});

test("a process with nothing but an open history ends by itself", async () => {
  const idle = child("add(3);");
  expect(await idle.exited).toBe(0);
  expect(open().count()).toBe(3);
});
