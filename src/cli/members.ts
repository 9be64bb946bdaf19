/** `dragoman member add`, `set`, `withdraw`, `ls` and `rm`: directly in the data folder or the database, which servers ask. */
import { z } from "zod";
import type { Stores } from "../books/stores";
import type { Environment } from "../config/environment";
import { keyName } from "../config/key-schema";
import { ago, formatCount, plural, utcDay } from "../lib/format";
import { costInWords } from "../lib/money";
import { isLoopbackUrl } from "../lib/net/address";
import { type ChangedLimits, memberFields, memberLimitsSchema } from "../people/keys/member-fields";
import { type MemberItem, memberList, memberTrouble } from "../people/keys/member-list";
import type { Members } from "../people/keys/members";
import { table } from "./layout";
import type { ListOptions } from "./list-command";
import { serverOf } from "./running-server";
import { mayRemove, print, printJson, say } from "./terminal";
import { readOptions, UsageError } from "./usage-error";
import { withStores } from "./with-stores";

interface MemberOptions {
  environment: Environment;
}

/** It has the options of the rows of `memberFields` too. */
interface LimitOptions extends MemberOptions {
  name: string;
}

/** Prints the link, and nothing else, on stdout. */
export async function memberAdd(options: LimitOptions & { url?: string }): Promise<number> {
  const { environment, name } = options;
  const origin = originOf(environment, options.url);
  const limits = readLimits(options);
  readOptions(z.object({ name: keyName }), { name }, { name: "The member's name" });
  const invited = await withTeam(environment, ({ members }) => members.invite(name, limits));
  const { member, code, expiresAt, isKnown } = invited;
  say(
    isKnown
      ? `${member.name} is a member already. This link gives them another key, and an earlier link that was not used no longer works.`
      : `${member.name} is invited. From now on, every client must send a key.`,
    `The link works once, until ${utcDay(expiresAt)}. Give it to this person only.`,
    ...(isLoopbackUrl(origin)
      ? [
          "It begins with the address of this machine. For somebody elsewhere give theirs: --url https://dragoman.example.",
        ]
      : []),
  );
  print(`${origin}/admin/join/${code}`);
  return 0;
}

export async function memberSet(options: LimitOptions): Promise<number> {
  const limits = readLimits(options);
  if (Object.keys(limits).length === 0)
    throw new UsageError("Say what to change: `dragoman member set --help` shows the options.");
  const member = await withTeam(options.environment, ({ members }) => members.setLimits(options.name, limits));
  const facts = Object.entries(memberFields).map(([name, { label, none }]) => {
    const value = member[name as keyof typeof memberFields];
    return `${label}: ${value === null ? none : [value].flat().join(", ")}`;
  });
  say(`${member.name} has these limits now. ${facts.join("; ")}.`);
  return 0;
}

export async function memberWithdraw({ environment, name }: MemberOptions & { name: string }): Promise<number> {
  const count = await withTeam(environment, ({ members }) => members.withdrawInvitations(name));
  say(count === 0 ? `${name} has no open invitation.` : `The invitation of ${name} was taken back.`);
  return 0;
}

/** @throws UsageError */
function readLimits(options: LimitOptions): ChangedLimits {
  const said: Record<string, unknown> = { ...options };
  const given: Record<string, unknown> = {};
  const names: Record<string, string> = {};
  for (const [name, { option, read }] of Object.entries(memberFields)) {
    const text = said[option.name];
    names[name] = `--${option.name}`;
    if (typeof text === "string") given[name] = read(text);
  }
  return readOptions(memberLimitsSchema(), given, names);
}

/** As `GET /api/admin/members` returns them, but all at once. */
export async function memberLs({ environment, json }: ListOptions): Promise<number> {
  const now = Date.now();
  const everybody = { sort: "name", offset: 0, limit: Number.POSITIVE_INFINITY } as const;
  const list = await withTeam(environment, async ({ stores, members }) => {
    const { current } = stores.config;
    const history = stores.openHistory({
      retentionDays: () => current.retentionDays,
      maxRows: () => current.maxRows,
      warn: say,
    });
    try {
      return await memberList({ members, accountsOf: (ids) => members.accountsOf(ids), history }, everybody, now);
    } finally {
      history.close();
    }
  });
  if (json) printJson(list);
  else if (list.items.length === 0) say("There are no members. `dragoman member add NAME` invites one.");
  else {
    const heads = ["name", "added", "keys", "models", "accounts", "requests", "cost", "last request"];
    print(
      ...table([heads, ...list.items.map((item) => lineOf(item, now))], { spare: ["added", "models", "last request"] }),
    );
    const since = utcDay(list.since_ms);
    if (list.items.some(({ request_count }) => request_count === null))
      say("Requests and cost could not be added up in time. What was added up is kept: run the command again.");
    say(`Requests and cost are those since ${since} (UTC).`, ...list.items.flatMap(noteOf));
  }
  return 0;
}

const lineOf = (item: MemberItem, now: number): string[] => [
  item.name,
  ago(item.created_at_ms, now),
  `${item.keys}${item.key_days === null ? "" : ` of ${plural(item.key_days, "day")}`}`,
  item.models?.join(" ") ?? "all",
  item.accounts
    .map(({ account_key, state }) => account_key + (state === null || state === "ready" ? "" : ` (${state})`))
    .join(" ") || "none",
  item.request_count === null ? "unknown" : formatCount(item.request_count),
  costInWords(item) ?? "unknown",
  item.last_request_at_ms === null ? "none" : ago(item.last_request_at_ms, now),
];

function noteOf(item: MemberItem): string[] {
  const { name, invitation_expires_at_ms: until } = item;
  const trouble = memberTrouble(item);
  if (until !== null) return [`${name} has an invitation, until ${utcDay(until)}.`];
  return trouble === undefined ? [] : [`${name} ${trouble}.`];
}

export async function memberRm({ environment, name, yes }: MemberOptions & { name: string; yes: boolean }) {
  const question = `Remove ${name}? Their keys are refused at once, and their accounts are signed out.`;
  if (!(await mayRemove(question, yes))) return 1;
  const removed = await withTeam(environment, ({ members }) => members.remove(name));
  say(
    `${removed.name} was removed. Their keys are refused from now on, and their accounts are signed out here. Answers that run already go on to their end.`,
  );
  return 0;
}

const withTeam = <T>(
  environment: Environment,
  work: (team: { stores: Stores; members: Members }) => T | Promise<T>,
): Promise<T> => withStores(environment, async (stores) => work({ stores, members: stores.members! }));

/** The address of the link: as given, or that of the server on this machine. */
function originOf(environment: Environment, given: string | undefined): string {
  const url = given ?? serverOf(environment)?.url ?? "http://127.0.0.1:4141";
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new UsageError("--url must be an address such as https://dragoman.example.");
  return new URL(url).origin;
}
