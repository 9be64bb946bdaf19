/** @jsxRuntime automatic @jsxImportSource #jsx */
/** What is asked of the history: the bar of filters, and the address that says the same. */
import type { Filters } from "../history/history";
import { moment, shorten, Value } from "./figures";
import type { Markup } from "./jsx/jsx-runtime";
import { withQuery } from "./links";
import type { ShownPage } from "./requests";

export interface View {
  filters: Filters;
  limit: number;
  follows: boolean;
  /** These are not the newest. */
  paged: boolean;
  now: number;
  url: URL;
}

const periods: Record<string, [ms: number, name: string]> = {
  "15m": [15 * 60_000, "Last 15 minutes"],
  "1h": [3_600_000, "Last hour"],
  "24h": [86_400_000, "Last 24 hours"],
  "7d": [7 * 86_400_000, "Last 7 days"],
  "30d": [30 * 86_400_000, "Last 30 days"],
};

/** The address as the API would have it: a form says times as people do. */
export function asAsked(url: URL, now: number): URL {
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

export function FilterBar({ view, list, accounts }: { view: View; list: ShownPage; accounts: string[] }): Markup {
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
export function chipsOf({ filters, url, now }: View): { name: string; value: string; without: string }[] {
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
