/**
 * One Postgres for all test files of a run that need only databases of their own. `test/run.ts` starts it; a file that runs
 * without that has one of its own.
 */
import { afterAll, beforeAll } from "bun:test";
import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { freePort } from "./free-port";
import {
  addressAt,
  administerAt,
  commandOf,
  createDatabase,
  dataWithTables,
  describeWithPostgres,
  folderWith,
  missing,
  otherUser,
  startPostgres,
  type TestPostgres,
  untilAgrees,
} from "./postgres";
import { quickest } from "./quickest";
import { startTcpFront } from "./tcp-front";

/** Databases of a server that other test files use too: it is neither stopped nor changed as a whole. */
export type TestDatabases = Pick<TestPostgres, "port" | "database" | "administer"> & AsyncDisposable;

const variable = "DRAGOMAN_TEST_POSTGRES_PORT";

/** Tests with databases of the run's Postgres, which are dropped after them. @param body Gets what is there when the tests run. */
export const describeWithDatabases = (name: string, body: (databases: TestDatabases) => void): void =>
  describeWithStarted(name, sharedPostgres, body);

/** They go away with `stop`, as a Postgres does: only by the addresses that `database` gives. */
type PassingDatabases = TestDatabases & Pick<TestPostgres, "stop" | "start">;

/** Tests with databases of the run's Postgres that go away. */
export const describeWithPassingDatabases = (name: string, body: (databases: PassingDatabases) => void): void =>
  describeWithStarted(name, passingDatabases, body);

async function passingDatabases(): Promise<PassingDatabases> {
  const postgres = await sharedPostgres();
  const front = await startTcpFront(postgres.port);
  let isThere = true;
  return {
    ...postgres,
    async database(options) {
      const url = new URL(await postgres.database(options));
      url.port = String(front.port);
      return url.href;
    },
    async stop() {
      isThere = false;
      await front.refuse();
    },
    async start() {
      if (!isThere) await front.accept();
      isThere = true;
    },
    async [Symbol.asyncDispose]() {
      if (isThere) await front[Symbol.asyncDispose]();
      await postgres[Symbol.asyncDispose]();
    },
  };
}

/** Tests with a Postgres of their own, for those that change its settings or look into its files. */
export const describeWithOwnPostgres = (name: string, body: (postgres: TestPostgres) => void): void =>
  describeWithStarted(name, startPostgres, body);

function describeWithStarted<T extends AsyncDisposable>(
  name: string,
  start: () => Promise<T>,
  body: (started: T) => void,
): void {
  describeWithPostgres(name, () => {
    let started: T;
    beforeAll(async () => {
      started = await start();
    });
    body(new Proxy({} as T, { get: (_, member) => Reflect.get(started, member) }));
    afterAll(() => started[Symbol.asyncDispose]());
  });
}

/** Its databases are dropped when it is disposed of. */
export async function sharedPostgres(): Promise<TestDatabases> {
  const given = process.env[variable];
  if (given === undefined) return startPostgres();
  const port = Number(given);
  const made: string[] = [];
  // One connection costs Postgres as much as two databases do.
  const sql = new SQL(addressAt(port), { max: 1 });
  return {
    port,
    async database(options) {
      const name = `test_${crypto.randomUUID().replaceAll("-", "")}`;
      made.push(name);
      await sql.unsafe(createDatabase(name, options));
      return addressAt(port, name);
    },
    administer: (statements, url = addressAt(port)) => administerAt(url, statements),
    async [Symbol.asyncDispose]() {
      for (const name of made.splice(0)) await sql.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await sql.close();
    },
  };
}

/**
 * Ends the server and removes its folder when nobody holds the other end of its input any more: that is so after a Ctrl+C, and after
 * the run was killed.
 */
const keeper = `"$@" & server=$!
cat > /dev/null
kill -QUIT $server
wait $server
rm -rf "$FOLDER"`;

/** @returns What a test process needs in its environment to find it; nothing where there is no Postgres. */
export async function serveSharedPostgres(): Promise<{ env: Record<string, string> } & AsyncDisposable> {
  if (missing() !== undefined) return { env: {}, [Symbol.asyncDispose]: async () => {} };
  const identity = otherUser();
  const folder = folderWith(await dataWithTables(identity), identity, quickest());
  const port = freePort();
  const more = { max_connections: String(100 * (availableParallelism() + 1)) };
  const command = commandOf(identity, { data: join(folder, "data"), port, more });
  // In a session of its own, so that a Ctrl+C does not end the keeper before the server.
  const kept = spawn("/bin/sh", ["-c", keeper, "sh", ...command], {
    ...identity,
    cwd: folder,
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    env: { PATH: process.env.PATH, FOLDER: folder },
  });
  const ended = new Promise((resolve) => kept.once("exit", resolve));
  await untilAgrees(addressAt(port));
  return {
    env: { [variable]: String(port) },
    async [Symbol.asyncDispose]() {
      kept.stdin!.end();
      await ended;
    },
  };
}
