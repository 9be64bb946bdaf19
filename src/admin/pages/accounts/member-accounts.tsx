/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The accounts of members, as the owner sees them: whose they are, their state and their quota. The owner can use none of them. */

import { day, plural, span } from "../../../lib/format";
import type { App } from "../../../parts/app";
import type { ShownState } from "../../../people/accounts/account-state";
import { viewAccount } from "../../../people/accounts/account-view";
import type { AccountItem } from "../../api/accounts";
import { Unknown, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { requestsPath } from "../../ui/links";
import { Section, Table } from "../../ui/lists";
import type { MemberNames } from "../member-names";
import { remainingText, StateBadge } from "./card";

type MemberAccount = Pick<AccountItem, "state" | "unit" | "runtime" | "reset_at_ms"> & {
  member: string;
  name: string;
};

interface MemberAccountList {
  /** Those that need a person come first, then by name. */
  items: MemberAccount[];
  /** How many more there are. */
  more: number;
}

const maxShown = 100;

/** As last known: GitHub is not asked with a member's token because the owner looks. A team may have thousands of accounts. */
export function memberAccounts({ allAccounts }: App, { members }: MemberNames): MemberAccountList {
  const byMember = Map.groupBy(allAccounts, ({ member }) => member);
  const all = members.flatMap(({ id, name }) => (byMember.get(id) ?? []).map((account) => ({ account, name })));
  const inState = (...wanted: ShownState["name"][]) => all.filter(({ account }) => wanted.includes(account.state.name));
  const sorted = [...inState("failed"), ...inState("exhausted"), ...inState("cooling", "ready", "paused")];
  const items = sorted.slice(0, maxShown).map(({ account, name }) => {
    const { common, remaining, resetAt } = viewAccount(account, { quota: account.knownQuota, error: null });
    const { state, unit } = common;
    return { member: account.member!, name, state, unit, runtime: remaining, reset_at_ms: resetAt };
  });
  return { items, more: sorted.length - items.length };
}

export function MemberAccounts({ items, more, now }: MemberAccountList & { now: number }): Markup {
  return (
    <Section id="of-members" title="Accounts of members">
      <p class="soft">Each member's requests use only the accounts that this member signed in.</p>
      {items.length === 0 ? (
        <p class="calm">No member has signed in an account.</p>
      ) : (
        <Table
          class="rows labelled"
          caption="Accounts of members"
          rows={items}
          columns={[
            [
              "Member",
              ({ member, name }) => (
                <a href={requestsPath({ member })}>
                  <Value of={name} max={40} />
                </a>
              ),
            ],
            ["State", (account) => <StateBadge account={account} />],
            ["Remaining quota", (account) => remainingText(account) ?? <Unknown />],
            ["Resets", ({ reset_at_ms: at }) => (at === null ? <Unknown /> : `${day(at, now)}, in ${span(at - now)}`)],
          ]}
        />
      )}
      {more > 0 && <p class="soft">{plural(more, "more account")} not shown</p>}
    </Section>
  );
}
