/** PgBouncer in its transaction mode before a Postgres of a test: each transaction gets whichever connection is free. */
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port";
import { otherUser } from "./postgres";
import { until } from "./until";

export interface PgBouncer extends AsyncDisposable {
  /** The address of a database by way of it. @param url The database's own. */
  pooled(url: string): string;
  /** Ends it at once, and with it all its connections. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** Only within `describeWith("pgbouncer")`. @param url Of any database of the server. */
export async function startPgBouncer(url: string): Promise<PgBouncer> {
  const home = mkdtempSync(join(tmpdir(), "dragoman-pgbouncer-"));
  const identity = otherUser();
  const port = freePort();
  const { port: postgresPort, username } = new URL(url);
  const users = join(home, "users");
  writeFileSync(users, `"${username}" ""\n`);
  const config = join(home, "config");
  writeFileSync(
    config,
    `[databases]
* = host=127.0.0.1 port=${postgresPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = transaction
default_pool_size = 10
server_login_retry = 0.2
`,
  );
  if (identity) for (const path of [home, config, users]) chownSync(path, identity.uid, identity.gid);
  let running: Bun.Subprocess | undefined;
  const start = async () => {
    const within = identity ? ["setpriv", `--reuid=${identity.uid}`, `--regid=${identity.gid}`, "--clear-groups"] : [];
    running = Bun.spawn([...within, "pgbouncer", config], { stdout: "ignore", stderr: "ignore" });
    await until(() => listens(port), "PgBouncer listens");
  };
  const stop = async () => {
    running?.kill("SIGKILL");
    await running?.exited;
    running = undefined;
  };
  await start();
  return {
    pooled: (own) => Object.assign(new URL(own), { port: String(port) }).href,
    start,
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

function listens(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, "127.0.0.1", () => {
    socket.destroy();
    resolve(true);
  });
  socket.on("error", () => resolve(false));
  return promise;
}
