/** Servers of a team, which share a Postgres, in front of the demo as GitHub and Copilot: in this process, or as processes. */
import { describe } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../package.json";
import { awaken } from "../../src/cli/start/awaken";
import { keepAccountsKnown } from "../../src/cli/start/upkeep";
import { readEnvironment } from "../../src/config/environment";
import { type DemoAccount, demoAccounts } from "../../src/demo/accounts";
import { type Demo, type DemoOptions, startDemo } from "../../src/demo/demo";
import { openTrustedProxies } from "../../src/lib/net/in/trusted-proxies";
import { openApp } from "../../src/parts/open-app";
import { openStores } from "../../src/parts/open-stores";
import { listen } from "../../src/server";
import { type Command, run } from "./command";
import { addMember, saveAccounts, type TestMember, withTeamStores } from "./members";
import type { PgBouncer } from "./pgbouncer";
import { quickest } from "./quickest";
import { drawn } from "./random";
import { describeWithDatabases, type TestDatabases } from "./shared-postgres";
import { sharedTokenizer } from "./tokenizer";

export interface Team extends AsyncDisposable {
  demo: Demo;
  /** Signs the accounts in, or signs them in again. */
  signIn(accounts: readonly DemoAccount[]): Promise<void>;
  /** A member with accounts of these logins, made as an invitation and a sign-in make them. */
  addMember(name: string, ...logins: string[]): Promise<TestMember>;
  /** Several, with the logins of each, by their names. */
  addMembers<Name extends string>(members: Record<Name, string[]>): Promise<Record<Name, TestMember>>;
  /** The environment of every server. */
  env: Record<string, string>;
  /**
   * Starts another server, in this process: its requests count for the most that Bun's client sends at a time.
   * @param options.trustedProxies As `--trust-proxy` names them.
   */
  server(options?: { env?: Record<string, string>; trustedProxies?: string[] }): Promise<TeamServer>;
  /**
   * Starts another server as a process of its own: where it gets signals, runs hundreds of requests at a time, or is measured.
   * @param options.args More options of `dragoman start`.
   * @param options.home The data folder, if it is to outlive the server.
   */
  process(options?: { args?: string[]; env?: Record<string, string>; home?: string }): Promise<TeamProcess>;
}

/** Stops when it is disposed of, or with its team. */
export interface TeamServer extends AsyncDisposable {
  url: string;
  port: number;
  /** Its log so far. */
  said(): string;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  /** A JSON answer of the admin API. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the API answers
  admin(path: string, body?: unknown): Promise<any>;
}

export interface TeamProcess extends TeamServer {
  command: Command;
}

/** A chat request. */
export const chatBody = (content: string, more = {}) => ({
  ...{ model: "gpt-5-mini", messages: [{ role: "user", content }] },
  ...more,
});

/** Accounts whose tokens are exchanged, with plenty of quota. */
export const individuals = (...logins: string[]): DemoAccount[] =>
  logins.map((login) => ({
    ...demoAccounts()[0]!,
    login,
    githubToken: `ghu_DEMO${login.replaceAll("-", "").padEnd(32, "0")}`,
  }));

/** Where a team is kept: in a database, for any number of servers, or in a data folder, for one. */
export type TeamPlace = TestDatabases | "folder";

/**
 * The same tests where members are kept in a data folder, and where they are in Postgres: a run of the check has one of the two. That
 * both keep the same promises is proven by `team/contract.test.ts`.
 */
export function describeWithMembers(name: string, body: (place: TeamPlace) => void): void {
  const inFolder = () => describe(`${name}, in a data folder`, () => body("folder"));
  for (const there of drawn(name, [inFolder, () => describeWithDatabases(`${name}, in Postgres`, body)], 2)) there();
}

/** What a new team is kept in: its variables. @param place A text is the address of a database. */
export const placeOf = async (place: TeamPlace | string): Promise<Record<string, string>> =>
  place === "folder"
    ? { DRAGOMAN_HOME: mkdtempSync(join(quickest(), "dragoman-")) }
    : {
        DRAGOMAN_DATABASE_URL: typeof place === "string" ? place : await place.database(),
        DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64"),
      };

/** The environment of a new team's servers. */
export const upstreamEnv = (demo: Demo) => ({
  DRAGOMAN_GITHUB_URL: demo.url,
  DRAGOMAN_GITHUB_API_URL: demo.url,
  DRAGOMAN_COPILOT_API_URL: demo.url,
});

/**
 * @param options.accounts Those that are signed in.
 * @param options.pooler Between the servers and the database.
 */
export async function startTeam(
  place: TeamPlace,
  {
    accounts = individuals("octo-demo"),
    pace = 0,
    pooler,
  }: Pick<DemoOptions, "accounts" | "pace"> & { pooler?: PgBouncer } = {},
): Promise<Team> {
  const demo = startDemo({ pace, accounts });
  const running: AsyncDisposable[] = [];
  const kept = await placeOf(place);
  const url = kept.DRAGOMAN_DATABASE_URL;
  const env: Record<string, string> = {
    ...upstreamEnv(demo),
    ...kept,
    ...(pooler && url && { DRAGOMAN_DATABASE_URL: pooler.pooled(url), DRAGOMAN_DATABASE_DIRECT_URL: url }),
  };
  let only: (TeamServer & { refreshAccounts(): void }) | undefined;
  const signIn: Team["signIn"] = (each) => withTeamStores({ env }, (stores) => saveAccounts(stores, each));
  const addMembers: Team["addMembers"] = (members) =>
    withTeamStores({ env }, async (stores) => {
      const added = { ...members } as Record<string, unknown>;
      for (const [name, logins] of Object.entries<string[]>(members))
        added[name] = await addMember(stores, { demo }, name, individuals(...logins));
      // It looks into its folder once a second.
      only?.refreshAccounts();
      return added as Record<keyof typeof members, TestMember>;
    });
  await signIn(accounts);
  return {
    ...{ demo, env, signIn, addMembers },
    addMember: async (name, ...logins) => (await addMembers({ [name]: logins }))[name]!,
    async server({ env: more = {}, trustedProxies } = {}) {
      // One server has a folder.
      if (only) return only;
      const opened = await openServer({ ...env, ...more }, trustedProxies);
      running.push(opened);
      const server = { ...opened, ...callsOf(opened.url, more.ADMIN_TOKEN) };
      if (place === "folder") only = server;
      return server;
    },
    async process({ args = [], env: more = {}, home } = {}) {
      const folder: Record<string, string> = home === undefined ? {} : { DRAGOMAN_HOME: home };
      const command = run(["start", "--port", "0", "--json", ...args], { env: { ...env, ...more, ...folder } });
      running.push(command);
      const { url, port } = await command.ready();
      const said = command.stderr;
      const stop = () => command[Symbol.asyncDispose]();
      return { url, port, command, said, ...callsOf(url, more.ADMIN_TOKEN), [Symbol.asyncDispose]: stop };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(running.map((each) => each[Symbol.asyncDispose]()));
      await demo.stop();
      if (place === "folder") rmSync(env.DRAGOMAN_HOME!, { recursive: true, force: true });
    },
  };
}

function callsOf(url: string, token?: string): Pick<TeamServer, "post" | "admin"> {
  return {
    post: (path, body, headers = {}) =>
      fetch(url + path, {
        method: "POST",
        body: JSON.stringify(body),
        headers: { "content-type": "application/json", ...headers },
      }),
    async admin(path, body) {
      const headers = { "content-type": "application/json", ...(token && { "x-admin-token": token }) };
      const init = body === undefined ? { headers } : { method: "POST", body: JSON.stringify(body), headers };
      return (await fetch(`${url}/api/admin${path}`, init)).json();
    },
  };
}

/** What `dragoman start` opens. */
async function openServer(env: Record<string, string>, trustedProxies?: string[]) {
  const home = mkdtempSync(join(quickest(), "dragoman-"));
  const environment = readEnvironment({ HOME: home, DRAGOMAN_HOME: home, ...env });
  const lines: string[] = [];
  const stores = await openStores(environment, { follow: true, write: (line) => void lines.push(line) });
  const app = openApp({
    environment,
    stores,
    version,
    tokenizer: sharedTokenizer(),
    ...(trustedProxies && { trustedProxies: openTrustedProxies(trustedProxies) }),
  });
  const listening = listen(app, 0);
  void awaken(app);
  void keepAccountsKnown(app);
  let stopped: Promise<void> | undefined;
  const stop = async () => {
    listening.close();
    app.close();
    await stores.close();
    rmSync(home, { recursive: true, force: true });
  };
  return {
    url: listening.url,
    port: listening.port,
    said: () => lines.join(""),
    refreshAccounts: app.refreshAccounts,
    [Symbol.asyncDispose]: () => (stopped ??= stop()),
  };
}
