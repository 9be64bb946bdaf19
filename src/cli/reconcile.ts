/** `dragoman usage reconcile`: GitHub's own report of AI credits beside what the history says. */
import {
  type DifferenceKind,
  differences,
  type Reconciliation,
  reconcileSchema,
  reconciliationSchema,
} from "../admin/api/reconcile";
import type { Environment } from "../config/environment";
import { formatAmount, plural } from "../lib/format";
import { table } from "./layout";
import { demoNotice, readAs, requireServer, send } from "./running-server";
import { readStdin } from "./start/stdin";
import { print, printJson, say, withProgress } from "./terminal";
import { readOptions, UsageError } from "./usage-error";

interface ReconcileOptions {
  environment: Environment;
  json: boolean;
  /** `2026-11`; this month when missing. */
  month?: string | undefined;
  /** `-`: the first line of stdin. A command line can be read by others, so a token itself is refused. */
  token: string | undefined;
}

/** GitHub is asked once for each day. */
const timeoutMs = 180_000;

/** @throws UsageError for a month that is none or a token on the command line; ProxyError with what GitHub refuses */
export async function reconcileUsage({ environment, json, month, token }: ReconcileOptions): Promise<number> {
  if (token !== undefined && token !== "-")
    throw new UsageError(
      "--token must be -: the token is then read from the first line of stdin, where nobody sees it.",
    );
  readOptions(reconcileSchema.pick({ month: true }), { month }, { month: `\`${month}\`` });
  const server = requireServer(environment);
  const given = token === undefined ? (server.demo ? undefined : environment.billingToken) : await tokenFromStdin();
  const body = { ...(month !== undefined && { month }), ...(given !== undefined && { token: given }) };
  const answer = await withProgress("Asking GitHub", () => send(server, "/api/admin/reconcile", body, { timeoutMs }));
  const found = readAs(reconciliationSchema, answer, server);
  if (json) {
    printJson(found);
    return 0;
  }
  if (server.demo) say(demoNotice, "");
  print(...linesOf(found));
  return 0;
}

async function tokenFromStdin(): Promise<string> {
  const stdin = readStdin();
  if (process.stdin.isTTY) say("Paste the token, then press Enter:");
  const token = await stdin.firstLine;
  stdin.letGo();
  if (token === "") throw new UsageError("There is no token on stdin: its first line is empty.");
  return token;
}

function linesOf({ month, account_key, rows, totals, causes }: Reconciliation): string[] {
  if (rows.length === 0) return [`Neither GitHub nor the history here has AI credits of ${account_key} for ${month}.`];
  const signed = (nano: number) => (nano > 0 ? `+${formatAmount(nano)}` : formatAmount(nano));
  const line = (day: string, model: string, sums: Omit<typeof totals, "billed_dollars">, why: string) => [
    ...[day, model, formatAmount(sums.github_nano_credits), formatAmount(sums.own_nano_credits)],
    ...[signed(sums.difference_nano_credits), why],
  ];
  return [
    `AI credits of ${account_key} in ${month}, by UTC:`,
    "",
    ...table([
      ["day", "model", "GitHub", "here", "difference", "likely because"],
      ...rows.map((row) =>
        line(row.day, row.model ?? "no model", row, causeInWords(row.likely_cause, row.unknown_count)),
      ),
      line("total", "", totals, ""),
    ]),
    ...(causes.length === 0 ? ["", "The books agree."] : []),
    ...causes.flatMap(({ about, difference_nano_credits }) => ["", `${signed(difference_nano_credits)}: ${about}`]),
    ...(totals.unknown_count > 0
      ? ["", `${plural(totals.unknown_count, "request")} here of unknown cost: ${idsOf(rows)}.`]
      : []),
  ];
}

/** In a word or two, for the column of a table. */
const causeInWords = (cause: DifferenceKind | null, unknown: number): string =>
  cause === null ? (unknown > 0 ? `${unknown} of unknown cost` : "") : differences[cause].brief;

const shownIds = 5;

/** Of requests. */
function idsOf(rows: Reconciliation["rows"]): string {
  const ids = rows.flatMap(({ unknown_requests }) => unknown_requests);
  return ids.slice(0, shownIds).join(", ") + (ids.length > shownIds ? ", …" : "");
}
