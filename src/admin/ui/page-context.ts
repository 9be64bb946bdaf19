/** One call of a page by somebody who may see it, and how it is answered. */
import type { App } from "../../app";
import type { Visitor } from "../../net/guard";
import type { AdminSession } from "../access/session";
import type { PendingChanges } from "../pages/config/pending-changes";
import type { Markup } from "./jsx/jsx-runtime";
import type { Frame } from "./layout";
import { type StreamedPage, streamPage } from "./streamed-page";

export interface PageContext {
  app: App;
  frame: Frame;
  request: Request;
  caller: Visitor;
  /** The sign-in by which the caller is in; undefined for one who needs none. */
  session: AdminSession | undefined;
  /** As the browser has it; its origin is the address we were called by. */
  url: URL;
  params: Record<string, string>;
  /** What a form sent; empty for a GET. */
  form: URLSearchParams;
  /** Others than this machine can reach us. */
  exposed: boolean;
  /** Changes of the config that wait for a yes. */
  changes: PendingChanges;
}

export function html(page: Markup, status = 200, headers: Record<string, string> = {}): Response {
  return asHtml(`<!doctype html>${page}`, status, headers);
}

export const htmlInParts = (page: StreamedPage, instead: (sentence: string) => Markup) =>
  asHtml(streamPage(page, instead), 200);

export const redirect = (path: string, headers: Record<string, string> = {}) =>
  withSecurityHeaders(new Response(null, { status: 303, headers: { ...headers, location: path } }));

/** Everything a page may load is ours, nobody may frame it, and nothing of it is kept. */
export function withSecurityHeaders(response: Response): Response {
  for (const [name, value] of Object.entries(protection)) response.headers.set(name, value);
  if (!response.headers.has("cache-control")) response.headers.set("cache-control", "no-store");
  return response;
}

function asHtml(body: string | ReadableStream, status: number, headers: Record<string, string> = {}): Response {
  // A browser would ask for a password by a box of its own.
  const { "www-authenticate": _, ...rest } = headers;
  return withSecurityHeaders(
    new Response(body, { status, headers: { ...rest, "content-type": "text/html; charset=utf-8" } }),
  );
}

const protection = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
};
