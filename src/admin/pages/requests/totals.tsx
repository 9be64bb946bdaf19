/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Totals of all requests that match the filters. */

import { duration, formatCount, formatCredits, formatUnits, percent, plural } from "../../../format";
import type { Totals } from "../../../history/history";
import { marked, unitsOf } from "../../../money";
import { Count, Duration, Tokens, Unknown } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { Pair } from "../../ui/lists";

export function TotalsLine({ totals }: { totals: Totals }): Markup {
  const failed = totals.error_count;
  const units = unitsOf(totals);
  return (
    <dl class="line">
      <Pair name="Requests">
        <Count of={totals.request_count} />
        <small>{failed === 0 ? "none failed" : `${formatCount(failed)} failed`}</small>
      </Pair>
      {units.credits && (
        <Pair name="AI credits">
          <Amount of={totals.nano_credits} format={formatCredits} totals={totals} />
          <UnknownCount totals={totals} />
        </Pair>
      )}
      {units.premium && (
        <Pair name="Premium requests">
          <Amount of={totals.premium_units} format={formatUnits} totals={totals} />
          {!units.credits && <UnknownCount totals={totals} />}
        </Pair>
      )}
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

interface AmountProps {
  of: number | null;
  format(amount: number): string;
  totals: Totals;
}

const Amount = ({ of, format, totals }: AmountProps): Markup =>
  of === null ? <Unknown /> : <span class="num">{marked(format(of), totals)}</span>;

/** How many requests are missing from the sums because nothing is known of their cost. */
const UnknownCount = ({ totals: { unknown_cost_count: unknown, request_count } }: { totals: Totals }) =>
  unknown > 0 && unknown < request_count && <small>unknown for {plural(unknown, "request")}</small>;
