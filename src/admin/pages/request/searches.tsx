/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The web searches that ran for one request: each with its engine, its result and its cost. */

import { costsOf } from "../../../lib/money";
import type { Scope } from "../../../parts/app";
import { findRequest, type ShownEntry, type ShownRunning } from "../../api/requests";
import { CostOf, Duration, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { requestPath } from "../../ui/links";
import { Section, Table } from "../../ui/lists";
import { Status } from "../requests/rows";

/** More than one reply ever needs. */
const most = 50;

/** The rows of what ran for the request, which are numbered. */
export async function searchesOf(app: Scope, { request_id, parent_id }: ShownEntry): Promise<ShownEntry[]> {
  const searches: ShownEntry[] = [];
  if (parent_id !== null) return searches;
  for (let number = 1; number <= most; number += 1) {
    const found = await findRequest(app, `${request_id}.${number}`);
    if (!found || found.running) break;
    searches.push(found.item);
  }
  return searches;
}

export function Searches({ items }: { items: ShownEntry[] }): Markup | false {
  if (items.length === 0) return false;
  return (
    <Section id="searches" title="Tools run here" card>
      <Table
        caption="What ran for this request, with its cost"
        rows={items}
        columns={[
          [
            "What",
            (item) => (
              <a href={requestPath(item.request_id)}>
                <Value of={item.path} />
              </a>
            ),
          ],
          ["Engine", (item) => <Value of={item.upstream_model} />],
          ["Result", (item) => <Status item={item} />],
        ]}
        numbers={[
          ["Cost", (item) => <CostOf of={costsOf(item)} />],
          ["Took", (item) => <Duration of={item.duration_ms} />],
        ]}
      />
      <p class="soft">They are not part of the cost of this request.</p>
    </Section>
  );
}

/** For a search: the request that it ran for. */
export const ParentLink = ({ item: { path, parent_id } }: { item: ShownEntry | ShownRunning }): Markup | false =>
  parent_id !== null && (
    <p class="note info">
      <code>{path.slice(0, 80)}</code> for <a href={requestPath(parent_id)}>another request</a>.
    </p>
  );
