/** @jsxRuntime automatic @jsxImportSource #jsx */
/** What was used today, in a week and in a month, side by side, and how far the budgets are. */
import type { Filters, Totals } from "../../../books/history/history";
import {
  compact,
  duration,
  formatAmount,
  formatCount,
  moment,
  percent,
  plural,
  significant,
} from "../../../lib/format";
import { amountsOf, type CostUnit, costUnitNames, costUnits, inDollars, isUnknown, marked } from "../../../lib/money";
import type { BudgetItem } from "../../../people/budgets/budget-list";
import { amountOf, creditsInDollars, usedInWords } from "../../../people/budgets/sentences";
import type { Saving } from "../../api/cache-savings";
import { Unknown, Value } from "../../ui/format";
import type { Child, Markup } from "../../ui/jsx/jsx-runtime";
import { requestsPath } from "../../ui/links";
import { Table } from "../../ui/lists";

interface PeriodRow {
  name: string;
  totals: Totals;
  /** Of the period before, to compare with. */
  before?: Totals | undefined;
  /** What the cache saved; null if it takes too long to find out. */
  saved?: Saving | null;
  filters: Filters;
}

/** The units of which something is known, or credits. */
const unitsIn = (rows: readonly PeriodRow[]): CostUnit[] =>
  costUnitNames.filter((unit) => rows.some(({ totals }) => amountsOf(totals).some(([own]) => own === unit)));

export const Periods = ({ rows }: { rows: PeriodRow[] }): Markup => (
  <Table
    class="rows labelled periods"
    caption="Usage by period"
    rows={rows}
    columns={[["Period", ({ name }) => name]]}
    numbers={[
      [
        "Requests",
        ({ totals, filters }) => (
          <>
            <a class="figure num" href={requestsPath(filters)}>
              {formatCount(totals.request_count)}
            </a>
            {totals.error_count > 0 && (
              <small>
                <a href={requestsPath({ ...filters, has_error: true })}>{formatCount(totals.error_count)} failed</a>
              </small>
            )}
          </>
        ),
      ],
      ...unitsIn(rows).map(
        (unit) => [costUnits[unit].label, (row: PeriodRow) => <Spent row={row} unit={unit} />] as const,
      ),
      [
        "Tokens in",
        (row) => (
          <Sum
            row={row}
            of={row.totals.input_tokens}
            format={compact}
            more={row.totals.cached_share !== null && `${percent(row.totals.cached_share)} cached`}
          />
        ),
      ],
      ["Tokens out", (row) => <Sum row={row} of={row.totals.output_tokens} format={compact} />],
      [
        "Time to first byte",
        (row) => (
          <Sum
            row={row}
            of={row.totals.p50_first_byte_ms}
            format={(ms) => `about ${duration(ms)}`}
            more={row.totals.p95_first_byte_ms !== null && `95% within about ${duration(row.totals.p95_first_byte_ms)}`}
          />
        ),
      ],
    ]}
  />
);

function Spent({ row, unit }: { row: PeriodRow; unit: CostUnit }): Markup {
  const { totals, before, saved } = row;
  const amount = totals.cost[unit];
  const known = isUnknown(totals) ? null : (amount ?? 0);
  const asides = [
    unit === "credits" && amount ? inDollars(totals) : "",
    unit === "credits" && before ? comparedWith(totals, before) : "",
    unit === "credits" && saved ? savedInWords(saved) : "",
  ].filter(Boolean);
  return <Sum row={row} of={known} format={(value) => marked(formatAmount(value), totals)} more={asides.join(" · ")} />;
}

/** `1.2 saved by the cache, unknown for 3 requests`; empty if nothing was saved, or nothing is known of it. */
const savedInWords = ({ saved_nano_credits: saved, unknown_saving_count: unknown }: Saving): string =>
  saved
    ? `${formatAmount(saved)} saved by the cache${unknown > 0 ? `, unknown for ${plural(unknown, "request")}` : ""}`
    : "";

/** `the week before 2, now 50% more`; without a comparison that an unknown cost may turn, and empty if one of them is unknown. */
function comparedWith(totals: Totals, before: Totals): string {
  const [now, then] = [totals.cost.credits, before.cost.credits];
  if (now === undefined || !then) return "";
  const change = now / then - 1;
  const share = `${totals.cost_at_least ? "at least " : ""}${percent(Math.abs(change))}`;
  const how = Math.abs(change) < 0.005 ? "as much" : `${share} ${change > 0 ? "more" : "less"}`;
  const isOpen = before.cost_at_least || (totals.cost_at_least && change < 0.005);
  return `the week before ${marked(formatAmount(then), before)}${isOpen ? "" : `, now ${how}`}`;
}

interface SumProps {
  row: PeriodRow;
  of: number | null;
  format: (value: number) => string;
  more?: Child;
}

/** A dash if there were no requests; "unknown" if the upstream reported no value. */
function Sum({ row: { totals }, of, format, more }: SumProps): Markup {
  if (totals.request_count === 0) return <span class="soft">–</span>;
  return (
    <>
      {of === null ? <Unknown /> : <span class="num">{format(of)}</span>}
      {more && <small>{more}</small>}
    </>
  );
}

/** One row for each; what each holder of a budget has is on the page Budgets. */
export const Budgets = ({ items, now }: { items: BudgetItem[]; now: number }) =>
  items.length > 0 && (
    <Table
      class="rows labelled periods"
      caption="Budgets"
      rows={items}
      columns={[
        [
          "Budget",
          ({ name }) => (
            <a href="/admin/budgets">
              <Value of={name} max={40} />
            </a>
          ),
        ],
      ]}
      numbers={[
        [
          "Used",
          (item) =>
            item.used === null ? (
              <span class="soft">by each holder</span>
            ) : (
              <>
                <span class="num">{usedInWords(item.used, item.unknown_price_count)}</span>
                <small>
                  {percent(item.used / item.limit)}
                  {item.unit === "credits" && ` · ${creditsInDollars(item.used, item.unknown_price_count)}`}
                </small>
              </>
            ),
        ],
        [
          "Limit",
          (item) => (
            <>
              <span class="num">{amountOf(item.limit, item)}</span>
              <small>
                per {item.per}
                {item.unit === "credits" && ` · ${creditsInDollars(item.limit, 0)}`}
              </small>
            </>
          ),
        ],
        ["Left", (item) => (item.used === null ? "–" : significant(Math.max(0, item.limit - item.used)))],
        ["Resets", (item) => moment(item.resets_at_ms, now)],
      ]}
    />
  );
