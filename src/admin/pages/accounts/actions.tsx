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
  const { account_key, account_id, state } = account;
  const saved = accounts.filter(({ temporary }) => !temporary);
  const place = saved.indexOf(account);
  const name = saved.some((other) => other !== account && other.account_id === account_id) ? account_key : account_id;
  const paused = state === "paused";
  const button = { frame, account_key };
  return (
    <div class="actions account-actions">
      <Action
        {...button}
        to="pause"
        value={{ paused: paused ? "0" : "1" }}
        label={`${paused ? "Resume" : "Pause"} ${name}`}
      >
        {paused ? "Resume" : "Pause"}
      </Action>
      {place > 0 && (
        <Action {...button} to="move" value={{ by: "-1" }} label={`Move up: ${name}`}>
          Move up
        </Action>
      )}
      {place < saved.length - 1 && (
        <Action {...button} to="move" value={{ by: "1" }} label={`Move down: ${name}`}>
          Move down
        </Action>
      )}
      <Action
        frame={frame}
        to="sign-in"
        value={{ host: account.host, app: account.app }}
        label={`Sign in again: ${name}`}
      >
        Sign in again
      </Action>
      <details>
        <summary aria-label={`Remove ${name}…`}>Remove…</summary>
        <p>Its token is deleted. Requests in progress finish, and its requests stay in the history.</p>
        <Action {...button} to="remove" label={`Remove ${name}`}>
          Remove <Value of={name} max={40} />
        </Action>
      </details>
    </div>
  );
}

interface ActionProps {
  frame: Frame;
  to: "pause" | "move" | "sign-in" | "remove";
  account_key?: string;
  value?: Record<string, string | null>;
  label: string;
  children?: Child;
}

const Action = ({ frame, to, account_key, value, label, children }: ActionProps) => (
  <ActionButton
    frame={frame}
    to={`/admin/accounts/${to}`}
    fields={{ account_key: account_key ?? null, ...value }}
    label={label}
  >
    {children}
  </ActionButton>
);
