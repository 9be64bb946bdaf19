/** The books: what GitHub says that an account was charged, beside what the history says, by day and model. */
import { z } from "zod";
import type { Filters } from "../../books/history/history";
import { ProxyError } from "../../lib/errors";
import { dayMs } from "../../lib/format";
import { sum } from "../../lib/money";
import type { App } from "../../parts/app";
import type { Account } from "../../people/accounts/account";
import { CreditReport, type ReportedCredits } from "../../people/accounts/credit-report";
import { count } from "./values";

export const reconcileSchema = z.strictObject({
  month: z
    .string()
    .regex(/^20\d\d-(?:0[1-9]|1[0-2])$/, "must be a month, such as 2026-11")
    .optional()
    .describe("By UTC, as GitHub counts; by default this month."),
  account_key: z.string().optional().describe("By default the token's account, or else the first one."),
  token: z
    .string()
    .regex(/^[!-~]{1,400}$/, "must be printable ASCII characters without spaces")
    .optional()
    .describe(
      "A fine-grained token of GitHub with the permission “Plan: Read-only”. It is used for this answer and kept nowhere. Without it, `DRAGOMAN_BILLING_TOKEN` of the server, or else the saved sign-in, which GitHub usually refuses.",
    ),
});

/** Why two sums are likely to differ, in a few words and in a sentence. */
export const differences = {
  unknown_rows: {
    brief: "requests of unknown cost",
    about: "Requests of unknown cost: their rows have no charge, because the answer did not state one or was cut off.",
  },
  before_history: {
    brief: "before the history",
    about: "The history here begins later; `retentionDays` in the config keeps it longer.",
  },
  other_client: {
    brief: "another client",
    about:
      "Another client used the account: an editor, GitHub's own agents and reviews, another machine or another proxy.",
  },
  not_yet_reported: {
    brief: "not reported yet",
    about: "GitHub's report of the last two days may not be complete yet.",
  },
  counted_more: {
    brief: "counted more here",
    about:
      "More was counted here than GitHub reports: a cost that was computed from list prices, or a request at midnight (UTC).",
  },
  rounding: { brief: "rounding", about: "Less than a hundredth of a credit: rounding." },
} as const;

export type DifferenceKind = keyof typeof differences;
const difference = z.enum(Object.keys(differences) as [DifferenceKind, ...DifferenceKind[]]);

const sums = {
  github_nano_credits: count.describe("Billionths of an AI credit, those included in the plan too."),
  own_nano_credits: count.describe("The sum of the rows' charges."),
  difference_nano_credits: count.describe("GitHub's less ours."),
  request_count: count,
  unknown_count: count.describe("Requests of unknown cost among them."),
};

const rowSchema = z.object({
  day: z.string().describe("By UTC."),
  model: z.string().nullable().describe("As the history names it, or else GitHub; null for requests without a model."),
  ...sums,
  unknown_requests: z.array(z.string()).describe("The ids of requests of unknown cost, the newest five."),
  likely_cause: difference.nullable(),
});

export const reconciliationSchema = z
  .object({
    month: z.string(),
    account_key: z.string(),
    totals: z.object({ ...sums, billed_dollars: z.number().describe("What GitHub bills beyond the plan.") }),
    causes: z
      .array(
        z.object({
          cause: difference,
          about: z.string(),
          row_count: count,
          difference_nano_credits: count,
        }),
      )
      .describe("The likely causes of the differences, the largest first."),
    days: z.array(z.object({ day: z.string(), ...sums })),
    rows: z.array(rowSchema).describe("By day, the newest first, and model."),
  })
  .meta({ id: "Reconciliation" });

export type Reconciliation = z.output<typeof reconciliationSchema>;
type Row = z.output<typeof rowSchema>;
type Sums = Pick<
  Row,
  "github_nano_credits" | "own_nano_credits" | "difference_nano_credits" | "request_count" | "unknown_count"
>;

/** Billionths of a credit. */
const rounding = 1e7;
const shownUnknown = 5;
const callsAtOnce = 4;

/** @throws ProxyError `upstream`, `timeout`: what GitHub refuses, and what is missing; `not_found`, `invalid_request` */
export async function reconcile(app: App, given: z.output<typeof reconcileSchema>): Promise<Reconciliation> {
  const { account, login, report } = await reporterOf(app, given);
  const now = app.now();
  const month = given.month ?? dayOf(now).slice(0, 7);
  const days = daysOf(month, now);
  const nameOf = await namesOf(app);
  const oldest = (await app.history.oldest()) ?? now;
  const rows: Row[] = [];
  let dollars = 0;
  // The first day alone: if GitHub refuses, it is asked once.
  for (let first = 0; first < days.length; first += first === 0 ? 1 : callsAtOnce) {
    const some = days.slice(first, first === 0 ? 1 : first + callsAtOnce);
    const reported = await Promise.all(some.map((day) => report.ofDay(login, day)));
    for (const [at, items] of reported.entries()) {
      dollars += sum(items.map((item) => item.dollars));
      rows.push(...(await rowsOf(app, { account, day: some[at]!, items, nameOf, oldest, now })));
    }
  }
  return {
    month,
    account_key: account.key,
    totals: { ...sumOf(rows), billed_dollars: dollars },
    causes: causesIn(rows),
    days: [...Map.groupBy(rows, ({ day }) => day)].map(([day, ofDay]) => ({ day, ...sumOf(ofDay) })),
    rows,
  };
}

/** Whom GitHub is asked about, and with which token. */
async function reporterOf(app: App, { account_key, token }: z.output<typeof reconcileSchema>) {
  const isAsked = ({ key, kind }: Account) => (account_key === undefined ? kind !== "app" : key === account_key);
  const named = app.accounts.find(isAsked);
  if (!named)
    throw account_key === undefined
      ? new ProxyError("invalid_request", "No GitHub account is signed in.")
      : new ProxyError("not_found", `There is no account ${account_key.slice(0, 200)}.`);
  if (named.kind === "app")
    throw new ProxyError(
      "invalid_request",
      `${named.id} pays as an organization, and GitHub reports that to its administrators alone, in its billing settings.`,
    );
  // What the environment has is meant for GitHub, not for the demo.
  const given = token ?? (app.demo ? undefined : app.environment.billingToken);
  const report = new CreditReport(named, given);
  const login = await report.login();
  const isOf = (each: Account) => each.host === named.host && each.id.toLowerCase() === login.toLowerCase();
  const account = isOf(named) || given === undefined ? named : app.accounts.find(isOf);
  if (account && (account_key === undefined || account === named)) return { account, login, report };
  throw new ProxyError(
    "invalid_request",
    `The token belongs to ${login}, which is not ${account_key === undefined ? "an account here" : named.id}.`,
  );
}

const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

/** The days of a month that have begun, by UTC, the newest first. */
function daysOf(month: string, now: number): string[] {
  const days: string[] = [];
  for (let at = Date.parse(`${month}-01`); at <= now && dayOf(at).startsWith(month); at += dayMs) days.push(dayOf(at));
  if (days.length === 0) throw new ProxyError("invalid_request", `The month ${month} has not begun.`);
  return days.toReversed();
}

/**
 * One name for a model, whether the history names it by its id or GitHub as it is shown.
 * A model that is no longer listed is recognised if its name is its id in other letters.
 */
async function namesOf({ catalogue }: App): Promise<(name: string) => string> {
  const models = await catalogue.models().catch(() => []);
  const plain = (name: string) =>
    name
      .replace(/^auto: /i, "")
      .replace(/ \(preview\)$/i, "")
      .trim()
      .toLowerCase()
      .replace(/\s+/g, "-");
  const byId = new Map(models.map(({ id, name }) => [plain(id), plain(name)]));
  return (name) => byId.get(plain(name)) ?? plain(name);
}

interface Day {
  account: Account;
  day: string;
  items: ReportedCredits[];
  nameOf(name: string): string;
  /** When the history begins, ms. */
  oldest: number;
  now: number;
}

async function rowsOf({ history }: App, { account, day, items, nameOf, oldest, now }: Day): Promise<Row[]> {
  const from = Date.parse(day);
  const period = { account_key: account.key, from_ms: from, to_ms: from + dayMs - 1 };
  const { groups } = await history.statistics(period, ["upstream_model"]);
  const own = Map.groupBy(groups, ({ key }) => (key.upstream_model ? nameOf(key.upstream_model) : ""));
  const reported = Map.groupBy(items, ({ model }) => nameOf(model));
  const rows = [...new Set([...own.keys(), ...reported.keys()])].map(async (name): Promise<Row> => {
    const ours = own.get(name) ?? [];
    const theirs = reported.get(name) ?? [];
    const github = sum(theirs.map(({ nanoCredits }) => nanoCredits));
    const counted = sum(ours.map(({ cost }) => cost.credits ?? 0));
    const sums = {
      github_nano_credits: github,
      own_nano_credits: counted,
      difference_nano_credits: github - counted,
      request_count: sum(ours.map(({ request_count }) => request_count)),
      unknown_count: sum(ours.map(({ unknown }) => unknown.cost)),
    };
    const unknown = await Promise.all(
      ours.map(({ filters, unknown }) => (unknown.cost > 0 ? unknownIn(history, filters) : [])),
    );
    return {
      day,
      model: ours[0]?.key.upstream_model ?? theirs[0]?.model ?? null,
      ...sums,
      unknown_requests: unknown.flat().slice(0, shownUnknown),
      likely_cause: causeOf(sums, { beforeHistory: from < oldest, isFresh: now - from < 2 * dayMs }),
    };
  });
  const all = await Promise.all(rows);
  return all
    .filter((row) => row.github_nano_credits !== 0 || row.own_nano_credits !== 0 || row.unknown_count > 0)
    .sort((one, other) => other.github_nano_credits - one.github_nano_credits);
}

/** The ids of rows without a cost, among the newest 200. */
async function unknownIn(history: App["history"], filters: Filters): Promise<string[]> {
  const { items } = await history.list(filters, 200);
  return items
    .filter(({ cost }) => cost === null)
    .map(({ request_id }) => request_id)
    .slice(0, shownUnknown);
}

function causeOf(
  { difference_nano_credits: gap, unknown_count }: Sums,
  { beforeHistory, isFresh }: { beforeHistory: boolean; isFresh: boolean },
): DifferenceKind | null {
  if (gap === 0) return null;
  if (Math.abs(gap) < rounding) return "rounding";
  if (gap < 0) return isFresh ? "not_yet_reported" : "counted_more";
  if (unknown_count > 0) return "unknown_rows";
  return beforeHistory ? "before_history" : "other_client";
}

function causesIn(rows: Row[]): Reconciliation["causes"] {
  return [...Map.groupBy(rows, ({ likely_cause }) => likely_cause)]
    .flatMap(([cause, ofCause]) =>
      cause === null
        ? []
        : [{ cause, about: differences[cause].about, row_count: ofCause.length, ...only(sumOf(ofCause)) }],
    )
    .sort((one, other) => Math.abs(other.difference_nano_credits) - Math.abs(one.difference_nano_credits));
}

const only = ({ difference_nano_credits }: Sums) => ({ difference_nano_credits });

const sumOf = (rows: Sums[]): Sums => ({
  github_nano_credits: sum(rows.map((row) => row.github_nano_credits)),
  own_nano_credits: sum(rows.map((row) => row.own_nano_credits)),
  difference_nano_credits: sum(rows.map((row) => row.difference_nano_credits)),
  request_count: sum(rows.map((row) => row.request_count)),
  unknown_count: sum(rows.map((row) => row.unknown_count)),
});
