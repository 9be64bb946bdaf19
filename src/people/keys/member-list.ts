/** The members as the admin API, the page and the command line show them to the owner. */
import { z } from "zod";
import type { Awaitable } from "../../lib/awaitable";
import { costFields } from "../../lib/cost-fields";
import { ProxyError } from "../../lib/errors";
import { byCost, type Costs } from "../../lib/money";
import { limitsIn, shownFields } from "./member-fields";
import { type Member, type Members, maxMemberKeys } from "./members";

export const memberSchema = z.object({
  name: z.string(),
  id: z.string().describe("The `member` of their requests in the history."),
  created_at_ms: z.number(),
  ...shownFields(),
  keys: z.number(),
  accounts: z.array(
    z.object({
      account_key: z.string(),
      state: z
        .string()
        .nullable()
        .describe(
          "`ready`, `cooling`, `exhausted`, `failed` or `paused`, as the servers last found it; null where a command cannot know it.",
        ),
    }),
  ),
  invitation_expires_at_ms: z.number().nullable().describe("Null if no invitation is open."),
  request_count: z
    .number()
    .nullable()
    .describe("Since the beginning of the month (UTC); null if adding it up took too long: ask again in a moment."),
  ...costFields(),
  last_request_at_ms: z.number().nullable().describe("Null if the history has none."),
});
export type MemberItem = z.output<typeof memberSchema>;

export const memberListSchema = z.object({
  items: z.array(memberSchema),
  total: z.number().describe("Members that match, on all pages."),
  since_ms: z.number().describe("The beginning of the month (UTC)."),
});
export type MemberList = z.output<typeof memberListSchema>;

/** By what the members are ordered; numbers begin with the largest. */
export const memberOrders = ["name", "requests", "cost", "last"] as const;
export type MemberOrder = (typeof memberOrders)[number];

interface MemberPage {
  /** A part of the name, in any case. */
  name?: string | undefined;
  sort: MemberOrder;
  offset: number;
  limit: number;
}

export const startOfMonth = (now: number): number => {
  const date = new Date(now);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
};

interface MemberUsage extends Costs {
  request_count: number;
  last_at_ms: number | null;
}

/** What the list asks of the members, and of their requests: a `History` has the answers. */
export interface ListedMembers {
  members: Pick<Members, "hearAll" | "requireHeard" | "list" | "keyCount" | "openInvitations">;
  accountsOf: Members["accountsOf"];
  history: {
    statistics(
      filters: { from_ms: number },
      by: ["member"],
      signal: AbortSignal,
    ): Promise<{ groups: (MemberUsage & { key: { member?: string | null } })[] }>;
    lastOf(filters: { member: string }): Awaitable<number | undefined>;
  };
}

/** Milliseconds that a person waits for what the members used. */
const patienceMs = 20_000;

/** By the member's id; who made no request is missing. Undefined if adding it up takes too long; what was added up is kept. */
async function usageSince({ history }: ListedMembers, since: number): Promise<Map<string, MemberUsage> | undefined> {
  try {
    const { groups } = await history.statistics({ from_ms: since }, ["member"], AbortSignal.timeout(patienceMs));
    return new Map(groups.flatMap((group) => (group.key.member ? [[group.key.member, group]] : [])));
  } catch (thrown) {
    if (thrown instanceof ProxyError && thrown.kind === "timeout") return undefined;
    throw thrown;
  }
}

/** A page of the members. @param now Unix ms. */
export async function memberList(listed: ListedMembers, page: MemberPage, now: number): Promise<MemberList> {
  const since = startOfMonth(now);
  const { members } = listed;
  const [usage] = await Promise.all([usageSince(listed, since), members.hearAll()]);
  members.requireHeard();
  const part = page.name?.toLowerCase();
  const matching = members.list().filter(({ name }) => part === undefined || name.toLowerCase().includes(part));
  const ordered = page.sort === "name" ? matching : matching.toSorted(largestFirst(usage, page.sort));
  const items = await itemsOf(listed, ordered.slice(page.offset, page.offset + page.limit), usage);
  return { items, total: matching.length, since_ms: since };
}

/** One member. @param now Unix ms. */
export async function memberItemOf(listed: ListedMembers, member: Member, now: number): Promise<MemberItem> {
  const [item] = await itemsOf(listed, [member], await usageSince(listed, startOfMonth(now)));
  return item!;
}

async function itemsOf(
  { members, accountsOf, history }: ListedMembers,
  shown: readonly Member[],
  usage: ReadonlyMap<string, MemberUsage> | undefined,
): Promise<MemberItem[]> {
  const ids = shown.map(({ id }) => id);
  const unused = ids.filter((id) => !usage?.has(id));
  const [accounts, open, last] = await Promise.all([
    accountsOf(ids),
    members.openInvitations(),
    Promise.all(unused.map((member) => history.lastOf({ member }))),
  ]);
  const earlier = new Map(unused.map((id, at) => [id, last[at]]));
  const invited = new Map(open.map(({ member, expiresAt }) => [member, expiresAt]));
  return shown.map((member) => {
    const used = usage?.get(member.id);
    return {
      name: member.name,
      id: member.id,
      created_at_ms: member.createdAt,
      ...limitsIn(member),
      keys: members.keyCount(member.id),
      accounts: accounts.get(member.id) ?? [],
      invitation_expires_at_ms: invited.get(member.id) ?? null,
      request_count: usage ? (used?.request_count ?? 0) : null,
      cost: used?.cost ?? {},
      cost_at_least: used?.cost_at_least ?? usage === undefined,
      last_request_at_ms: used?.last_at_ms ?? earlier.get(member.id) ?? null,
    };
  });
}

const largestFirst = (usage: ReadonlyMap<string, MemberUsage> | undefined, sort: Exclude<MemberOrder, "name">) => {
  const orders = {
    requests: (one: MemberUsage, other: MemberUsage) => other.request_count - one.request_count,
    cost: byCost,
    last: (one: MemberUsage, other: MemberUsage) => (other.last_at_ms ?? 0) - (one.last_at_ms ?? 0),
  };
  const usageOf = ({ id }: Member) => usage?.get(id) ?? noUsage;
  return (one: Member, other: Member): number => orders[sort](usageOf(one), usageOf(other));
};
const noUsage: MemberUsage = { request_count: 0, cost: {}, cost_at_least: false, last_at_ms: null };

/** What is wrong with a member's access, as a sentence without its subject; undefined if nothing is. */
export function memberTrouble({ keys, accounts, invitation_expires_at_ms: invited }: MemberItem): string | undefined {
  const open = invited !== null;
  if (accounts.length === 0)
    return open ? undefined : "has no account and no open invitation: a new link lets them sign in";
  if (keys === 0) return open ? undefined : "has no key, so cannot sign in: a new link gives them one";
  if (accounts.every(({ state }) => state === "failed"))
    return "has no account that works: they sign in again on their page Accounts, or with a new link";
  return keys >= maxMemberKeys ? `has ${maxMemberKeys} keys, which is the most` : undefined;
}
