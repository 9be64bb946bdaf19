/** One row of the history: its columns, and the limits of its texts. */
import { beginningOf } from "../beginning";

/**
 * The metadata kept of one request: name → SQL type. The table, its inserts, the answers of the admin API and `Entry`
 * are all made from it, so a name here is a field of the admin API.
 * To add a column, add a line here, either with a default value or one that may be null; files that lack it get it when
 * they are opened. To group by it, add its name to `nameColumns`; to add it up, to `measures`.
 */
const columns = {
  request_id: "TEXT NOT NULL UNIQUE",
  /** Unix time in ms; every other `_ms` is a duration. */
  started_at_ms: "INTEGER NOT NULL",
  duration_ms: "INTEGER NOT NULL",
  first_byte_ms: "INTEGER",
  /** Without the query string. */
  path: "TEXT NOT NULL",
  client_dialect: "TEXT NOT NULL",
  upstream_dialect: "TEXT",
  upstream_endpoint: "TEXT",
  account_id: "TEXT",
  /** The account's host and login, or its host and `(temporary)`; null in rows written before this column existed. */
  account_key: "TEXT",
  client_model: "TEXT",
  upstream_model: "TEXT",
  stream: "FLAG NOT NULL",
  /** Who caused the request: `user` or `agent`; the next column says why. */
  initiator: "TEXT",
  initiator_reason: "TEXT",
  /** JSON array of `{ account, status, error?, ms }`, one per try. */
  attempts: "TEXT NOT NULL",
  http_status: "INTEGER NOT NULL",
  stop_reason: "TEXT",
  /** Set exactly when the request failed; the filter `has_error` reads it. */
  error_type: "TEXT",
  error_message: "TEXT",
  client_name: "TEXT",
  /** The beginning of a hash of the session's id. */
  session: "TEXT",
  /** Why the prompt was not read from the upstream's cache, if one was expected to be there: a word of `upstream/cache-watch.ts`. */
  cache_miss: "TEXT",
  input_tokens: "INTEGER",
  output_tokens: "INTEGER",
  cached_tokens: "INTEGER",
  cache_write_tokens: "INTEGER",
  reasoning_tokens: "INTEGER",
  tokens_estimated: "FLAG NOT NULL",
  /** Billionths of an AI credit. */
  nano_credits: "INTEGER",
  premium_units: "REAL",
  /** JSON array of names. */
  fixups: "TEXT NOT NULL",
  /** JSON array of names. */
  dropped: "TEXT NOT NULL",
  /** The name of the client key. */
  key_name: "TEXT",
  /** The id of the member whose key it is; null for the owner's. */
  member: "TEXT",
  /** How many web searches ran for the reply; null if none did. */
  searches: "INTEGER",
  /** For a search: the id of the request it ran for. */
  parent_id: "TEXT",
  /** JSON array of the models that were to serve before this one, with their statuses and why they did not; null without any. */
  fallbacks: "TEXT",
  /** JSON of how Auto chose the model, why, and with which discount; null if the client did not ask for Auto. */
  auto: "TEXT",
} as const;

interface Values {
  TEXT: string;
  INTEGER: number;
  REAL: number;
  FLAG: 0 | 1;
}

type ValueOf<Sql extends string> = Sql extends `${infer Type extends keyof Values} NOT NULL${string}`
  ? Values[Type]
  : Sql extends keyof Values
    ? Values[Sql] | null
    : never;

/** One request. Null means "unknown" or "does not apply", never 0. */
export type Entry = { -readonly [Column in keyof typeof columns]: ValueOf<(typeof columns)[Column]> };

/** An entry as stored; `id` grows with every row and is the cursor of pages. */
export type Row = Entry & { id: number };

const defaultLimit = 256;
/** How many characters of a text are kept, where it is not `defaultLimit`. */
const limits: Partial<Record<keyof Entry, number>> = {
  error_message: 1_000,
  attempts: 4_000,
  fixups: 4_000,
  dropped: 4_000,
  fallbacks: 4_000,
};
const lists: Set<string> = new Set<keyof Entry>(["attempts", "fixups", "dropped", "fallbacks"]);

/**
 * The entry with its texts cut to their limits, as a copy if one was too long. A JSON array loses its last members.
 * @param most A lower limit for all of them.
 */
export function cut<Fields extends Partial<Entry>>(entry: Fields, most = Number.POSITIVE_INFINITY): Fields {
  if (fits(entry, most)) return entry;
  const fitting = Object.entries(entry).map(([name, value]) => {
    const limit = limitOf(name, most);
    if (typeof value !== "string" || value.length <= limit) return [name, value];
    return [name, lists.has(name) ? cutList(value, limit) : beginningOf(value, limit)];
  });
  return Object.fromEntries(fitting) as Fields;
}

const limitOf = (name: string, most: number) => Math.min(limits[name as keyof Entry] ?? defaultLimit, most);

function fits(entry: Partial<Entry>, most: number): boolean {
  for (const name in entry) {
    const value = entry[name as keyof Entry];
    if (typeof value === "string" && value.length > limitOf(name, most)) return false;
  }
  return true;
}

function cutList(text: string, limit: number): string {
  const members: unknown[] = JSON.parse(text);
  while (JSON.stringify(members).length > limit) members.splice(Math.floor(members.length / 2));
  return JSON.stringify(members);
}

/** In the order of the table. */
export const columnNames = Object.keys(columns) as (keyof Entry)[];

const marks = columnNames.map(() => "?").join(", ");
/** Takes `valuesOf` an entry. Parameters are positional, because SQLite looks up names slowly. */
export const insertEntry = `INSERT INTO requests (${columnNames.join(", ")}) VALUES (${marks}) ON CONFLICT (request_id) DO NOTHING`;
export const valuesOf = (entry: Entry) => columnNames.map((name) => entry[name]);

export { columns as entryColumns };
