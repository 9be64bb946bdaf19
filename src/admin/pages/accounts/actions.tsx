/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The buttons of an account: pause, order, sign in again, remove. Each is a form, so that no script is needed. */
import type { AccountItem } from "../../api/accounts";
import { Value } from "../../ui/format";
import { ActionButton } from "../../ui/forms";
import type { Child, Markup } from "../../ui/jsx/jsx-runtime";
import type { Frame } from "../../ui/layout";

interface AccountActionsProps {
  account: AccountItem;
  /** All of them, in order. */
  accounts: AccountItem[];
  frame: Frame;
}

export function AccountActions({ account, accounts, frame }: AccountActionsProps): Markup | false {
  if (account.temporary) return false;
  const { account_key, account_id, host, app, state } = account;
  const saved = accounts.filter(({ temporary }) => !temporary);
  const place = saved.indexOf(account);
  const name = saved.some((other) => other !== account && other.account_id === account_id) ? account_key : account_id;
  const paused = state === "paused";
  const pause = paused ? "Resume" : "Pause";
  const action = (to: string, fields: Record<string, string | null>, label: string, words: Child) => (
    <ActionButton frame={frame} to={`/admin/accounts/${to}`} fields={fields} label={label}>
      {words}
    </ActionButton>
  );
  return (
    <div class="actions account-actions">
      {action("pause", { account_key, paused: paused ? "0" : "1" }, `${pause} ${name}`, pause)}
      {place > 0 && action("move", { account_key, by: "-1" }, `Move up: ${name}`, "Move up")}
      {place < saved.length - 1 && action("move", { account_key, by: "1" }, `Move down: ${name}`, "Move down")}
      {account.kind === "person" && action("sign-in", { host, app }, `Sign in again: ${name}`, "Sign in again")}
      <details>
        <summary aria-label={`Remove ${name}…`}>Remove…</summary>
        <p>Its token is deleted. Requests in progress finish, and its requests stay in the history.</p>
        {action(
          "remove",
          { account_key },
          `Remove ${name}`,
          <>
            Remove <Value of={name} max={40} />
          </>,
        )}
      </details>
    </div>
  );
}
