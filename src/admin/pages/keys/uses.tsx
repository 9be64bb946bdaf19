/** @jsxRuntime automatic @jsxImportSource #jsx */
/** What was done with each client key since the month began (UTC), as budgets count it. */

import type { Totals } from "../../../books/history/history";
import { plural } from "../../../lib/format";
import type { Scope } from "../../../parts/app";
import { spanOf } from "../../../people/budgets/period";
import type { KeyItem } from "../../../people/keys/key-list";
import { CostOf } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { requestsPath } from "../../ui/links";

export interface KeyUses {
  from_ms: number;
  totals: ReadonlyMap<string, Totals>;
}

/** Undefined if the history cannot be read now: the keys are shown without it. */
export async function usesOfKeys({ history, now }: Scope, keys: readonly KeyItem[]): Promise<KeyUses | undefined> {
  const from_ms = spanOf("month", now()).start;
  const wanted = new Set(keys.map(({ name }) => name));
  if (history.degraded) return undefined;
  const { groups } = await history.statistics({ from_ms }, ["key_name"]);
  const totals = groups.flatMap(({ key: { key_name }, ...group }) =>
    key_name != null && wanted.has(key_name) ? [[key_name, group] as const] : [],
  );
  return { from_ms, totals: new Map(totals) };
}

export function KeyUse({ of: name, uses: { from_ms, totals } }: { of: string | null; uses: KeyUses }): Markup {
  if (name === null) return <span class="soft">not counted without a name</span>;
  const used = totals.get(name);
  return (
    <>
      <a href={requestsPath({ key_name: name, from_ms })}>{plural(used?.request_count ?? 0, "request")}</a>
      {used && (
        <>
          <span class="soft"> · </span>
          <CostOf of={used} />
        </>
      )}
    </>
  );
}
