/** Scenario: the history of a data folder: exchanges, pages, what is removed, clocks that leap, and trouble on disk. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
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
import { type Entry, type LocalHistory, openHistory } from "../../../src/books/history/history";
import { entry, noon } from "../../support/history-rows";
import { temporaryFolder } from "../../support/temporary-folder";
import { until } from "../../support/until";

const posix = process.platform !== "win32";
const day = 86_400_000;

let folder: string;
let path: string;
let warnings: string[];
let opened: { close(): void }[];
let days: number;
let rows: number;

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder, "admin.sqlite");
  warnings = [];
  opened = [];
  days = 14;
  rows = 200_000;
});

afterEach(() => {
  for (const one of opened) one.close();
});

function open(): LocalHistory {
  const history = openHistory(path, {
    retentionDays: () => days,
    maxRows: () => rows,
    warn: (sentence) => void warnings.push(sentence),
    now: () => noon,
  });
  opened.push(history);
  return history;
}

/** Another program that has the file open. */
function other(): Database {
  const database = new Database(path);
  opened.push(database);
  return database;
}

function fill(history: LocalHistory, entries: Partial<Entry>[]): void {
  for (const differing of entries) history.add(entry(differing));
  expect(history.flush()).toBe(true);
}

const many = (count: number, differing: (index: number) => Partial<Entry> = () => ({})) =>
  Array.from({ length: count }, (_, index) => differing(index));

test("after a large removal the file is small again", async () => {
  const history = open();
  fill(history, many(20_000));
  const size = () => statSync(path).size;
  expect(size()).toBeGreaterThan(2_000_000);
  rows = 100;
  await history.prune();
  expect(history.count()).toBe(100);
  expect(size()).toBeLessThan(1_000_000);
});

describe("an exchange", () => {
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

  test("the table cannot hold is warned of, and does not stop the next", () => {
    const history = open();
    history.add(entry({ request_id: "bad", duration_ms: Number.NaN }));
    history.add({ ...entry(), attempts: "x".repeat(9_999) });
    history.add(entry({ request_id: "good" }));
    expect(history.flush()).toBe(true);
    expect([history.get("bad"), history.get("good")?.request_id, history.count()]).toEqual([undefined, "good", 1]);
    expect(warnings).toHaveLength(2);
  });
});

describe("pages", () => {
  test("follow one another without gap or repetition, also while new rows arrive and the clock goes back", async () => {
    const history = open();
    fill(
      history,
      many(25, (index) => ({ request_id: `r${index}`, started_at_ms: noon - index * 1_000 })),
    );
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

  test("end exactly: a full last page says that nothing follows", async () => {
    const history = open();
    fill(history, many(10));
    expect(await history.list({}, 10)).toMatchObject({ has_more: false, next_cursor_id: null });
    expect(await history.list({}, 9)).toMatchObject({ has_more: true, next_cursor_id: 2 });
  });
});

describe("what is too old or too much", () => {
  test("goes: rows past their days, then all but the newest, the rest untouched", async () => {
    const history = open();
    const portions = '[["system",null,1,10,0,1,null]]';
    fill(history, [{ portions, started_at_ms: noon - 16 * day }, { portions }]);
    fill(
      history,
      many(1_300, () => ({ started_at_ms: noon - 14 * day - 1 })),
    );
    fill(
      history,
      many(1_200, (index) => ({ request_id: `kept${index}`, started_at_ms: noon - 14 * day })),
    );
    await history.prune();
    expect(history.count()).toBe(1_201);
    expect(await history.portions({})).toMatchObject([{ requests: 1 }]);
    rows = 100;
    await history.prune();
    expect((await history.list({}, 200)).items.map((row) => row.request_id)).toEqual(
      many(100).map((_, index) => `kept${1_199 - index}`),
    );
    rows = 100;
    await history.prune();
    expect([history.count(), warnings]).toEqual([100, []]);
  });

  test("goes by itself while many rows arrive", async () => {
    rows = 1_500;
    const history = open();
    for (let batch = 0; batch < 6; batch += 1) {
      fill(history, many(1_000));
      await Bun.sleep(10);
    }
    await until(() => history.count() <= 2_500, "what is too much has gone");
    expect(history.count()).toBeGreaterThanOrEqual(1_500);
  });

  test("goes in small steps, others having their turn between", async () => {
    const history = open();
    fill(
      history,
      many(5_000, () => ({ started_at_ms: noon - 15 * day })),
    );
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

  test("goes soon after the start of a process, without being asked", async () => {
    fill(
      open(),
      many(300, (index) => ({ started_at_ms: noon - (index < 250 ? 15 : 1) * day })),
    );
    opened.pop()!.close();
    const history = open();
    await until(() => history.count() === 50, "what is too old has gone");
    expect([history.count(), warnings]).toEqual([50, []]);
  });

  test("comes again where another program writes for a while", async () => {
    const history = open();
    fill(
      history,
      many(300, () => ({ started_at_ms: noon - 15 * day })),
    );
    const locker = other();
    locker.run("BEGIN IMMEDIATE");
    const pruning = history.prune();
    await Bun.sleep(120);
    expect(history.count()).toBe(300);
    locker.run("ROLLBACK");
    await pruning;
    expect([history.count(), warnings]).toEqual([0, []]);
  });

  test("may go while the history is closed", async () => {
    const history = open();
    fill(
      history,
      many(3_000, () => ({ started_at_ms: noon - 15 * day })),
    );
    const pruning = history.prune();
    history.close();
    await pruning;
    expect([warnings, readdirSync(folder)]).toEqual([[], ["admin.sqlite"]]);
  });
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

  function clocked(): LocalHistory {
    const history = openHistory(path, {
      retentionDays: () => days,
      maxRows: () => rows,
      warn: (sentence) => void warnings.push(sentence),
      now: () => wall,
      monotonic: () => monotonic,
    });
    opened.push(history);
    return history;
  }

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
    fill(
      before,
      many(100, () => ({ started_at_ms: now - 15 * day })),
    );
    before.close();
    const history = clocked();
    await history.prune();
    expect(history.count()).toBe(0);
  });
});

describe("trouble on disk", () => {
  test("a lock of another program delays rows, and loses none", async () => {
    const history = open();
    fill(history, [{}]);
    const locker = other();
    locker.run("BEGIN IMMEDIATE");
    for (const one of many(500)) history.add(entry(one));
    expect(history.flush()).toBe(false);
    history.flush();
    expect([history.degraded, warnings.length]).toEqual([true, 1]);
    expect(warnings[0]).toContain("500 entries wait");
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
    expect(warnings[0]).toContain("10000 entries wait and 5 are lost");
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
    expect(warnings).toEqual(["A request could not be added to the history (no)."]);
  });

  const damages: [string, (bytes: Buffer) => Buffer][] = [
    ["no database at all", () => Buffer.from("not a database. ".repeat(1_000))],
    ["a header overwritten", (bytes) => bytes.fill(0x5a, 0, 100)],
    ["cut off within the header", (bytes) => bytes.subarray(0, 50)],
    ["the list of tables overwritten", (bytes) => bytes.fill(0x5a, 100, 4_096)],
  ];
  test.each(damages)("%s: moved aside, and a new history begins", (_, damage) => {
    const history = open();
    fill(history, many(200));
    history.close();
    writeFileSync(path, damage(readFileSync(path)));
    const again = open();
    fill(again, [{}]);
    expect([again.count(), again.degraded, warnings.length]).toEqual([1, false, 1]);
    const aside = readdirSync(folder).filter((name) => /^admin\.sqlite\.corrupt-\d+$/.test(name));
    expect(aside).toHaveLength(1);
    expect(warnings[0]).toContain(aside[0]!);
  });

  test.each<[string, (bytes: Buffer) => Buffer]>([
    ["pages overwritten", (bytes) => bytes.fill(0x5a, 4_096)],
    ["cut in the middle", (bytes) => bytes.subarray(0, 4_096 * 3)],
  ])("%s: found when it is touched, moved aside, and no new row is lost", async (_, damage) => {
    const history = open();
    fill(history, many(500));
    history.close();
    writeFileSync(path, damage(readFileSync(path)));
    const again = open();
    again.add(entry({ request_id: "new" }));
    again.flush();
    again.flush();
    expect([again.get("new")?.request_id, again.degraded]).toEqual(["new", false]);
    expect(readdirSync(folder).some((name) => name.includes(".corrupt-"))).toBe(true);
  });

  test.if(posix)("the data folder removed while running: made again with the next row", () => {
    path = join(folder, "home/admin.sqlite");
    const history = open();
    fill(history, many(3));
    rmSync(join(folder, "home"), { recursive: true });
    fill(history, [{}]);
    expect([history.count(), existsSync(path), history.degraded]).toEqual([1, true, false]);
  });

  test("written by a newer dragoman: left alone, no history, one warning, and requests are not affected", async () => {
    open().close();
    const newer = other();
    newer.run("PRAGMA user_version = 99");
    newer.close();
    copyFileSync(path, join(folder, "before"));
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
    expect(readFileSync(path)).toEqual(readFileSync(join(folder, "before")));
    expect(warnings).toEqual([expect.stringContaining("newer dragoman (schema 99, this one knows")]);
  });

  test("a folder or a pipe in place of the file: no history, one warning, at once", () => {
    mkdirSync(path);
    expect(open().degraded).toBe(true);
    if (posix) {
      path = join(folder, "pipe");
      Bun.spawnSync(["mkfifo", path]);
      expect(open().degraded).toBe(true);
    }
    expect(warnings.every((sentence) => sentence.includes("is not a file"))).toBe(true);
    expect(warnings).toHaveLength(posix ? 2 : 1);
  });
});

describe.if(posix)("the files", () => {
  test("are their owner's alone, whatever the umask, and those that were not are tightened", () => {
    const umask = process.umask(0);
    try {
      path = join(folder, "new/admin.sqlite");
      const history = open();
      fill(history, many(10));
      const modes = () =>
        readdirSync(join(folder, "new")).map((name) => [name, statSync(join(folder, "new", name)).mode & 0o777]);
      expect(statSync(join(folder, "new")).mode & 0o777).toBe(0o700);
      expect(modes().sort()).toEqual([
        ["admin.sqlite", 0o600],
        ["admin.sqlite-shm", 0o600],
        ["admin.sqlite-wal", 0o600],
      ]);
      history.close();
      expect(modes()).toEqual([["admin.sqlite", 0o600]]);
      Bun.spawnSync(["chmod", "644", path]);
      fill(open(), [{}]);
      expect(modes().every(([, mode]) => mode === 0o600)).toBe(true);
    } finally {
      process.umask(umask);
    }
  });
});

test("two stores that share one history file each see the rows of both", () => {
  const [one, two] = [open(), open()];
  fill(one, many(300));
  fill(two, many(300));
  fill(one, many(300));
  expect([one.count(), two.count(), warnings]).toEqual([900, 900, []]);
});

describe("processes", () => {
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
        path,
        JSON.stringify(entry({ started_at_ms: Date.now() })),
      ],
      { stdout: "pipe", stderr: "pipe" },
    );

  test("four started in the same instant all write, and none complains", async () => {
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
});
