/** Paths of the admin pages. */
import type { Filters } from "../../books/history/history";
import { writeFilters } from "../api/query";

/** A path with filters and other parameters. */
export const filteredPath = (path: string, filters: Filters, more: Record<string, string | undefined> = {}): string =>
  withQuery(path, { ...Object.fromEntries(writeFilters(filters)), ...more });

/** The requests page with filters. */
export const requestsPath = (filters: Filters = {}, more: Record<string, string | undefined> = {}): string =>
  filteredPath("/admin/requests", filters, more);

/** The page of prompts with filters. */
export const promptsPath = (filters: Filters = {}, more: Record<string, string | undefined> = {}): string =>
  filteredPath("/admin/prompts", filters, more);

export const promptPath = (prompt: string) => `/admin/prompts/${encodeURIComponent(prompt)}`;

export const requestPath = (requestId: string) => `/admin/requests/${encodeURIComponent(requestId)}`;

export const memberPath = (name: string) => `/admin/members/${encodeURIComponent(name)}`;

/** Rows of a list that are sent unless more are asked for: few, for a phone and a slow line. */
export const firstRows = 25;

/** The URL of a list, with as many rows as it asks for. */
export function withFirstRows(url: URL): URL {
  const asked = new URL(url);
  if (!asked.searchParams.get("limit")) asked.searchParams.set("limit", String(firstRows));
  return asked;
}

export function withQuery(path: string, query: Record<string, string | undefined>): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}
