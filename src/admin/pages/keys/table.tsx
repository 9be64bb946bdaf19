/** @jsxRuntime automatic @jsxImportSource #jsx */
/** A table of client keys. */
import type { KeyItem } from "../../../keys/key-list";
import { Ago, Moment, Value } from "../../ui/format";
import type { Child } from "../../ui/jsx/jsx-runtime";
import { Head } from "../../ui/lists";
import { KeyUse, type KeyUses } from "./uses";

interface KeyTableProps {
  caption: string;
  keys: readonly KeyItem[];
  now: number;
  /** What a key without models of its own may use. */
  allModels: string;
  /** The name of the key that began the session. */
  current?: string | undefined;
  /** What each key was used for, by its name; missing where it is not shown. */
  use?: KeyUses;
  /** What can be done with a key. */
  action(key: KeyItem): Child;
}

export const KeyTable = ({ caption, keys, now, allModels, current, use, action }: KeyTableProps) => (
  <table class="rows labelled">
    <caption class="hidden">{caption}</caption>
    <Head columns={["Name", "Models", "Expires", "Last used", ...(use ? ["This month"] : []), "Actions"]} />
    <tbody>
      {keys.map((key) => (
        <tr class={[key.expired && "off"]}>
          <th scope="row">
            {key.name === null ? <span class="soft">without a name</span> : <Value of={key.name} max={127} />}
            {key.name !== null && key.name === current && " "}
            {key.name !== null && key.name === current && <span class="badge">this session</span>}
          </th>
          <td data-label="Models">{key.models === null ? allModels : <Value of={key.models.join(", ")} />}</td>
          <td data-label="Expires">
            {key.expires_at_ms === null ? "Never" : <Moment at={key.expires_at_ms} now={now} />}
            {key.expired && " "}
            {key.expired && <span class="badge bad">Expired</span>}
          </td>
          <td data-label="Last used">
            <Ago at={key.last_used_at_ms} now={now} never="not in the history" />
          </td>
          {use && (
            <td data-label="This month">
              <KeyUse of={key.name} uses={use} />
            </td>
          )}
          <td data-label="Actions">{action(key)}</td>
        </tr>
      ))}
    </tbody>
  </table>
);
