/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The upstream's prompt cache: what it saved, and why turns were not found in it. */

import type { NameColumn } from "../../../books/history/entry";
import type { Filters } from "../../../books/history/history";
import { toolOf } from "../../../clients/index";
import { dayMs, formatCount, percent, plural } from "../../../lib/format";
import { addedCacheable, cachedShareOf, sum, sumKnown } from "../../../lib/money";
import { type CacheGroup, type CacheReport, cacheReport } from "../../api/cache";
import type { Saving } from "../../api/cache-savings";
import { startOfDay } from "../../ui/days";
import { Credits, Lost, Moment, Percent, Sentence, Tokens, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { Page } from "../../ui/layout";
import { requestPath, requestsPath, withQuery } from "../../ui/links";
import { Empty, Figure, Section, Table, Tabs } from "../../ui/lists";
import type { PageContext } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";
import { ToolName } from "../../ui/tool-name";

interface Period {
  label: string;
  from(now: number): number;
}

/** @param kept The days that the history keeps: none of the periods is longer. */
const periodsOf = (kept: number): Record<string, Period> => ({
  day: { label: "Today", from: (now) => startOfDay(now) },
  ...(kept > 7 && { week: daysBack(7) }),
  month: daysBack(Math.min(30, kept)),
});

const daysBack = (days: number): Period => ({
  label: days === 1 ? "Last 24 hours" : `Last ${days} days`,
  from: (now) => now - days * dayMs,
});

export function cachePage({ app, frame, url }: PageContext): StreamedPage {
  const now = app.now();
  const asked = url.searchParams.get("period") ?? "";
  const periods = periodsOf(app.config.current.retentionDays);
  const chosen = [asked, "week", "month"].find((name) => Object.hasOwn(periods, name))!;
  const filters = { from_ms: periods[chosen]!.from(now) };
  return {
    page: (
      <Page frame={frame} title="Cache" current="/admin/cache">
        <p class="lead">
          Upstreams keep the beginning of a prompt for about five minutes. A turn that finds it there pays a fraction of
          the input price. Credits are computed from list prices.
        </p>
        <Tabs
          label="Time range"
          items={Object.entries(periods).map(([name, { label }]) => [name, label])}
          chosen={chosen}
          pathOf={(period) => withQuery("/admin/cache", { period })}
        />
        {slot}
      </Page>
    ),
    parts: [async () => <Report report={await cacheReport(app, filters)} filters={filters} now={now} />],
  };
}

interface ReportProps {
  report: CacheReport;
  /** The period. */
  filters: Filters;
  now: number;
}

function Report({ report, filters, now }: ReportProps): Markup {
  const { totals, models, clients, sessions } = report;
  // Without a price of any model, a column of unknowns would say nothing.
  const hasPrices = models.some(({ saved_nano_credits }) => saved_nano_credits !== null);
  if (totals.request_count === 0)
    return (
      <Empty title="No usage in this time">
        The cached part of prompts appears here after clients have sent requests.
      </Empty>
    );
  return (
    <>
      <Totals report={report} />
      <Misses report={report} filters={filters} now={now} />
      <Groups title="By model" column="upstream_model" groups={models} filters={filters} hasPrices={hasPrices} />
      <Groups title="By client" column="client_name" groups={byTool(clients)} filters={filters} hasPrices={hasPrices} />
      <Groups
        title="By session"
        note="Sessions are shown by a short hash. Only clients that send one are listed."
        column="session"
        groups={sessions}
        filters={filters}
        hasPrices={hasPrices}
      />
    </>
  );
}

/** What the cache saved is known of some requests, and of some not. */
const isPartOf = ({ saved_nano_credits, unknown_saving_count }: Saving) =>
  saved_nano_credits !== null && unknown_saving_count > 0;

const Totals = ({ report: { totals, misses } }: { report: CacheReport }) => (
  <ul class="cards few">
    <Figure name="Input read from the cache" value={<Percent of={totals.cached_share} />}>
      <Tokens of={totals.cached_tokens} /> of <Tokens of={totals.input_tokens} /> tokens in{" "}
      {plural(totals.request_count, "request")}
    </Figure>
    <Figure name="Saved" value={<Credits of={totals.saved_nano_credits} />} unit="AI credits">
      compared with plain input, after what writing to the cache cost
      {isPartOf(totals) && <>; unknown for {plural(totals.unknown_saving_count, "request")}</>}
    </Figure>
    <Figure
      name="Lost"
      value={misses.length === 0 ? <span class="num">0</span> : <Lost of={totals} />}
      unit="AI credits"
    >
      in {plural(sum(misses.map(({ request_count }) => request_count)), "turn")} that missed the cache
    </Figure>
  </ul>
);

function Misses({ report: { misses, turns, ...groups }, filters, now }: ReportProps): Markup {
  return (
    <Section id="misses" title="Cache misses">
      {misses.length === 0 ? (
        <p class="calm">{noMisses(groups)}</p>
      ) : (
        <>
          <Table
            class="rows labelled"
            caption="Why the cache was missed"
            rows={misses}
            columns={[["Reason", ({ changed }) => changed]]}
            numbers={[
              [
                "Turns",
                (miss) => (
                  <a class="num" href={requestsPath({ ...filters, cache_miss: miss.reason })}>
                    {formatCount(miss.request_count)}
                  </a>
                ),
              ],
              ["Input paid in full", (miss) => <Tokens of={miss.uncached_tokens} />],
              ["Credits lost", (miss) => <Lost of={miss} />],
            ]}
          />
          <Turns turns={turns} now={now} />
        </>
      )}
    </Section>
  );
}

/** Whether there was anything to miss. */
function noMisses({ totals, sessions }: Pick<CacheReport, "totals" | "sessions">): string {
  if (totals.cached_tokens > 0) return "None. Every later turn of a conversation read its beginning from the cache.";
  return sessions.every(({ request_count }) => request_count < 2)
    ? "No conversation has had a second turn yet."
    : "None is known, and nothing was read from the cache: the upstream may not cache prompts as short as these.";
}

const Turns = ({ turns, now }: { turns: CacheReport["turns"]; now: number }) => (
  <details>
    <summary>The newest of them</summary>
    <Table
      class="rows labelled"
      caption="The newest cache misses"
      rows={turns}
      columns={[
        [
          "Time",
          (turn) => (
            <a href={requestPath(turn.request_id)}>
              <Moment at={turn.started_at_ms} now={now} seconds={true} />
            </a>
          ),
        ],
        ["Client", (turn) => <ToolName of={turn.client_name} max={28} />],
        ["Model", (turn) => <Value of={turn.upstream_model} max={40} />],
        ["Session", (turn) => <SessionName of={turn.session} />],
        ["Reason", (turn) => <Sentence of={turn.changed} />],
      ]}
      numbers={[
        ["Input", (turn) => <Tokens of={turn.input_tokens} />],
        ["Cached", (turn) => <Tokens of={turn.cached_tokens} />],
        ["Credits lost", (turn) => <Credits of={turn.lost_nano_credits} />],
      ]}
    />
  </details>
);

const SessionName = ({ of }: { of: string | null }) =>
  of === null ? <span class="soft">not sent</span> : <code>{of}</code>;

/** A tool has one name for all its versions. */
const nameOf = (column: GroupsProps["column"], { name }: CacheGroup): string | null =>
  (column === "client_name" && toolOf(name ?? "")?.name) || name;

/** One row a tool; its link leads to the requests of the client that sent most. */
function byTool(clients: CacheGroup[]): CacheGroup[] {
  return [...Map.groupBy(clients, ({ name }) => toolOf(name ?? "")?.name ?? name).values()].map((ofTool) => {
    const cacheable = addedCacheable(ofTool);
    return {
      name: ofTool[0]!.name,
      request_count: sum(ofTool.map(({ request_count }) => request_count)),
      ...cacheable,
      cached_share: cachedShareOf(cacheable),
      saved_nano_credits: sumKnown(ofTool.map(({ saved_nano_credits }) => saved_nano_credits)),
      unknown_saving_count: sum(ofTool.map(({ unknown_saving_count }) => unknown_saving_count)),
    };
  });
}

interface GroupsProps {
  title: string;
  note?: string;
  column: NameColumn;
  groups: CacheGroup[];
  filters: Filters;
  /** There is a column for the credits saved. */
  hasPrices: boolean;
}

function Groups({ title, note, column, groups, filters, hasPrices }: GroupsProps): Markup {
  const id = `by-${column.replace("_", "-")}`;
  return (
    <Section id={id} title={title}>
      {note && <p class="soft">{note}</p>}
      {groups.length === 0 ? (
        <p class="soft">None.</p>
      ) : (
        <Table
          class="rows shares"
          caption={`The cache ${title.toLowerCase()}`}
          rows={groups}
          columns={[
            [
              "Name",
              (group) => (
                <a href={requestsPath({ ...filters, [column]: group.name })}>
                  <Value of={nameOf(column, group) ?? "no name"} max={40} />
                </a>
              ),
            ],
          ]}
          numbers={[
            ["Requests", (group) => formatCount(group.request_count)],
            ["Input", (group) => <Tokens of={group.input_tokens} />],
            [
              "Read from the cache",
              (group) => (group.cached_share === null ? <span class="soft">–</span> : percent(group.cached_share)),
            ],
            hasPrices && [
              "Credits saved",
              (group) => (
                <>
                  <Credits of={group.saved_nano_credits} />
                  {isPartOf(group) && <small>unknown for {plural(group.unknown_saving_count, "request")}</small>}
                </>
              ),
            ],
          ]}
        />
      )}
    </Section>
  );
}
