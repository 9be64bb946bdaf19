/** Web search in the chat dialect: no tool, but a field of the request. The hub has it among the tools. */
import { isObject } from "../../lib/json";
import type { ForeignTool, JsonObject, Tool } from "../hub/conversation";
import { omitUndefined, textMembers } from "../hub/json";
import { searches } from "../hub/searches";
import { upstreamFacts } from "../hub/upstream-facts";

const { chat: field } = searches["web-search"];

/** More tools than the upstream takes have to be searched for. */
export const offersServerTools = ({ [field]: options, tools }: JsonObject): boolean =>
  options != null || (Array.isArray(tools) && tools.length > upstreamFacts.chat.toolLimit);

/** @param options The request's `web_search_options`. */
export function decodeSearch(options: unknown): ForeignTool[] {
  if (options == null) return [];
  const { user_location: place } = isObject(options) ? options : {};
  const { approximate } = isObject(place) ? place : {};
  const server = omitUndefined({ tool: "web-search" as const, location: textMembers(approximate) });
  return [{ kind: "foreign", dialect: "chat", value: { type: field, options }, server }];
}

export const isSearch = (tool: Tool): boolean =>
  tool.kind === "foreign" && tool.dialect === "chat" && tool.value.type === field;

/** The request's `web_search_options`; undefined without a search. */
export function encodeSearch(tools: Tool[]): unknown {
  const search = tools.find(isSearch);
  return search?.kind === "foreign" ? search.value.options : undefined;
}
