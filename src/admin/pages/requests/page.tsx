/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The list of requests: filters, running requests, history and totals, refreshed live on demand. */

import type { Filters } from "../../../books/history/history";
import { ProxyError } from "../../../lib/errors";
import { plural } from "../../../lib/format";
import type { Scope } from "../../../parts/app";
import { readQuery } from "../../../web/query";
import { FailedPart } from "../../access/sign-in-page";
import { answerLive } from "../../api/live-events";
import { queries } from "../../api/query";
import { answerExport, listRequests, type ShownPage, type ShownRunning, showRunning } from "../../api/requests";
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

/** The words for the rows with which the list would begin now, before the one with the id `after_id`; no words without one. */
export async function newRequests(context: PageContext): Promise<Response> {
  const { limit, filters, after_id = 0 } = readAsked(context);
  const { items } = await listRequests(context.app, filters, limit);
  const count = items.filter(({ id = 0 }) => id > after_id).length;
  const words = plural(count, "new request");
  return new Response(count === 0 ? "" : count === limit ? `At least ${words}` : words);
}

const listQuery = queries.requests.extend({ after_id: queries.requests.shape.cursor_id });

/** What the address of a list asks for. */
function readAsked({ app, member, url }: PageContext) {
  const { limit, cursor_id, after_id, ...filters } = readQuery(
    withFirstRows(withTimes(url, app.now())).href,
    listQuery,
  );
  // Every row that a member sees is the member's own.
  if (member !== null) delete filters.member;
  return { limit, cursor_id, after_id, filters };
}

export async function requestsPage(context: PageContext): Promise<StreamedPage> {
  const { app, frame, url } = context;
  const now = app.now();
  const { limit, cursor_id, filters } = readAsked(context);
  const paged = cursor_id !== undefined;
  const list = await readHistory(app, () => listRequests(app, filters, limit, cursor_id));
  // Read last, so that nothing is listed as running and as ended.
  const running = paged ? [] : app.running.list().map(showRunning).filter(passes(filters));
  const elsewhere = paged ? undefined : app.running.elsewhere;
  const nothingYet = !list.fault && list.items.length === 0 && (await app.history.count()) === 0;
  const follows = url.searchParams.get("follow") === "1" && cursor_id === undefined;
  const asked = Object.fromEntries(url.searchParams);
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
          <p
            class="fresh"
            data-count={withQuery("/admin/requests/new", { ...asked, after_id: String(list.items[0]?.id ?? 0) })}
            data-live="/admin/requests/live"
            role="status"
            hidden
          >
            <a class="button" href={withQuery(url.pathname, asked)}>
              New requests
            </a>
          </p>
        )}
        <div id="live" data-follow={follows ? "/admin/requests/live" : undefined} class="list">
          <RunningRows running={running} elsewhere={elsewhere} frame={frame} names={names} now={now} />
          {list.fault ? (
            FailedPart(list.fault)
          ) : (
            <>
              <RequestRows list={list} view={view} nothingYet={nothingYet} />
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

/** Whether a running request matches the filters. */
const passes =
  ({ status, status_class, has_error, has_prompt, stream, from_ms, to_ms, ...names }: Filters) =>
  (running: ShownRunning): boolean =>
    status === undefined &&
    status_class === undefined &&
    has_error !== true &&
    (has_prompt === undefined || (running.prompt !== null) === has_prompt) &&
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
