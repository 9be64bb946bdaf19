/**
 * What prompts are made of: the portions of each, as its row has them, and what those of a day add up to, in a table of its own. A
 * page adds up weeks of it in a moment, which it could not do from the rows.
 */
import { type PieceKind, pieceKinds } from "../../dialects/prompt-pieces";
import { dayMs } from "../../lib/format";
import { parseJson } from "../../lib/json";
import type { Entry } from "./entry";
import type { Filters } from "./filters";
import { boundsOf, Parameters, type Source, where } from "./sql";

/**
 * The kinds of portions: what prompts are made of, and the reply. `surcharge` is what the dearer rate of a long prompt has added
 * to their costs: a part of these, not beside them.
 */
export const portionKinds = [...pieceKinds, "output", "surcharge"] as const;
type PortionKind = PieceKind | "output" | "surcharge";

/** A part of one request: pieces of its prompt that are alike, or its reply. */
export interface Portion {
  kind: PortionKind;
  /** The tool, or `mcp__<server>`; null where there is none, and for those that are not named. */
  tool: string | null;
  /** How many pieces. */
  count: number;
  tokens: number;
  /** Of the tokens those that were read from the cache. */
  cached: number;
  /** Billionths of an AI credit; null if it is unknown. */
  cost: number | null;
  /** How many tokens more than in the request before in the conversation; null if that is not known. */
  grown: number | null;
}

const members = ["kind", "tool", "count", "tokens", "cached", "cost", "grown"] as const;

/** As the column keeps them: an array of arrays. */
export const packed = (portions: readonly Portion[]): string =>
  JSON.stringify(
    portions.map((each) => [each.kind, each.tool, each.count, each.tokens, each.cached, each.cost, each.grown]),
  );

/** None for a row that has none, or that another program wrote. */
export function portionsIn(column: string | null): Portion[] {
  const rows = column === null ? undefined : parseJson(column);
  if (!Array.isArray(rows)) return [];
  return rows.map((row: unknown[]) => Object.fromEntries(members.map((name, at) => [name, row[at] ?? null]))) as never;
}

/** What portions of one kind, tool and model add up to. */
export interface PortionSum {
  kind: PortionKind;
  tool: string | null;
  upstream_model: string | null;
  requests: number;
  tokens: number;
  cached: number;
  /** Billionths of an AI credit, of the portions whose cost is known; null if it is known of none. */
  cost: number | null;
  cost_at_least: boolean;
}

const keys = ["day", "member", "upstream_model", "kind", "tool"] as const;
const sums = ["requests", "tokens", "cached", "cost", "unknown_cost"] as const;

/** In place of null, which would be equal to nothing. */
const nothing = "";

const sumColumn = (name: string, integer: string) => `${name} ${integer} NOT NULL DEFAULT 0`;

/** The table, for each database. @param types What it calls a text and a whole number. */
export const portionTable = (table: string, { text, integer }: { text: string; integer: string }): string =>
  `CREATE TABLE IF NOT EXISTS ${table} (day ${integer} NOT NULL, ${keys
    .slice(1)
    .map((name) => `${name} ${text} NOT NULL`)
    .join(", ")}, ${sums.map((name) => sumColumn(name, integer)).join(", ")}, PRIMARY KEY (${keys.join(", ")}))`;

/** Older tables lack it: of how many of their portions the cost is unknown, nothing says. */
export const unknownCostColumn = (integer: string): string => sumColumn("unknown_cost", integer);

/** The end of an INSERT: what is there already is added to. */
export const addedToPortions = (table: string): string =>
  `ON CONFLICT (${keys.join(", ")}) DO UPDATE SET ${sums.map((name) => `${name} = ${table}.${name} + excluded.${name}`).join(", ")}`;

export const portionColumns = [...keys, ...sums].join(", ");

/** The day of UTC in which a request began. */
export const portionDay = (startedAtMs: number): number => Math.floor(startedAtMs / dayMs);

interface Added extends Record<(typeof sums)[number], number> {
  key: (string | number)[];
}

/** What the portions of these rows add up to, in the order of the table's columns. */
export function portionRows(entries: readonly Entry[]): (string | number)[][] {
  const rows = new Map<string, Added>();
  for (const { started_at_ms, member, upstream_model, portions } of entries) {
    const arrays = portions === null ? undefined : parseJson(portions);
    if (!Array.isArray(arrays)) continue;
    const [day, who, model] = [portionDay(started_at_ms), member ?? nothing, upstream_model ?? nothing];
    const before = `${day} ${who} ${model} `;
    // Read as they are kept: to make objects of them would take as long as to write the row.
    for (const array of arrays) {
      const [kind, tool] = [array[0], array[1] ?? nothing];
      const name = `${before}${kind} ${tool}`;
      let row = rows.get(name);
      if (!row) {
        row = { key: [day, who, model, kind, tool], requests: 0, tokens: 0, cached: 0, cost: 0, unknown_cost: 0 };
        rows.set(name, row);
      }
      row.requests += 1;
      row.tokens += array[3];
      row.cached += array[4];
      row.cost += array[5] ?? 0;
      if (array[5] === null) row.unknown_cost += 1;
    }
  }
  return [...rows.values()].map((row) => [...row.key, ...sums.map((name) => row[name])]);
}

/** The filters that portions are known by: whose requests, and the days that have a part of this time. */
export type PortionFilters = Pick<Filters, "member" | "from_ms" | "to_ms">;

interface SumRow extends Record<(typeof sums)[number], number> {
  kind: PortionKind;
  tool: string;
  upstream_model: string;
}

/** The dearest first. */
export async function portionSums(source: Source, filters: PortionFilters): Promise<PortionSum[]> {
  const { dialect } = source;
  const parameters = new Parameters(dialect);
  const { from, to } = boundsOf(filters);
  const terms: string[] = [];
  if (from !== undefined) terms.push(`day >= ${parameters.number(portionDay(from))}`);
  if (to !== undefined) terms.push(`day <= ${parameters.number(portionDay(to))}`);
  if (filters.member !== undefined) terms.push(`member = ${parameters.text(filters.member ?? nothing)}`);
  const named = ["kind", "tool", "upstream_model"];
  const added = sums.map((name) => `${dialect.number(`sum(${name})`)} AS ${name}`);
  const rows = await source.rows<SumRow>(
    `SELECT ${[...named, ...added].join(", ")} FROM ${dialect.tables.portions}${where(terms)}
      GROUP BY ${named.join(", ")} ORDER BY sum(cost) DESC, sum(tokens) DESC`,
    parameters.values,
  );
  return rows.map(({ tool, upstream_model, cost, unknown_cost, ...row }) => ({
    ...row,
    tool: tool || null,
    upstream_model: upstream_model || null,
    cost: unknown_cost === row.requests ? null : cost,
    cost_at_least: unknown_cost > 0,
  }));
}
