/** Who has an amount of their own in a budget: a member, a client key, an account or a project. */
import type { Budget, budgetHolders } from "../../config/budget-schema";
import type { Subject } from "./budgets";

type HolderKind = (typeof budgetHolders)[number];

/** Who has an amount, as it is stored. It has no name of a member, which another person may have later. */
export interface StoredHolder {
  /** Empty for an amount that all share. */
  readonly kind: HolderKind | "";
  /** The id of the member, or of the member whose key it is; empty for the owner's, for accounts and for projects. */
  readonly member: string;
  /** The key's name without its member's, the account's host and login, or the project; empty for a member. */
  readonly item: string;
}

export interface Holder extends StoredHolder {
  readonly kind: HolderKind;
  /** Of the member, key, account or project. Null where the member was removed. */
  readonly name: string | null;
}

/** A shared amount. */
export const nobody: StoredHolder = { kind: "", member: "", item: "" };

/** The holder as one text, for keys in memory and of notices: `member/<id>`, `key/<member's id>/<name>`, `account/<host>/<login>`. */
export const textOf = ({ kind, member, item }: StoredHolder): string =>
  [kind, member, item].filter((part) => part !== "").join("/");

/** What has an amount of its own; null if all that the budget counts share one. A member who is named in full has one too. */
export const holderKindOf = ({ each, scope }: Pick<Budget, "each" | "scope">): HolderKind | null =>
  each ?? (scope.member !== undefined && !scope.member.includes("*") ? "member" : null);

/** Whose amount a request counts for; undefined if it has nothing that could have one, so that it does not count. */
export function holderOf(budget: Budget, subject: Subject): Holder | null | undefined {
  const kind = holderKindOf(budget);
  return kind === null ? null : holders[kind](subject);
}

const holders: Record<HolderKind, (subject: Subject) => Holder | undefined> = {
  member: ({ member }) => (member ? { kind: "member", member: member.id, item: "", name: member.name } : undefined),
  key({ key, member }) {
    if (key === null) return undefined;
    const item = member ? key.slice(key.lastIndexOf("/") + 1) : key;
    return { kind: "key", member: member?.id ?? "", item, name: key };
  },
  account({ account, accountKey }) {
    if (account === null) return undefined;
    const item = accountKey ?? `github.com/${account.toLowerCase()}`;
    return { kind: "account", member: "", item, name: account };
  },
  project: ({ project }) => (project ? { kind: "project", member: "", item: project, name: project } : undefined),
};

/** Whether an amount for which requests of a member count is this member's alone. */
export function isOwnAmount(budget: Pick<Budget, "each" | "scope">, member: string): boolean {
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
  const account = holder.kind === "account" ? holder.item : "";
  return own.get(holder.name?.toLowerCase() ?? "") ?? own.get(account) ?? limit;
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
 * Whom a name in `limits` means.
 * @param idOf The id of the member with a name; undefined if there is none.
 */
export function holderNamed(
  kind: HolderKind,
  name: string,
  idOf: (member: string) => string | undefined,
): StoredHolder | undefined {
  if (kind === "project") return { kind, member: "", item: name };
  if (kind === "account") return { kind, member: "", item: name.includes("/") ? name : `github.com/${name}` };
  const [owner, key] = name.split("/");
  if (kind === "key" && key === undefined) return { kind, member: "", item: name };
  const member = idOf(owner!);
  return member === undefined ? undefined : { kind, member, item: kind === "member" ? "" : key! };
}

/** @param nameOf The name of a member; undefined if there is none of this id. */
export function holderFrom(
  kind: HolderKind,
  { member, item }: Pick<StoredHolder, "member" | "item">,
  nameOf: (member: string) => string | undefined,
): Holder {
  const owner = member === "" ? undefined : nameOf(member);
  const stored = { kind, member, item };
  if (kind === "member") return { ...stored, name: owner ?? null };
  if (kind === "account") return { ...stored, name: item.slice(item.lastIndexOf("/") + 1) };
  if (member === "") return { ...stored, name: item };
  return { ...stored, name: owner === undefined ? null : `${owner}/${item}` };
}
