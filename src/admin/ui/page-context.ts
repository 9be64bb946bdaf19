/** What a page gets to render itself, and the responses it can give. */

import { asProxyError } from "../../lib/errors";
import type { Visitor } from "../../lib/net/in/caller";
import type { App, Scope } from "../../parts/app";
import type { PageSignIn } from "../../people/keys/page-sign-ins";
import type { PendingChanges } from "../pages/config/pending-changes";
import type { Markup } from "./jsx/jsx-runtime";
import type { Frame } from "./layout";
import { type StreamedPage, streamPage } from "./streamed-page";

export interface PageContext<Visible extends Scope = Scope> {
  /** What the visitor may use: a member has their own accounts and requests only. */
  app: Visible;
  /** The visitor's id as a member; null for the owner. */
  member: string | null;
  frame: Frame;
  request: Request;
  caller: Visitor;
  /** Undefined for a caller on this machine, who needs no sign-in. */
  pageSignIn: PageSignIn | undefined;
  /** The URL as the browser sees it. */
  url: URL;
  params: Record<string, string>;
  /** The submitted form; empty for a GET. */
  form: URLSearchParams;
  /** Config changes that wait for confirmation. */
  changes: PendingChanges;
}

/** Of a page that is the owner's. */
export type OwnerContext = PageContext<App>;

export function html(page: Markup, status = 200, headers: Record<string, string> = {}): Response {
  return asHtml(`<!doctype html>${page}`, status, headers);
}

export const htmlInParts = (page: StreamedPage, instead: (sentence: string) => Markup) =>
  asHtml(streamPage(page, instead), 200);

/**
 * Does what a form asks for. If that is refused, the page is shown again.
 * @param again The page with what was entered, and why it was refused.
 */
export async function orShownAgain<Done>(
  work: () => Promise<Done>,
  again: (why: string) => Promise<Markup> | Markup,
): Promise<Done | Response> {
  try {
    return await work();
  } catch (thrown) {
    const error = asProxyError(thrown);
    if (error.kind === "internal") throw error;
    return html(await again(error.message), error.status);
  }
}

export const redirect = (path: string, headers: Record<string, string> = {}) =>
  withSecurityHeaders(new Response(null, { status: 303, headers: { ...headers, location: path } }));

/** Pages load only our own assets, cannot be framed and are not cached. */
export function withSecurityHeaders(response: Response): Response {
  for (const [name, value] of Object.entries(protection)) response.headers.set(name, value);
  if (!response.headers.has("cache-control")) response.headers.set("cache-control", "no-store");
  return response;
}

function asHtml(body: string | ReadableStream, status: number, headers: Record<string, string> = {}): Response {
  // With this header a browser would open its own password dialog.
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
