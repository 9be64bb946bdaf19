/** Members of a team, made as an invitation and a sign-in make them. */

import { join } from "node:path";
import { readEnvironment } from "../../src/config/environment";
import type { DemoAccount } from "../../src/demo/accounts";
import type { Statement, Tables } from "../../src/lib/sql";
import { SqliteTables } from "../../src/lib/sqlite-tables";
import { openStores } from "../../src/parts/open-stores";
import { type MemberLimits, memberFieldNames } from "../../src/people/keys/member-fields";
import type { Member } from "../../src/people/keys/members";
import { Postgres } from "../../src/team/connection";
import { PostgresTables } from "../../src/team/postgres-tables";
import type { PostgresStores } from "../../src/team/stores";
import type { Team, TeamServer } from "./teams";
import { until } from "./until";

/** What the owner may set of a member, none of it set. */
export const noLimits = Object.fromEntries(memberFieldNames.map((name) => [name, null])) as unknown as MemberLimits;

/** A member made by hand, where nothing asks a database. */
export const member = (given: Partial<Member> = {}): Member => ({
  ...{ id: "m1", name: "anna", createdAt: 0, ...noLimits },
  ...given,
});

export interface TestMember extends Member {
  key: string;
  logins: string[];
}

/** The stores of a team, as a command opens them. Those in a folder have no `postgres`. */
export async function withTeamStores<T>(
  team: Pick<Team, "env">,
  work: (stores: PostgresStores) => Promise<T>,
): Promise<T> {
  const environment = readEnvironment({ HOME: "/nonexistent", ...team.env });
  const stores = (await openStores(environment, { follow: false })) as PostgresStores;
  try {
    return await work(stores);
  } finally {
    await stores.close();
  }
}

/** Asks the tables of members behind the back of the servers. */
export async function askTables<Row>(team: Pick<Team, "env">, question: (tables: Tables) => Statement): Promise<Row[]> {
  const { DRAGOMAN_DATABASE_URL: url, DRAGOMAN_HOME: home } = team.env;
  if (url === undefined) {
    const content = { name: "file of members", consequence: "a test fails" };
    const tables = new SqliteTables(join(home!, "members.sqlite"), { migrations: [() => {}], content, warn() {} });
    const rows = await tables.ask<Row>(question(tables));
    tables.close();
    return rows;
  }
  const postgres = new Postgres({ url });
  const tables = new PostgresTables(postgres);
  const rows = await tables.ask<Row>(question(tables));
  await postgres.close();
  return rows;
}

/** A chat request by a key. */
export const askAs = (server: TeamServer, { key }: { key: string }, content = "Hello", more: object = {}) =>
  server.post(
    "/v1/chat/completions",
    { model: "gpt-5-mini", messages: [{ role: "user", content }], ...more },
    { "x-api-key": key },
  );

/** Waits until servers know keys that others made. Until one knows of any key, it serves everybody on this machine. */
export async function untilKnown(servers: readonly TeamServer[], keys: readonly { key: string }[]): Promise<void> {
  for (const server of servers) {
    const statusOf = async (key: string) =>
      (await fetch(`${server.url}/v1/models`, { headers: { "x-api-key": key } })).status;
    await until(async () => (await statusOf("dgm_nobody")) === 401, "the server serves nobody without a key");
    for (const { key } of keys) await until(async () => (await statusOf(key)) === 200, "the server knows the key");
  }
}

/** @param accounts What the member signs in; GitHub knows them from now on. */
export async function addMember(
  stores: PostgresStores,
  team: Pick<Team, "demo">,
  name: string,
  accounts: readonly DemoAccount[],
): Promise<TestMember> {
  const { code } = await stores.members.invite(name);
  const { member, key } = (await stores.members.accept(code))!;
  team.demo.accounts.push(...accounts);
  await saveAccounts(stores, accounts, member.id);
  return { ...member, key, logins: accounts.map(({ login }) => login) };
}

/** Saves accounts in the database, as sign-ins do. @param member The id of the member whose they are; missing for the owner's. */
export async function saveAccounts(
  stores: PostgresStores,
  accounts: readonly DemoAccount[],
  member?: string,
): Promise<void> {
  const store = stores.accounts;
  for (const { login, githubToken } of accounts) {
    const mode = githubToken.startsWith("gho_") ? "direct" : "exchange";
    const signedIn = { login, host: "github.com", app: "vscode", githubToken, addedAt: Date.now() } as const;
    await store.add({ ...signedIn, mode, ...(member && { member }) });
  }
}
