/**
 * `bun test/bench/scale.ts`: what teams of 10, 1,000 and 100,000 members need. Measures one server on SQLite and on Postgres,
 * two on Postgres, and what Postgres does in a second; then computes what each team needs by these costs.
 */
import { randomBytes } from "node:crypto";
import { SQL } from "bun";
import { readEnvironment } from "../../src/config/environment";
import { createLogger } from "../../src/lib/logger";
import { Account } from "../../src/people/accounts/account";
import type { SavedAccount } from "../../src/people/accounts/account-store";
import { signInOf } from "../../src/people/accounts/account-sync";
import { openActiveAccounts } from "../../src/people/accounts/active-accounts";
import { hostsFor } from "../../src/people/accounts/hosts";
import { AccessTokens } from "../../src/people/keys/access-tokens";
import { TeamAccountSync } from "../../src/team/account-sync";
import { TeamAccounts } from "../../src/team/accounts";
import { openMembers } from "../../src/team/members";
import { openPostgresStores, type PostgresStores } from "../../src/team/stores";
import { startPostgres } from "../support/postgres";
import { someQuota } from "../support/quota";
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

/** CPU of a small request, of each server: the median of five windows. */
async function measureServers(): Promise<Pick<Costs, "requestCpu">> {
  const request = { kind: "requests" as const, body: requestBody("chat", modelOf("chat"), false) };
  const measure = async (name: string, envs: Record<string, string>[]) => {
    const started = await Promise.all(envs.map((env) => startDragoman(subjects.source, upstream, newFolder(), env)));
    const jobs = (count: number) =>
      Promise.all(
        started.map(({ url }) => load<Times>({ ...request, url: url + clientPath.chat, connections: 32, count })),
      );
    await jobs(12_000);
    const windows: { cpuMs: number; perSecond: number; times: Times }[] = [];
    for (let window = 0; window < 5; window += 1) {
      const [before, begun] = [started.map(({ pid }) => cpuOf(pid)), performance.now()];
      const [times] = await jobs(4_000);
      const seconds = (performance.now() - begun) / 1_000;
      const cpu = started.reduce((sum, { pid }, at) => sum + cpuOf(pid) - before[at]!, 0);
      const requests = 4_000 * envs.length;
      windows.push({ cpuMs: (cpu / requests) * 1_000, perSecond: requests / seconds, times: times! });
    }
    windows.sort((one, other) => one.cpuMs - other.cpuMs);
    await Promise.all(started.map((each) => each.stop()));
    const { cpuMs, perSecond, times } = windows[2]!;
    say(
      `${name}: ${round(cpuMs * 1_000)} µs of CPU a request, ${round(perSecond)} a second, p50 ${round(times.p50, 1)} ms, p99 ${round(times.p99, 1)} ms`,
    );
    return cpuMs;
  };
  await measure("one server, SQLite", [{}]);
  const requestCpuMs = await measure("one server, Postgres", [databaseEnv(await postgres.database())]);
  const shared = databaseEnv(await postgres.database());
  await measure("two servers, Postgres, on one core together", [shared, shared]);
  return { requestCpu: requestCpuMs * 1_000 };
}

async function measureMemory(): Promise<Pick<Costs, "memberBytes" | "membersPerSecond">> {
  const url = await postgres.database();
  const environment = readEnvironment({ HOME: newFolder(), ...databaseEnv(url) });
  const stores = await openPostgresStores(environment, { follow: false });
  try {
    return await measureMembers(stores, url);
  } finally {
    await stores.close();
  }
}

/** How long a server takes to read a team, and what each member takes of its memory. */
async function measureMembers({ postgres, seals }: PostgresStores, url: string) {
  const count = 20_000;
  const sql = new SQL(url, { max: 1 });
  const rows = Array.from({ length: count }, (_, at) => {
    const [key, token] = [`github.com/member-${at}`, `ghu_${String(at).padStart(36, "0")}`];
    const sealed = seals.seal(token, `github token of ${key}`).toString("hex");
    return { id: crypto.randomUUID(), key, login: `member-${at}`, sealed, sign_in: signInOf(token), at };
  });
  const json = JSON.stringify(rows);
  const given = "AS given(id uuid, key text, login text, sealed text, sign_in text, at bigint)";
  const from = `FROM json_to_recordset($1::text::json) ${given}`;
  await sql.unsafe(`INSERT INTO dragoman.members (id, name, created_at_ms, revision) SELECT id, login, at, 1 ${from}`, [
    json,
  ]);
  await sql.unsafe(
    `INSERT INTO dragoman.keys (sha256, member, name, created_at_ms, revision)
      SELECT sha256(login::bytea), id, 'laptop', at, 1 ${from}`,
    [json],
  );
  await sql.unsafe(
    `INSERT INTO dragoman.accounts
        (key, host, login, member, app, mode, sign_in, sealed_token, added_at_ms, revision)
      SELECT key, 'github.com', login, id, 'vscode', 'exchange', sign_in, decode(sealed, 'hex'), at, 1 ${from}`,
    [json],
  );
  await sql.unsafe(
    `INSERT INTO dragoman.account_states (account, sign_in, quota, revision)
      SELECT key, sign_in, $2::text::jsonb, 1 ${from}`,
    [json, JSON.stringify(someQuota)],
  );
  await sql.close();
  const logger = createLogger(() => "error");
  const parts = { postgres, seals, changes: noChanges, logger };
  const hosts = hostsFor(undefined, {} as never);
  Bun.gc(true);
  const before = process.memoryUsage().rss;
  const begun = performance.now();
  const { members } = await openMembers(parts, new AccessTokens(() => []), false);
  const sync = await TeamAccountSync.open({ ...parts, server: crypto.randomUUID() });
  const store = await TeamAccounts.open({ postgres, seals, changes: noChanges, logger });
  const open = (saved: SavedAccount) => new Account(saved, { hosts, version: "0", logger, sync });
  const active = openActiveAccounts({ store, logger, sync, open });
  const seconds = (performance.now() - begun) / 1_000;
  Bun.gc(true);
  const memberBytes = Math.round((process.memoryUsage().rss - before) / count);
  if (members.list().length !== count || active.accounts.length !== count) throw new Error("Some were not read.");
  for (const each of [sync, active]) each.close();
  say(
    `members: ${round(count)} with a key, an account and its quota are read after ${round(seconds, 2)} s, and take ${round(memberBytes / 1024, 1)} KiB of memory each`,
  );
  return { memberBytes, membersPerSecond: Math.round(count / seconds) };
}
