/**
 * `bun test/bench/scale.ts`: what teams of 10, 1,000 and 100,000 members need. Measures one server on SQLite and on Postgres,
 * two on Postgres, and what the database does in a second; then simulates the working hour of each team with these costs.
 */
import { randomBytes } from "node:crypto";
import { SQL } from "bun";
import { budgetSchema } from "../../src/config/budget-schema";
import { readEnvironment } from "../../src/config/environment";
import { createLogger } from "../../src/logger";
import { openPostgresStores, type PostgresStores } from "../../src/storage/postgres/stores";
import { entry } from "../support/history-rows";
import { startPostgres } from "../support/postgres";
import { clientPath, modelOf, requestBody } from "./dialects";
import type { Times } from "./load";
import { load, newFolder, startDragoman, startUpstream, subjects } from "./processes";
import { type Costs, simulate } from "./simulation";
import { cpuOf, machine, quantile } from "./statistics";

const say = (...texts: string[]) => console.log(texts.join("\n"));
const round = (value: number, digits = 0) => Number(value.toFixed(digits)).toLocaleString("en");

const postgres = await startPostgres();
const upstream = await startUpstream();
try {
  say(machine(), "");
  const servers = await measureServers();
  const database = await measureDatabase();
  say("", "Simulated: the busiest hour of a working day", "");
  for (const members of [10, 1_000, 100_000]) {
    const { needs, breaks } = simulate({ members, costs: { ...servers, ...database } });
    say(`${round(members)} members`, ...needs.map((line) => `  ${line}`), ...breaks.map((line) => `  ! ${line}`), "");
  }
} finally {
  await upstream.stop();
  await postgres[Symbol.asyncDispose]();
}
process.exit(0);

function databaseEnv(url: string): Record<string, string> {
  return { DRAGOMAN_DATABASE_URL: url, DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64") };
}

/** CPU of a small request, of each server. */
async function measureServers(): Promise<Pick<Costs, "requestCpuMs">> {
  const request = { kind: "requests" as const, body: requestBody("chat", modelOf("chat"), false) };
  const measure = async (name: string, envs: Record<string, string>[]) => {
    const started = await Promise.all(envs.map((env) => startDragoman(subjects.dragoman!, upstream, newFolder(), env)));
    const jobs = (count: number) =>
      Promise.all(
        started.map(({ url }) => load<Times>({ ...request, url: url + clientPath.chat, connections: 32, count })),
      );
    await jobs(6_000);
    const [before, begun] = [started.map(({ pid }) => cpuOf(pid)), performance.now()];
    const times = await jobs(6_000);
    const seconds = (performance.now() - begun) / 1_000;
    const cpu = started.reduce((sum, { pid }, at) => sum + cpuOf(pid) - before[at]!, 0);
    const requests = 6_000 * envs.length;
    await Promise.all(started.map((each) => each.stop()));
    const requestCpuMs = (cpu / requests) * 1_000;
    say(
      `${name}: ${round(requestCpuMs * 1_000)} µs of CPU a request, ${round(requests / seconds)} a second, p50 ${round(times[0]!.p50, 1)} ms, p99 ${round(times[0]!.p99, 1)} ms`,
    );
    return requestCpuMs;
  };
  await measure("one server, SQLite", [{}]);
  const requestCpuMs = await measure("one server, Postgres", [databaseEnv(await postgres.database())]);
  const shared = databaseEnv(await postgres.database());
  await measure("two servers, Postgres, on one core together", [shared, shared]);
  return { requestCpuMs };
}

async function measureDatabase(): Promise<Omit<Costs, "requestCpuMs">> {
  const url = await postgres.database();
  const stores = await openPostgresStores(readEnvironment({ HOME: newFolder(), ...databaseEnv(url) }), {
    follow: true,
  });
  try {
    return {
      ...(await measureHistory(stores)),
      ...(await measureLedger(stores)),
      ...(await measureNotify(stores)),
      ...(await measureAccounts(stores, url)),
    };
  } finally {
    await stores.close();
  }
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return (performance.now() - begun) / 1_000;
}

async function measureHistory(stores: PostgresStores) {
  const warn = (sentence: string) => say(sentence);
  const history = stores.openHistory({ retentionDays: () => 14, maxRows: () => 1e9, warn });
  const now = Date.now();
  const write = async (count: number) => {
    for (let at = 0; at < count; at += 1) {
      const started_at_ms = now - (at % 14) * 86_400_000;
      history.add(entry({ started_at_ms, account_key: `github.com/m${at % 500}`, member: `m${at % 500}` }));
      if (at % 5_000 === 0) await history.flush();
    }
    await history.flush();
  };
  await write(2_000);
  const count = 100_000;
  const rowsPerSecond = count / (await seconds(() => write(count)));
  const [size] = await stores.postgres
    .sql`SELECT sum(pg_total_relation_size(inhrelid))::float8 AS bytes FROM pg_inherits
    WHERE inhparent = 'dragoman.requests'::regclass`;
  const bytesPerRow = size.bytes / (count + 2_000);
  const ask = async (work: () => Promise<unknown>) => {
    const taken: number[] = [];
    for (let times = 0; times < 5; times += 1) taken.push((await seconds(work)) * 1_000);
    return quantile(taken, 0.5);
  };
  await stores.postgres.sql.unsafe("ANALYZE dragoman.requests");
  const statisticsMs = await ask(async () => history.statistics({}, ["day", "upstream_model"]));
  const memberPageMs = await ask(async () => history.list({ member: "m7" }, 50));
  say(
    `history: ${round(rowsPerSecond)} rows a second by one server, ${round(bytesPerRow)} bytes a row with its indexes; of ${round(count)} rows: a page of one member ${round(memberPageMs, 1)} ms, statistics by day and model ${round(statisticsMs)} ms`,
  );
  history.close();
  return { rowsPerSecond, bytesPerRow, statisticsMsPerRow: statisticsMs / count };
}

async function measureLedger(stores: PostgresStores) {
  const ledger = stores.openLedger({ now: Date.now, warn: say });
  const budget = (name: string) => budgetSchema().parse({ name, unit: "requests", limit: 1e6, per: "month" });
  const subject = { account: "octo", key: "anna", model: "gpt-5", client: null, session: null };
  const amounts = { nanoCredits: null, premiumUnits: null };
  const run = async (of: (at: number) => ReturnType<typeof budget>, count: number) => {
    let next = 0;
    const worker = async () => {
      while (next < count) {
        const result = await ledger.reserve([of(next++)], subject, amounts);
        if ("reservation" in result) await ledger.settle(result.reservation, amounts);
      }
    };
    return count / (await seconds(() => Promise.all(Array.from({ length: 32 }, worker))));
  };
  const [shared, own] = [budget("team"), Array.from({ length: 500 }, (_, at) => budget(`m${at}`))];
  const sharedPerSecond = await run(() => shared, 5_000);
  const ownPerSecond = await run((at) => own[at % own.length]!, 5_000);
  say(
    `budgets, reserved and settled: ${round(sharedPerSecond)} requests a second on one budget, ${round(ownPerSecond)} on one for each member`,
  );
  ledger.close();
  return { budgetsPerSecond: sharedPerSecond, ownBudgetsPerSecond: ownPerSecond };
}

async function measureNotify(stores: PostgresStores) {
  const heard: number[] = [];
  const subscription = await stores.postgres.direct.listen("bench", (payload) => {
    heard.push(performance.now() - Number(payload));
  });
  const count = 3_000;
  const took = await seconds(async () => {
    for (let at = 0; at < count; at += 1)
      await stores.postgres.sql`SELECT pg_notify('bench', ${String(performance.now())})`;
    while (heard.length < count) await Bun.sleep(1);
  });
  await subscription.unlisten();
  say(
    `NOTIFY: ${round(count / took)} a second one after the other, heard after ${round(quantile(heard, 0.5), 2)} ms (p99 ${round(quantile(heard, 0.99), 2)} ms)`,
  );
  return { notifyPerSecond: count / took };
}

/** How long a server takes to start with many accounts, and what they take of its memory. */
async function measureAccounts(stores: PostgresStores, url: string) {
  const count = 20_000;
  const sql = new SQL(url, { max: 1 });
  const rows = Array.from({ length: count }, (_, at) => {
    const key = `github.com/member-${at}`;
    const sealed = stores.seals.seal(`ghu_${String(at).padStart(36, "0")}`, `github token of ${key}`);
    return { key, login: `member-${at}`, sealed: sealed.toString("hex"), at };
  });
  await sql`INSERT INTO dragoman.accounts (key, host, login, app, mode, sealed_token, seal_key_id, added_at_ms, revision)
    SELECT key, 'github.com', login, 'vscode', 'exchange', decode(sealed, 'hex'), ${stores.seals.keyId}, at, 1
    FROM json_to_recordset(${JSON.stringify(rows)}::text::json) AS given(key text, login text, sealed text, at bigint)`;
  await sql.close();
  const { openActiveAccounts } = await import("../../src/accounts/active-accounts");
  const { openAccount } = await import("../../src/accounts/account");
  const { hostsFor } = await import("../../src/accounts/hosts");
  const { openPostgresAccounts } = await import("../../src/storage/postgres/accounts");
  const logger = createLogger(() => "error");
  const changes = {
    follow() {},
    catchUp: async () => {},
    on() {},
    hear: async () => {},
    start: async () => {},
    close() {},
  };
  Bun.gc(true);
  const before = process.memoryUsage().rss;
  let kept: unknown;
  const took = await seconds(async () => {
    const store = await openPostgresAccounts(stores.postgres, stores.seals, changes, () => logger);
    const hosts = hostsFor(undefined, {} as never);
    kept = openActiveAccounts({ store, logger, open: (saved) => openAccount(saved, { hosts, version: "0", logger }) });
  });
  Bun.gc(true);
  const bytesPerAccount = (process.memoryUsage().rss - before) / count;
  (kept as { close(): void }).close();
  say(
    `accounts: ${round(count)} are ready after ${round(took, 2)} s, and take ${round(bytesPerAccount / 1024, 1)} KiB of memory each`,
  );
  return { accountStartMs: (took * 1_000) / count, accountBytes: bytesPerAccount };
}
