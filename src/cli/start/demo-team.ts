/** The team of `start --demo --team`: three members with accounts, keys and a past, and an invitation for whoever looks. */
import type { Stores } from "../../books/stores";
import { savedDemoAccount } from "../../people/accounts/memory-account-store";
import type { ChangedLimits } from "../../people/keys/member-fields";
import type { Members } from "../../people/keys/members";
import { type Tool, tools } from "./demo-past";

interface Person {
  limits?: ChangedLimits;
  /** Tools of the past by the names of their clients, and how many sessions a day each has. */
  sessions: Record<string, number>;
}

const [claudeCode, codex, openCode] = ["claude-cli", "codex_cli_rs", "opencode"] as const;

const people: Record<string, Person> = {
  anna: { sessions: { [claudeCode]: 2, [codex]: 1 } },
  ben: { sessions: { [claudeCode]: 5 } },
  carla: { limits: { models: ["gemini-*"], key_days: 90 }, sessions: { [openCode]: 2 } },
};

/** Guests have an account at the simulated GitHub, and have not signed in yet. */
export const teamNames = { guests: ["guest", "guest-two", "guest-three"], members: Object.keys(people) };

export interface SimulatedAccounts {
  accounts: readonly { login: string; githubToken: string }[];
  /** Of each sign-in, in order. */
  signIns: { login: string; githubToken: string }[];
}

/**
 * Saves the accounts and makes the members, unless there is a team: it stays, with what was changed in it.
 * @param demo The simulated GitHub: it gets to know who has signed in.
 * @returns The tools of those who were made.
 */
export async function makeTeam(
  { accounts: store, members }: Stores,
  { accounts, signIns }: SimulatedAccounts,
): Promise<Tool[]> {
  const saved = new Set(store.load().map(({ login }) => login));
  signIns.push(...accounts.filter(({ login }) => saved.has(login)));
  if (!members || members.needKeys) return [];
  const own: Tool[] = [];
  const owners = new Map<string, string>();
  for (const [name, { limits, sessions }] of Object.entries(people)) {
    const { member, code } = await members.invite(name, limits);
    const accepted = await members.accept(code);
    const account = loginOf(name);
    owners.set(account, member.id);
    for (const tool of tools) {
      const count = sessions[tool.client.split("/")[0]!];
      if (count === undefined || !accepted) continue;
      own.push({ ...tool, account, member: member.id, key: `${name}/${accepted.name}`, sessions: count });
    }
  }
  const guests = teamNames.guests.map(loginOf);
  for (const [index, account] of accounts.entries())
    if (!guests.includes(account.login))
      await store.add({ ...savedDemoAccount(account, index), member: owners.get(account.login) });
  return own;
}

const loginOf = (name: string) => `${name}-demo`;

/** The path of a new link, which lets somebody be a member. */
export const inviteGuest = async (members: Pick<Members, "invite">): Promise<string> =>
  `/admin/join/${(await members.invite(teamNames.guests[0]!)).code}`;
