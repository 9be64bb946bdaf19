/** Requests, those of the history and those that run, in the shape of the admin API. */
import type { z } from "zod";
import { columnNames, type InFlightRequest } from "../../books/history/entry";
import type { Entry, Filters, Row } from "../../books/history/history";
import { portionsIn } from "../../books/history/portions";
import { ProxyError } from "../../lib/errors";
import { utcDay } from "../../lib/format";
import type { Scope } from "../../parts/app";
import type { queries } from "./query";
import type { entrySchema, pageSchema, runningSchema } from "./schemas";

/** A running request, as far as it is known. */
export type ShownRunning = z.infer<typeof runningSchema>;
/** A request that has ended; `id` once its row is written. */
export type ShownEntry = z.infer<typeof entrySchema>;
export type ShownPage = z.infer<typeof pageSchema>;

export async function listRequests(
  { history }: Scope,
  filters: Filters,
  limit: number,
  cursor?: number,
): Promise<ShownPage> {
  const { items, ...rest } = await history.list(filters, limit, cursor);
  return { items: items.map(showEntry), ...rest };
}

/** Finds a request by its id, in progress on this server or ended. */
export async function findRequest(
  { history, running: live }: Scope,
  requestId: string,
): Promise<{ item: ShownEntry; running: false } | { item: ShownRunning; running: true } | undefined> {
  const running = live.find(requestId);
  if (running) return { item: showRunning(running), running: true };
  let row = await history.get(requestId);
  // The row of a request that has just ended may not be on disk yet.
  if (!row && (await history.flush())) row = await history.get(requestId);
  return row && { item: showEntry(row), running: false };
}

/** @throws ProxyError `not_found` */
export async function getRequest(app: Scope, requestId: string) {
  const found = await findRequest(app, requestId);
  if (!found) throw new ProxyError("not_found", "The history holds no request with this id.");
  return found;
}

/** @throws ProxyError `not_found` if no such request is running. */
export function cancelRequest({ running }: Scope, requestId: string): { cancelled: true } {
  if (!running.cancel(requestId))
    throw new ProxyError("not_found", withElsewhere(running, "No request with this id is running."));
  return { cancelled: true };
}

/** @param sentence That a request does not run. @returns Also that another server of the team may run it. */
export const withElsewhere = ({ elsewhere }: Scope["running"], sentence: string): string =>
  elsewhere === undefined ? sentence : `${sentence} ${elsewhere}`;

export function showRunning(running: InFlightRequest): ShownRunning {
  return {
    ...running,
    stream: running.stream === 1,
    attempts: JSON.parse(running.attempts),
    fallbacks: JSON.parse(running.fallbacks ?? "[]"),
  };
}

export function showEntry(entry: Entry | Row): ShownEntry {
  return {
    ...entry,
    stream: entry.stream === 1,
    tokens_estimated: entry.tokens_estimated === 1,
    cost_at_least: entry.cost_at_least === 1,
    attempts: JSON.parse(entry.attempts),
    fixups: JSON.parse(entry.fixups),
    dropped: JSON.parse(entry.dropped),
    fallbacks: JSON.parse(entry.fallbacks ?? "[]"),
    auto: JSON.parse(entry.auto ?? "null"),
    cache_change: JSON.parse(entry.cache_change ?? "null"),
    portions: portionsIn(entry.portions),
  };
}

/** All matching rows as a file. */
export function answerExport(app: Scope, { format, ...filters }: z.output<typeof queries.export>): Response {
  const name = `dragoman-requests-${utcDay(app.now())}.${format}`;
  return new Response(exportRequests(app, filters, writers[format]), {
    headers: {
      "content-type": writers[format].type,
      "content-disposition": `attachment; filename="${name}"`,
    },
  });
}

/** A format of a file of rows. */
interface Writer {
  type: string;
  head: string;
  row(entry: ShownEntry, first: boolean): string;
  tail: string;
}

/** It is read from disk as fast as the reader takes it, and yields to other work. */
function exportRequests({ history }: Scope, filters: Filters, { head, row, tail }: Writer): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let text = head;
  let cursor: number | undefined;
  let first = true;
  return new ReadableStream({
    async pull(controller) {
      await new Promise(setImmediate);
      const { items, next_cursor_id } = await history.list(filters, rowsAtOnce, cursor);
      for (const item of items) {
        text += row(showEntry(item), first);
        first = false;
      }
      if (next_cursor_id === null) text += tail;
      controller.enqueue(encoder.encode(text));
      text = "";
      if (next_cursor_id === null) controller.close();
      else cursor = next_cursor_id;
    },
  });
}

const rowsAtOnce = 500;

const csvColumns: (keyof ShownEntry)[] = ["id", ...columnNames];

const writers: Record<"csv" | "json", Writer> = {
  csv: {
    type: "text/csv; charset=utf-8",
    head: ["started_at", ...csvColumns].join(","),
    row(entry) {
      const cells = csvColumns.map((name) => csvCell(entry[name]));
      return `\r\n${[new Date(entry.started_at_ms).toISOString(), ...cells].join(",")}`;
    },
    tail: "\r\n",
  },
  json: {
    type: "application/json",
    head: "[",
    row: (entry, first) => `${first ? "" : ","}\n${JSON.stringify(entry)}`,
    tail: "\n]\n",
  },
};

function csvCell(value: ShownEntry[keyof ShownEntry]): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const harmless = withoutFormulas(typeof value === "object" ? JSON.stringify(value) : String(value));
  return /[",;\t\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/**
 * A spreadsheet would run a text that begins like a formula, so a quote is put before it. The same applies after characters
 * that separate cells in some locales (a semicolon, a tab, a line break), where quotes have no effect. The characters are
 * those of OWASP's "CSV Injection", and their full-width forms.
 */
const withoutFormulas = (text: string): string =>
  text.replace(/^[\t\r]/, "'$&").replace(/(^|[;\t\r\n])([ "']*)(?=[=+\-@＝＋－＠])/g, "$1$2'");
