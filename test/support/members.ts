/** Members of a team, made as an invitation and a sign-in make them. */
import { readEnvironment } from "../../src/config/environment";
import type { Member } from "../../src/keys/members";
import { createLogger } from "../../src/logger";
import { openPostgresStores, type PostgresStores } from "../../src/storage/postgres/stores";
import type { DemoAccount } from "../../src/upstream/demo/accounts";
import type { Team } from "./teams";

export interface TestMember extends Member {
  key: string;
  logins: string[];
}

/** The stores of a team, as a command opens them. */
export async function withTeamStores<T>(team: Team, work: (stores: PostgresStores) => Promise<T>): Promise<T> {
  const environment = readEnvironment({ HOME: "/nonexistent", ...team.env });
  const stores = await openPostgresStores(environment, { follow: false });
  try {
    return await work(stores);
  } finally {
    await stores.close();
  }
}

/** @param accounts What the member signs in; GitHub knows them from now on. */
export async function addMember(
  { members, openAccounts }: PostgresStores,
  team: Pick<Team, "demo">,
  name: string,
  accounts: readonly DemoAccount[],
): Promise<TestMember> {
  const { code } = await members.invite(name);
  const { member, key } = (await members.accept(code))!;
  const store = openAccounts(createLogger(() => "error"));
  for (const account of accounts) {
    const { login, githubToken } = account;
    team.demo.accounts.push(account);
    const mode = githubToken.startsWith("gho_") ? "direct" : "exchange";
    const signedIn = { login, host: "github.com", app: "vscode", githubToken, addedAt: Date.now() } as const;
    await store.add({ ...signedIn, mode, member: member.id });
  }
  return { ...member, key, logins: accounts.map(({ login }) => login) };
}
