/** Tools that run while the model answers, in the messages dialect: their definitions, blocks, citations and usage. */

import { beginningOf } from "../../lib/beginning";
import { isObject } from "../../lib/json";
import type { ForeignTool, JsonObject, Part } from "../hub/conversation";
import type { Fields } from "../hub/fields";
import { objectAt, omitUndefined, optionalText, textAt, textListAt, textMembers } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import type { Block, CompleteBlock } from "../hub/reply";
import { isSealed, seal, unseal } from "../hub/seal";
import { isToolSearch, type ServerToolName, searches, searchOfType, serverToolNames } from "../hub/searches";
import {
  type Citation,
  errorSentences,
  isUntold,
  type ServerToolError,
  type ServerToolOffer,
  type ServerToolOutput,
  serverToolError,
  type WebPage,
} from "../hub/server-tools";
import { hasToolSearch } from "../hub/tool-search";
import { withCacheMark } from "./extras";
import { objectsIn } from "./traverse";

// ── Wire facts ──

const foundType = "tool_search_tool_search_result";

/** The model itself called the tool, not a program of it. */
const caller = { type: "direct" };

// ── Tools ──

/** A tool with a type of its own, which Anthropic runs; `server` is set if dragoman can run it as well. */
export function decodeServerTool(tool: Fields): ForeignTool {
  const name = searchOfType(tool.object.type, "messages");
  const foreign: ForeignTool = { kind: "foreign", dialect: "messages", value: tool.object };
  return name === undefined ? foreign : { ...foreign, server: decodeOffer(name, tool) };
}

function decodeOffer(tool: ServerToolName, fields: Fields): ServerToolOffer {
  const { user_location: location } = fields.object;
  return omitUndefined({
    tool,
    maxUses: fields.optionalCount("max_uses"),
    allowedDomains: textListAt(fields.any("allowed_domains"), fields.pathOf("allowed_domains")),
    blockedDomains: textListAt(fields.any("blocked_domains"), fields.pathOf("blocked_domains")),
    location: textMembers(location, "type"),
  });
}

/** Whether dragoman has to run a tool, or to search for tools because the upstream has no search of its own. */
export const offersServerTools = ({ tools, messages }: JsonObject, model: ModelFacts): boolean =>
  objectsIn(tools).some(({ type }) => searchOfType(type, "messages") === "web-search") ||
  (!hasToolSearch(model, "messages") &&
    (objectsIn(tools).some(
      ({ type, defer_loading }) => searchOfType(type, "messages") !== undefined || defer_loading === true,
    ) ||
      hasToolSearches(messages)));

const hasToolSearches = (messages: unknown): boolean =>
  objectsIn(messages).some(({ content }) =>
    objectsIn(content).some(
      ({ type, content: inner }) =>
        type === searches["tool-search"].messages.result ||
        objectsIn(inner).some(({ type }) => type === "tool_reference"),
    ),
  );

// ── Requests ──

export const hasServerCalls = ({ messages }: JsonObject): boolean =>
  objectsIn(messages).some(
    ({ role, content }) => role === "assistant" && Array.isArray(content) && content.some(isServerCall),
  );

/** Whether the history has results that were sealed here: not even a provider that runs such tools could read them. */
export const hasOwnResults = ({ messages }: JsonObject): boolean =>
  objectsIn(messages).some(({ content }) =>
    objectsIn(content).some(
      ({ type, content: pages }) =>
        type === searches["web-search"].messages.result &&
        objectsIn(pages).some(({ encrypted_content: text }) => isSealed(text)),
    ),
  );

/** GitHub Copilot searches the web for no model of this dialect. */
const isServerCall = (block: unknown): boolean =>
  isObject(block) && block.type === "server_tool_use" && block.name === searches["web-search"].messages.name;

/** Undefined for a call of a tool that only Anthropic runs. */
export function decodeServerCall(block: Fields): Part | undefined {
  const name = block.any("name");
  const tool = serverToolNames.find((each) => searches[each].messages.name === name);
  if (tool === undefined) return undefined;
  block.skip("type", "caller");
  const id = block.text("id");
  const input = block.any("input");
  const call: Part = { kind: "server-call", id, tool, input: isObject(input) ? input : {}, ...withCacheMark(block) };
  return isToolSearch(tool) ? searchPart(block.object, call, []) : call;
}

/** A search of tools is the upstream's own where it has one; a model without sees calls and results. */
const searchPart = (value: JsonObject, instead: Part, found: string[]): Part => ({
  kind: "foreign",
  dialect: "messages",
  value,
  instead: [instead],
  toolSearch: { found },
});

/** The decoders of the results' blocks, by their types. */
export const serverResultDecoders = serverToolNames.map(
  (tool) =>
    [
      searches[tool].messages.result,
      (block: Fields): Part => {
        block.skip("type", "caller");
        const id = block.text("tool_use_id");
        const read = decodeOutput(block.any("content"), block.pathOf("content"));
        const isEmpty = read.kind === "pages" && read.pages.length === 0;
        const output: ServerToolOutput = isEmpty && isUntold(id) ? { kind: "unknown" } : read;
        const result: Part = { kind: "server-result", id, tool, output, ...withCacheMark(block) };
        const found = output.kind === "tools" ? output.names : [];
        return isToolSearch(tool) ? searchPart(block.object, result, found) : result;
      },
    ] as const,
);

function decodeOutput(content: unknown, path: string): ServerToolOutput {
  if (isObject(content) && content.type === foundType)
    return {
      kind: "tools",
      names: objectsIn(content.tool_references).map(({ tool_name }) => textAt(tool_name, `${path}.tool_references`)),
    };
  if (!Array.isArray(content)) {
    const code = isObject(content) ? serverToolError(content.error_code) : undefined;
    return { kind: "error", code: code ?? "unavailable" };
  }
  return { kind: "pages", pages: content.map((page, at) => decodePage(objectAt(page, `${path}[${at}]`), path)) };
}

function decodePage(page: JsonObject, path: string): WebPage {
  return omitUndefined({
    url: textAt(page.url, `${path}.url`),
    title: optionalText(page.title, `${path}.title`) ?? "",
    text: unseal(page.encrypted_content),
    age: optionalText(page.page_age, `${path}.page_age`),
  });
}

// ── Replies ──

/** The block of a reply, as it is in a full one. */
export const writeServerBlock = (block: Exclude<CompleteBlock, { kind: "foreign" }>): JsonObject =>
  block.kind === "server-call"
    ? { ...callBlock(block.id, block.tool, block.input), caller }
    : { ...resultBlock(block), caller };

const callBlock = (id: string, tool: ServerToolName, input: JsonObject): JsonObject => ({
  type: "server_tool_use",
  id,
  name: searches[tool].messages.name,
  input,
});

function resultBlock({ id, tool, output }: { id: string; tool: ServerToolName; output: ServerToolOutput }): JsonObject {
  return {
    type: searches[tool].messages.result,
    tool_use_id: id,
    content: encodeOutput(searches[tool].messages, output),
  };
}

/** A search of tools has fewer codes. */
function errorFields(form: { result: string }, code: ServerToolError): JsonObject {
  if (form.result !== searches["tool-search"].messages.result) return { error_code: code };
  const known = { query_too_long: "invalid_tool_input", max_uses_exceeded: "too_many_requests" } as const;
  const error_code = code === "query_too_long" || code === "max_uses_exceeded" ? known[code] : code;
  return { error_code, error_message: errorSentences[code] };
}

function encodeOutput(form: { result: string }, output: ServerToolOutput): unknown {
  if (output.kind === "error") return { type: `${form.result}_error`, ...errorFields(form, output.code) };
  if (output.kind === "tools")
    return {
      type: foundType,
      tool_references: output.names.map((tool_name) => ({ type: "tool_reference", tool_name })),
    };
  return output.kind === "pages" ? output.pages.map(encodePage) : [];
}

const encodePage = ({ url, title, text = "", age }: WebPage): JsonObject => ({
  type: "web_search_result",
  url,
  title,
  encrypted_content: seal(text),
  page_age: age ?? null,
});

/** The tool that the upstream has run, if the block is its result. */
export const toolRunBy = ({ type, content }: JsonObject): ServerToolName | undefined =>
  Array.isArray(content) ? serverToolNames.find((name) => searches[name].messages.result === type) : undefined;

/** Characters of a page's words in a citation, as Anthropic documents it. */
const longestQuote = 150;

export const encodeCitation = ({ url, title, quote }: Citation): JsonObject => ({
  type: "web_search_result_location",
  url,
  title,
  encrypted_index: seal(url),
  cited_text: beginningOf(quote, longestQuote),
});

/** The searches that ran, as the usage of a reply counts them; an empty object if none did. @param blocks Those of the reply. */
export function serverToolUsage(blocks: readonly Block[]): JsonObject {
  const isSearch = (block: Block) =>
    block.kind === "server-result" && block.tool === "web-search" && block.output.kind !== "error";
  const searches = blocks.filter(isSearch).length;
  return searches > 0 ? { server_tool_use: { web_search_requests: searches, web_fetch_requests: 0 } } : {};
}
