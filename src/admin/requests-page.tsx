/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The history: what was asked, narrowed to what matters now, with what it comes to, and as it happens. */
import type { Filters, Totals } from "../history/history";
import { answerExport, answerLive } from "./api";
import {
  Count,
  Credits,
  compact,
  count,
  credits,
  Duration,
  duration,
  Moment,
  moment,
  Premium,
  percent,
  plural,
  shorten,
  Tokens,
  Unknown,
  units,
  Value,
} from "./figures";
import type { Child, Markup } from "./jsx/jsx-runtime";
import { FormToken, type Frame, Page } from "./layout";
import { requestPath, requestsPath, withQuery } from "./links";
import { queries, readQuery } from "./query";
import { listRequests, type ShownEntry, type ShownPage, type ShownRunning, showRunning } from "./requests";
import { type SlowPage, slot } from "./slow";
import type { Visit } from "./visit";

export const exportRequests = ({ app, request, url }: Visit) =>
  answerExport(app, new Request(asAsked(url, app.now()).toString(), { headers: request.headers }));

export const followRequests = ({ app, request, caller }: Visit) => answerLive(app, request, caller);

export function requestsPage({ app, frame, url }: Visit): SlowPage {
  const now = app.now();
  const asked = asAsked(url, now);
  const { limit, cursor_id, ...filters } = readQuery(asked.toString(), queries.requests);
  const list = listRequests(app, filters, limit, cursor_id);
  const running = cursor_id === undefined ? app.live.running().map(showRunning).filter(passes(filters)) : [];
  const follows = url.searchParams.get("follow") === "1" && cursor_id === undefined;
  const view: View = { filters, limit, follows, paged: cursor_id !== undefined, now, url };
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
          <Running running={running} frame={frame} now={now} />
          <Rows list={list} view={view} nothingYet={list.items.length === 0 && app.history.count() === 0} />
          <section class="totals" aria-label="What these requests come to">
            {slot}
          </section>
        </div>
        <Pager list={list} view={view} />
        <p class="hidden" id="told" role="status"></p>
      </Page>
    ),
    parts: [async () => <TotalsLine totals={await app.history.totals(filters)} />],
  };
}

interface View {
  filters: Filters;
  limit: number;
  follows: boolean;
  /** These are not the newest. */
  paged: boolean;
  now: number;
  url: URL;
}

// ── What is asked ──

const periods: Record<string, [ms: number, name: string]> = {
  "15m": [15 * 60_000, "Last 15 minutes"],
  "1h": [3_600_000, "Last hour"],
  "24h": [86_400_000, "Last 24 hours"],
  "7d": [7 * 86_400_000, "Last 7 days"],
  "30d": [30 * 86_400_000, "Last 30 days"],
};

/** The address as the API would have it: a form says times as people do. */
function asAsked(url: URL, now: number): URL {
  const asked = new URL(url);
  const query = asked.searchParams;
  const [ms] = periods[query.get("period") ?? ""] ?? [];
  if (ms !== undefined && !query.get("from_ms")) query.set("from_ms", String(now - ms));
  for (const [name, target, seconds] of [
    ["from", "from_ms", 0],
    ["to", "to_ms", 59_999],
  ] as const) {
    const time = localTime(query.get(name));
    if (time !== undefined && !query.get(target)) query.set(target, String(time + seconds));
  }
  return asked;
}

/** `2026-11-21T14:05`, by this machine's clock. */
function localTime(text: string | null): number | undefined {
  if (text === null || !/^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(text)) return undefined;
  const time = new Date(text).getTime();
  return Number.isNaN(time) ? undefined : time;
}

function asLocal(time: number | undefined): string | undefined {
  if (time === undefined || time > 8.64e15) return undefined;
  const date = new Date(time - new Date(time).getTimezoneOffset() * 60_000);
  return date.toISOString().slice(0, 16);
}

/** Whether one that runs is among what is asked; what is not known yet does not rule it out. */
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

// ── The bar ──

function FilterBar({ view, list, accounts }: { view: View; list: ShownPage; accounts: string[] }): Markup {
  const { filters, url } = view;
  const chips = chipsOf(view);
  const more = [
    "path",
    "upstream_endpoint",
    "initiator",
    "stream",
    "status",
    "client_model",
    "from_ms",
    "to_ms",
  ] as const;
  return (
    <search class="filters">
      <form method="get" action="/admin/requests" data-auto>
        <div class="fields">
          <Choice
            name="period"
            label="When"
            chosen={url.searchParams.get("period")}
            options={[["", "Any time"], ...Object.entries(periods).map(([key, [, name]]) => [key, name] as const)]}
          />
          <Text name="upstream_model" label="Model" filters={filters} known={namesIn(list, "upstream_model")} />
          <Text name="client_name" label="Client" filters={filters} known={namesIn(list, "client_name")} />
          <Text name="account_id" label="Account" filters={filters} known={accounts} />
          <Choice
            name="has_error"
            label="Result"
            chosen={filters.has_error === undefined ? "" : String(Number(filters.has_error))}
            options={[
              ["", "Any"],
              ["0", "Succeeded"],
              ["1", "Failed"],
            ]}
          />
          <div class="go">
            <button type="submit">Filter</button>
          </div>
        </div>
        <details open={more.some((name) => filters[name] !== undefined)}>
          <summary>More filters</summary>
          <div class="fields">
            <Text name="client_model" label="Model asked for" filters={filters} known={namesIn(list, "client_model")} />
            <Text name="path" label="Path" filters={filters} known={clientPaths} />
            <Text
              name="upstream_endpoint"
              label="Upstream endpoint"
              filters={filters}
              known={namesIn(list, "upstream_endpoint")}
            />
            <Text name="initiator" label="Counted as" filters={filters} known={["user", "agent"]} />
            <Choice
              name="stream"
              label="Streamed"
              chosen={filters.stream === undefined ? "" : String(Number(filters.stream))}
              options={[
                ["", "Either"],
                ["1", "Streamed"],
                ["0", "Full"],
              ]}
            />
            <label class="field">
              <span>Status</span>
              <input name="status" inputmode="numeric" pattern="[1-5][0-9][0-9]" value={filters.status?.toString()} />
            </label>
            <Choice
              name="status_class"
              label="Kind of status"
              chosen={filters.status_class === undefined ? "" : `${filters.status_class}xx`}
              options={["", "2xx", "3xx", "4xx", "5xx"].map((each) => [each, each || "Any"] as const)}
            />
            <Time name="from" label="From" value={url.searchParams.get("period") ? undefined : filters.from_ms} />
            <Time name="to" label="Until" value={filters.to_ms} />
            <Choice
              name="limit"
              label="Rows"
              chosen={String(view.limit)}
              options={["25", "50", "100", "200"].map((each) => [each, each] as const)}
            />
          </div>
          <p class="soft">
            <code>(none)</code> in a field finds what has no such name.
          </p>
        </details>
        {view.follows && <input type="hidden" name="follow" value="1" />}
      </form>
      {chips.length > 0 && (
        <ul class="chips" aria-label="Filters in use">
          {chips.map(({ name, value, without }) => (
            <li>
              <a href={without} aria-label={`Remove the filter ${name}: ${value}`}>
                <span>
                  {name}: <Value of={value} most={40} />
                </span>
                <span aria-hidden="true">×</span>
              </a>
            </li>
          ))}
          <li>
            <a href="/admin/requests" class="all">
              Show all
            </a>
          </li>
        </ul>
      )}
    </search>
  );
}

type NameFilter =
  | "upstream_model"
  | "client_name"
  | "account_id"
  | "client_model"
  | "upstream_endpoint"
  | "path"
  | "initiator";

const clientPaths = ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"];

const namesIn = ({ items }: ShownPage, name: NameFilter) =>
  [...new Set(items.flatMap((item) => item[name] ?? []))].sort();

function Text({
  name,
  label,
  filters,
  known,
}: {
  name: NameFilter;
  label: string;
  filters: Filters;
  known: string[];
}): Markup {
  const value = filters[name];
  return (
    <label class="field">
      <span>{label}</span>
      <input
        name={name}
        value={value === null ? "(none)" : value}
        list={`known-${name}`}
        placeholder="Any"
        autocomplete="off"
        spellcheck="false"
      />
      <datalist id={`known-${name}`}>
        {known.filter(isPlain).map((each) => (
          <option value={each} />
        ))}
      </datalist>
    </label>
  );
}

/** Worth offering: what can be read and typed. */
const isPlain = (text: string) => shorten(text, 80) === text;

interface ChoiceProps {
  name: string;
  label: string;
  chosen: string | null;
  options: readonly (readonly [value: string, label: string])[];
}

const Choice = ({ name, label, chosen, options }: ChoiceProps) => (
  <label class="field">
    <span>{label}</span>
    <select name={name}>
      {options.map(([value, words]) => (
        <option value={value} selected={value === (chosen ?? "")}>
          {words}
        </option>
      ))}
    </select>
  </label>
);

const Time = ({ name, label, value }: { name: string; label: string; value: number | undefined }) => (
  <label class="field">
    <span>{label}</span>
    <input type="datetime-local" name={name} value={asLocal(value)} />
  </label>
);

const chipNames: Partial<Record<keyof Filters, string>> = {
  account_id: "Account",
  upstream_model: "Model",
  client_model: "Asked for",
  client_name: "Client",
  upstream_endpoint: "Endpoint",
  path: "Path",
  initiator: "Counted as",
};

/** Each filter in use, and the address without it. */
function chipsOf({ filters, url, now }: View): { name: string; value: string; without: string }[] {
  const chips: { name: string; value: string; without: string }[] = [];
  const add = (name: string, value: string, ...params: string[]) => {
    const query = new URLSearchParams(url.searchParams);
    for (const param of [...params, "cursor_id"]) query.delete(param);
    for (const [param, given] of [...query]) if (given === "") query.delete(param);
    chips.push({ name, value, without: withQuery("/admin/requests", Object.fromEntries(query)) });
  };
  const period = periods[url.searchParams.get("period") ?? ""];
  if (period) add("When", period[1], "period");
  for (const [name, label] of Object.entries(chipNames)) {
    const value = filters[name as NameFilter];
    if (value !== undefined) add(label, value ?? "none", name);
  }
  const { has_error, stream, status, status_class, from_ms, to_ms } = filters;
  if (has_error !== undefined) add("Result", has_error ? "failed" : "succeeded", "has_error");
  if (stream !== undefined) add("Streamed", stream ? "yes" : "no", "stream");
  if (status !== undefined) add("Status", String(status), "status");
  if (status_class !== undefined) add("Status", `${status_class}xx`, "status_class");
  if (from_ms !== undefined && !period) add("From", moment(from_ms, now), "from", "from_ms");
  if (to_ms !== undefined) add("Until", moment(to_ms, now), "to", "to_ms");
  return chips;
}

function Follow({ view }: { view: View }): Markup {
  const query = Object.fromEntries(
    [...view.url.searchParams].filter(([name, value]) => value !== "" && name !== "follow"),
  );
  return view.follows ? (
    <a class="button on" href={withQuery("/admin/requests", query)}>
      <span class="pulse" aria-hidden="true"></span> Following · stop
    </a>
  ) : (
    <a class="button" href={withQuery("/admin/requests", { ...query, follow: "1" })}>
      Follow live
    </a>
  );
}

// ── The list ──

function Running({ running, frame, now }: { running: ShownRunning[]; frame: Frame; now: number }): Markup {
  return (
    <section class="running" aria-label="Running now" hidden={running.length === 0}>
      <h2>{plural(running.length, "request")} running</h2>
      <ul>
        {running.map((each) => (
          <li>
            <a href={requestPath(each.request_id)}>
              <Value of={each.upstream_model ?? each.client_model} />
            </a>
            <span class="soft">
              <Value of={each.client_name} most={30} /> ·{" "}
              {each.first_byte_ms === null ? "waiting for the first byte" : "answering"} ·{" "}
              <Duration of={Math.max(0, now - each.started_at_ms)} />
            </span>
            <form method="post" action={`${requestPath(each.request_id)}/cancel`}>
              <FormToken frame={frame} />
              <button
                type="submit"
                class="quiet"
                aria-label={`Cancel the request for ${each.client_model ?? "a model"}`}
              >
                Cancel
              </button>
            </form>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Rows({ list, view, nothingYet }: { list: ShownPage; view: View; nothingYet: boolean }): Markup {
  if (list.items.length === 0) return <Nothing view={view} nothingYet={nothingYet} />;
  return (
    <table class="rows">
      <caption class="hidden">Requests, the newest first</caption>
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col">Model</th>
          <th scope="col">Client</th>
          <th scope="col">Account</th>
          <th scope="col">Result</th>
          <th scope="col" class="right">
            Tokens
          </th>
          <th scope="col" class="right">
            Cost
          </th>
          <th scope="col" class="right">
            First byte, total
          </th>
        </tr>
      </thead>
      <tbody>
        {list.items.map((item) => (
          <RequestRow item={item} now={view.now} />
        ))}
      </tbody>
    </table>
  );
}

function RequestRow({ item, now }: { item: ShownEntry; now: number }): Markup {
  const { client_model, upstream_model } = item;
  const notes = notesOf(item);
  return (
    <tr>
      <th scope="row" class="c-time">
        <a href={requestPath(item.request_id)}>
          <Moment at={item.started_at_ms} now={now} seconds={true} />
        </a>
        <small>{wayOf(item)}</small>
      </th>
      <td class="c-model">
        <Value of={upstream_model ?? client_model} most={40} />
        {upstream_model !== null && client_model !== upstream_model && (
          <small>
            asked for <Value of={client_model} most={40} />
          </small>
        )}
        {notes.length > 0 && <small>{notes.join(" · ")}</small>}
      </td>
      <td class="c-client">
        <Value of={item.client_name} most={26} />
      </td>
      <td class="c-account">
        {item.account_id === null ? <span class="soft">none</span> : <Value of={item.account_id} most={26} />}
      </td>
      <td class="c-result">
        <Status item={item} />
      </td>
      <td class="right c-tokens">
        <TokensOf item={item} />
      </td>
      <td class="right c-cost">
        <Cost of={item} />
      </td>
      <td class="right c-took">
        {item.first_byte_ms !== null && (
          <>
            <Duration of={item.first_byte_ms} />
            <span class="soft">, </span>
          </>
        )}
        <Duration of={item.duration_ms} />
      </td>
    </tr>
  );
}

function TokensOf({ item: { input_tokens, output_tokens, cached_tokens } }: { item: ShownEntry }): Markup {
  if (input_tokens === null && output_tokens === null) return <Unknown />;
  return (
    <>
      <Tokens of={input_tokens} />
      <span class="soft"> in, </span>
      <Tokens of={output_tokens} />
      <span class="soft"> out</span>
      {cached_tokens !== null && cached_tokens > 0 && input_tokens !== null && (
        <small>{percent(cached_tokens / input_tokens)} cached</small>
      )}
    </>
  );
}

/** How it went through: `messages`, or `messages → chat`. */
function wayOf({ client_dialect, upstream_dialect }: ShownEntry): string {
  return upstream_dialect === null || upstream_dialect === client_dialect
    ? client_dialect
    : `${client_dialect} → ${upstream_dialect}`;
}

function notesOf({ attempts, mends, dropped, tokens_estimated }: ShownEntry): string[] {
  return [
    attempts.length > 1 ? plural(attempts.length, "attempt") : "",
    mends.length > 0 ? plural(mends.length, "mend") : "",
    dropped.length > 0 ? `${count(dropped.length)} left out` : "",
    tokens_estimated ? "tokens estimated" : "",
  ].filter(Boolean);
}

/** How an exchange ended, in a colour and in words. */
export function Status({ item }: { item: ShownEntry }): Markup {
  const tone = item.error_type === null ? "good" : item.error_type === "client_closed" ? "idle" : "bad";
  return (
    <>
      <span class={`badge ${tone}`}>{item.http_status}</span>{" "}
      {item.error_type === null ? (
        item.stop_reason !== null && <Value of={item.stop_reason} most={24} />
      ) : (
        <span class={[tone === "bad" && "fault"]}>
          <Value of={item.error_type} most={30} />
        </span>
      )}
    </>
  );
}

/** Credits and premium units side by side: they are never added together. */
export function Cost({
  of: { nano_credits, premium_units },
}: {
  of: Pick<ShownEntry, "nano_credits" | "premium_units">;
}): Markup {
  if (nano_credits === null && premium_units === null) return <span class="unknown">unknown</span>;
  const told = [
    nano_credits === null ? "" : `${credits(nano_credits)} cr`,
    premium_units === null || (premium_units === 0 && nano_credits !== null) ? "" : `${units(premium_units)} pr`,
  ].filter(Boolean);
  return (
    <span class="num" title="cr: AI credits, pr: premium requests">
      {told.join(" + ")}
    </span>
  );
}

function Nothing({ view, nothingYet }: { view: View; nothingYet: boolean }): Markup {
  if (nothingYet)
    return (
      <section class="empty">
        <h2>No request yet</h2>
        <p>As soon as a client asks for something, it is listed here: what it was, where it went, and what it cost.</p>
        <p>
          <a class="button primary" href="/admin/connect">
            Connect a client
          </a>
        </p>
      </section>
    );
  const filtered = chipsOf(view).length > 0;
  return (
    <section class="empty">
      <h2>{view.paged ? "No older requests" : "Nothing matches"}</h2>
      <p>
        {filtered ? "No request that is remembered passes all of these filters." : "There is nothing further back."}
      </p>
      <p>
        <a class="button" href="/admin/requests">
          Show all requests
        </a>
      </p>
    </section>
  );
}

function Pager({ list, view }: { list: ShownPage; view: View }): Markup | false {
  const filters = requestsPath(view.filters, { limit: view.limit === 50 ? undefined : String(view.limit) });
  const query = (more: Record<string, string | undefined>) =>
    withQuery("/admin/requests", { ...Object.fromEntries(new URL(filters, "http://localhost").searchParams), ...more });
  const exported = (format: string) =>
    withQuery("/admin/requests/export", {
      ...Object.fromEntries(new URL(requestsPath(view.filters), "http://localhost").searchParams),
      format,
    });
  if (list.items.length === 0) return false;
  return (
    <div class="pager">
      <nav aria-label="Pages of the list">
        {view.paged && (
          <a class="button" href={query({})} rel="first">
            Newest
          </a>
        )}
        {list.next_cursor_id !== null && (
          <a class="button" href={query({ cursor_id: String(list.next_cursor_id) })} rel="next">
            Older
          </a>
        )}
      </nav>
      <p class="soft">
        All that match, as{" "}
        <a href={exported("csv")} download="">
          CSV
        </a>{" "}
        or{" "}
        <a href={exported("json")} download="">
          JSON
        </a>
      </p>
    </div>
  );
}

// ── What they come to ──

export function TotalsLine({ totals }: { totals: Totals }): Markup {
  const failed = totals.error_count;
  return (
    <dl class="line">
      <Figure name="Requests">
        <Count of={totals.request_count} />
        <small>{failed === 0 ? "none failed" : `${count(failed)} failed`}</small>
      </Figure>
      <Figure name="AI credits">
        <Credits of={totals.nano_credits} />
        <Unsaid of={totals.unknown.nano_credits} all={totals.request_count} />
      </Figure>
      <Figure name="Premium requests">
        <Premium of={totals.premium_units} />
        <Unsaid of={totals.unknown.premium_units} all={totals.request_count} />
      </Figure>
      <Figure name="Tokens in">
        <Tokens of={totals.input_tokens} />
        {totals.cached_share !== null && <small>{percent(totals.cached_share)} cached</small>}
      </Figure>
      <Figure name="Tokens out">
        <Tokens of={totals.output_tokens} />
      </Figure>
      <Figure name="First byte, median">
        {totals.request_count === 0 ? <span class="soft">–</span> : <Duration of={totals.p50_first_byte_ms} />}
        {totals.p95_first_byte_ms !== null && <small>95 % within {duration(totals.p95_first_byte_ms)}</small>}
      </Figure>
    </dl>
  );
}

const Figure = ({ name, children }: { name: string; children?: Child }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

/** A sum is of what is known: how many of the requests do not tell. */
export const Unsaid = ({ of, all }: { of: number; all: number }): Markup | false =>
  of > 0 && of < all && <small>unknown for {compact(of)}</small>;
