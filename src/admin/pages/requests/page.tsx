/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The list of requests: filters, running requests, history and totals, refreshed live on demand. */

import type { Filters } from "../../../books/history/history";
import { ProxyError } from "../../../lib/errors";
import type { Scope } from "../../../parts/app";
import { readQuery } from "../../../web/query";
import { FailedPart } from "../../access/sign-in-page";
import { answerExport, answerLive } from "../../api/handlers";
import { queries } from "../../api/query";
import { listRequests, type ShownPage, type ShownRunning, showRunning } from "../../api/requests";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { Page } from "../../ui/layout";
import { withFirstRows, withQuery } from "../../ui/links";
import { ReloadedAlways } from "../../ui/notes";
import type { PageContext } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";
import { memberNamesFor } from "../member-names";
import { FilterBar } from "./filters";
import { Pager, RequestRows, RunningRows } from "./rows";
import { TotalsLine } from "./totals";
import { type RequestsView, withTimes } from "./view";

export const exportFromPage = ({ app, url }: PageContext) =>
  answerExport(app, readQuery(withTimes(url, app.now()).toString(), queries.export));

export const streamRequests = ({ app, request, pageSignIn }: PageContext) => answerLive(app, request, pageSignIn);

export async function requestsPage(context: PageContext): Promise<StreamedPage> {
  const { app, frame, url } = context;
  const now = app.now();
  const query = withTimes(url, now);
  const { limit, cursor_id, ...filters } = readQuery(withFirstRows(query).toString(), queries.requests);
  // Every row that a member sees is the member's own.
  if (context.member !== null) delete filters.member;
  const paged = cursor_id !== undefined;
  const list = await readHistory(app, () => listRequests(app, filters, limit, cursor_id));
  // Read last, so that nothing is listed as running and as ended.
  const running = paged ? [] : app.running.list().map(showRunning).filter(passes(filters));
  const elsewhere = paged ? undefined : app.running.elsewhere;
  const nothingYet = !list.fault && list.items.length === 0 && (await app.history.count()) === 0;
  const follows = url.searchParams.get("follow") === "1" && cursor_id === undefined;
  const names = memberNamesFor(app);
  const view: RequestsView = { filters, limit, follows, paged, now, url, names };
  return {
    page: (
      <Page
        frame={frame}
        title="Requests"
        current="/admin/requests"
        aside={view.paged ? undefined : <Follow view={view} />}
      >
        {follows && <ReloadedAlways />}
        <FilterBar view={view} list={list} accounts={app.accounts.map(({ id }) => id)} keys={keyNames(app, list)} />
        {!follows && !paged && (
          <p class="fresh" data-count="/admin/requests/live" role="status" hidden>
            <a class="button" href={withQuery(url.pathname, Object.fromEntries(url.searchParams))}>
              New requests
            </a>
          </p>
        )}
        <div id="live" data-follow={follows ? "/admin/requests/live" : undefined} class="list">
          <RunningRows {...{ running, elsewhere, frame, names, now }} />
          {list.fault ? (
            FailedPart(list.fault)
          ) : (
            <>
              <RequestRows {...{ list, view, nothingYet }} />
              <section class="totals" aria-label="Totals">
                {slot}
              </section>
            </>
          )}
        </div>
        {!list.fault && <Pager list={list} view={view} />}
        <p class="hidden" id="live-status" role="status"></p>
      </Page>
    ),
    parts: list.fault ? [] : [async () => <TotalsLine totals={await app.history.totals(filters)} />],
  };
}

/** The owner's keys, and those of the rows: a member's keys are in the member's rows. */
function keyNames({ owner }: Scope, { items }: ShownPage): string[] {
  const own = owner?.clientKeys.flatMap(({ name }) => name ?? []) ?? [];
  return [...new Set([...own, ...items.flatMap(({ key_name }) => key_name ?? [])])].sort();
}

/** A page of the history; without rows and with a sentence while the database is away. What runs can still be shown then. */
async function readHistory(app: Scope, read: () => Promise<ShownPage>): Promise<ShownPage & { fault?: string }> {
  try {
    return await read();
  } catch (thrown) {
    if (!app.history.degraded || !(thrown instanceof ProxyError) || thrown.kind !== "unable") throw thrown;
    return {
      items: [],
      next_cursor_id: null,
      has_more: false,
      fault: `The history cannot be shown. ${thrown.message}`,
    };
  }
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
