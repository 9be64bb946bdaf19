/** @jsxRuntime automatic @jsxImportSource #jsx */
/** A table of client keys. */
import type { KeyItem } from "../../../people/keys/key-list";
import { Ago, Moment, Value } from "../../ui/format";
import type { Child } from "../../ui/jsx/jsx-runtime";
import { Table } from "../../ui/lists";
import { KeyUse, type KeyUses } from "./uses";

/** What follows when a key is revoked. */
export const keyIsRefused = "What uses it is refused from its next request on. The key cannot be made again.";

interface KeyTableProps {
  caption: string;
  keys: readonly KeyItem[];
  now: number;
  /** What a key without models of its own may use. */
  allModels: string;
  /** The name of the key that began the sign-in. */
  current?: string | undefined;
  /** What each key was used for, by its name; missing where it is not shown. */
  use?: KeyUses;
  /** What can be done with a key. */
  action(key: KeyItem): Child;
}

export const KeyTable = ({ caption, keys, now, allModels, current, use, action }: KeyTableProps) => (
  <Table
    class="rows labelled"
    caption={caption}
    rows={keys}
    isOff={({ expired }) => expired}
    columns={[
      [
        "Name",
        ({ name }) => (
          <>
            {name === null ? <span class="soft">without a name</span> : <Value of={name} max={127} />}
            {name !== null && name === current && " "}
            {name !== null && name === current && <span class="badge">this sign-in</span>}
          </>
        ),
      ],
      ["Models", ({ models }) => (models === null ? allModels : <Value of={models.join(", ")} />)],
      [
        "Expires",
        (key) => (
          <>
            {key.expires_at_ms === null ? "Never" : <Moment at={key.expires_at_ms} now={now} />}
            {key.expired && " "}
            {key.expired && <span class="badge bad">Expired</span>}
          </>
        ),
      ],
      ["Last used", (key) => <Ago at={key.last_used_at_ms} now={now} never="not in the history" />],
      use && ["This month", ({ name }) => <KeyUse of={name} uses={use} />],
      ["Actions", action],
    ]}
  />
);
