/** What the owner asks for, read from an address: each parameter as its type, or a refusal that names it. */

import { z } from "zod";
import { type Filters, nameColumns } from "../../history/page";
import { type Dimension, dimensions } from "../../history/statistics";
import { entryOf } from "../../json";

/** Digits, also as `1e9`. */
const wholeNumber = z
  .string()
  .regex(/^\d{1,30}(?:e\d{1,2})?$/i, "must be a whole number")
  .transform(Number);
const kept = wholeNumber.refine(Number.isSafeInteger, "must be a whole number below 2^53");
const yesOrNo = z.enum(["1", "0"], "must be 1 or 0").transform((text) => text === "1");
/** Asks for what has no such name; an empty parameter is a field of a form that nobody filled in. */
const noName = "(none)";
/** What is called so itself is asked for with a backslash before it, one more than its name has. */
const likeNoName = /^\\*\(none\)$/;
const name = z.string().transform((text) => (text === noName ? null : likeNoName.test(text) ? text.slice(1) : text));

/** A name as its filter spells it; null is none. */
export const spellName = (value: string | null): string =>
  value === null ? noName : likeNoName.test(value) ? `\\${value}` : value;

const filters = {
  ...(Object.fromEntries(nameColumns.map((column) => [column, name.optional()])) as Record<
    (typeof nameColumns)[number],
    z.ZodOptional<typeof name>
  >),
  status: kept.refine((status) => status >= 100 && status <= 599, "must be a status from 100 to 599").optional(),
  status_class: z
    .string()
    .regex(/^[1-5](?:xx)?$/, "must be 1xx, 2xx, 3xx, 4xx or 5xx")
    .transform((text) => Number(text[0]))
    .optional(),
  has_error: yesOrNo.optional(),
  stream: yesOrNo.optional(),
  from_ms: kept.optional(),
  to_ms: kept.optional(),
};

/** Larger than a page may be is as large as it may be. */
const limit = wholeNumber
  .refine((count) => count >= 1, "must be at least 1")
  .transform((count) => Math.min(count, 200))
  .default(50);

/** Short words for the dimensions that are asked for most. */
const shortWords: Record<string, Dimension> = {
  model: "upstream_model",
  account: "account_id",
  client: "client_name",
  endpoint: "upstream_endpoint",
  status: "status_class",
};
const isDimension = (word: string): word is Dimension => dimensions.some((dimension) => dimension === word);
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
  .default(["day"]);

/** What each address takes; whatever else is sent is ignored. */
export const queries = {
  filters: z.object(filters),
  requests: z.object({ ...filters, limit, cursor_id: kept.optional() }),
  statistics: z.object({ ...filters, by }),
  export: z.object({ ...filters, format: z.enum(["csv", "json"], "must be csv or json").default("csv") }),
  accounts: z.object({
    include_stats: yesOrNo.default(false),
    since_ms: kept.optional(),
  }),
};

/** The filters as a query that reads back as the same. */
export function writeFilters({ stream, has_error, status_class, ...rest }: Filters): URLSearchParams {
  const names = nameColumns.flatMap((column) => {
    const value = rest[column];
    return value === undefined ? [] : [[column, spellName(value)] as const];
  });
  const said = {
    ...rest,
    ...Object.fromEntries(names),
    status_class: status_class && `${status_class}xx`,
    has_error: has_error === undefined ? undefined : Number(has_error),
    stream: stream === undefined ? undefined : Number(stream),
  };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(said)) if (value !== undefined) query.set(name, String(value));
  return query;
}
