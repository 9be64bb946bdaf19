/** Property: the rollup and the rows: whatever happens to the file, statistics and pages are those of the rows alone. */
import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { dimensions } from "../../../src/books/history/dimensions";
import { bucketStarts, bucketValue } from "../../../src/books/history/durations";
import { nameColumns } from "../../../src/books/history/entry";
import type { Filters } from "../../../src/books/history/filters";
import type { Dimension, Entry, Group, LocalHistory, Row } from "../../../src/books/history/history";
import { addUp } from "../../../src/books/history/sqlite-rollup";
import { expectTotals, passes } from "../../support/history-oracle";
import { entry, noon } from "../../support/history-rows";
import { proof } from "../../support/proof";
import { type Chance, drawn, openChance } from "../../support/random";
import { eachAnew, fill } from "./bench";

const hour = 3_600_000;
const day = 24 * hour;
const zone = process.env.TZ;

const here = eachAnew();
const { open } = here;

afterEach(() => {
  process.env.TZ = zone ?? "UTC";
  expect(here.warnings).toEqual([]);
});

/** Another program, that works on the file itself. */
function onFile<T>(work: (database: Database) => T): T {
  const database = new Database(here.path, { strict: true });
  // As any program must that shares the file: the worker ends what it is adding up, also when the history was closed.
  database.run("PRAGMA busy_timeout = 10000");
  try {
    return work(database);
  } finally {
    database.close();
  }
}

const rowsOnDisk = () => onFile((database) => database.query("SELECT * FROM requests ORDER BY id DESC").all() as Row[]);
/** The hours, or the days, that are added up. */
const addedUp = (length = 1) =>
  onFile((database) =>
    database
      .query<{ hour: number }, [number]>("SELECT hour FROM rollup_periods WHERE length = ? AND complete ORDER BY hour")
      .all(length),
  ).map(({ hour }) => hour);

let serial = 0;
function randomEntry({ below, pick, maybe }: Chance, at: number): Entry {
  serial += 1;
  const failed = maybe(0.1);
  return entry({
    request_id: `random-${serial}`,
    started_at_ms: at - below(20 * 60_000),
    duration_ms: below(10 ** (1 + below(6))),
    first_byte_ms: maybe(0.2) ? null : below(5_000),
    path: pick("/v1/messages", "/v1/chat/completions", ""),
    upstream_endpoint: pick("/responses", "/chat/completions", null),
    account_id: pick("ada", "bob", null),
    account_key: pick("github.com/ada", "ghe.example/ada", null),
    client_model: pick("claude", "gpt-5", "", "null", `made-up-${below(50)}`, null),
    upstream_model: pick("claude", "gpt-5", null),
    client_name: pick("codex/1", "curl/8", null),
    initiator: pick("user", "agent"),
    stream: pick(0, 1),
    http_status: failed ? pick(429, 502, 499) : 200,
    error_type: failed ? pick("rate_limit", "client_closed") : null,
    input_tokens: maybe(0.1) ? null : below(90_000),
    output_tokens: maybe(0.1) ? null : below(9_000),
    cached_tokens: maybe(0.4) ? null : below(9_000),
    cache_write_tokens: maybe(0.8) ? null : below(9_000),
    reasoning_tokens: maybe(0.8) ? null : below(9_000),
    ...pick(
      { cost: null, cost_unit: null },
      { cost: below(5_000_000_000), cost_unit: "credits" } as const,
      { cost: pick(0, 0.33, 0.25, 1, 10) * 1e9, cost_unit: "premium" } as const,
    ),
  });
}

/** The clock runs on, stands still, leaps ahead or goes back. */
function randomTimes({ below, pick, maybe }: Chance): () => number {
  let at = noon - 9 * day;
  return () => {
    at += below(60_000);
    if (maybe(0.005)) at += pick(hour, -hour, 2 * day, -day, 10 * 60_000);
    // No older than what is kept.
    at = Math.max(noon - 13 * day, Math.min(at, noon));
    return at;
  };
}

/** So many rows of random times, which go on with each call. */
function randomRows(chance: Chance) {
  const time = randomTimes(chance);
  return (count: number) => Array.from({ length: count }, () => randomEntry(chance, time()));
}

// ── What the rows alone say ──

const two = (value: number) => String(value).padStart(2, "0");
function labelOf(row: Row, dimension: Dimension): string | null {
  const date = new Date(row.started_at_ms);
  const dayOf = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  if (dimension === "day") return dayOf;
  if (dimension === "status_class") return `${Math.floor(row.http_status / 100)}xx`;
  if (dimension !== "hour") return row[dimension];
  const offset = -date.getTimezoneOffset();
  const [sign, size] = [offset < 0 ? "-" : "+", Math.abs(offset)];
  return `${dayOf}T${two(date.getHours())}:00${sign}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

const nameGroup = ({ key }: Pick<Group, "key">, by: Dimension[]) =>
  JSON.stringify(by.map((dimension) => key[dimension]));

async function expectAgreement(history: LocalHistory, filters: Filters, by: Dimension[]): Promise<void> {
  let rows = rowsOnDisk();
  let statistics = await history.statistics(filters, by);
  // A prune may run beside it.
  for (let now = rowsOnDisk(); now.length !== rows.length; now = rowsOnDisk()) {
    rows = now;
    statistics = await history.statistics(filters, by);
  }
  const { totals, groups, others } = statistics;
  const matching = rows.filter((row) => passes(row, filters));
  expectTotals(totals, matching);
  expect(others).toBeNull();
  const expected =
    by.length === 0 ? new Map() : Map.groupBy(matching, (row) => JSON.stringify(by.map((one) => labelOf(row, one))));
  expect(groups.map((group) => nameGroup(group, by)).sort()).toEqual([...expected.keys()].sort());
  for (const [at, group] of groups.entries()) {
    // The first and last groups, and some between.
    if (at > 5 && at % 29 !== 0 && at < groups.length - 3) continue;
    const members = expected.get(nameGroup(group, by))!;
    expectTotals(group, members);
    expect(rows.filter((row) => passes(row, group.filters)).length).toBe(members.length);
  }
}

async function expectPages(history: LocalHistory, filters: Filters, limit: number): Promise<void> {
  let rows: Row[];
  let found: Row[];
  do {
    rows = rowsOnDisk();
    found = [];
    let cursor: number | undefined;
    do {
      const { items, next_cursor_id } = await history.list(filters, limit, cursor);
      found.push(...items);
      cursor = next_cursor_id ?? undefined;
    } while (cursor !== undefined);
    // A prune may run beside it.
  } while (rowsOnDisk().length !== rows.length);
  const expected = rows.filter((row) => passes(row, filters));
  expect(found.map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
  expect(found.slice(0, 9)).toEqual(expected.slice(0, 9));
}

function randomFilters({ below, pick, maybe }: Chance, rows: Row[]): Filters {
  const sample = rows[below(Math.max(1, rows.length))];
  const filters: Filters = {};
  if (!sample) return filters;
  if (maybe(0.4)) {
    const name = pick(...nameColumns);
    filters[name] = maybe(0.1) ? "absent" : sample[name];
  }
  if (maybe(0.15)) filters.stream = pick(true, false);
  if (maybe(0.15)) filters.has_error = pick(true, false);
  if (maybe(0.1)) filters.status = pick(200, 429, 503);
  if (maybe(0.1)) filters.status_class = pick(2, 4, 5);
  if (maybe(0.4)) filters.from_ms = sample.started_at_ms - below(hour);
  if (maybe(0.3)) filters.to_ms = sample.started_at_ms + below(2 * day);
  return filters;
}

async function expectAllAgrees(history: LocalHistory, chance: Chance, rounds: number): Promise<void> {
  await expectAgreement(history, {}, []);
  for (let round = 0; round < rounds; round += 1) {
    const filters = randomFilters(chance, rowsOnDisk());
    const by = [chance.pick(...dimensions), chance.pick(...dimensions)].slice(0, chance.below(3));
    await expectAgreement(history, filters, [...new Set(by)]);
    await expectPages(history, randomFilters(chance, rowsOnDisk()), chance.pick(50, 700));
  }
}

// ── The tests ──

test.each(drawn("zones", ["UTC", "Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe"], 4))(
  "random rows, removals and clocks (%s): statistics and pages are those of the rows",
  async (name) => {
    process.env.TZ = name;
    const chance = openChance(name);
    const some = randomRows(chance);
    let history = open();
    // All rows may have been removed.
    const anId = () => chance.pick(0, ...rowsOnDisk().map(({ id }) => id));
    fill(history, some(proof ? 4_500 : 1_500));
    await history.prune();
    expect(addedUp().length).toBeGreaterThan(proof ? 20 : 8);
    expect(addedUp(24).length).toBeGreaterThan(0);
    const steps: (() => unknown)[] = [
      ...[1, 2].map(() => () => fill(history, some(1 + chance.below(900)))),
      () => fill(history, some(1)),
      () => {
        here.days = 6 + chance.below(4);
        return history.prune();
      },
      () => {
        here.rows = (proof ? 3_000 : 1_000) + chance.below(4_000);
        return history.prune();
      },
      // Another program removes rows, or changes some.
      () =>
        onFile((database) =>
          database.run("DELETE FROM requests WHERE id % 5 = 0 AND id BETWEEN ?1 AND ?1 + 90", [anId()]),
        ),
      () =>
        onFile((database) =>
          database.run("UPDATE requests SET input_tokens = 5 WHERE id BETWEEN ?1 AND ?1 + 9", [anId()]),
        ),
      () => {
        history.close();
        history = open();
      },
      // The machine moves; the hours on disk are then not those of its clock.
      () => {
        process.env.TZ = chance.pick("UTC", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe");
      },
    ];
    for (let step = 0; step < (proof ? 8 : 4); step += 1) {
      await chance.pick(...steps)();
      await expectAllAgrees(history, chance, proof ? 3 : 2);
    }
    await history.prune();
    await expectAllAgrees(history, chance, proof ? 8 : 4);
  },
);

test("hours and days are added up when they are over, and again after rows of them came, went or changed", async () => {
  const history = open();
  const hourOf = (at: number) => Math.floor(at / hour);
  const start = noon - 2 * day;
  const hours = Array.from({ length: 48 }, (_, at) => hourOf(start) + at);
  const yesterday = hourOf(start) - (hourOf(start) % 24) + 24;
  const rowsAt = (at: number, count = 3) => Array.from({ length: count }, () => ({ started_at_ms: at * hour + 1 }));
  fill(history, [...hours.flatMap((at) => rowsAt(at)), ...rowsAt(hourOf(noon))]);
  expect(addedUp()).toEqual([]);
  await history.prune();
  expect([addedUp(), addedUp(24)]).toEqual([hours.slice(0, -1), [yesterday - 24, yesterday]]);
  const touched = yesterday + 3;
  const id = (await history.list({ from_ms: touched * hour, to_ms: (touched + 1) * hour - 1 }, 1)).items[0]!.id;
  const changes: (() => void)[] = [
    () => fill(history, rowsAt(touched, 1)),
    () => onFile((database) => database.run("DELETE FROM requests WHERE id = ?", [id])),
    () => onFile((database) => database.run("UPDATE requests SET input_tokens = 5 WHERE id = ?", [id - 1])),
  ];
  for (const change of changes) {
    change();
    expect([addedUp().includes(touched), addedUp(24).includes(yesterday)]).toEqual([false, false]);
    await expectAgreement(history, {}, ["upstream_model"]);
    await history.prune();
    expect([addedUp(), addedUp(24)]).toEqual([hours.slice(0, -1), [yesterday - 24, yesterday]]);
    await expectAgreement(history, {}, ["upstream_model"]);
  }
});

test("what is added up is read in place of its rows", async () => {
  const history = open();
  const rows = Array.from({ length: 200 }, (_, at) => ({ started_at_ms: noon - day - at * 60_000 }));
  fill(history, rows);
  await history.prune();
  onFile((database) => database.run("UPDATE rollup SET requests = requests * 10"));
  const { groups } = await history.statistics({}, ["client_name"]);
  expect(groups[0]!.request_count).toBe(2_000);
});

test("an hour that another process begins to add up is completed by that one alone", async () => {
  const history = open();
  const at = Math.floor((noon - day) / hour);
  const rows = Array.from({ length: 50 }, (_, index) => ({ started_at_ms: at * hour + index }));
  fill(history, rows);
  const [one, other] = [new Database(here.path, { strict: true }), new Database(here.path, { strict: true })];
  for (const database of [one, other]) database.run("PRAGMA busy_timeout = 5000");
  await Promise.all([addUp(one, at, 1), addUp(other, at, 1)]);
  for (const database of [one, other]) database.close();
  expect(addedUp()).toEqual([at]);
  await expectAgreement(history, {}, ["path"]);
});

test("a day is not added up of hours to which rows have come since", async () => {
  const history = open();
  const at = Math.floor((noon - day) / hour / 24) * 24;
  fill(history, [{ started_at_ms: at * hour }]);
  await history.prune();
  fill(history, [{ started_at_ms: at * hour + 1 }]);
  const database = new Database(here.path, { strict: true });
  database.run("PRAGMA busy_timeout = 10000");
  await addUp(database, at, 24);
  database.close();
  expect(addedUp(24)).toEqual([]);
  await expectAgreement(history, {}, ["path"]);
});

test("a rollup made in another way is made again", async () => {
  const chance = openChance("another rollup");
  let history = open();
  fill(history, randomRows(chance)(800));
  await history.prune();
  history.close();
  onFile((database) => {
    database.run("DROP TABLE rollup; CREATE TABLE rollup (older); INSERT INTO rollup VALUES (1)");
  });
  history = open();
  expect(history.count()).toBe(800);
  expect(addedUp()).toEqual([]);
  await expectAllAgrees(history, chance, 2);
  await history.prune();
  expect(addedUp().length).toBeGreaterThan(0);
  await expectAllAgrees(history, chance, 2);
});

test("a bucket's value is at most 5 % from all that it counts, and exact up to 31 ms", () => {
  const starts = bucketStarts();
  const bucketOf = (ms: number) => starts.findLastIndex((start) => start <= ms) + 1;
  for (let ms = 0; ms < 32; ms += 1) expect(bucketValue(bucketOf(ms))).toBe(ms);
  for (let ms = 32; ms < 24 * hour; ms = Math.ceil(ms * 1.003)) {
    expect(Math.abs(bucketValue(bucketOf(ms)) - ms) / ms).toBeLessThanOrEqual(0.05);
    expect(bucketOf(ms + 1)).toBeGreaterThanOrEqual(bucketOf(ms));
  }
  expect(bucketOf(Number.MAX_SAFE_INTEGER)).toBe(255);
});
