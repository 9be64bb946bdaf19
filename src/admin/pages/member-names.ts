/** Which member is which, for the owner's pages. */
import type { Scope } from "../../parts/app";
import type { Member } from "../../people/keys/members";

export interface MemberNames {
  /** By name. */
  readonly members: readonly Member[];
  /** @param id A member's; null for the owner. */
  nameOf(id: string | null | undefined): string;
}

/** Undefined where nobody was ever a member, and for a member, who sees no other. */
export function memberNamesFor({ owner }: Scope): MemberNames | undefined {
  const members = owner?.members;
  if (!members?.needKeys) return undefined;
  const nameOf = (id: string | null | undefined) =>
    id ? (members.find(id)?.name ?? `removed member ${id.slice(0, 8)}`) : ownerName;
  return {
    get members() {
      return members.list();
    },
    nameOf,
  };
}

/** No member is called so: names have no spaces. */
const ownerName = "the owner";
