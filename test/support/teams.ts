/** Servers of a team: processes that share a Postgres, in front of the demo as GitHub and Copilot. */
import { randomBytes } from "node:crypto";
import { type DemoAccount, demoAccounts } from "../../src/upstream/demo/accounts";
import { type Demo, type DemoOptions, startDemo } from "../../src/upstream/demo/demo";
import { type Command, run } from "./command";
import { saveAccounts, withTeamStores } from "./members";
import type { PgBouncer } from "./pgbouncer";
import type { TestPostgres } from "./postgres";

export interface Team extends AsyncDisposable {
  demo: Demo;
  /** Signs the accounts in, or signs them in again. */
  signIn(accounts: readonly DemoAccount[]): Promise<void>;
  /** The environment of every server. */
  env: Record<string, string>;
  /**
   * Starts another server.
   * @param options.args More options of `dragoman start`.
   * @param options.home The data folder, if it is to outlive the server.
   */
  server(options?: { args?: string[]; env?: Record<string, string>; home?: string }): Promise<TeamServer>;
}

export interface TeamServer {
  url: string;
  port: number;
  command: Command;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  /** A JSON answer of the admin API. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the API answers
  admin(path: string, body?: unknown): Promise<any>;
}

/** Accounts whose tokens are exchanged, with plenty of quota. */
export const individuals = (...logins: string[]): DemoAccount[] =>
  logins.map((login) => ({
    ...demoAccounts()[0]!,
    login,
    githubToken: `ghu_DEMO${login.replaceAll("-", "").padEnd(32, "0")}`,
  }));

/** The environment of a new team's servers. */
export const teamEnv = (databaseUrl: string, demo: Demo) => ({
  DRAGOMAN_DATABASE_URL: databaseUrl,
  DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64"),
  DRAGOMAN_GITHUB_URL: demo.url,
  DRAGOMAN_GITHUB_API_URL: demo.url,
  DRAGOMAN_COPILOT_API_URL: demo.url,
});

/**
 * @param options.accounts Those that are signed in.
 * @param options.pooler Between the servers and the database.
 */
export async function startTeam(
  server: TestPostgres,
  {
    accounts = individuals("octo-demo"),
    pace = 0,
    pooler,
  }: Pick<DemoOptions, "accounts" | "pace"> & { pooler?: PgBouncer } = {},
): Promise<Team> {
  const demo = startDemo({ pace, accounts });
  const running: Command[] = [];
  const url = await server.database();
  const env = {
    ...teamEnv(pooler ? pooler.pooled(url) : url, demo),
    ...(pooler && { DRAGOMAN_DATABASE_DIRECT_URL: url }),
  };
  const signIn: Team["signIn"] = (each) => withTeamStores({ env }, (stores) => saveAccounts(stores, each));
  await signIn(accounts);
  return {
    demo,
    env,
    signIn,
    async server({ args = [], env: more = {}, home } = {}) {
      const folder: Record<string, string> = home === undefined ? {} : { DRAGOMAN_HOME: home };
      const command = run(["start", "--port", "0", "--json", ...args], { env: { ...env, ...more, ...folder } });
      running.push(command);
      const { url, port } = await command.ready(20_000);
      return {
        url,
        port,
        command,
        post: (path, body, headers = {}) =>
          fetch(url + path, {
            method: "POST",
            body: JSON.stringify(body),
            headers: { "content-type": "application/json", ...headers },
          }),
        async admin(path, body) {
          const token = more.ADMIN_TOKEN;
          const headers = { "content-type": "application/json", ...(token && { "x-admin-token": token }) };
          const init = body === undefined ? { headers } : { method: "POST", body: JSON.stringify(body), headers };
          return (await fetch(`${url}/api/admin${path}`, init)).json();
        },
      };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(running.map((command) => command[Symbol.asyncDispose]()));
      await demo.stop();
    },
  };
}
