/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The accounts of members, as the owner sees them: whose they are, their state and their quota. The owner can use none of them. */
import { viewAccount } from "../../../accounts/account-view";
import type { App } from "../../../app";
import { day, plural, span } from "../../../format";
import type { AccountItem } from "../../api/accounts";
import { Unknown, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { requestsPath } from "../../ui/links";
import { Head } from "../../ui/lists";
import type { MemberNames } from "../member-names";
import { remainingText, StateBadge } from "./card";

type MemberAccount = Pick<AccountItem, "state" | "unit" | "runtime" | "reset_at_ms"> & {
  member: string;
  name: string;
};

/** As last known: GitHub is not asked with a member's token because the owner looks. Those that need a person come first. */
export function memberAccounts(app: App, names: MemberNames): MemberAccount[] {
  return app.allAccounts
    .filter(({ member }) => member !== null)
    .map((account) => {
      const { common, remaining, resetAt } = viewAccount(account, { quota: account.knownQuota, error: null });
      const { state, unit } = common;
      const member = account.member!;
      return { member, name: names.nameOf(member), state, unit, runtime: remaining, reset_at_ms: resetAt };
    })
    .sort((one, other) => rank(one) - rank(other) || one.name.localeCompare(other.name));
}

const rank = ({ state }: MemberAccount) => (state === "failed" ? 0 : state === "exhausted" ? 1 : 2);

const maxShown = 100;

export function MemberAccounts({ accounts, now }: { accounts: MemberAccount[]; now: number }): Markup {
  return (
    <section aria-labelledby="of-members">
      <h2 id="of-members">Accounts of members</h2>
      <p class="soft">Each member's requests use only the accounts that this member signed in.</p>
      {accounts.length === 0 ? (
        <p class="calm">No member has signed in an account.</p>
      ) : (
        <table class="rows labelled">
          <caption class="hidden">Accounts of members</caption>
          <Head columns={["Member", "State", "Remaining quota", "Resets"]} />
          <tbody>
            {accounts.slice(0, maxShown).map((account) => (
              <tr>
                <th scope="row">
                  <a href={requestsPath({ member: account.member })}>
                    <Value of={account.name} max={40} />
                  </a>
                </th>
                <td data-label="State">
                  <StateBadge account={account} />
                </td>
                <td data-label="Remaining quota">{remainingText(account) ?? <Unknown />}</td>
                <td data-label="Resets">
                  {account.reset_at_ms === null ? (
                    <Unknown />
                  ) : (
                    `${day(account.reset_at_ms, now)}, in ${span(account.reset_at_ms - now)}`
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {accounts.length > maxShown && <p class="soft">{plural(accounts.length - maxShown, "more account")} not shown</p>}
    </section>
  );
}
