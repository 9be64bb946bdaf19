/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The usage section of the overview: totals of a day, a week and a month, charts by day and hour, usage by client. */

import type { Group, Totals } from "../../../books/history/history";
import { dayMs, plural } from "../../../lib/format";
import { withTimeLimit } from "../../../lib/net/time-limit";
import type { Scope } from "../../../parts/app";
import { listBudgets } from "../../api/budgets";
import { savedByCache } from "../../api/cache-savings";
import { lastHours, startOfDay } from "../../ui/days";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { withQuery } from "../../ui/links";
import { Empty, Tabs } from "../../ui/lists";
import type { MemberNames } from "../member-names";
import { Portions } from "../portions";
import { dearestPrompts } from "../prompts/dearest";
import { ByDay, ByHour, chartMeasures, isShown, measureFor, Shares, type SharesProps } from "./charts";
import { Budgets, Periods } from "./periods";

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
  if (ofMonth.request_count === 0) return <NothingUsed hasAccount={app.accounts.length > 0} />;
  // The numbers do not wait for a model list that is slow to come.
  const saved = await withTimeLimit(savedByCache(app, byDay.groups), listPatienceMs, () => null);
  const shares = await sharesOf(app, names, weekAgo);
  const portions = (await history.portions({ from_ms: weekAgo })).map((each) => ({ ...each, grown: null }));
  const chosen = measureFor(url.searchParams.get("measure"), byDay.totals);
  return (
    <>
      <Periods
        rows={[
          { name: "Today", totals: ofToday, filters: { from_ms: today } },
          { name: "Last 7 days", totals: ofWeek, before: ofWeekBefore, filters: { from_ms: weekAgo } },
          {
            name: `Last ${plural(Math.min(30, kept), "day")}`,
            totals: ofMonth,
            saved,
            filters: { from_ms: now - 30 * dayMs },
          },
        ]}
      />
      <Budgets items={await listBudgets(app, { limit: 1, offset: 0 })} now={now} />
      {await dearestPrompts(app, now)}
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

/** The button that comes next is the blue one: without an account, another section has it. */
const NothingUsed = ({ hasAccount }: { hasAccount: boolean }) => (
  <Empty title="No usage yet" link={["/admin/connect", "Connect a client"]} primary={hasAccount}>
    Usage and cost appear here after a client sends its first request.
  </Empty>
);
