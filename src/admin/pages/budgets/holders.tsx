/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Those that have an amount of their own in a budget, the largest share of a limit first. */

import type { Filters } from "../../../books/history/history";
import { percent, plural, significant } from "../../../lib/format";
import { type BudgetItem, type HolderItem, holderName } from "../../../people/budgets/budget-list";
import { amountOf, usedInWords } from "../../../people/budgets/sentences";
import { Meter } from "../../ui/chart";
import { Moment, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { requestsPath, withQuery } from "../../ui/links";
import { OffsetPager, Table } from "../../ui/lists";

/** How many a budget shows among others, and on its own page. */
export const [briefHolders, pageHolders] = [5, 50];

interface HoldersProps {
  item: BudgetItem;
  holders: NonNullable<BudgetItem["holders"]>;
}

/** The highest, and how many there are. */
export function HighestHolders({ item, holders: { count, items } }: HoldersProps) {
  if (count === 0) return nothingUsed;
  const share = items[0]!.used / items[0]!.limit;
  return (
    <>
      <Meter share={share} tone={toneOfShare(item, share)} label={`The highest has used ${percent(share)}`} />
      <dl class="pairs">
        {items.map((holder) => (
          <div>
            <dt>
              <HolderLink item={item} holder={holder} />
            </dt>
            <dd>
              {usedInWords(holder.used, holder.unknown_price_count)} of {significant(holder.limit)} (
              {percent(holder.used / holder.limit)})
            </dd>
          </div>
        ))}
      </dl>
      {count > items.length && (
        <p>
          <a href={pathOf(item, 0)}>All {plural(count, wordOf(item))}</a>
        </p>
      )}
    </>
  );
}

const nothingUsed = <p class="soft">Nothing is used.</p>;

/** All of a page. */
export function HolderTable({ item, holders: { count, items }, now }: HoldersProps & { now: number }) {
  if (count === 0) return nothingUsed;
  return (
    <Table
      class="rows labelled"
      caption={`Who used most of ${item.name}`}
      rows={items}
      columns={[
        [titles[wordOf(item)], (holder) => <HolderLink item={item} holder={holder} />],
        ["Share", (holder) => <Share item={item} holder={holder} now={now} />],
      ]}
      numbers={[["Used", (holder) => <Used item={item} holder={holder} />]]}
    />
  );
}

const wordOf = ({ each }: BudgetItem) => each ?? "member";

const titles = { member: "Member", key: "Key", account: "Account", project: "Project" };

/** @param share Of the limit, that is used. */
export const toneOfShare = ({ warn }: BudgetItem, share: number): "good" | "warn" | "bad" =>
  share >= 1 ? "bad" : share >= Math.max(0.5, ...warn) ? "warn" : "good";

const HolderLink = ({ item, holder }: { item: BudgetItem; holder: HolderItem }) => (
  <a href={requestsPath(filtersOf(item, holder))}>
    <Value of={holderName(holder)} max={40} />
  </a>
);

interface CellProps {
  item: BudgetItem;
  holder: HolderItem;
}

function Share({ item, holder, now }: CellProps & { now: number }): Markup {
  const share = holder.used / holder.limit;
  return (
    <>
      <Meter share={share} tone={toneOfShare(item, share)} label={`${percent(share)} used`} /> {percent(share)}
      {holder.forecast_ends_at_ms !== null && (
        <p class="reason">
          At this rate, used up <Moment at={holder.forecast_ends_at_ms} now={now} />
        </p>
      )}
    </>
  );
}

const Used = ({ item, holder }: CellProps) => (
  <>
    <span class="num">
      {usedInWords(holder.used, holder.unknown_price_count)} of {amountOf(holder.limit, item)}
    </span>
    {holder.reserved > 0 && <p class="soft">{significant(holder.reserved)} reserved</p>}
    {holder.unknown_price_count > 0 && (
      <p class="reason">{plural(holder.unknown_price_count, "request")} of unknown price</p>
    )}
  </>
);

/** The requests that a holder's amount is made of. */
function filtersOf(item: BudgetItem, { name, member }: HolderItem): Filters {
  const since = { from_ms: item.started_at_ms };
  if (item.each === "key") return { ...since, key_name: name };
  if (item.each === "account") return { ...since, account_id: name };
  return { ...since, member };
}

const pathOf = ({ name }: BudgetItem, offset: number) =>
  withQuery("/admin/budgets", { budget: name, offset: offset === 0 ? undefined : String(offset) });

export const HolderPages = ({ item, offset }: { item: BudgetItem; offset: number }) => {
  const { count, items } = item.holders!;
  return (
    <OffsetPager
      offset={offset}
      limit={pageHolders}
      shown={items.length}
      total={count}
      pathOf={(to) => pathOf(item, to)}
    />
  );
};
