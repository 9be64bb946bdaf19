/**
 * `bun test/bench/scale.ts`: what teams of 10, 1,000 and 100,000 members need. Measures one server on SQLite and on Postgres,
 * two on Postgres, and what Postgres does in a second; then computes what each team needs by these costs.
 */
import { randomBytes } from "node:crypto";
import { SQL } from "bun";
import { readEnvironment } from "../../src/config/environment";
import { createLogger } from "../../src/logger";
import { openPostgresStores, type PostgresStores } from "../../src/storage/postgres/stores";
import { startPostgres } from "../support/postgres";
import { clientPath, modelOf, requestBody } from "./dialects";
import type { Times } from "./load";
import { load, newFolder, startDragoman, startUpstream, subjects } from "./processes";
import { cpuOf, machine } from "./statistics";
import { measureCosts, noChanges } from "./team-costs";
import { type Costs, teamSizesHead, teamSizesRows } from "./team-sizes";

const say = (...texts: string[]) => console.log(texts.join("\n"));
const round = (value: number, digits = 0) => Number(value.toFixed(digits)).toLocaleString("en");

const postgres = await startPostgres();
const upstream = await startUpstream();
try {
  say(machine(), "");
  const servers = await measureServers();
  const costs = { ...servers, ...(await measureMemory()), ...(await measureCosts()) };
  say("", "What Postgres does, waiting for its disk", JSON.stringify(costs, null, 2), "");
  for (const cells of [teamSizesHead, ...teamSizesRows(costs)]) say(cells.join(" | "));
} finally {
  await upstream.stop();
  await postgres[Symbol.asyncDispose]();
}
process.exit(0);

function databaseEnv(url: string): Record<string, string> {
  return { DRAGOMAN_DATABASE_URL: url, DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64") };
}

/** CPU of a small request, of each server. */
async function measureServers(): Promise<Pick<Costs, "requestCpu">> {
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
  return { requestCpu: requestCpuMs * 1_000 };
}

async function measureMemory(): Promise<Pick<Costs, "accountBytes">> {
  const url = await postgres.database();
  const environment = readEnvironment({ HOME: newFolder(), ...databaseEnv(url) });
  const stores = await openPostgresStores(environment, { follow: false });
  try {
    return await measureAccounts(stores, url);
  } finally {
    await stores.close();
  }
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return (performance.now() - begun) / 1_000;
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
  Bun.gc(true);
  const before = process.memoryUsage().rss;
  let kept: unknown;
  const took = await seconds(async () => {
    const store = await openPostgresAccounts(stores.postgres, stores.seals, noChanges, () => logger);
    const hosts = hostsFor(undefined, {} as never);
    kept = openActiveAccounts({ store, logger, open: (saved) => openAccount(saved, { hosts, version: "0", logger }) });
  });
  Bun.gc(true);
  const bytesPerAccount = (process.memoryUsage().rss - before) / count;
  (kept as { close(): void }).close();
  say(
    `accounts: ${round(count)} are ready after ${round(took, 2)} s, and take ${round(bytesPerAccount / 1024, 1)} KiB of memory each`,
  );
  return { accountBytes: bytesPerAccount };
}
