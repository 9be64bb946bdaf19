/** Every metric, by one table: its names, its meaning, and how it is read. Nothing here is done before somebody asks. */

import type { ConfigStore } from "../../config/store";
import type { Awaitable } from "../../lib/awaitable";
import type { BudgetGuard } from "../../people/budgets/guard";
import type { Members } from "../../people/keys/members";
import type { Team } from "../../people/keys/team";
import type { Drift } from "../changes/drift";
import type { Losses } from "../changes/losses";
import type { History } from "../history/history";
import type { InFlight } from "../live/in-flight";
import { type AccountSources, budgetPoints, countPoints, quotaPoints, statePoints } from "./account-points";
import type { ExchangeMetrics } from "./exchange-metrics";
import { openFilesOf } from "./open-files";
import type { CounterFamily, Distribution, HistogramFamily, Point, SeriesFamily } from "./series";

/** What the metrics are read from. */
interface MetricSources extends AccountSources {
  readonly version: string;
  readonly draining: boolean;
  readonly members?: Pick<Members, "find" | "list">;
  readonly team?: Team;
  readonly isLeader: boolean;
  /** Present while this server has been cut off from its team for too long. */
  readonly isolation?: object;
  readonly config: Pick<ConfigStore, "fault">;
  readonly history: Pick<History, "degraded" | "queued" | "lost">;
  readonly inFlight: Pick<InFlight, "count" | "running">;
  readonly budgets: Pick<BudgetGuard, "overview" | "lost">;
  readonly exchangeMetrics: ExchangeMetrics;
  readonly drift: Pick<Drift, "sightings">;
  readonly losses: Pick<Losses, "current">;
}

interface MetricNames {
  /** A counter's name ends in `_total`, and a unit is part of the name. */
  name: string;
  help: string;
}

interface NumberMetric extends MetricNames {
  kind: "counter" | "gauge";
  points: Point<number>[];
}

interface HistogramMetric extends MetricNames {
  kind: "histogram";
  bounds: readonly number[];
  points: Point<Distribution>[];
}

/** The present values of a metric. */
export type Metric = NumberMetric | HistogramMetric;

type MetricRow =
  | (MetricNames & { kind: "counter" | "gauge"; read(sources: MetricSources): Awaitable<Point<number>[]> })
  | (MetricNames & { kind: "histogram"; read(sources: MetricSources): HistogramFamily });

const one = (value: number): Point<number>[] => [{ labels: {}, value }];
const flag = (value: boolean) => one(value ? 1 : 0);
const counted = (family: CounterFamily) => pointsOf(family);

// biome-ignore format: a table
export const metricRows: readonly MetricRow[] = [
  { name: "dragoman_requests_total", kind: "counter", help: "Requests that have ended. The status class cut: an answer that began with 200 and ended with an error.",
    read: ({ exchangeMetrics }) => counted(exchangeMetrics.requests) },
  { name: "dragoman_request_duration_seconds", kind: "histogram", help: "From a request's first byte to the last byte of its answer.",
    read: ({ exchangeMetrics }) => exchangeMetrics.seconds },
  { name: "dragoman_time_to_first_byte_seconds", kind: "histogram", help: "From a request's first byte to the first byte of its answer.",
    read: ({ exchangeMetrics }) => exchangeMetrics.firstByteSeconds },
  { name: "dragoman_request_tokens", kind: "histogram", help: "Tokens of a request: input, with cached ones, and output.",
    read: ({ exchangeMetrics }) => exchangeMetrics.requestTokens },
  { name: "dragoman_tokens_total", kind: "counter", help: "Tokens as the upstream reports them. Cached and cache_write are part of input, reasoning of output.",
    read: ({ exchangeMetrics }) => counted(exchangeMetrics.tokens) },
  { name: "dragoman_cost_total", kind: "counter", help: "What requests cost: AI credits (unit credits), or premium requests by each model's multiplier (unit premium). At least so much, where dragoman_cost_unknown_total counts.",
    read: ({ exchangeMetrics }) => counted(exchangeMetrics.cost) },
  { name: "dragoman_cost_unknown_total", kind: "counter", help: "Requests whose cost is not known, or not as a whole: it is at least what dragoman_cost_total has of them.",
    read: ({ exchangeMetrics }) => counted(exchangeMetrics.costUnknown) },
  { name: "dragoman_upstream_errors_total", kind: "counter", help: "Tries that failed, by status or error code, also those that another try made up for.",
    read: ({ exchangeMetrics }) => counted(exchangeMetrics.upstreamErrors) },
  { name: "dragoman_client_telemetry_total", kind: "counter", help: "Messages of telemetry that signed-in clients sent: metrics, logs, traces. Nothing of them is kept.",
    read: ({ exchangeMetrics }) => counted(exchangeMetrics.clientTelemetry) },
  { name: "dragoman_requests_open", kind: "gauge", help: "Requests in flight.",
    read: ({ inFlight }) => one(inFlight.count) },
  { name: "dragoman_streams_open", kind: "gauge", help: "Requests in flight that asked for a stream.",
    read: ({ inFlight }) => one(inFlight.running().filter(({ stream }) => stream === 1).length) },
  { name: "dragoman_account_state", kind: "gauge", help: "1 for the state that an account is in, 0 for the others.",
    read: statePoints },
  { name: "dragoman_accounts", kind: "gauge", help: "Accounts in each state, those of all members too.",
    read: countPoints },
  { name: "dragoman_quota_remaining_ratio", kind: "gauge", help: "Share of an account's quota that is left, as last known; negative for overage.",
    read: quotaPoints },
  { name: "dragoman_budget_spent_ratio", kind: "gauge", help: "Share of a budget that is used in its present period; where each member, key or account has an amount, of the one with the largest share.",
    read: async ({ budgets }) => budgetPoints(await budgets.overview()) },
  { name: "dragoman_upstream_new_total", kind: "counter", help: "What Copilot sent and dragoman does not know, by name. One reply a minute of each model is looked at.",
    read: ({ drift }) => drift.sightings.map(({ kind, name, where, count }) => ({ labels: { kind, name, where }, value: count })) },
  { name: "dragoman_upstream_missing", kind: "gauge", help: "1 for each member that Copilot no longer sends and a price, limit, quota or usage is read from. Something is unknown then; the page Health says what.",
    read: ({ losses }) => losses.current.map(({ where, member }) => ({ labels: { where, member }, value: 1 })) },
  { name: "dragoman_history_queue", kind: "gauge", help: "Rows of the history that are not written yet.",
    read: ({ history }) => one(history.queued) },
  { name: "dragoman_history_degraded", kind: "gauge", help: "1 while the history cannot be written.",
    read: ({ history }) => flag(history.degraded) },
  { name: "dragoman_rows_lost_total", kind: "counter", help: "Requests that are missing in the history, and in the budgets, because nothing could keep them: neither the database nor the disk.",
    read: ({ history, budgets }) => [{ labels: { kind: "requests" }, value: history.lost }, { labels: { kind: "settlements" }, value: budgets.lost }] },
  { name: "dragoman_config_valid", kind: "gauge", help: "0 while the config has an error, so that an older one is in effect.",
    read: ({ config }) => flag(config.fault === undefined) },
  { name: "dragoman_draining", kind: "gauge", help: "1 after a signal to stop.",
    read: ({ draining }) => flag(draining) },
  { name: "dragoman_members", kind: "gauge", help: "Members of the team. This one and those below are there with a database only.",
    read: ({ members }) => (members ? one(members.list().length) : []) },
  { name: "dragoman_servers", kind: "gauge", help: "Servers of the team that were alive within the last minute, by version.",
    read: ({ team }) => serverPoints(team) },
  { name: "dragoman_leader", kind: "gauge", help: "1 at the server that does what only one has to do.",
    read: ({ team, isLeader }) => (team ? flag(isLeader) : []) },
  { name: "dragoman_database_up", kind: "gauge", help: "0 while this server cannot reach the database.",
    read: ({ team }) => (team ? flag(!team.isDatabaseAway) : []) },
  { name: "dragoman_database_answered_timestamp_seconds", kind: "gauge", help: "When the database answered last, Unix time.",
    read: ({ team }) => (team ? one((Date.now() - team.silence) / 1000) : []) },
  { name: "dragoman_isolated", kind: "gauge", help: "1 while requests are refused because the database has been away for too long.",
    read: ({ team, isolation }) => (team ? flag(isolation !== undefined) : []) },
  { name: "dragoman_rows_waiting", kind: "gauge", help: "Rows on this server's disk that wait for the database.",
    read: ({ team }) => Object.entries(team?.waiting() ?? {}).map(([kind, value]) => ({ labels: { kind }, value })) },
  { name: "dragoman_build_info", kind: "gauge", help: "The version.",
    read: ({ version }) => [{ labels: { version, bun: Bun.version }, value: 1 }] },
  { name: "process_cpu_seconds_total", kind: "counter", help: "CPU time of the process.",
    read: () => one(cpuSeconds()) },
  { name: "process_resident_memory_bytes", kind: "gauge", help: "Memory of the process.",
    read: () => one(process.memoryUsage.rss()) },
  { name: "process_start_time_seconds", kind: "gauge", help: "When the process started, Unix time.",
    read: () => one(startedAtMs / 1000) },
  { name: "process_open_fds", kind: "gauge", help: "Open files and sockets; Linux only.",
    read: () => known(openFilesOf("self")?.open) },
  { name: "process_max_fds", kind: "gauge", help: "How many it may have; Linux only.",
    read: () => known(openFilesOf("self")?.limit) },
];

/** When this process started, Unix ms. */
const startedAtMs = Date.now() - Math.round(process.uptime() * 1000);

/** The present values of all metrics. One that cannot be read now has no values, and the last metric names it. */
export async function readMetrics(sources: MetricSources): Promise<Metric[]> {
  const unreadable: string[] = [];
  const metrics = await Promise.all(
    metricRows.map(async (row): Promise<Metric> => {
      if (row.kind === "histogram") {
        const family = row.read(sources);
        return { ...row, bounds: family.bounds, points: pointsOf(family) };
      }
      try {
        return { ...row, points: await row.read(sources) };
      } catch {
        unreadable.push(row.name);
        return { ...row, points: [] };
      }
    }),
  );
  return [
    ...metrics,
    {
      name: "dragoman_metrics_unreadable",
      kind: "gauge",
      help: "1 for each metric that could not be read now.",
      points: unreadable.map((metric) => ({ labels: { metric }, value: 1 })),
    },
  ];
}

const pointsOf = <Value>({ labels, all }: SeriesFamily<Value>): Point<Value>[] =>
  Array.from(all(), ([values, value]) => ({
    labels: Object.fromEntries(labels.map((label, at) => [label, values[at]!])),
    value,
  }));

function serverPoints(team: Team | undefined): Point<number>[] {
  const byVersion = Map.groupBy(team?.servers ?? [], ({ version }) => version);
  return Array.from(byVersion, ([version, servers]) => ({ labels: { version }, value: servers.length }));
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

const known = (value: number | undefined): Point<number>[] => (value === undefined ? [] : one(value));
