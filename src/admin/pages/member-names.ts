/** Which member is which, for the owner's pages. */
import type { Member } from "../../keys/members";
import type { PageContext } from "../ui/page-context";

export interface MemberNames {
  /** By name. */
  readonly members: readonly Member[];
  /** @param id A member's; null for the owner. */
  nameOf(id: string | null | undefined): string;
}

/** Undefined where nobody was ever a member, and for a member, who sees no other. */
export function memberNamesFor({ app, member }: Pick<PageContext, "app" | "member">): MemberNames | undefined {
  const { members } = app;
  if (member !== null || !members?.needKeys) return undefined;
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
