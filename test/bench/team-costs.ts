/** What a team's server costs its Postgres, measured on a real one that waits for its disk: `bun test/bench/scale.ts`. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { columnNames } from "../../src/books/history/entry";
import { budgetSchema } from "../../src/config/budget-schema";
import { readEnvironment } from "../../src/config/environment";
import { dayMs } from "../../src/lib/format";
import { TeamAccountSync } from "../../src/team/account-sync";
import type { Changes } from "../../src/team/changes";
import { insertRows } from "../../src/team/requests";
import { addUpPeriods } from "../../src/team/statistics";
import { openPostgresStores, type PostgresStores } from "../../src/team/stores";
import { credits } from "../support/amounts";
import { entry } from "../support/history-rows";
import { startPostgres } from "../support/postgres";
import { someQuota } from "../support/quota";
import { cpuOf } from "./statistics";
import type { Costs } from "./team-sizes";

const subject = { account: "anna", key: null, model: "gpt-5" };
const amounts = credits(1);

/** In about a minute. */
export async function measureCosts(): Promise<Omit<Costs, "requestCpu" | "memberBytes" | "membersPerSecond">> {
  await using postgres = await startPostgres({ durable: true });
  const home = mkdtempSync(join(tmpdir(), "dragoman-scale-"));
  const environment = readEnvironment({
    HOME: home,
    DRAGOMAN_HOME: home,
    DRAGOMAN_DATABASE_URL: await postgres.database(),
    DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64"),
  });
  const stores = await openPostgresStores(environment, { follow: false });
  try {
    const rows = await measureRows(stores);
    const budgets = await measureBudgets(stores);
    const states = await measureStates(stores);
    const accounts = await measureAccounts(stores);
    return { ...rows, ...budgets, ...states, ...accounts };
  } finally {
    await stores.close();
    rmSync(home, { recursive: true, force: true });
  }
}

/** Seconds of CPU of all processes of Postgres that run now. */
async function databaseCpu({ postgres: { sql } }: PostgresStores): Promise<number> {
  const [row] = await sql<{ data_directory: string }[]>`SHOW data_directory`;
  const postmaster = Number(readFileSync(join(row!.data_directory, "postmaster.pid"), "utf8").split("\n")[0]);
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && parentOf(name) === postmaster);
  return [postmaster, ...processes.map(Number)].reduce((sum, pid) => sum + cpuOf(pid), 0);
}

function parentOf(pid: string): number | undefined {
  try {
    return Number(
      readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ")[1],
    );
  } catch {
    return undefined; // it has ended
  }
}

/** Does the work, and says how long it took and how much CPU Postgres had of it, in seconds. */
async function timed(stores: PostgresStores, work: () => Promise<unknown>): Promise<{ seconds: number; cpu: number }> {
  const [cpu, start] = [await databaseCpu(stores), performance.now()];
  await work();
  const seconds = (performance.now() - start) / 1_000;
  return { seconds, cpu: (await databaseCpu(stores)) - cpu };
}

/** Works on numbers from 0 in so many lanes at once. */
async function inLanes(lanes: number, count: number, work: (at: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

async function measureRows(stores: PostgresStores) {
  const { postgres } = stores;
  const [batches, batch] = [150, 100];
  const rowAt = (at: number) => entry({ request_id: Bun.randomUUIDv7(), started_at_ms: Date.now() - at });
  await insertRows(postgres, [rowAt(0)], Date.now());
  const insert = await timed(stores, () =>
    inLanes(4, batches, () =>
      insertRows(
        postgres,
        Array.from({ length: batch }, (_, at) => rowAt(at)),
        Date.now(),
      ),
    ),
  );
  const count = batches * batch;
  const [size] = await postgres.sql<{ bytes: number }[]>`
    SELECT sum(pg_total_relation_size(inhrelid))::float8 AS bytes FROM pg_inherits
    WHERE inhparent = 'dragoman.requests'::regclass`;
  const history = stores.openHistory({
    retentionDays: () => 36_500,
    maxRows: () => Number.POSITIVE_INFINITY,
    warn: console.warn,
  });
  const copies = 9;
  for (let copy = 0; copy < copies; copy += 1) await copyRows(stores, count);
  const statistics = await timed(stores, () => history.statistics({}, ["session", "status_class"]));
  // As if the day of the rows were over.
  const addingUp = await timed(stores, () => addUpPeriods(stores.postgres, Date.now() + 2 * dayMs, () => true));
  history.close();
  return {
    rowCpu: micros(insert.cpu / count),
    rowsPerSecond: Math.round(count / insert.seconds),
    rowBytes: Math.round(size!.bytes / count),
    statisticsRowsPerSecond: Math.round((count * (copies + 1)) / statistics.seconds),
    addedUpPerSecond: Math.round((count * (copies + 1)) / addingUp.seconds),
  };
}

/** Adds as many rows again, in the database itself. */
async function copyRows({ postgres: { sql } }: PostgresStores, count: number): Promise<void> {
  const columns = columnNames.filter((name) => name !== "request_id").join(", ");
  await sql.unsafe(`INSERT INTO dragoman.requests (request_id, ${columns})
    SELECT gen_random_uuid()::text, ${columns} FROM dragoman.requests LIMIT ${count}`);
}

async function measureBudgets(stores: PostgresStores) {
  const ledger = stores.openLedger({ now: Date.now, warn: console.warn });
  const budgetAt = (at: number) =>
    budgetSchema().parse({ name: `b${at}`, unit: "credits", limit: 1e6, per: "month", then: "warn" });
  const request = async (at: number) => {
    const result = await ledger.reserve([budgetAt(at)], subject, amounts);
    if ("exceeded" in result) throw new Error("The budget was to be large enough.");
    await ledger.settle(result.reservation, amounts);
  };
  await request(0);
  const count = 2_000;
  const one = await timed(stores, () => inLanes(32, count, () => request(0)));
  const many = await timed(stores, () => inLanes(32, count, (at) => request(at % 500)));
  ledger.close();
  return {
    budgetCpu: micros(many.cpu / count),
    /** Requests a second that share one budget: its row is locked twice for each. */
    oneBudgetPerSecond: Math.round(count / one.seconds),
  };
}

async function measureStates(stores: PostgresStores) {
  const { postgres } = stores;
  const count = 1_500;
  const announce = await timed(stores, () =>
    inLanes(8, count, () => postgres.ask((sql) => sql`SELECT dragoman.announce_change('account_states')`)),
  );
  return { announceCpu: micros(announce.cpu / count), announcesPerSecond: Math.round(count / announce.seconds) };
}

async function measureAccounts(stores: PostgresStores) {
  const { postgres, seals } = stores;
  const count = 10_000;
  const sealed = Array.from({ length: count }, (_, at) => {
    const key = `github.com/user-${at}`;
    return {
      key,
      login: `user-${at}`,
      token: seals.seal(`ghu_${"0".repeat(36)}`, `github token of ${key}`).toString("hex"),
    };
  });
  await postgres.sql`INSERT INTO dragoman.accounts
      (key, host, login, app, mode, sign_in, sealed_token, added_at_ms, revision)
    SELECT key, 'github.com', login, 'vscode', 'exchange', 'x', decode(token, 'hex'), 1, 1
    FROM json_to_recordset(${JSON.stringify(sealed)}::text::json) AS given(key text, login text, token text)`;
  const openShare = () => {
    const server = crypto.randomUUID();
    return TeamAccountSync.open({ postgres, seals, changes: noChanges, server, logger: console as never });
  };
  const share = await openShare();
  const publish = async (from: number) => {
    for (const { key } of sealed.slice(from, from + 250)) share.publish({ key, signIn: "x" }, { quota: someQuota });
    await share.flush();
  };
  for (let from = 0; from < count; from += 250) await publish(from);
  const stored = await timed(stores, async () => {
    for (let from = 0; from < count; from += 250) await publish(from);
  });
  const readers: TeamAccountSync[] = [];
  const states = await timed(stores, async () => {
    for (let each = 0; each < 8; each += 1) readers.push(await openShare());
  });
  const nothing = await timed(stores, () => inLanes(2, 2_000, () => readers[0]!.readQuotas()));
  for (const each of [share, ...readers]) each.close();
  return {
    queryCpu: micros(nothing.cpu / 2_000),
    stateStoreCpu: micros(stored.cpu / count),
    stateReadCpu: micros(states.cpu / readers.length / count),
  };
}

/** A team of one server. */
export const noChanges = {
  follow() {},
  catchUp: async () => {},
  on: () => () => {},
} as unknown as Changes;

const micros = (seconds: number) => Math.round(seconds * 1e6);
