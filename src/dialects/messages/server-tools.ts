/** Tools that run while the model answers, in the messages dialect: their definitions, blocks, citations and usage. */
import { isObject } from "../../json";
import type { ForeignTool, JsonObject, Part } from "../hub/conversation";
import { listAt, objectAt, omitUndefined, optionalCount, optionalText, textAt, textIn } from "../hub/json";
import type { WholeBlock } from "../hub/reply";
import {
  type Citation,
  type ServerToolName,
  type ServerToolOffer,
  type ServerToolOutput,
  serverToolError,
  type WebPage,
} from "../hub/server-tools";
import { keySet, restoreCacheMark, withCacheMark } from "./extras";
import { objectsIn } from "./traverse";

// ── Wire facts ──

/** How each tool is written. `tool` is the beginning of its types, which end in a date. */
interface ServerToolForm {
  name: string;
  tool: string;
  result: string;
  error: string;
  /** The counter in the usage. */
  usage: string;
}

const forms: Record<ServerToolName, ServerToolForm> = {
  "web-search": {
    name: "web_search",
    tool: "web_search_",
    result: "web_search_tool_result",
    error: "web_search_tool_result_error",
    usage: "web_search_requests",
  },
};
const names = Object.keys(forms) as ServerToolName[];

const knownFields = {
  call: keySet("type id name input caller cache_control"),
  result: keySet("type tool_use_id content caller cache_control"),
};

/** The model itself called the tool, not a program of it. */
const caller = { type: "direct" };

// ── Tools ──

/** A tool with a type of its own, which Anthropic runs; `server` is set if dragoman can run it as well. */
export function decodeServerTool(tool: JsonObject, path: string): ForeignTool {
  const name = toolNamed(tool.type);
  const foreign: ForeignTool = { kind: "foreign", dialect: "messages", value: tool };
  return name === undefined ? foreign : { ...foreign, server: decodeOffer(name, tool, path) };
}

function decodeOffer(tool: ServerToolName, value: JsonObject, path: string): ServerToolOffer {
  const texts = (list: unknown, key: string) =>
    list == null ? undefined : listAt(list, `${path}.${key}`).map((text, at) => textAt(text, `${path}.${key}[${at}]`));
  return omitUndefined({
    tool,
    maxUses: optionalCount(value.max_uses, `${path}.max_uses`),
    allowedDomains: texts(value.allowed_domains, "allowed_domains"),
    blockedDomains: texts(value.blocked_domains, "blocked_domains"),
    location: decodeLocation(value.user_location),
  });
}

function decodeLocation(value: unknown): Record<string, string> | undefined {
  if (!isObject(value)) return undefined;
  const { type, ...fields } = value;
  const texts = Object.entries(fields).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return texts.length === 0 ? undefined : Object.fromEntries(texts);
}

export const offersServerTools = ({ tools }: JsonObject): boolean =>
  objectsIn(tools).some(({ type }) => toolNamed(type) !== undefined);

const toolNamed = (type: unknown) => names.find((name) => textIn(type).startsWith(forms[name].tool));

// ── Requests ──

export const hasServerCalls = ({ messages }: JsonObject): boolean =>
  objectsIn(messages).some(
    ({ role, content }) => role === "assistant" && Array.isArray(content) && content.some(isServerCall),
  );

const isServerCall = (block: unknown): boolean =>
  isObject(block) && block.type === "server_tool_use" && names.some((name) => forms[name].name === block.name);

/** Undefined for a call of a tool that only Anthropic runs. */
export function decodeServerCall(block: JsonObject, path: string): Part | undefined {
  const tool = names.find((name) => forms[name].name === block.name);
  if (tool === undefined) return undefined;
  return {
    kind: "server-call",
    id: textAt(block.id, `${path}.id`),
    tool,
    input: isObject(block.input) ? block.input : {},
    ...withCacheMark(block, knownFields.call),
  };
}

/** The decoders of the results' blocks, by their types. */
export const serverResultDecoders = names.map(
  (tool) =>
    [
      forms[tool].result,
      (block: JsonObject, path: string): Part => ({
        kind: "server-result",
        id: textAt(block.tool_use_id, `${path}.tool_use_id`),
        tool,
        output: decodeOutput(block.content, `${path}.content`),
        ...withCacheMark(block, knownFields.result),
      }),
    ] as const,
);

function decodeOutput(content: unknown, path: string): ServerToolOutput {
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

/** A part as a block of a request. */
export function encodeServerPart(part: Part & { kind: "server-call" | "server-result" }): JsonObject {
  const block = part.kind === "server-call" ? callBlock(part.id, part.tool, part.input) : resultBlock(part);
  return restoreCacheMark(block, part);
}

// ── Replies ──

/** The block of a reply, as it is in a full one. */
export const writeServerBlock = (block: Exclude<WholeBlock, { kind: "foreign" }>): JsonObject =>
  block.kind === "server-call"
    ? { ...callBlock(block.id, block.tool, block.input), caller }
    : { ...resultBlock(block), caller };

const callBlock = (id: string, tool: ServerToolName, input: JsonObject): JsonObject => ({
  type: "server_tool_use",
  id,
  name: forms[tool].name,
  input,
});

function resultBlock({ id, tool, output }: { id: string; tool: ServerToolName; output: ServerToolOutput }): JsonObject {
  return { type: forms[tool].result, tool_use_id: id, content: encodeOutput(forms[tool], output) };
}

function encodeOutput({ error }: ServerToolForm, output: ServerToolOutput): unknown {
  if (output.kind === "error") return { type: error, error_code: output.code };
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
  Array.isArray(content) ? names.find((name) => forms[name].result === type) : undefined;

/** Characters of a page's words in a citation, as Anthropic documents it. */
const longestQuote = 150;

export const encodeCitation = ({ url, title, quote }: Citation): JsonObject => ({
  type: "web_search_result_location",
  url,
  title,
  encrypted_index: seal(url),
  cited_text: quote.slice(0, longestQuote),
});

/** Counts the tools that ran, for the usage of a reply. */
export function serverToolCounter() {
  const counts = new Map<ServerToolName, number>();
  return {
    add(block: WholeBlock) {
      if (block.kind !== "server-result" || block.output.kind === "error") return;
      counts.set(block.tool, (counts.get(block.tool) ?? 0) + 1);
    },
    /** An empty object if none ran. */
    usage(): JsonObject {
      if (counts.size === 0) return {};
      const entries = [...counts].map(([tool, count]) => [forms[tool].usage, count] as const);
      return { server_tool_use: { web_search_requests: 0, web_fetch_requests: 0, ...Object.fromEntries(entries) } };
    },
  };
}

// ── Sealed texts ──

/**
 * Clients send `encrypted_content` back and do not look into it. dragoman's own holds the page's words, because nothing
 * is stored here.
 */
const sealMark = "dragoman.";
const seal = (text: string): string => sealMark + Buffer.from(text).toString("base64url");

/** Undefined for a text that another service has sealed. */
function unseal(text: unknown): string | undefined {
  if (typeof text !== "string" || !text.startsWith(sealMark)) return undefined;
  return Buffer.from(text.slice(sealMark.length), "base64url").toString() || undefined;
}
