/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Totals of all requests that match the filters. */

import type { Totals } from "../../../books/history/history";
import { duration, formatAmount, formatCount, percent, plural } from "../../../lib/format";
import { amountsOf, costUnits, isUnknown, marked } from "../../../lib/money";
import { Count, Duration, Tokens, Unknown } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { Pair } from "../../ui/lists";

export function TotalsLine({ totals }: { totals: Totals }): Markup {
  const failed = totals.error_count;
  return (
    <dl class="line">
      <Pair name="Requests">
        <Count of={totals.request_count} />
        <small>{failed === 0 ? "none failed" : `${formatCount(failed)} failed`}</small>
      </Pair>
      {amountsOf(totals).map(([unit, amount], at) => (
        <Pair name={costUnits[unit].label}>
          {isUnknown(totals) ? <Unknown /> : <span class="num">{marked(formatAmount(amount), totals)}</span>}
          {at === 0 && <UnknownCount totals={totals} />}
        </Pair>
      ))}
      <Pair name="Tokens in">
        <Tokens of={totals.input_tokens} />
        {totals.cached_share !== null && <small>{percent(totals.cached_share)} cached</small>}
      </Pair>
      <Pair name="Tokens out">
        <Tokens of={totals.output_tokens} />
      </Pair>
      <Pair name="Median time to first byte">
        {totals.p50_first_byte_ms !== null && "about "}
        {totals.request_count === 0 ? <span class="soft">–</span> : <Duration of={totals.p50_first_byte_ms} />}
        {totals.p95_first_byte_ms !== null && <small>95% within about {duration(totals.p95_first_byte_ms)}</small>}
      </Pair>
    </dl>
  );
}

/** How many requests are missing from the sums because nothing is known of their cost. */
const UnknownCount = ({ totals: { unknown, request_count } }: { totals: Totals }) =>
  unknown.cost > 0 && unknown.cost < request_count && <small>unknown for {plural(unknown.cost, "request")}</small>;
