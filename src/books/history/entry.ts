/** One row of the history: its columns, and the limits of its texts. */
import { beginningOf } from "../../lib/beginning";
import type { CostUnit } from "../../lib/money";

interface Column {
  /** The type in SQLite, with its constraints. */
  sql: string;
  /** It may be known before the request has ended. */
  running?: true;
  /**
   * Its words on the admin pages. A column that has them holds a name: rows can be filtered by it, and statistics grouped by
   * it. SQLite's rollup is made anew after such a change; in Postgres a column is added to it.
   */
  label?: string;
}

/**
 * The metadata kept of one request. The table, its inserts, the answers of the admin API, `Entry` and `InFlightRequest` are
 * made from it, and so are the filters of the admin API and its pages: a name here is a field of the admin API.
 * To add a column, add a line here, either with a default value or one that may be null; files that lack it get it when
 * they are opened. To add it up, add its name to `measureNames`.
 */
const columns = {
  request_id: { sql: "TEXT NOT NULL UNIQUE", running: true },
  /** Unix time in ms; every other `_ms` is a duration. */
  started_at_ms: { sql: "INTEGER NOT NULL", running: true },
  duration_ms: { sql: "INTEGER NOT NULL" },
  first_byte_ms: { sql: "INTEGER", running: true },
  /** Without the query string. */
  path: { sql: "TEXT NOT NULL", running: true, label: "Path" },
  client_dialect: { sql: "TEXT NOT NULL", running: true },
  upstream_dialect: { sql: "TEXT", running: true },
  upstream_endpoint: { sql: "TEXT", running: true, label: "Upstream endpoint" },
  account_id: { sql: "TEXT", running: true, label: "Account" },
  /** The account's host and login, or its host and `(temporary)`; null in rows written before this column existed. */
  account_key: { sql: "TEXT", running: true, label: "Account" },
  client_model: { sql: "TEXT", running: true, label: "Requested model" },
  upstream_model: { sql: "TEXT", running: true, label: "Model" },
  stream: { sql: "FLAG NOT NULL", running: true },
  /** Who caused the request: `user` or `agent`; the next column says why. */
  initiator: { sql: "TEXT", running: true, label: "Initiator" },
  initiator_reason: { sql: "TEXT", running: true },
  /** JSON array of `{ account, status, error?, ms }`, one per try. */
  attempts: { sql: "TEXT NOT NULL", running: true },
  http_status: { sql: "INTEGER NOT NULL" },
  stop_reason: { sql: "TEXT" },
  /** Set exactly when the request failed; the filter `has_error` reads it. */
  error_type: { sql: "TEXT" },
  error_message: { sql: "TEXT" },
  client_name: { sql: "TEXT", running: true, label: "Client" },
  /** The beginning of a hash of the session's id. */
  session: { sql: "TEXT", label: "Session" },
  /** Why the prompt was not read from the upstream's cache, if one was expected to be there: a word of `proxy/upstream/cache-watch.ts`. */
  cache_miss: { sql: "TEXT", label: "Cache miss" },
  input_tokens: { sql: "INTEGER" },
  output_tokens: { sql: "INTEGER" },
  cached_tokens: { sql: "INTEGER" },
  cache_write_tokens: { sql: "INTEGER" },
  reasoning_tokens: { sql: "INTEGER" },
  tokens_estimated: { sql: "FLAG NOT NULL" },
  /** Billionths of the unit. */
  cost: { sql: "INTEGER" },
  /** A name of `costUnits`: what the plan of the account bills in; null if the cost is unknown. */
  cost_unit: { sql: "TEXT" },
  /** The cost is at least this: the reply was cut, or the upstream did not state all that is charged for. */
  cost_at_least: { sql: "FLAG NOT NULL DEFAULT 0" },
  /** JSON array of names. */
  fixups: { sql: "TEXT NOT NULL" },
  /** JSON array of names. */
  dropped: { sql: "TEXT NOT NULL" },
  /** The name of the client key. */
  key_name: { sql: "TEXT", running: true, label: "Key" },
  /** The id of the member whose key it is; null for the owner's. */
  member: { sql: "TEXT", running: true, label: "Member" },
  /** How many web searches ran for the reply; null if none did. */
  searches: { sql: "INTEGER", running: true },
  /** Why it waited for a limit to end; null if it did not. */
  waited_for: { sql: "TEXT", running: true },
  /** Until when, about, it waits now; null if it does not. */
  waits_until_ms: { sql: "INTEGER", running: true },
  /** How long it waited in all. */
  waited_ms: { sql: "INTEGER" },
  /** For a search: the id of the request it ran for. */
  parent_id: { sql: "TEXT", running: true },
  /** JSON array of the models that were to serve before this one, with their statuses and why they did not; null without any. */
  fallbacks: { sql: "TEXT", running: true },
  /** JSON of how Auto chose the model, why, and with which discount; null if the client did not ask for Auto. */
  auto: { sql: "TEXT" },
  /**
   * The beginning of a hash of the client's own id for a prompt, which the requests of its subagents carry too. A request
   * that carries none has that of the prompt that runs in its session.
   */
  prompt: { sql: "TEXT", running: true, label: "Prompt" },
  /** What the request was for: a word of `requestKinds`; null if the client does not say. */
  kind: { sql: "TEXT", running: true, label: "Kind" },
  /** The client's name for a kind of subagent: `Explore`, `Plan`. */
  agent_type: { sql: "TEXT", running: true, label: "Agent type" },
  /** The owner's route that chose the model: a kind of request, or `subagent:` and an agent type. */
  route: { sql: "TEXT", running: true, label: "Route" },
  /** What the client was working on: a name that its owner chose. */
  project: { sql: "TEXT", running: true, label: "Project" },
  /** How long a prompt had not been used, if the cache had dropped it meanwhile. */
  cache_idle_ms: { sql: "INTEGER" },
  /** What of the prompt changed, if that is why the cache did not have it: JSON of a `CacheChange`. */
  cache_change: { sql: "TEXT" },
  /** What it cost that the cache did not have it, in billionths of an AI credit; null also if that is not known. */
  cache_lost_cost: { sql: "INTEGER" },
  /** What the prompt was made of, and the reply: JSON of `portions.ts`. Sizes and names of tools, never a text. */
  portions: { sql: "TEXT" },
  /** Tokens of the prompt up to the last mark for the cache. */
  marked_tokens: { sql: "INTEGER" },
} as const satisfies Record<string, Column>;

/**
 * What a request is for. `main` is the conversation with a person; `check` judges a tool call that the client is to run
 * without asking a person; `title` names the session; `auxiliary` is what else a client asks beside the conversation.
 */
export const requestKinds = ["main", "subagent", "check", "title", "compaction", "auxiliary", "search"] as const;
export type RequestKind = (typeof requestKinds)[number];

interface Values {
  TEXT: string;
  INTEGER: number;
  FLAG: 0 | 1;
}

type ValueOf<Sql extends string> = Sql extends `${infer Type extends keyof Values} NOT NULL${string}`
  ? Values[Type]
  : Sql extends keyof Values
    ? Values[Sql] | null
    : never;

/** One request. Null means "unknown" or "does not apply", never 0. */
export type Entry = {
  -readonly [Name in keyof typeof columns]: Name extends "cost_unit"
    ? CostUnit | null
    : ValueOf<(typeof columns)[Name]["sql"]>;
};

/** The columns that have a property. */
type ColumnsWith<Property extends keyof Column> = {
  [Name in keyof Entry]: (typeof columns)[Name] extends Record<Property, unknown> ? Name : never;
}[keyof Entry];

/** A column that holds a name. */
export type NameColumn = ColumnsWith<"label">;

/** What is known of a request before it has ended. */
export type InFlightRequest = Pick<Entry, ColumnsWith<"running">>;

/** An entry as stored; `id` grows with every row and is the cursor of pages. */
export type Row = Entry & { id: number };

/** How many characters of a text are kept, where `limits` has no other number. */
export const maxText = 256;
const limits: Partial<Record<keyof Entry, number>> = {
  error_message: 1_000,
  attempts: 4_000,
  fixups: 4_000,
  dropped: 4_000,
  fallbacks: 4_000,
  cache_change: 1_000,
  portions: 4_000,
};
const lists: Set<string> = new Set<keyof Entry>(["attempts", "fixups", "dropped", "fallbacks", "portions"]);

/** The entry with its texts cut to their limits, as a copy if one was too long. A JSON array loses its last members. */
export function cut<Fields extends Partial<Entry>>(entry: Fields): Fields {
  let fitting: Record<string, unknown> | undefined;
  for (const name in entry) {
    const value: unknown = entry[name];
    if (typeof value !== "string") continue;
    const limit = limits[name as keyof Entry] ?? maxText;
    if (value.length <= limit) continue;
    fitting ??= { ...entry };
    fitting[name] = lists.has(name) ? cutList(value, limit) : beginningOf(value, limit);
  }
  return (fitting as Fields | undefined) ?? entry;
}

function cutList(text: string, limit: number): string {
  const members: unknown[] = JSON.parse(text);
  while (JSON.stringify(members).length > limit) members.splice(Math.floor(members.length / 2));
  return JSON.stringify(members);
}

/** In the order of the table. */
export const columnNames = Object.keys(columns) as (keyof Entry)[];

type Unknowable = { [Name in keyof Entry]: null extends Entry[Name] ? Name : never }[keyof Entry];
/** Null in each column that may be null. */
export const nothingKnown = Object.fromEntries(
  columnNames.filter((name) => !columns[name].sql.includes("NOT NULL")).map((name) => [name, null]),
) as Record<Unknowable, null>;

const columnsWith = <Property extends keyof Column>(property: Property) =>
  columnNames.filter((name) => property in columns[name]) as ColumnsWith<Property>[];
export const nameColumns = columnsWith("label");
export const runningColumns = columnsWith("running");

/** The words for a column on the admin pages. */
export const labelOf = (name: NameColumn): string => columns[name].label;

const marks = columnNames.map(() => "?").join(", ");
/** Takes `valuesOf` an entry. Parameters are positional, because SQLite looks up names slowly. */
export const insertEntry = `INSERT INTO requests (${columnNames.join(", ")}) VALUES (${marks}) ON CONFLICT (request_id) DO NOTHING`;
export const valuesOf = (entry: Entry) => columnNames.map((name) => entry[name]);

export { columns as entryColumns };

/** The columns of the indexes that find the rows of a prompt, and the prompts of the newest rows. */
export const promptIndexes = ["prompt", "id, prompt"] as const;
