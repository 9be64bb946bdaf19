/** The members as the admin API, the page and the command line show them to the owner. */
import { z } from "zod";
import { lazy } from "../../lib/lazy";
import { byCost, costFields } from "../../lib/money";
import { limitsIn, shownFields } from "./member-fields";
import { type Member, type Members, type MemberUsage, maxMemberKeys } from "./members";

export const memberSchema = lazy(() =>
  z.object({
    name: z.string(),
    id: z.string().describe("The `member` of their requests in the history."),
    created_at_ms: z.number(),
    ...shownFields,
    keys: z.number(),
    accounts: z.array(
      z.object({
        account_key: z.string(),
        state: z
          .string()
          .describe("`ready`, `cooling`, `exhausted`, `failed` or `paused`, as the servers last found it."),
      }),
    ),
    invitation_expires_at_ms: z.number().nullable().describe("Null if no invitation is open."),
    request_count: z
      .number()
      .nullable()
      .describe("Since the beginning of the month (UTC); null if adding it up took too long: ask again in a moment."),
    ...costFields(),
    last_request_at_ms: z.number().nullable().describe("Null if the history has none."),
  }),
);
export type MemberItem = z.output<ReturnType<typeof memberSchema>>;

export const memberListSchema = lazy(() =>
  z.object({
    items: z.array(memberSchema()),
    total: z.number().describe("Members that match, on all pages."),
    since_ms: z.number().describe("The beginning of the month (UTC)."),
  }),
);
export type MemberList = z.output<ReturnType<typeof memberListSchema>>;

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

/** What the list asks of the members. */
type ListedMembers = Pick<Members, "list" | "usage" | "keyCount" | "accountsOf" | "openInvitations" | "lastRequests">;

/** A page of the members. @param now Unix ms. */
export async function memberList(members: ListedMembers, page: MemberPage, now: number): Promise<MemberList> {
  const since = startOfMonth(now);
  const usage = await members.usage(since);
  const part = page.name?.toLowerCase();
  const matching = members.list().filter(({ name }) => part === undefined || name.toLowerCase().includes(part));
  const ordered = page.sort === "name" ? matching : matching.toSorted(largestFirst(usage, page.sort));
  const items = await itemsOf(members, ordered.slice(page.offset, page.offset + page.limit), usage);
  return { items, total: matching.length, since_ms: since };
}

/** One member. @param now Unix ms. */
export async function memberItemOf(members: ListedMembers, member: Member, now: number): Promise<MemberItem> {
  const [item] = await itemsOf(members, [member], await members.usage(startOfMonth(now)));
  return item!;
}

async function itemsOf(
  members: ListedMembers,
  shown: readonly Member[],
  usage: ReadonlyMap<string, MemberUsage> | undefined,
): Promise<MemberItem[]> {
  const ids = shown.map(({ id }) => id);
  const [accounts, open, earlier] = await Promise.all([
    members.accountsOf(ids),
    members.openInvitations(),
    members.lastRequests(ids.filter((id) => !usage?.has(id))),
  ]);
  const invited = new Map(open.map(({ member, expiresAt }) => [member, expiresAt]));
  return shown.map((member) => {
    const used = usage?.get(member.id);
    return {
      ...{ name: member.name, id: member.id, created_at_ms: member.createdAt },
      ...limitsIn(member),
      keys: members.keyCount(member.id),
      accounts: accounts.get(member.id) ?? [],
      invitation_expires_at_ms: invited.get(member.id) ?? null,
      request_count: usage ? (used?.requests ?? 0) : null,
      cost: used?.cost ?? {},
      cost_at_least: used?.cost_at_least ?? usage === undefined,
      last_request_at_ms: used?.lastAt ?? earlier.get(member.id) ?? null,
    };
  });
}

const largestFirst = (usage: ReadonlyMap<string, MemberUsage> | undefined, sort: Exclude<MemberOrder, "name">) => {
  const orders = {
    requests: (one: MemberUsage, other: MemberUsage) => other.requests - one.requests,
    cost: byCost,
    last: (one: MemberUsage, other: MemberUsage) => other.lastAt - one.lastAt,
  };
  const usageOf = ({ id }: Member) => usage?.get(id) ?? unused;
  return (one: Member, other: Member): number => orders[sort](usageOf(one), usageOf(other));
};
const unused: MemberUsage = { requests: 0, cost: {}, cost_at_least: false, lastAt: 0 };

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
