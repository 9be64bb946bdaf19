/** Tools that run while the model answers, in the responses dialect: their definitions, items and citations. */
import { isObject } from "../../lib/json";
import type { ForeignPart, ForeignTool, JsonObject, Part } from "../hub/conversation";
import { objectAt, omitUndefined, textIn, textListAt, textMembers } from "../hub/json";
import { objectsAmong } from "../hub/lists";
import { type ServerToolName, searches, searchOfType } from "../hub/searches";
import { hostOfLimit, type ServerToolOffer, type ServerToolOutput, type WebPage } from "../hub/server-tools";
import { outputText } from "../hub/server-turns";
import { isOwnId } from "./ids";

const { responses: names } = searches["web-search"];

// ── Tools ──

/** A tool that is no function; `server` is set if dragoman can run it as well. */
export function decodeServerTool(value: JsonObject, path: string): ForeignTool {
  const name = searchOfType(value.type, "responses");
  const foreign: ForeignTool = { kind: "foreign", dialect: "responses", value };
  return name === undefined ? foreign : { ...foreign, server: decodeOffer(name, value, path) };
}

/** The limits of a tool. @throws ProxyError `invalid_request` naming the field that cannot be read. */
export function decodeOffer(tool: ServerToolName, value: JsonObject, path: string): ServerToolOffer {
  const filters = value.filters == null ? {} : objectAt(value.filters, `${path}.filters`);
  const texts = (key: string) => textListAt(filters[key], `${path}.filters.${key}`);
  return omitUndefined({
    tool,
    allowedDomains: texts("allowed_domains"),
    blockedDomains: texts("blocked_domains"),
    location: textMembers(value.user_location, "type"),
    isCached: value.external_web_access === false ? true : undefined,
  });
}

/** The search as the upstream's own tool. */
export function nativeSearch({ allowedDomains, location, isCached }: ServerToolOffer): ForeignTool {
  const value = omitUndefined({
    type: names.tool,
    filters: allowedDomains && { allowed_domains: [...new Set(allowedDomains.map(hostOfLimit))] },
    user_location: location && { type: "approximate", ...location },
    external_web_access: isCached ? false : undefined,
  });
  return { kind: "foreign", dialect: "responses", value };
}

/** OpenAI names the pages that a search has read only to who asks for them: a word of `include`. */
export const pagesAsked = `${names.call}.action.sources`;

// ── Requests ──

/**
 * A search of an earlier turn. It has no results: the model's answer after it tells what was found. A model of another
 * dialect sees the call and that.
 */
export function decodeSearchCall(item: JsonObject): ForeignPart {
  const foreign: ForeignPart = { kind: "foreign", dialect: "responses", value: item };
  const action = isObject(item.action) ? item.action : {};
  const hashed = new Bun.CryptoHasher("sha256").update(JSON.stringify(isOwnId(item.id) ? item.id : item));
  const given = isOwnId(item.id) ? "" : textIn(item.id);
  const id = given || `srvtoolu_${hashed.digest("hex").slice(0, 24)}`;
  const input = omitUndefined({ query: textIn(action.query) || undefined, url: textIn(action.url) || undefined });
  const call: Part = { kind: "server-call", id, tool: "web-search", input };
  const result: Part = { kind: "server-result", id, tool: "web-search", output: outputOf(item.status, action) };
  return { ...foreign, instead: [call, result] };
}

/** A search of an earlier turn as a function's call and its result. */
export const searchAsCall = (item: JsonObject): JsonObject[] =>
  (decodeSearchCall(item).instead ?? []).flatMap((part): JsonObject[] => {
    if (part.kind === "server-call")
      return [
        {
          type: "function_call",
          call_id: part.id,
          name: searches[part.tool].function,
          arguments: JSON.stringify(part.input),
        },
      ];
    if (part.kind !== "server-result") return [];
    return [{ type: "function_call_output", call_id: part.id, output: outputText(part.output) }];
  });

function outputOf(status: unknown, { sources }: JsonObject): ServerToolOutput {
  if (status === "failed") return { kind: "error", code: "unavailable" };
  if (!Array.isArray(sources)) return { kind: "unknown" };
  const pages = sources.filter(isObject).map(({ url }) => textIn(url));
  return { kind: "pages", pages: pages.filter((url) => url !== "").map((url) => ({ url, title: url })) };
}

// ── Replies ──

/** The tool that the upstream has run, if the item is its call. */
export const toolRunBy = ({ type, status }: JsonObject): ServerToolName | undefined =>
  type === names.call && status !== "failed" ? "web-search" : undefined;

const isAddress = (text: string): boolean => /^https?:\/\//i.test(text);

/** The web pages that annotations refer to, with the places in the text as they were sent. */
export const urlsCited = (annotations: unknown) =>
  objectsAmong(annotations).flatMap(({ type, url, title, start_index: start, end_index: end }) =>
    type === "url_citation" && isAddress(textIn(url)) ? [{ url: textIn(url), title: textIn(title), start, end }] : [],
  );

/** The pages that a search of the upstream has read, if it names them: its sources, or the page that was opened. */
export function pagesRead(action: unknown): WebPage[] {
  const { sources, url }: JsonObject = isObject(action) ? action : {};
  const urls = [...objectsAmong(sources).map((source) => textIn(source.url)), textIn(url)];
  return [...new Set(urls)].filter(isAddress).map((url) => ({ url, title: url }));
}
