/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The filters above the list of requests. */

import { labelOf, type NameColumn, nameColumns } from "../../../books/history/entry";
import type { Filters } from "../../../books/history/history";
import { clientPaths, embeddingsPaths } from "../../../lib/api-paths";
import { shorten } from "../../../lib/format";
import { formatName } from "../../api/query";
import type { ShownPage } from "../../api/requests";
import { FilterChoice } from "../../ui/form-fields";
import { Value } from "../../ui/format";
import type { Child, Markup } from "../../ui/jsx/jsx-runtime";
import type { MemberNames } from "../member-names";
import { chipsOf, periods, type RequestsView } from "./view";

export function FilterBar({
  view,
  list,
  accounts,
  keys,
}: {
  view: RequestsView;
  list: ShownPage;
  accounts: string[];
  /** The names of the client keys, those of the rows included; empty if there are none. */
  keys: string[];
}): Markup {
  const { filters, url } = view;
  const period = url.searchParams.get("period");
  const known: Partial<Record<NameColumn, string[]>> = {
    account_id: accounts,
    key_name: keys,
    path: servedPaths,
    initiator: initiators,
  };
  const texts = (names: readonly NameColumn[]) =>
    names.map((name) => <Text name={name} value={filters[name]} suggestions={known[name] ?? namesIn(list, name)} />);
  return (
    <search class="filters">
      <form method="get" action="/admin/requests" data-auto>
        <div class="fields">
          <FilterChoice
            name="period"
            label="Time range"
            chosen={period}
            options={[["", "Any time"], ...Object.entries(periods).map(([key, [, name]]) => [key, name] as const)]}
          />
          {texts(firstNames.filter((name) => name !== "key_name" || keys.length > 0))}
          {view.names && <MemberChoice names={view.names} chosen={filters.member} list={list} />}
          <Flag name="has_error" label="Result" value={filters.has_error} words={["Succeeded", "Failed"]} />
          <div class="go">
            <button type="submit">Filter</button>
          </div>
        </div>
        <MoreFilters view={view}>{texts(moreNames)}</MoreFilters>
        {view.follows && <input type="hidden" name="follow" value="1" />}
      </form>
      <Chips {...view} />
    </search>
  );
}

/** @param children The fields of texts. */
function MoreFilters({ view, children }: { view: RequestsView; children?: Child }): Markup {
  const { filters, limit } = view;
  const hasPeriod = !!view.url.searchParams.get("period");
  return (
    <details open={more.some((name) => filters[name] !== undefined && !(name === "from_ms" && hasPeriod))}>
      <summary>More filters</summary>
      <div class="fields">
        {children}
        <Flag name="stream" label="Streamed" value={filters.stream} words={["Not streamed", "Streamed"]} />
        <label class="field">
          <span>Status</span>
          <input name="status" inputmode="numeric" pattern="[1-5][0-9][0-9]" value={filters.status?.toString()} />
        </label>
        <FilterChoice
          name="status_class"
          label="Status class"
          chosen={filters.status_class === undefined ? "" : `${filters.status_class}xx`}
          options={["", "2xx", "3xx", "4xx", "5xx"].map((status) => [status, status || "Any"] as const)}
        />
        <Time name="from" label="From" value={hasPeriod ? undefined : filters.from_ms} />
        <Time name="to" label="Until" value={filters.to_ms} />
        <FilterChoice
          name="limit"
          label="Rows"
          chosen={String(limit)}
          options={["25", "50", "100", "200"].map((rows) => [rows, rows] as const)}
        />
      </div>
      <p class="soft">
        Enter <code>(none)</code> to find requests without a value in that field, and <code>\(none)</code> for one whose
        value is <code>(none)</code>.
      </p>
    </details>
  );
}

/** The active filters, each with a link that removes it. */
export function Chips(view: Parameters<typeof chipsOf>[0]): Markup | false {
  const chips = chipsOf(view);
  return (
    chips.length > 0 && (
      <ul class="chips" aria-label="Active filters">
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
          <a href={view.url.pathname} class="all">
            Clear all
          </a>
        </li>
      </ul>
    )
  );
}

const firstNames: NameColumn[] = ["upstream_model", "client_name", "key_name", "account_id"];
/** A member is chosen from a list, and an account by its name. */
const moreNames = nameColumns.filter((name) => ![...firstNames, "member", "account_key"].includes(name));
const more: (keyof Filters)[] = [...moreNames, "stream", "status", "status_class", "from_ms", "to_ms"];

const servedPaths: string[] = [...Object.values(clientPaths), embeddingsPaths.client];
const initiators = ["user", "agent"];

const namesIn = ({ items }: ShownPage, name: NameColumn) =>
  [...new Set(items.flatMap((item) => item[name] ?? []))].sort();

interface TextProps {
  name: NameColumn;
  value: string | null | undefined;
  suggestions: string[];
}

const Text = ({ name, value, suggestions }: TextProps) => (
  <label class="field">
    <span>{labelOf(name)}</span>
    <input
      name={name}
      value={value === undefined ? undefined : formatName(value)}
      list={`known-${name}`}
      placeholder="Any"
      autocomplete="off"
      spellcheck="false"
    />
    <datalist id={`known-${name}`}>
      {suggestions.filter(isPlain).map((name) => (
        <option value={formatName(name)} />
      ))}
    </datalist>
  </label>
);

/** Only text that can be read and typed is suggested. */
const isPlain = (text: string) => shorten(text, 80) === text;

/** More members are not listed, except those of the rows that are shown. */
const maxListed = 300;

interface MemberChoiceProps {
  names: MemberNames;
  chosen: string | null | undefined;
  list: ShownPage;
}

function MemberChoice({ names, chosen, list }: MemberChoiceProps): Markup {
  const listed = names.members.slice(0, maxListed).map(({ id }) => id);
  const ids = new Set([...listed, ...list.items.flatMap(({ member }) => member ?? []), ...(chosen ? [chosen] : [])]);
  const options = [null, ...ids].map((id) => [formatName(id), names.nameOf(id)] as const);
  const value = chosen === undefined ? "" : formatName(chosen);
  return <FilterChoice name="member" label="Member" chosen={value} options={[["", "Any"], ...options]} />;
}

interface FlagProps {
  name: "has_error" | "stream";
  label: string;
  value: boolean | undefined;
  words: readonly [no: string, yes: string];
}

const Flag = ({ name, label, value, words: [no, yes] }: FlagProps) => (
  <FilterChoice
    name={name}
    label={label}
    chosen={value === undefined ? "" : String(Number(value))}
    options={[
      ["", "Any"],
      ["0", no],
      ["1", yes],
    ]}
  />
);

const Time = ({ name, label, value }: { name: string; label: string; value: number | undefined }) => (
  <label class="field">
    <span>{label}</span>
    <input type="datetime-local" name={name} value={asLocal(value)} />
  </label>
);

/** In this machine's time zone, as a `datetime-local` field expects it. */
function asLocal(time: number | undefined): string | undefined {
  if (time === undefined || time > 8.64e15) return undefined;
  const date = new Date(time - new Date(time).getTimezoneOffset() * 60_000);
  return date.toISOString().slice(0, 16);
}
