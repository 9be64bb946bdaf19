/** What the admin API answers: each function reads what was asked for, and gives what the data functions make of it. */
import { z } from "zod";
import type { App } from "../../app";
import { explain } from "../../config/schema";
import { ProxyError } from "../../errors";
import type { Visitor } from "../../net/guard";
import { readJson } from "../../relay/incoming";
import type { AdminSession } from "../access/session";
import { dayMs } from "../ui/days";
import { listAccounts } from "./accounts";
import { liveEvents } from "./live-events";
import { describeInstance } from "./meta";
import { forgetField, modelItems } from "./models";
import { queries, readQuery, requireJson } from "./query";
import { type ExportFormat, exportRequests, findRequest, listRequests } from "./requests";

export const answerMeta = (app: App) => answer(describeInstance(app));

export async function answerAccounts(app: App, { url }: Request): Promise<Response> {
  const { include_stats, since_ms = app.now() - dayMs } = readQuery(url, queries.accounts);
  return answer({ items: await listAccounts(app, include_stats ? since_ms : undefined) });
}

export function answerRequests(app: App, { url }: Request): Response {
  const { limit, cursor_id, ...filters } = readQuery(url, queries.requests);
  return answer(listRequests(app, filters, limit, cursor_id));
}

export function answerRequest(app: App, requestId: string): Response {
  const found = findRequest(app, requestId);
  if (!found) throw new ProxyError("not_found", "No request with this id is remembered.");
  return answer(found);
}

export async function answerTotals(app: App, { url }: Request): Promise<Response> {
  return answer(await app.history.totals(readQuery(url, queries.filters)));
}

export async function answerStatistics(app: App, { url }: Request): Promise<Response> {
  const { by, ...filters } = readQuery(url, queries.statistics);
  return answer(await app.history.statistics(filters, by));
}

export function answerExport(app: App, { url }: Request): Response {
  const { format, ...filters } = readQuery(url, queries.export);
  const name = `dragoman-requests-${new Date(app.now()).toISOString().slice(0, 10)}.${format}`;
  return new Response(exportRequests(app, filters, format), {
    headers: {
      ...privately,
      "content-type": contentTypes[format],
      "content-disposition": `attachment; filename="${name}"`,
    },
  });
}

export const answerModels = async (app: App) => answer({ items: await modelItems(app) });

/** `{"model": "…", "field": "…"}`: that field is sent to the model again; all of its fields without `field`. */
export async function forgetRefusedField(app: App, request: Request): Promise<Response> {
  requireJson(request);
  const { body } = await readJson(request, maxBytes);
  const read = forgetSchema.safeParse(body);
  if (!read.success) throw new ProxyError("invalid_request", explain(read.error));
  forgetField(app, read.data.model, read.data.field);
  return answer({ forgotten: true });
}

const maxBytes = 64 * 1024;
const forgetSchema = z.strictObject({ model: z.string(), field: z.string().optional() });

/** @param session The sign-in that lets the reader in, where it is one. */
export function answerLive(app: App, request: Request, caller: Visitor, session?: AdminSession): Response {
  caller.keepOpen();
  const headers = { ...privately, "content-type": "text/event-stream; charset=utf-8" };
  return new Response(request.method === "HEAD" ? null : liveEvents(app, session), { headers });
}

export function cancelRequest(app: App, request: Request, requestId: string): Response {
  requireJson(request);
  if (!app.inFlight.cancel(requestId)) throw new ProxyError("not_found", "No request with this id is running.");
  return answer({ cancelled: true });
}

const contentTypes: Record<ExportFormat, string> = {
  csv: "text/csv; charset=utf-8",
  json: "application/json",
};

const privately = { "cache-control": "no-store" };
const answer = (data: object) => Response.json(data, { headers: privately });
