/** The owner's view of the members: lists, invites, limits and removes them. */
import { z } from "zod";
import { ProxyError } from "../../lib/errors";
import { wholeNumber } from "../../lib/input";
import type { App } from "../../parts/app";
import { keyList, keyListSchema } from "../../people/keys/key-list";
import { type ChangedLimits, limitsIn, type newMemberSchema, shownFields } from "../../people/keys/member-fields";
import {
  type ListedMembers,
  type MemberList,
  memberItemOf,
  memberList,
  memberOrders,
  memberSchema,
  startOfMonth,
} from "../../people/keys/member-list";
import { type Member, type Members, memberNotFound } from "../../people/keys/members";
import { lastUses } from "./keys";
import { queries } from "./query";

/** Pages of members, as `memberList` reads them. */
export const membersQuery = z.strictObject({
  name: z.string().optional().describe("A part of the name, in any case."),
  sort: z
    .enum(memberOrders, `must be one of ${memberOrders.join(", ")}`)
    .default("name")
    .describe("`name`, or what is the largest first: `requests`, `cost`, or `last` request."),
  limit: queries.requests.shape.limit,
  offset: wholeNumber().default(0).describe("Members to skip."),
});

export const memberDetailSchema = z.object({
  item: memberSchema,
  keys: keyListSchema.shape.items.describe("Never the keys themselves."),
});

export const invitedSchema = z.object({
  name: z.string(),
  link: z.string().describe("At the address of this request. It works once, and is not shown again."),
  path: z.string().describe("The same without the address."),
  expires_at_ms: z.number(),
  is_known: z.boolean().describe("The member existed before: the link gives another key."),
});

export const shownLimitsSchema = z.object({ name: z.string(), ...shownFields() });

/** @throws ProxyError `not_found` */
export function teamOf({ members }: App): Members {
  if (members) return members;
  throw new ProxyError("not_found", "This demo has no members; `dragoman start --demo --team` has some.", {
    code: "no_team",
  });
}

/** @throws ProxyError `not_found` */
export function memberNamed(app: App, name: string): Member {
  const member = teamOf(app).named(name);
  if (member) return member;
  throw memberNotFound(name);
}

/** Members with their accounts as this server has them. */
const listedBy = ({ allAccounts, history }: App, members: Members): ListedMembers => ({
  members,
  history,
  async accountsOf(ids) {
    const byMember = Map.groupBy(allAccounts, ({ member }) => member);
    const shown = ids.map((id) => {
      const own = byMember.get(id) ?? [];
      return [id, own.map(({ key, state }) => ({ account_key: key, state: state.name }))] as const;
    });
    return new Map(shown);
  },
});

/** None where one person has everything. */
export const listMembers = async (app: App, query: z.output<typeof membersQuery>): Promise<MemberList> =>
  app.members
    ? memberList(listedBy(app, app.members), query, app.now())
    : { items: [], total: 0, since_ms: startOfMonth(app.now()) };

/** @throws ProxyError `not_found` */
export async function showMember(app: App, name: string): Promise<z.output<typeof memberDetailSchema>> {
  const members = teamOf(app);
  const member = memberNamed(app, name);
  const keys = members.clientKeysOf(member.id);
  const [item, lastUsed] = await Promise.all([
    memberItemOf(listedBy(app, members), member, app.now()),
    lastUses(app.history, { member: member.id }),
  ]);
  return {
    item,
    keys: keyList(keys, { now: app.now(), required: true, servedWithout: "others", lastUsed, member }).items,
  };
}

/**
 * Invites a member, or gives one another link.
 * @param origin Of the link: the address that the caller uses.
 * @throws ProxyError `not_found`
 */
export async function inviteMember(
  app: App,
  { name, ...limits }: z.output<ReturnType<typeof newMemberSchema>>,
  origin: string,
): Promise<z.output<typeof invitedSchema>> {
  const { member, code, expiresAt, isKnown } = await teamOf(app).invite(name, limits);
  app.logger.conceal(code);
  app.logger.info(`An invitation for ${member.name} was made.`);
  const path = `/admin/join/${code}`;
  return { name: member.name, link: origin + path, path, expires_at_ms: expiresAt, is_known: isKnown };
}

/** @throws ProxyError `not_found` */
export async function withdrawInvitations(app: App, name: string): Promise<{ withdrawn: number }> {
  const withdrawn = await teamOf(app).withdrawInvitations(name);
  if (withdrawn > 0) app.logger.info(`The invitation of ${name} was taken back.`);
  return { withdrawn };
}

/** @throws ProxyError `not_found` */
export async function limitMember(
  app: App,
  name: string,
  limits: ChangedLimits,
): Promise<z.output<typeof shownLimitsSchema>> {
  const member = await teamOf(app).setLimits(name, limits);
  app.logger.info(`The limits of ${member.name} were changed.`);
  return { name: member.name, ...limitsIn(member) };
}

/** Their keys are refused from now on, and their accounts are signed out. @throws ProxyError `not_found` */
export async function dismissMember(app: App, name: string): Promise<{ removed: true }> {
  const { name: removed } = await teamOf(app).remove(name);
  app.refreshAccounts();
  app.logger.info(`The member ${removed} was removed.`);
  return { removed: true };
}
