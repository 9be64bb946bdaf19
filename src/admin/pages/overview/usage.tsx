/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The usage section of the overview: totals of a day, a week and a month, charts by day and hour, usage by client. */

import type { Filters, Group, Totals } from "../../../books/history/history";
import { compact, dayMs, dollars, duration, formatAmount, formatCount, percent, plural } from "../../../lib/format";
import { amountsOf, costUnits, isUnknown, marked } from "../../../lib/money";
import { withTimeLimit } from "../../../lib/net/time-limit";
import type { Scope } from "../../../parts/app";
import { savedByCache } from "../../api/cache-savings";
import { lastHours, startOfDay } from "../../ui/days";
import { Count, Unknown } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { requestsPath, withQuery } from "../../ui/links";
import { Empty, Pair, Tabs } from "../../ui/lists";
import type { MemberNames } from "../member-names";
import { Portions } from "../portions";
import { ByDay, ByHour, chartMeasures, isShown, measureFor, Shares, type SharesProps } from "./charts";

const listPatienceMs = 1_000;

/** Covers the last 30 days, or the retention period if that is shorter. */
export async function usageSection(app: Scope, url: URL, names: MemberNames | undefined, now: number): Promise<Markup> {
  const { history } = app;
  const today = startOfDay(now);
  const kept = app.config.current.retentionDays;
  const days = Math.min(30, Math.max(7, kept));
  const first = startOfDay(now, days - 1);
  const weekAgo = now - 7 * dayMs;
  const [ofToday, ofWeek, ofWeekBefore, ofMonth, byDay, byHour] = [
    await history.totals({ from_ms: today }),
    await history.totals({ from_ms: weekAgo }),
    kept >= 14 ? await weekBefore(history, weekAgo) : undefined,
    await history.totals({ from_ms: now - 30 * dayMs }),
    await history.statistics({ from_ms: first }, ["day", "upstream_model"]),
    await history.statistics(lastHours(now), ["hour"]),
  ];
  if (ofMonth.request_count === 0) return <NothingUsed />;
  // The numbers do not wait for a model list that is slow to come.
  const saved = await withTimeLimit(savedByCache(app, byDay.groups), listPatienceMs, () => null);
  const shares = await sharesOf(app, names, weekAgo);
  const portions = (await history.portions({ from_ms: weekAgo })).map((each) => ({ ...each, grown: null }));
  const chosen = measureFor(url.searchParams.get("measure"), byDay.totals);
  return (
    <>
      <ul class="cards few">
        <li>
          <Period name="Today" totals={ofToday} filters={{ from_ms: today }} />
        </li>
        <li>
          <Period name="Last 7 days" totals={ofWeek} before={ofWeekBefore} filters={{ from_ms: weekAgo }} />
        </li>
        <li>
          <Period
            name={`Last ${plural(Math.min(30, kept), "day")}`}
            totals={ofMonth}
            saved={saved}
            filters={{ from_ms: now - 30 * dayMs }}
          />
        </li>
      </ul>
      <div class="card wide">
        <MeasureTabs totals={byDay.totals} chosen={chosen} />
        <ByDay statistics={byDay} measure={chartMeasures[chosen]!} first={first} days={days} now={now} />
      </div>
      <div class="halves">
        {portions.length > 0 && (
          <div class="card">
            <h3>What it went into, last 7 days</h3>
            <Portions portions={portions} caption="The parts of all prompts, and the replies" most={6} isSum />
          </div>
        )}
        <div class="card">
          <ByHour statistics={byHour} now={now} />
        </div>
        {shares.map((share) => (
          <div class="card">
            <Shares {...share} />
          </div>
        ))}
      </div>
    </>
  );
}

/** The totals of the week that ended at a time; undefined unless the history reaches back to its first day. */
async function weekBefore(history: Scope["history"], end: number): Promise<Totals | undefined> {
  const from_ms = end - 7 * dayMs;
  const reaches = (await history.lastOf({ to_ms: from_ms + dayMs })) !== undefined;
  return reaches ? history.totals({ from_ms, to_ms: end - 1 }) : undefined;
}

const MeasureTabs = ({ totals, chosen }: { totals: Totals; chosen: string }) => (
  <Tabs
    label="Chart metric"
    items={Object.entries(chartMeasures)
      .filter(([name]) => name === chosen || isShown(name, totals))
      .map(([name, { label }]) => [name, label])}
    chosen={chosen}
    pathOf={(measure) => withQuery("/admin", { measure })}
  />
);

/** Who used how much: by client, and by whatever else the requests name. */
async function sharesOf({ history }: Scope, names: MemberNames | undefined, from_ms: number) {
  const kinds = [
    { of: "client", column: "client_name", none: "no name" },
    { of: "key", column: "key_name", none: "without a key" },
    { of: "project", column: "project", none: "no project" },
    ...(names ? ([{ of: "member", column: "member", none: "no member" }] as const) : []),
  ] as const;
  const shares: SharesProps[] = [];
  for (const { of, column, none } of kinds) {
    const { groups, totals: all } = await history.statistics({ from_ms }, [column]);
    if (column !== "client_name" && groups.every(({ key }) => key[column] == null)) continue;
    const nameOf = ({ key }: Group) => (column === "member" ? names!.nameOf(key.member) : (key[column] ?? none));
    shares.push({ title: `Usage by ${of}, last 7 days`, of, groups, all, nameOf, isTool: column === "client_name" });
  }
  return shares;
}

const NothingUsed = () => (
  <Empty title="No usage yet" link={["/admin/connect", "Connect a client"]} primary>
    Usage and cost appear here after a client sends its first request.
  </Empty>
);

interface PeriodProps {
  name: string;
  totals: Totals;
  /** Of the period before, to compare with. */
  before?: Totals;
  /** What the cache saved, in billionths of a credit; null if that is unknown. */
  saved?: number | null;
  filters: Filters;
}

function Period({ name, totals, before, saved, filters }: PeriodProps): Markup {
  const href = requestsPath(filters);
  return (
    <article class="card period">
      <h3>{name}</h3>
      <p class="big">
        <a href={href}>
          <Count of={totals.request_count} />
          <span class="unit"> {totals.request_count === 1 ? "request" : "requests"}</span>
        </a>
      </p>
      <dl class="pairs">
        <Pair name="Succeeded">
          {totals.success_rate === null ? (
            <span class="soft">–</span>
          ) : (
            <span class="num">{percent(totals.success_rate)}</span>
          )}
          {totals.error_count > 0 && (
            <a class="aside" href={requestsPath({ ...filters, has_error: true })}>
              {formatCount(totals.error_count)} failed
            </a>
          )}
        </Pair>
        {amountsOf(totals).map(([unit, amount]) => (
          <Pair name={costUnits[unit].label}>
            <Sum
              totals={totals}
              of={isUnknown(totals) ? null : amount}
              format={(known) => marked(formatAmount(known), totals)}
              href={href}
            />
            {unit === "credits" && amount > 0 && <span class="aside soft">{dollars(amount)}</span>}
          </Pair>
        ))}
        {before && <Compared totals={totals} before={before} />}
        {saved != null && saved > 0 && <SavedByCache nanoCredits={saved} />}
        <Pair name="Tokens in">
          <Sum totals={totals} of={totals.input_tokens} format={compact} href={href} />
          {totals.cached_share !== null && <span class="aside soft">{percent(totals.cached_share)} cached</span>}
        </Pair>
        <Pair name="Tokens out">
          <Sum totals={totals} of={totals.output_tokens} format={compact} href={href} />
        </Pair>
        <Pair name="Time to first byte">
          <Sum totals={totals} of={totals.p50_first_byte_ms} format={(ms) => `about ${duration(ms)}`} href={href} />
          {totals.p95_first_byte_ms !== null && (
            <span class="aside soft">95% within about {duration(totals.p95_first_byte_ms)}</span>
          )}
        </Pair>
      </dl>
    </article>
  );
}

const SavedByCache = ({ nanoCredits }: { nanoCredits: number }) => (
  <Pair name="Saved by cache">
    <a class="figure" href="/admin/cache?period=month">
      <span class="num">{formatAmount(nanoCredits)}</span>
    </a>
    <span class="aside soft">{dollars(nanoCredits)}, at list prices</span>
  </Pair>
);

/** The credits of this period beside those of the one before; nothing if one of them is unknown. */
function Compared({ totals, before }: { totals: Totals; before: Totals }): Markup | false {
  const [now, then] = [totals.cost.credits, before.cost.credits];
  if (now === undefined || !then) return false;
  const change = now / then - 1;
  return (
    <Pair name="The week before">
      <span class="num">{marked(formatAmount(then), before)}</span>
      <span class="aside soft">
        {Math.abs(change) < 0.005 ? "as much" : `now ${percent(Math.abs(change))} ${change > 0 ? "more" : "less"}`}
      </span>
    </Pair>
  );
}

/** A dash if there were no requests; "unknown" if the upstream reported no value. */
function Sum({ totals, of, format, href }: SumProps): Markup {
  if (totals.request_count === 0) return <span class="soft">–</span>;
  return (
    <a class="figure" href={href}>
      {of === null ? <Unknown /> : <span class="num">{format(of)}</span>}
    </a>
  );
}

interface SumProps {
  totals: Totals;
  of: number | null;
  format: (value: number) => string;
  href: string;
}
