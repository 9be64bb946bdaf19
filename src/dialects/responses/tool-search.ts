/** Searches of tools in the responses dialect: run by the upstream, or by the client itself. */
import { isObject, parseJson } from "../../lib/json";
import type { Conversation, ForeignPart, JsonObject, Part } from "../hub/conversation";
import { listAt, objectAt, omit, textIn } from "../hub/json";
import { objectsAmong } from "../hub/lists";
import type { ModelFacts } from "../hub/model";
import { unnoted } from "../hub/notes";
import { searches } from "../hub/searches";
import type { ServerToolCall, ServerToolResult } from "../hub/server-tools";
import { outputText } from "../hub/server-turns";
import { hasToolSearch } from "../hub/tool-search";
import { upstreamFacts } from "../hub/upstream-facts";
import { type OpenItem, pieceByPiece, type ShownItem, type Wire } from "./item-writer";
import { decodeTools, encodeTools, hubName, type ToolNames } from "./tools";

const { responses: types } = searches["tool-search"];

// ── Requests ──

/** Whether dragoman has to search for tools: the upstream has no search of its own, or the request has too many tools for it. */
export function offersServerTools({ tools, input }: JsonObject, model: ModelFacts): boolean {
  if (objectsAmong(tools).filter(isNotDeferred).length > upstreamFacts.responses.toolLimit) return true;
  if (hasToolSearch(model, "responses")) return false;
  return isSearched(tools) || objectsAmong(input).some(isOfSearch);
}

const isNotDeferred = ({ defer_loading }: JsonObject): boolean => defer_loading !== true;

/** Of an item of the input. */
const isOfSearch = ({ type, tools }: JsonObject): boolean =>
  type === types.call || type === types.output || (type === "additional_tools" && isSearched(tools));

const isSearched = (tools: unknown): boolean => objectsAmong(tools).some(isSearchedTool);

const isSearchedTool = ({ type, defer_loading, tools }: JsonObject): boolean =>
  type === types.tool || defer_loading === true || isSearched(tools);

/** Whether a call of this name is one of the client's own search. */
export const isClientSearchCall = ({ tools }: Conversation, name: string): boolean =>
  tools.some((tool) => tool.kind === "function" && tool.name === name && tool.clientSearch !== undefined);

/** A call of a search. @param callId The id for a search of the upstream, which has none. */
export function decodeToolSearchCall(item: JsonObject, callId: string, scope: ToolNames): ForeignPart {
  const given = typeof item.arguments === "string" ? parseJson(item.arguments) : item.arguments;
  const input = isObject(given) ? given : {};
  const call: Part = isClients(item)
    ? {
        kind: "tool-call",
        id: textIn(item.call_id) || callId,
        name: hubName(types.tool, undefined, scope),
        input: JSON.stringify(input),
      }
    : { kind: "server-call", id: callId, tool: "tool-search", input };
  return { kind: "foreign", dialect: "responses", value: item, instead: [call], toolSearch: { found: [] } };
}

/** What a search found: names of tools that are in the request, or tools that are only here. */
export function decodeToolSearchOutput(item: JsonObject, path: string, callId: string, scope: ToolNames): ForeignPart {
  const names = foundNames(listAt(item.tools, `${path}.tools`), `${path}.tools`, scope);
  const output = { kind: "tools" as const, names };
  const result: Part = isClients(item)
    ? {
        kind: "tool-result",
        id: textIn(item.call_id) || callId,
        parts: [{ kind: "text", text: outputText(output) }],
      }
    : { kind: "server-result", id: callId, tool: "tool-search", output };
  return { kind: "foreign", dialect: "responses", value: item, instead: [result], toolSearch: { found: names } };
}

/** Whether the client has searched, or was asked to. */
export const isClients = ({ execution }: JsonObject): boolean => execution === "client";

function foundNames(tools: unknown[], path: string, scope: ToolNames, namespace?: JsonObject): string[] {
  return tools.flatMap((value, index) => {
    const at = `${path}[${index}]`;
    const tool = objectAt(value, at);
    if (tool.type === "namespace")
      return foundNames(
        listAt(tool.tools, `${at}.tools`),
        `${at}.tools`,
        scope,
        omit(tool, new Set(["type", "tools"])),
      );
    if (tool.type !== "function" && tool.type !== "custom") return [];
    const name = textIn(tool.name);
    const known = scope.names.get(JSON.stringify([namespace?.name ?? "", name]));
    if (known !== undefined) return [known];
    decodeTools([tool], path, scope, { isFound: true, ...(namespace ? { namespace } : {}) });
    return [hubName(name, namespace?.name, scope)];
  });
}

// ── Replies ──

/** Writes a search that ran here as two items, as the upstream writes its own: both without a `call_id`. */
export function toolSearchWriter(
  conversation: Conversation,
  add: (prefix: string, item: JsonObject) => ShownItem,
  wire: Wire,
) {
  const write = (prefix: string, item: JsonObject, status: string) => {
    const shown = add(prefix, { ...item, execution: "server", call_id: null, status: "in_progress" });
    shown.item.status = status;
    wire.send("response.output_item.done", { output_index: shown.index, item: shown.item });
  };
  return {
    call: ({ input }: ServerToolCall) => write("tsc", { type: types.call, arguments: input }, "completed"),
    result({ output }: ServerToolResult) {
      const names = output.kind === "tools" ? output.names : [];
      const found = names.flatMap(
        (name) => conversation.tools.find((tool) => tool.kind !== "foreign" && tool.name === name) ?? [],
      );
      const tools = encodeTools({ ...conversation, tools: found }, unnoted, true).list;
      write("tso", { type: types.output, tools }, output.kind === "error" ? "incomplete" : "completed");
    },
  };
}

/** A call that the client is to run as a search of its own. */
export const clientSearchItem = (shown: ShownItem): OpenItem =>
  pieceByPiece(
    shown,
    () => {},
    (text) => {
      shown.item.arguments = parseJson(text) ?? {};
    },
  );
