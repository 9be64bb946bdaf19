/** The answers of the admin API that are not plain JSON, and those that need a check first. */

import type { z } from "zod";
import { ProxyError } from "../../lib/errors";
import { utcDay } from "../../lib/format";
import type { Scope } from "../../parts/app";
import type { Permit } from "../access/authorize";
import { liveEvents } from "./live-events";
import type { queries } from "./query";
import { type ExportFormat, exportRequests, findRequest } from "./requests";

/** @throws ProxyError `not_found` */
export async function getRequest(app: Scope, requestId: string) {
  const found = await findRequest(app, requestId);
  if (!found) throw new ProxyError("not_found", "The history holds no request with this id.");
  return found;
}

export function answerExport(app: Scope, { format, ...filters }: z.output<typeof queries.export>): Response {
  const name = `dragoman-requests-${utcDay(app.now())}.${format}`;
  return new Response(exportRequests(app, filters, format), {
    headers: {
      "content-type": contentTypes[format],
      "content-disposition": `attachment; filename="${name}"`,
    },
  });
}

/** @param permit What authorizes the reader; missing for one who needs nothing. */
export function answerLive(app: Scope, request: Request, permit?: Permit): Response {
  const headers = { "content-type": "text/event-stream; charset=utf-8" };
  return new Response(request.method === "HEAD" ? null : liveEvents(app, permit), { headers });
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

const contentTypes: Record<ExportFormat, string> = {
  csv: "text/csv; charset=utf-8",
  json: "application/json",
};
