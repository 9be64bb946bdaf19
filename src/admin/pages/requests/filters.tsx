/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The bar of filters above the requests. */
import type { Filters } from "../../../history/history";
import type { NameColumn } from "../../../history/page";
import { spellName } from "../../api/query";
import type { ShownPage } from "../../api/requests";
import { shorten, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { chipsOf, periods, type RequestsView } from "./view";

export function FilterBar({
  view,
  list,
  accounts,
}: {
  view: RequestsView;
  list: ShownPage;
  accounts: string[];
}): Markup {
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
                  {name}: <Value of={value} max={40} />
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

const clientPaths = ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"];

const namesIn = ({ items }: ShownPage, name: NameColumn) =>
  [...new Set(items.flatMap((item) => item[name] ?? []))].sort();

function Text({
  name,
  label,
  filters,
  known,
}: {
  name: NameColumn;
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
        value={value === undefined ? undefined : spellName(value)}
        list={`known-${name}`}
        placeholder="Any"
        autocomplete="off"
        spellcheck="false"
      />
      <datalist id={`known-${name}`}>
        {known.filter(isPlain).map((each) => (
          <option value={spellName(each)} />
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

/** By this machine's clock, as the field takes it. */
function asLocal(time: number | undefined): string | undefined {
  if (time === undefined || time > 8.64e15) return undefined;
  const date = new Date(time - new Date(time).getTimezoneOffset() * 60_000);
  return date.toISOString().slice(0, 16);
}
