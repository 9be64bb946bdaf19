/** @jsxRuntime automatic @jsxImportSource #jsx */
/** What a member has and uses, as parts of tables. */
import { accountStates } from "../../../people/accounts/account-state";
import type { MemberItem } from "../../../people/keys/member-list";
import { Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { StateBadge } from "../accounts/card";

/** In place of what it names. */
export const UsageUnknown = (): Markup => (
  <p class="note warn">
    Requests and cost could not be added up in time, because there are many. What was added up is kept: open this page
    again in a moment.
  </p>
);

export function AccountsOfMember({ accounts }: Pick<MemberItem, "accounts">): Markup {
  if (accounts.length === 0) return <span class="soft">none</span>;
  return (
    <ul class="plain-list">
      {accounts.map(({ account_key, state }) => {
        const known = accountStates.find((name) => name === state);
        return (
          <li>
            <Value of={account_key.replace(/^github\.com\//, "")} max={40} />
            {known !== undefined && known !== "ready" && " "}
            {known !== undefined && known !== "ready" && <StateBadge account={{ state: known }} />}
          </li>
        );
      })}
    </ul>
  );
}
