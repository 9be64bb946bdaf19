/** Who has an amount of their own in a budget: a member, a client key, an account, a project or a session. */
import type { Budget, budgetHolders } from "../config/budget-schema";
import type { Subject } from "./budgets";

export type HolderKind = (typeof budgetHolders)[number] | "session";

export interface Holder {
  kind: HolderKind;
  /**
   * As stored: `member/<id>`, `key/<name>` or `key/<member's id>/<name>`, `account/<host>/<login>`, `project/<name>`. A session is a hash, with
   * `/<member's id>` for a member's. It has no name of a member, which another person may have later.
   */
  id: string;
  /** Of the member, key or account; of a session, its member's. Null for the owner's session and where the member was removed. */
  name: string | null;
}

/** What has an amount of its own; null if all that the budget counts share one. A member who is named in full has one too. */
export function holderKindOf({ each, per, scope }: Pick<Budget, "each" | "per" | "scope">): HolderKind | null {
  if (per === "session") return "session";
  return each ?? (scope.member !== undefined && !scope.member.includes("*") ? "member" : null);
}

/** Whose amount a request counts for; undefined if it has nothing that could have one, so that it does not count. */
export function holderOf(budget: Budget, subject: Subject): Holder | null | undefined {
  const kind = holderKindOf(budget);
  return kind === null ? null : holders[kind](subject);
}

const holders: Record<HolderKind, (subject: Subject) => Holder | undefined> = {
  member: ({ member }) => (member ? { kind: "member", id: `member/${member.id}`, name: member.name } : undefined),
  key({ key, member }) {
    if (key === null) return undefined;
    return {
      kind: "key",
      id: member ? `key/${member.id}/${key.slice(key.lastIndexOf("/") + 1)}` : `key/${key}`,
      name: key,
    };
  },
  account({ account, accountKey }) {
    if (account === null) return undefined;
    return { kind: "account", id: `account/${accountKey ?? `github.com/${account.toLowerCase()}`}`, name: account };
  },
  project: ({ project }) => (project ? { kind: "project", id: `project/${project}`, name: project } : undefined),
  session({ session, member }) {
    if (session === null) return undefined;
    const hash = new Bun.CryptoHasher("sha256").update(session).digest("hex").slice(0, 32);
    return { kind: "session", id: member ? `${hash}/${member.id}` : hash, name: member?.name ?? null };
  },
};

/** Whether an amount for which requests of a member count is this member's alone. */
export function isOwnAmount(budget: Pick<Budget, "each" | "per" | "scope">, member: string): boolean {
  const kind = holderKindOf(budget);
  // Names of keys begin so only if they are this member's. Several people work on a project.
  return (
    (kind !== null && kind !== "project") ||
    budget.scope.key?.toLowerCase().startsWith(`${member.toLowerCase()}/`) === true
  );
}

/** The limit of one holder. */
export function limitOf({ limit, limits }: Pick<Budget, "limit" | "limits">, holder: Holder | null): number {
  if (limits === undefined || holder === null) return limit;
  const own = inLowerCase(limits);
  const key = holder.kind === "account" ? holder.id.slice("account/".length) : "";
  return own.get(holder.name?.toLowerCase() ?? "") ?? own.get(key) ?? limit;
}

/** There may be a thousand, and every request asks. */
const lowered = new WeakMap<object, ReadonlyMap<string, number>>();
function inLowerCase(limits: Readonly<Record<string, number>>): ReadonlyMap<string, number> {
  const known = lowered.get(limits);
  if (known) return known;
  const made = new Map(Object.entries(limits).map(([name, limit]) => [name.toLowerCase(), limit]));
  lowered.set(limits, made);
  return made;
}

/** The members that a budget names in full. */
export function namedMembers({ scope, each, limits = {} }: Pick<Budget, "scope" | "each" | "limits">): string[] {
  const inScope = scope.member === undefined || scope.member.includes("*") ? [] : [scope.member];
  const names = Object.keys(limits);
  const inLimits = each === "member" ? names : each === "key" ? names.filter((name) => name.includes("/")) : [];
  return [...new Set([...inScope, ...inLimits.map((name) => name.split("/")[0]!)])];
}

/**
 * The stored id of a name in `limits`.
 * @param idOf The id of the member with a name; undefined if there is none.
 */
export function holderIdOf(
  kind: HolderKind,
  name: string,
  idOf: (member: string) => string | undefined,
): string | undefined {
  if (kind === "project") return `project/${name}`;
  if (kind === "account") return `account/${name.includes("/") ? name : `github.com/${name}`}`;
  const [member, key] = name.split("/");
  if (kind === "key" && key === undefined) return `key/${name}`;
  const id = idOf(member!);
  return id && (kind === "member" ? `member/${id}` : `key/${id}/${key}`);
}

/** The stored ids of a kind, for LIKE. A budget per session has no others. */
export const idPattern = (kind: HolderKind): string => (kind === "session" ? "_%" : `${kind}/%`);

/** The id of a member; null if the amount is the owner's. */
export function memberIdOf({ kind, id }: Pick<Holder, "kind" | "id">): string | null {
  const [, first, rest] = id.split("/");
  if (kind === "account" || kind === "project") return null;
  return (kind === "key" && rest === undefined ? undefined : first) ?? null;
}

/** Whether an id is that of a member, or of a key or session of one. Accounts are others'. */
export const isOfMember = (id: string): boolean => /^(?:member\/|key\/[^/]+\/|[0-9a-f]{32}\/)/.test(id);

/** @param nameOf The name of a member; undefined if there is none of this id. */
export function holderFrom(kind: HolderKind, id: string, nameOf: (member: string) => string | undefined): Holder {
  const member = memberIdOf({ kind, id });
  const last = id.slice(id.lastIndexOf("/") + 1);
  const memberName = member === null ? undefined : nameOf(member);
  if (kind === "member" || kind === "session") return { kind, id, name: memberName ?? null };
  if (member === null) return { kind, id, name: last };
  return { kind, id, name: memberName === undefined ? null : `${memberName}/${last}` };
}
