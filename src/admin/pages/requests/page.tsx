/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The list of requests: filters, running requests, history and totals, refreshed live on demand. */
import { readQuery } from "../../../endpoint";
import type { Filters } from "../../../history/history";
import { answerExport, answerLive } from "../../api/handlers";
import { queries } from "../../api/query";
import { listRequests, type ShownRunning, showRunning } from "../../api/requests";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { Page } from "../../ui/layout";
import { withQuery } from "../../ui/links";
import type { PageContext } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";
import { memberNamesFor } from "../member-names";
import { FilterBar } from "./filters";
import { Pager, RequestRows, RunningRows } from "./rows";
import { TotalsLine } from "./totals";
import { type RequestsView, withTimes } from "./view";

export const exportFromPage = ({ app, url }: PageContext) =>
  answerExport(app, readQuery(withTimes(url, app.now()).toString(), queries.export));

export const streamRequests = ({ app, request, caller, session }: PageContext) =>
  answerLive(app, request, caller, session);

export async function requestsPage(context: PageContext): Promise<StreamedPage> {
  const { app, frame, url } = context;
  const now = app.now();
  const query = withTimes(url, now);
  const { limit, cursor_id, ...filters } = readQuery(query.toString(), queries.requests);
  // Every row that a member sees is the member's own.
  if (context.member !== null) delete filters.member;
  const list = await listRequests(app, filters, limit, cursor_id);
  const live = cursor_id === undefined ? await app.running.list() : { running: [], count: 0 };
  const running = live.running.map(showRunning).filter(passes(filters));
  const nothingYet = list.items.length === 0 && (await app.history.count()) === 0;
  const follows = url.searchParams.get("follow") === "1" && cursor_id === undefined;
  const names = memberNamesFor(context);
  const view: RequestsView = { filters, limit, follows, paged: cursor_id !== undefined, now, url, names };
  return {
    page: (
      <Page
        frame={frame}
        title="Requests"
        current="/admin/requests"
        aside={view.paged ? undefined : <Follow view={view} />}
      >
        {follows && (
          <noscript>
            <meta http-equiv="refresh" content="5" />
          </noscript>
        )}
        <FilterBar view={view} list={list} accounts={app.accounts.map(({ id }) => id)} />
        <div id="live" data-follow={follows ? "/admin/requests/live" : undefined} class="list">
          <RunningRows running={running} frame={frame} names={names} now={now} />
          <RequestRows list={list} view={view} nothingYet={nothingYet} />
          <section class="totals" aria-label="Totals">
            {slot}
          </section>
        </div>
        <Pager list={list} view={view} />
        <p class="hidden" id="live-status" role="status"></p>
      </Page>
    ),
    parts: [async () => <TotalsLine totals={await app.history.totals(filters)} />],
  };
}

/** Whether a running request matches the filters. A field without a value yet does not rule it out. */
const passes =
  ({ status, status_class, has_error, stream, from_ms, to_ms, ...names }: Filters) =>
  (running: ShownRunning): boolean =>
    status === undefined &&
    status_class === undefined &&
    has_error !== true &&
    (stream === undefined || running.stream === stream) &&
    running.started_at_ms >= (from_ms ?? 0) &&
    running.started_at_ms <= (to_ms ?? Number.POSITIVE_INFINITY) &&
    Object.entries(names).every(([name, wanted]) => wanted === undefined || running[name as "path"] === wanted);

function Follow({ view }: { view: RequestsView }): Markup {
  const query = Object.fromEntries(
    [...view.url.searchParams].filter(([name, value]) => value !== "" && name !== "follow"),
  );
  return view.follows ? (
    <a class="button on" href={withQuery("/admin/requests", query)}>
      <span class="pulse" aria-hidden="true"></span> Live · stop
    </a>
  ) : (
    <a class="button" href={withQuery("/admin/requests", { ...query, follow: "1" })}>
      Follow live
    </a>
  );
}
