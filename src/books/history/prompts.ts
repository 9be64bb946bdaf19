/** The requests that one prompt of a person caused, added up: see the columns `prompt` and `kind`. */

import { type Costs, type CostUnit, costUnitNames } from "../../lib/money";
import type { RequestKind } from "./entry";
import type { Filters } from "./filters";
import { firstOf, type Paged, pageOf } from "./page";
import { sumColumns, sumsOfRows } from "./rollup";
import { and, conditionsOf, Parameters, rowConditions, type Source, where } from "./sql";
import { costsIn, type Measure, measureNames, type Sums } from "./totals";

/** Requests of a prompt that are alike. Sums are those of the known values; null when none is known. */
export interface PromptPart extends Record<Measure, number | null>, Costs {
  kind: RequestKind | null;
  agent_type: string | null;
  upstream_model: string | null;
  cache_miss: string | null;
  failed: boolean;
  request_count: number;
  /** Calls beyond the first one of a request. */
  retry_count: number;
  /** Requests of unknown cost. */
  unknown_cost_count: number;
  /** Requests of which it is unknown what missing the cache cost. */
  unknown_loss_count: number;
  /** The longest, ms; see the column. */
  cache_idle_ms: number | null;
}

export interface PromptSums {
  prompt: string;
  /** Unix ms: when its first request began, and when its last one ended. */
  started_at_ms: number;
  ended_at_ms: number;
  client_name: string | null;
  session: string | null;
  project: string | null;
  key_name: string | null;
  member: string | null;
  parts: PromptPart[];
}

/** By their last request. */
export type PromptPage = Paged<PromptSums>;

/** In which order prompts are listed. */
export const promptOrders = ["newest", "dearest"] as const;
export type PromptOrder = (typeof promptOrders)[number];

/**
 * @param filters A prompt is added up as a whole if one of its requests lies between the times.
 * @param cursor The id before which the last request of each prompt lies; of the dearest, how many to pass over.
 */
export async function promptsOf(
  source: Source,
  filters: Filters,
  limit: number,
  cursor?: number,
  order: PromptOrder = "newest",
): Promise<PromptPage> {
  if (order === "dearest") {
    const found = await dearestPrompts(source, filters, limit + 1, cursor ?? 0);
    const has_more = found.length > limit;
    const items = await sumsOf(source, filters, found.slice(0, limit));
    return { items, has_more, next_cursor_id: has_more ? (cursor ?? 0) + limit : null };
  }
  const page = firstOf(await newestPrompts(source, filters, limit + 1, cursor ?? Number.MAX_SAFE_INTEGER), limit);
  return { ...page, items: await sumsOf(source, filters, page.items) };
}

interface LastRequest {
  id: number;
  prompt: string;
}

/** Reads all rows of the time, by the index of times and not by that of prompts, which has all rows: it should have bounds. */
async function dearestPrompts(source: Source, filters: Filters, limit: number, offset: number): Promise<LastRequest[]> {
  const { dialect } = source;
  const parameters = new Parameters(dialect);
  const terms = rowConditions(filters, parameters);
  const costs = costUnitNames.map((unit) => `coalesce(sum(CASE WHEN cost_unit = '${unit}' THEN cost END), 0) DESC`);
  return source.rows<LastRequest>(
    `WITH recent AS MATERIALIZED
        (SELECT id, prompt, cost, cost_unit FROM ${dialect.tables.requests} AS each${where(terms)})
      SELECT ${dialect.number("max(id)")} AS id, prompt FROM recent WHERE prompt IS NOT NULL
      GROUP BY prompt ORDER BY ${costs.join(", ")}, max(id) DESC LIMIT ${limit} OFFSET ${parameters.number(offset)}`,
    parameters.values,
  );
}

/** Rows that are read first; then four times as many. */
const [firstRows, mostRows] = [500, 20_000];

async function newestPrompts(source: Source, filters: Filters, wanted: number, cursor: number): Promise<LastRequest[]> {
  const found: LastRequest[] = [];
  const seen = new Set<string>();
  let before = cursor;
  for (let size = firstRows; ; size = Math.min(size * 4, mostRows)) {
    const rows = await promptedRows(source, filters, size, before);
    const fresh: LastRequest[] = [];
    for (const row of rows)
      if (!seen.has(row.prompt)) {
        seen.add(row.prompt);
        fresh.push(row);
      }
    const listed = await promptsFrom(source, filters, fresh, cursor);
    found.push(...fresh.filter(({ prompt }) => !listed.has(prompt)));
    if (found.length >= wanted || rows.length < size) return found.slice(0, wanted);
    before = rows.at(-1)!.id;
  }
}

/** The newest rows that belong to a prompt. Without filters an index alone tells them. */
async function promptedRows(source: Source, filters: Filters, limit: number, before: number): Promise<LastRequest[]> {
  const { dialect } = source;
  const own = Object.entries(filters).filter(([, value]) => value !== undefined);
  if (own.some(([name]) => name !== "prompt"))
    return (
      await pageOf(
        source,
        `${dialect.number("each.id")} AS id, each.prompt`,
        { ...filters, has_prompt: true },
        limit,
        before,
      )
    ).items as unknown as LastRequest[];
  const parameters = new Parameters(dialect);
  return source.rows<LastRequest>(
    `SELECT ${dialect.number("id")} AS id, prompt FROM ${dialect.tables.requests} AS each
      WHERE prompt IS NOT NULL AND id < ${parameters.number(before)}${and(conditionsOf(filters, parameters))}
      ORDER BY each.id DESC LIMIT ${limit}`,
    parameters.values,
  );
}

/** Those that have a request from the cursor on: an earlier page lists them. */
async function promptsFrom(
  { dialect, rows }: Source,
  filters: Filters,
  prompts: readonly LastRequest[],
  cursor: number,
): Promise<Set<string>> {
  if (cursor === Number.MAX_SAFE_INTEGER || prompts.length === 0) return new Set();
  const parameters = new Parameters(dialect);
  const found = await rows<{ prompt: string }>(
    `SELECT DISTINCT prompt FROM ${dialect.tables.requests} AS each
      WHERE prompt IN (SELECT ${dialect.texts(parameters.json(prompts.map(({ prompt }) => prompt)))})
        AND id >= ${parameters.number(cursor)}${and(conditionsOf(filters, parameters))}`,
    parameters.values,
  );
  return new Set(found.map(({ prompt }) => prompt));
}

const partKeys = ["kind", "agent_type", "upstream_model", "cache_miss"] as const;
const promptNames = ["client_name", "session", "project", "key_name", "member"] as const;
type PromptName = (typeof promptNames)[number];
const usedSums = sumColumns.filter(
  ({ name }) =>
    name === "open_cost" ||
    [...measureNames, ...costUnitNames].some((added) => name === `${added}_sum` || name === `${added}_count`),
);

type PartRow = Pick<PromptPart, (typeof partKeys)[number]> &
  Pick<PromptSums, PromptName | "prompt" | "started_at_ms" | "ended_at_ms"> &
  Pick<Sums, `${Measure | CostUnit}_${"sum" | "count"}` | "requests" | "open_cost"> &
  Record<"failed" | "retries", number> & { cache_idle_ms: number | null };

async function sumsOf(source: Source, filters: Filters, prompts: readonly LastRequest[]): Promise<PromptSums[]> {
  const { dialect } = source;
  if (prompts.length === 0) return [];
  const parameters = new Parameters(dialect);
  const numbers = {
    failed: "CASE WHEN error_type IS NULL THEN 0 ELSE 1 END",
    requests: "count(*)",
    retries: `sum(${dialect.further("attempts")})`,
    started_at_ms: "min(started_at_ms)",
    ended_at_ms: "max(started_at_ms + duration_ms)",
    cache_idle_ms: "max(cache_idle_ms)",
  };
  const summed = [
    ...Object.entries(numbers).map(([name, expression]) => `${expression} AS ${name}`),
    sumsOfRows(dialect, usedSums),
  ];
  const names = [...Object.keys(numbers), ...usedSums.map(({ name }) => name)];
  const rows = await source.rows<PartRow>(
    `WITH sums AS (SELECT prompt, ${partKeys.join(", ")}, ${promptNames.map((name) => `min(${name}) AS ${name}`).join(", ")}, ${summed.join(", ")}
        FROM ${dialect.tables.requests} AS each
        WHERE prompt IN (SELECT ${dialect.texts(parameters.json(prompts.map(({ prompt }) => prompt)))})${and(conditionsOf(filters, parameters))}
        GROUP BY prompt, ${partKeys.join(", ")}, CASE WHEN error_type IS NULL THEN 0 ELSE 1 END)
      SELECT prompt, ${[...partKeys, ...promptNames].join(", ")}, ${names.map((name) => `${dialect.number(name)} AS ${name}`).join(", ")} FROM sums`,
    parameters.values,
  );
  const byPrompt = Map.groupBy(rows, ({ prompt }) => prompt);
  return prompts.flatMap(({ prompt }) => {
    const parts = byPrompt.get(prompt);
    return parts ? [sumsOfPrompt(prompt, parts)] : [];
  });
}

function sumsOfPrompt(prompt: string, rows: PartRow[]): PromptSums {
  const name = (column: PromptName) => rows.find((row) => row[column] !== null)?.[column] ?? null;
  return {
    prompt,
    started_at_ms: Math.min(...rows.map((row) => row.started_at_ms)),
    ended_at_ms: Math.max(...rows.map((row) => row.ended_at_ms)),
    ...(Object.fromEntries(promptNames.map((column) => [column, name(column)])) as Pick<PartRow, PromptName>),
    parts: rows.map(partOf),
  };
}

function partOf(row: PartRow): PromptPart {
  const known = {} as Record<Measure, number | null>;
  for (const measure of measureNames) known[measure] = row[`${measure}_count`] === 0 ? null : row[`${measure}_sum`];
  const { kind, agent_type, upstream_model, cache_miss, cache_idle_ms } = row;
  return {
    kind,
    agent_type,
    upstream_model,
    cache_miss,
    cache_idle_ms,
    failed: row.failed === 1,
    request_count: row.requests,
    retry_count: row.retries,
    ...known,
    unknown_loss_count: row.requests - row.cache_lost_cost_count,
    ...costsIn((name) => row[name]),
  };
}
