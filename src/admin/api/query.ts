/** The query parameters of the admin API, as schemas. */

import { z } from "zod";
import { type NameColumn, nameColumns } from "../../books/history/entry";
import type { Filters } from "../../books/history/filters";
import { promptOrders } from "../../books/history/prompts";
import { type Dimension, dimensions } from "../../books/history/statistics";
import { wholeNumber } from "../../lib/input";
import { entryOf } from "../../lib/json";

const kept = wholeNumber().refine(Number.isSafeInteger, "must be a whole number below 2^53");
const time = kept.describe("Unix time, ms.");
const yesOrNo = z.enum(["1", "0"], "must be 1 or 0").transform((text) => text === "1");
/** Matches rows without such a name. An empty parameter cannot mean that: forms send their empty fields. */
const noName = "(none)";
/** A name that is itself `(none)` is escaped with one more backslash than it has. */
const likeNoName = /^\\*\(none\)$/;
const name = z
  .string()
  .transform((text) => (text === noName ? null : likeNoName.test(text) ? text.slice(1) : text))
  .describe(
    `The whole name; \`${noName}\` for requests without one, and \`\\${noName}\` for a name that is itself \`${noName}\`.`,
  );

/** The value of a filter parameter for a name; null means "no name". */
export const formatName = (value: string | null): string =>
  value === null ? noName : likeNoName.test(value) ? `\\${value}` : value;

const filters = {
  ...(Object.fromEntries(nameColumns.map((column) => [column, name.optional()])) as Record<
    NameColumn,
    z.ZodOptional<typeof name>
  >),
  status: kept.refine((status) => status >= 100 && status <= 599, "must be a status from 100 to 599").optional(),
  status_class: z
    .string()
    .regex(/^[1-5](?:xx)?$/, "must be 1xx, 2xx, 3xx, 4xx or 5xx")
    .transform((text) => Number(text[0]))
    .optional(),
  has_error: yesOrNo.optional(),
  has_prompt: yesOrNo.optional(),
  stream: yesOrNo.optional(),
  from_ms: time.optional(),
  to_ms: time.optional(),
};

/** A larger limit than 200 counts as 200. */
const limit = wholeNumber()
  .refine((count) => count >= 1, "must be at least 1")
  .transform((count) => Math.min(count, 200))
  .default(50)
  .meta({ minimum: 1 })
  .describe("Rows on a page, 200 at most.");

/** Short names for the dimensions used most. */
const shortWords: Record<string, Dimension> = {
  model: "upstream_model",
  account: "account_id",
  client: "client_name",
  key: "key_name",
  endpoint: "upstream_endpoint",
  status: "status_class",
};
const isDimension = (word: string): word is Dimension => dimensions.some((dimension) => dimension === word);
/** The words for the dimensions, the short ones where there are some. */
export const dimensionWords = dimensions
  .map((dimension) => Object.keys(shortWords).find((word) => shortWords[word] === dimension) ?? dimension)
  .join(", ");
const by = z
  .string()
  .transform((text) => text.split(",").map((word) => entryOf(shortWords, word.trim()) ?? word.trim()))
  .refine((words): words is Dimension[] => words.every(isDimension), {
    message: `must be one or two of ${[...Object.keys(shortWords), ...dimensions].join(", ")}`,
    abort: true,
  })
  .refine(
    (words) => words.length <= 2 && words[0] !== words[1],
    "must be one word, or two different ones with a comma between",
  )
  .default(["day"])
  .describe("One or two of the dimensions, with a comma between.");

/** What each endpoint takes: it refuses other parameters, since a mistyped filter would answer with all requests. */
export const queries = {
  filters: z.strictObject(filters),
  requests: z.strictObject({
    ...filters,
    limit,
    cursor_id: kept.optional().describe("`next_cursor_id` of the page before."),
  }),
  prompts: z.strictObject({
    ...filters,
    limit,
    cursor_id: kept.optional().describe("`next_cursor_id` of the page before."),
    order: z.enum(promptOrders).default("newest").describe("`newest`, by the last request, or `dearest`, by cost."),
  }),
  statistics: z.strictObject({ ...filters, by }),
  export: z.strictObject({ ...filters, format: z.enum(["csv", "json"], "must be csv or json").default("csv") }),
  cache: z.strictObject({ from_ms: filters.from_ms, to_ms: filters.to_ms }),
  budgets: z.strictObject({
    budget: z.string().max(127).optional().describe("The name of the one budget to show."),
    limit: limit.default(20).describe("Of a budget with `holders`, how many of them, 200 at most."),
    offset: kept.default(0).describe("How many of them to pass over."),
  }),
  accounts: z.strictObject({
    include_stats: yesOrNo.default(false),
    since_ms: time.optional(),
  }),
};

/** The filters as a query that reads back as the same. */
export function writeFilters({ stream, has_error, has_prompt, status_class, ...rest }: Filters): URLSearchParams {
  const names = nameColumns.flatMap((column) => {
    const value = rest[column];
    return value === undefined ? [] : [[column, formatName(value)] as const];
  });
  const params = {
    ...rest,
    ...Object.fromEntries(names),
    status_class: status_class && `${status_class}xx`,
    has_error: has_error === undefined ? undefined : Number(has_error),
    has_prompt: has_prompt === undefined ? undefined : Number(has_prompt),
    stream: stream === undefined ? undefined : Number(stream),
  };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value !== undefined) query.set(name, String(value));
  return query;
}
