/** @jsxRuntime automatic @jsxImportSource #jsx */
/** What is left, what was used, what failed: the first page, and the answer to "may I go on like this?". */
import type { App } from "../app";
import type { Filters, Group, Statistics, Totals } from "../history/history";
import { AccountCard, type Attention, attentionOf } from "./account-card";
import { type AccountItem, listAccounts } from "./accounts";
import { type Column, StackedBars } from "./chart";
import {
  Count,
  clock,
  compact,
  count,
  credits,
  day,
  dollars,
  duration,
  percent,
  plural,
  Sentence,
  significant,
  Unknown,
  units,
  Value,
} from "./figures";
import type { Child, Markup } from "./jsx/jsx-runtime";
import { Page } from "./layout";
import { requestsPath, withQuery } from "./links";
import { type SlowPage, slot } from "./slow";
import type { Visit } from "./visit";

export function overviewPage({ app, frame, url, exposed }: Visit): SlowPage {
  const now = app.now();
  return {
    page: (
      <Page frame={frame} title="Overview" current="/admin" aside={<RunningNow count={app.live.count} />}>
        {app.demo && <DemoNote />}
        <section aria-labelledby="attention" class="attention">
          <h2 id="attention">Needs your attention</h2>
          {slot}
        </section>
        <section aria-labelledby="left">
          <h2 id="left">What is left</h2>
          {slot}
        </section>
        <section aria-labelledby="used">
          <h2 id="used">What was used</h2>
          {slot}
        </section>
      </Page>
    ),
    parts: partsOf(app, url, exposed, now),
  };
}

function partsOf(app: App, url: URL, exposed: boolean, now: number): SlowPage["parts"] {
  let asked: Promise<AccountItem[]> | undefined;
  const accounts = () => {
    asked ??= listAccounts(app);
    return asked;
  };
  return [
    async () => {
      const recent = await app.history.totals({ from_ms: now - hourMs });
      return <Attentions found={attentionOf(app, await accounts(), recent, exposed, now)} />;
    },
    async () => <Left accounts={await accounts()} now={now} />,
    () => used(app, url, now),
  ];
}

const hourMs = 3_600_000;
const dayMs = 86_400_000;

const RunningNow = ({ count: running }: { count: number }) =>
  running === 0 ? (
    <span class="soft">nothing is running</span>
  ) : (
    <a href="/admin/requests?follow=1" class="badge busy">
      {plural(running, "request")} running
    </a>
  );

export const DemoNote = () => (
  <p class="note info">
    <strong>DEMO.</strong> A scripted upstream answers: the accounts, models and prices are made up, nothing is charged,
    and nothing leaves this machine.
  </p>
);

function Attentions({ found }: { found: Attention[] }): Markup {
  if (found.length === 0) return <p class="calm">Nothing. Accounts, history and config are well.</p>;
  return (
    <ul class="alerts">
      {found.map(({ tone, what, todo, href }) => (
        <li class={`note ${tone}`}>
          <strong>{what}</strong> <Sentence of={todo} /> {href && <a href={href}>Look at it</a>}
        </li>
      ))}
    </ul>
  );
}

function Left({ accounts, now }: { accounts: AccountItem[]; now: number }): Markup {
  if (accounts.length === 0)
    return (
      <div class="empty">
        <h3>No account is signed in</h3>
        <p>
          Run <code>dragoman auth</code> in a terminal: it shows a code to enter at GitHub, and the account serves at
          once, without a restart.
        </p>
      </div>
    );
  return (
    <ul class="cards few">
      {accounts.map((account) => (
        <li>
          <AccountCard account={account} now={now} />
        </li>
      ))}
    </ul>
  );
}

// ── What was used ──

async function used(app: App, url: URL, now: number): Promise<Markup> {
  const { history } = app;
  const today = startOfDay(now);
  const days = Math.min(30, Math.max(7, app.config.current.retentionDays));
  const first = startOfDay(now, days - 1);
  const [ofToday, ofWeek, ofMonth, byDay, byHour, byClient] = [
    await history.totals({ from_ms: today }),
    await history.totals({ from_ms: now - 7 * dayMs }),
    await history.totals({ from_ms: now - 30 * dayMs }),
    await history.statistics({ from_ms: first }, ["day", "upstream_model"]),
    await history.statistics({ from_ms: startOfHour(now) - 23 * hourMs }, ["hour"]),
    await history.statistics({ from_ms: now - 7 * dayMs }, ["client_name"]),
  ];
  if (ofMonth.request_count === 0) return <NothingUsed />;
  const measure = measureFor(url.searchParams.get("measure"), byDay.totals);
  const kept = app.config.current.retentionDays;
  return (
    <>
      <ul class="cards three">
        <li>
          <Period name="Today" totals={ofToday} filters={{ from_ms: today }} />
        </li>
        <li>
          <Period name="Last 7 days" totals={ofWeek} filters={{ from_ms: now - 7 * dayMs }} />
        </li>
        <li>
          <Period
            name="Last 30 days"
            note={kept < 30 ? `the history keeps ${plural(kept, "day")}` : undefined}
            totals={ofMonth}
            filters={{ from_ms: now - 30 * dayMs }}
          />
        </li>
      </ul>
      <div class="card wide">
        <nav class="tabs" aria-label="What the chart shows">
          <ul>
            {Object.entries(measures).map(([name, { label }]) => (
              <li>
                <a href={withQuery("/admin", { measure: name })} aria-current={name === measure ? "true" : undefined}>
                  {label}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <ByDay statistics={byDay} measure={measures[measure]!} first={first} days={days} now={now} />
      </div>
      <div class="halves">
        <div class="card">
          <ByHour statistics={byHour} now={now} />
        </div>
        <div class="card">
          <Shares title="Clients, last 7 days" groups={byClient.groups} all={byClient.totals} />
        </div>
      </div>
    </>
  );
}

const NothingUsed = () => (
  <div class="empty">
    <h3>Nothing yet</h3>
    <p>Once a client has asked for something, its use and its cost add up here.</p>
    <p>
      <a class="button primary" href="/admin/connect">
        Connect a client
      </a>
    </p>
  </div>
);

function Period({
  name,
  note,
  totals,
  filters,
}: {
  name: string;
  note?: string;
  totals: Totals;
  filters: Filters;
}): Markup {
  const href = requestsPath(filters);
  return (
    <article class="card period">
      <h3>
        {name} {note && <span class="soft">· {note}</span>}
      </h3>
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
              {count(totals.error_count)} failed
            </a>
          )}
        </Pair>
        <Pair name="AI credits">
          <Sum totals={totals} of="nano_credits" tell={credits} href={href} />
          {totals.nano_credits !== null && totals.nano_credits > 0 && (
            <span class="aside soft">{dollars(totals.nano_credits)}</span>
          )}
        </Pair>
        <Pair name="Premium requests">
          <Sum totals={totals} of="premium_units" tell={units} href={href} />
        </Pair>
        <Pair name="Tokens in">
          <Sum totals={totals} of="input_tokens" tell={compact} href={href} />
          {totals.cached_share !== null && <span class="aside soft">{percent(totals.cached_share)} cached</span>}
        </Pair>
        <Pair name="Tokens out">
          <Sum totals={totals} of="output_tokens" tell={compact} href={href} />
        </Pair>
        <Pair name="First byte">
          <Sum totals={totals} of="p50_first_byte_ms" tell={duration} href={href} />
          {totals.p95_first_byte_ms !== null && (
            <span class="aside soft">95 % within {duration(totals.p95_first_byte_ms)}</span>
          )}
        </Pair>
      </dl>
    </article>
  );
}

const Pair = ({ name, children }: { name: string; children?: Child }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

/** Nothing was used where nothing was asked; else what nobody knows is unknown. */
function Sum({ totals, of, tell, href }: SumProps): Markup {
  if (totals.request_count === 0) return <span class="soft">–</span>;
  const value = totals[of];
  return (
    <a class="figure" href={href}>
      {value === null ? <Unknown /> : <span class="num">{tell(value)}</span>}
    </a>
  );
}

interface SumProps {
  totals: Totals;
  of: "nano_credits" | "premium_units" | "input_tokens" | "output_tokens" | "p50_first_byte_ms";
  tell: (value: number) => string;
  href: string;
}

// ── Charts ──

interface Measure {
  label: string;
  of(totals: Totals): number | null;
  tell(value: number): string;
  unit: string;
}

const measures: Record<string, Measure> = {
  credits: { label: "AI credits", unit: "credits", of: ({ nano_credits }) => nano_credits, tell: credits },
  premium: {
    label: "Premium requests",
    unit: "premium requests",
    of: ({ premium_units }) => premium_units,
    tell: significant,
  },
  tokens: {
    label: "Tokens",
    unit: "tokens",
    of: ({ input_tokens, output_tokens }) =>
      input_tokens === null && output_tokens === null ? null : (input_tokens ?? 0) + (output_tokens ?? 0),
    tell: compact,
  },
  requests: { label: "Requests", unit: "requests", of: ({ request_count }) => request_count, tell: compact },
};

/** What was asked for, else the first that says something. */
function measureFor(asked: string | null, totals: Totals): string {
  if (asked !== null && Object.hasOwn(measures, asked)) return asked;
  return Object.keys(measures).find((name) => (measures[name]!.of(totals) ?? 0) > 0) ?? "requests";
}

/** Models that have a colour of their own. */
const mostSeries = 6;

interface ByDayProps {
  statistics: Statistics;
  measure: Measure;
  first: number;
  days: number;
  now: number;
}

function ByDay({ statistics, measure, first, days, now }: ByDayProps): Markup {
  const sums = new Map<string | null, number>();
  for (const { key, ...totals } of statistics.groups)
    sums.set(key.upstream_model ?? null, (sums.get(key.upstream_model ?? null) ?? 0) + (measure.of(totals) ?? 0));
  const ordered = [...sums].sort(([, a], [, b]) => b - a).filter(([, sum]) => sum > 0);
  const named = ordered.slice(0, ordered.length > mostSeries ? mostSeries : undefined);
  const left = ordered.slice(named.length);
  const series = [
    ...named.map(([model, sum]) => ({
      name: model ?? "no model",
      told: measure.tell(sum),
      href: requestsPath({ upstream_model: model, from_ms: first }),
    })),
    ...(left.length > 0
      ? [
          {
            name: plural(left.length, "other model"),
            told: measure.tell(left.reduce((all, [, sum]) => all + sum, 0)),
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
      groups
        .filter(({ key }) => models.includes(key.upstream_model ?? null))
        .reduce((sum, group) => sum + (measure.of(group) ?? 0), 0);
    const values = [
      ...named.map(([model]) => sumOf([model])),
      ...(left.length > 0 ? [sumOf(left.map(([model]) => model))] : []),
    ];
    const requests = groups.reduce((sum, group) => sum + group.request_count, 0);
    const sum = values.reduce((all, value) => all + value, 0);
    return {
      label: day(from, now),
      short: (days - 1 - at) % step === 0 ? day(from, now) : "",
      minor: (days - 1 - at) % (step * 3) !== 0,
      href: requestsPath({ from_ms: from, to_ms: startOfDay(now, days - 2 - at) - 1 }),
      values,
      told: `${measure.tell(sum)} ${measure.unit}${measure.unit === "requests" ? "" : `, ${plural(requests, "request")}`}`,
    };
  });
  return (
    <StackedBars
      caption={`${measure.label} by day and model, last ${days} days`}
      series={series}
      columns={columns}
      format={measure.tell}
      unit="All"
    />
  );
}

function ByHour({ statistics, now }: { statistics: Statistics; now: number }): Markup {
  const byHour = new Map(statistics.groups.map((group) => [group.filters.from_ms, group]));
  const { request_count: all, error_count: failed } = statistics.totals;
  const columns = Array.from({ length: 24 }, (_, at): Column => {
    const from = startOfHour(now) - (23 - at) * hourMs;
    const group = [...byHour].find(([start]) => start !== undefined && start >= from && start < from + hourMs)?.[1];
    const errors = group?.error_count ?? 0;
    const good = (group?.request_count ?? 0) - errors;
    return {
      label: `${clock(from)} to ${clock(from + hourMs)}`,
      short: (23 - at) % 6 === 0 ? clock(from) : "",
      href: requestsPath({ from_ms: from, to_ms: from + hourMs - 1 }),
      values: [good, errors],
      told: `${good} succeeded, ${errors} failed`,
    };
  });
  return (
    <StackedBars
      caption="Requests by hour, last 24 hours"
      series={[
        { name: "succeeded", told: count(all - failed), tone: "good" },
        {
          name: "failed",
          told: count(failed),
          tone: "bad",
          href: requestsPath({ has_error: true, from_ms: now - dayMs }),
        },
      ]}
      columns={columns}
      unit="All"
    />
  );
}

function Shares({ title, groups, all }: { title: string; groups: Group[]; all: Totals }): Markup {
  return (
    <>
      <h3>{title}</h3>
      {groups.length === 0 ? (
        <p class="soft">None.</p>
      ) : (
        <table class="shares">
          <caption class="hidden">{title}</caption>
          <thead>
            <tr>
              <th scope="col">Client</th>
              <th scope="col" class="right">
                Requests
              </th>
              <th scope="col" class="right">
                Credits
              </th>
              <th scope="col" class="right">
                Cached
              </th>
            </tr>
          </thead>
          <tbody>
            {groups.slice(0, 7).map((group) => (
              <tr>
                <th scope="row">
                  <a href={requestsPath(group.filters)}>
                    <Value of={group.key.client_name ?? "no name"} most={28} />
                  </a>
                </th>
                <td class="right num">{count(group.request_count)}</td>
                <td class="right num">{group.nano_credits === null ? <Unknown /> : credits(group.nano_credits)}</td>
                <td class="right num">{group.cached_share === null ? <Unknown /> : percent(group.cached_share)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {groups.length > 7 && (
        <p class="soft">
          and {plural(groups.length - 7, "more", "more")}, of {plural(all.request_count, "request")} in all
        </p>
      )}
    </>
  );
}

// ── Days of this machine's clock ──

function startOfDay(now: number, back = 0): number {
  const date = new Date(now);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() - back).getTime();
}

const startOfHour = (now: number) => new Date(now).setMinutes(0, 0, 0);

function isoDay(at: number): string {
  const date = new Date(at);
  const two = (part: number) => String(part).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}
