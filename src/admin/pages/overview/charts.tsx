/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The charts of the overview: usage by day and model, requests by hour, usage by client. */

import type { Group, Statistics, Totals } from "../../../books/history/history";
import { toolOf } from "../../../clients/index";
import { clock, compact, day, formatAmount, formatCount, hourMs, isoDay, percent, plural } from "../../../lib/format";
import {
  addedCacheable,
  addedCost,
  amountsOf,
  type Costs,
  type CostUnit,
  cachedShareOf,
  costUnitNames,
  costUnits,
  isCostUnit,
  isUnknown,
  marked,
  sum,
  sumKnown,
} from "../../../lib/money";
import { type Column, StackedBars } from "../../ui/chart";
import { lastHours, startOfDay } from "../../ui/days";
import { CostOf, Unknown, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { requestsPath } from "../../ui/links";
import { Table } from "../../ui/lists";

/** A metric that the chart by day can show. */
interface Measure {
  label: string;
  of(totals: Totals): number | null;
  format(value: number): string;
  unit: string;
  /** It is a cost, which may be known in part only. */
  isCost?: true;
}

const costMeasure = (unit: CostUnit): Measure => ({
  label: costUnits[unit].label,
  unit: `${costUnits[unit].one}s`,
  of: ({ cost }) => cost[unit] ?? null,
  format: formatAmount,
  isCost: true,
});

export const chartMeasures: Record<string, Measure> = {
  ...Object.fromEntries(costUnitNames.map((unit) => [unit, costMeasure(unit)])),
  tokens: {
    label: "Tokens",
    unit: "tokens",
    of: ({ input_tokens, output_tokens }) => sumKnown([input_tokens, output_tokens]),
    format: compact,
  },
  requests: { label: "Requests", unit: "requests", of: ({ request_count }) => request_count, format: compact },
};

/** Whether the chart is offered: what is unknown, or billed in another unit, would have no bar. */
export const isShown = (name: string, totals: Totals): boolean =>
  isCostUnit(name)
    ? !isUnknown(totals) && amountsOf(totals).some(([unit]) => unit === name)
    : chartMeasures[name]!.of(totals) !== null;

/** The requested metric, or else the first with a value above zero. */
export function measureFor(requested: string | null, totals: Totals): string {
  if (requested !== null && Object.hasOwn(chartMeasures, requested)) return requested;
  return Object.keys(chartMeasures).find((name) => (chartMeasures[name]!.of(totals) ?? 0) > 0) ?? "requests";
}

/** Further models are shown together as "other models". */
const maxSeries = 6;

interface ByDayProps {
  statistics: Statistics;
  measure: Measure;
  /** Start of the first day. */
  first: number;
  days: number;
  now: number;
}

export function ByDay({ statistics, measure, first, days, now }: ByDayProps): Markup {
  const byModel = Map.groupBy(statistics.groups, ({ key }) => key.upstream_model ?? null);
  const inWords = (groups: readonly Totals[]) =>
    marked(measure.format(sum(groups.map(measure.of))), {
      cost_at_least: measure.isCost === true && groups.some(({ cost_at_least }) => cost_at_least),
    });
  const ordered = [...byModel]
    .map(([model, groups]) => [model, sum(groups.map(measure.of))] as const)
    .sort(([, a], [, b]) => b - a)
    .filter(([, amount]) => amount > 0);
  const named = ordered.slice(0, maxSeries);
  const left = ordered.slice(named.length);
  const series = [
    ...named.map(([model]) => ({
      name: model ?? "No model",
      text: inWords(byModel.get(model)!),
      href: requestsPath({ upstream_model: model, from_ms: first }),
    })),
    ...(left.length > 0
      ? [
          {
            name: plural(left.length, "other model"),
            text: inWords(left.flatMap(([model]) => byModel.get(model)!)),
            rest: true,
          },
        ]
      : []),
  ];
  const step = Math.ceil(days / 7);
  const byDay = Map.groupBy(statistics.groups, ({ key }) => key.day ?? "");
  const columns = Array.from({ length: days }, (_, at): Column => {
    const from = startOfDay(now, days - 1 - at);
    const groups = byDay.get(isoDay(from)) ?? [];
    const sumOf = (models: readonly (string | null)[]) =>
      sum(groups.filter(({ key }) => models.includes(key.upstream_model ?? null)).map(measure.of));
    const values = [
      ...named.map(([model]) => sumOf([model])),
      ...(left.length > 0 ? [sumOf(left.map(([model]) => model))] : []),
    ];
    const requests = sum(groups.map(({ request_count }) => request_count));
    return {
      label: day(from, now),
      short: (days - 1 - at) % step === 0 ? day(from, now) : "",
      minor: (days - 1 - at) % (step * 3) !== 0,
      href: requestsPath({ from_ms: from, to_ms: startOfDay(now, days - 2 - at) - 1 }),
      values,
      text: `${inWords(groups)} ${measure.unit}${measure.unit === "requests" ? "" : `, ${plural(requests, "request")}`}`,
    };
  });
  return (
    <StackedBars
      caption={`${measure.label} by day and model, last ${days} days`}
      series={series}
      columns={columns}
      format={measure.format}
      unit="Total"
    />
  );
}

/** The chart of `lastHours`. */
export function ByHour({ statistics, now }: { statistics: Statistics; now: number }): Markup {
  const first = lastHours(now).from_ms;
  const byHour = new Map(statistics.groups.map((group) => [group.filters.from_ms, group]));
  const { request_count: all, error_count: failed } = statistics.totals;
  const columns = Array.from({ length: 24 }, (_, at): Column => {
    const from = first + at * hourMs;
    const group = [...byHour].find(([start]) => start !== undefined && start >= from && start < from + hourMs)?.[1];
    const errors = group?.error_count ?? 0;
    const good = (group?.request_count ?? 0) - errors;
    return {
      label: `${clock(from)} to ${clock(from + hourMs)}`,
      short: (23 - at) % 6 === 0 ? clock(from) : "",
      href: requestsPath({ from_ms: from, to_ms: from + hourMs - 1 }),
      values: [good, errors],
      text: `${good} succeeded, ${errors} failed`,
    };
  });
  return (
    <StackedBars
      caption="Requests by hour, last 24 hours"
      series={[
        { name: "Succeeded", text: formatCount(all - failed), tone: "good" },
        {
          name: "Failed",
          text: formatCount(failed),
          tone: "bad",
          href: requestsPath({ has_error: true, ...lastHours(now) }),
        },
      ]}
      columns={columns}
      unit="Total"
    />
  );
}

export interface SharesProps {
  title: string;
  /** What a group is, in lower case. */
  of: string;
  groups: Group[];
  all: Totals;
  nameOf(group: Group): string;
  /** The names are those of clients: the versions of one tool share a row. */
  isTool?: boolean;
}

export function Shares({ title, of, groups: given, all, nameOf, isTool = false }: SharesProps): Markup {
  const groups = isTool ? byTool(given) : given.map((group) => ({ ...group, name: nameOf(group), versions: [] }));
  return (
    <>
      <h3>{title}</h3>
      {groups.length === 0 ? (
        <p class="soft">No requests.</p>
      ) : (
        <Table
          class="shares"
          caption={title}
          rows={groups.slice(0, 7)}
          columns={[[`${of[0]!.toUpperCase()}${of.slice(1)}`, (group) => <ToolShare group={group} />]]}
          numbers={[
            ["Requests", (group) => formatCount(group.request_count)],
            ["Cost", (group) => <CostOf of={group} />],
            ["Cached", (group) => (group.cached_share === null ? <Unknown /> : percent(group.cached_share))],
          ]}
        />
      )}
      {groups.length > 7 && (
        <p class="soft">
          {plural(groups.length - 7, `more ${of}`)} not shown; {plural(all.request_count, "request")} in total
        </p>
      )}
    </>
  );
}

interface ToolGroup extends Pick<Group, "filters" | "request_count" | "cached_share" | keyof Costs> {
  name: string;
  /** Those of a known tool, the most used first. */
  versions: { version: string; filters: Group["filters"] }[];
}

const ToolShare = ({ group: { name, filters, versions } }: { group: ToolGroup }) => (
  <>
    <a href={requestsPath(filters)}>
      <Value of={name} max={28} />
    </a>
    {versions.length > 0 && (
      <small>
        {versions.slice(0, 3).map(({ version, filters }, at) => (
          <>
            {at > 0 && ", "}
            <a href={requestsPath(filters)}>{version.slice(0, 20)}</a>
          </>
        ))}
        {versions.length > 3 && ` and ${plural(versions.length - 3, "more")}`}
      </small>
    )}
  </>
);

/** One row a tool, with its versions; its link leads to the version that was used most. */
function byTool(groups: Group[]): ToolGroup[] {
  const tools = Map.groupBy(
    groups,
    ({ key: { client_name } }) => toolOf(client_name ?? "")?.name ?? client_name ?? "no name",
  );
  return [...tools]
    .map(([name, ofTool]): ToolGroup => {
      return {
        name,
        filters: ofTool[0]!.filters,
        request_count: sum(ofTool.map(({ request_count }) => request_count)),
        ...addedCost(ofTool),
        cached_share: cachedShareOf(addedCacheable(ofTool.map(({ cacheable }) => cacheable))),
        versions: [
          // Two programs of a tool have its version: the one used more stands for it.
          ...new Map(
            ofTool.toReversed().flatMap(({ key, filters }) => {
              const version = toolOf(key.client_name ?? "")?.version;
              return version ? [[version, { version, filters }] as const] : [];
            }),
          ).values(),
        ].reverse(),
      };
    })
    .sort((one, other) => other.request_count - one.request_count);
}
