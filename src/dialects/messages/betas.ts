/** The `anthropic-beta` header: which of the client's betas the upstream supports, and which the body needs. */
import { isObject } from "../../json";
import type { HeaderFixup } from "../codec";
import type { JsonObject } from "../hub/conversation";
import type { ModelFacts } from "../hub/model";

const beta = {
  interleavedThinking: "interleaved-thinking-2025-05-14",
  advancedToolUse: "advanced-tool-use-2025-11-20",
  contextManagement: "context-management-2025-06-27",
} as const;

/** The upstream refuses a request with an unknown value, so only these are sent. */
const supported: ReadonlySet<string> = new Set(Object.values(beta));

/** The header for the body that is sent upstream; none if no beta is left. */
export function requestHeaders(client: Headers | null, body: JsonObject, model: ModelFacts): HeaderFixup {
  const header = client?.get("anthropic-beta") ?? client?.get("vendorx-beta") ?? null;
  const { betas, added } = betasFor(header, body, model);
  const headers: Record<string, string> = betas.length === 0 ? {} : { "anthropic-beta": betas.join(",") };
  return { headers, fixups: added.map((name) => `beta:${name}`) };
}

/**
 * The betas to send, in the client's order, and those among them that were added.
 * @param clientHeader The client's header; null if it sent none.
 * @param body The request as it is sent upstream.
 */
export function betasFor(
  clientHeader: string | null,
  body: JsonObject,
  model: ModelFacts,
): { betas: string[]; added: string[] } {
  const wanted = (clientHeader ?? "").split(",").map((value) => value.trim());
  const requested = [...new Set(wanted.filter((value) => supported.has(value)))];
  const thinking = isObject(body.thinking) ? body.thinking : {};
  // Adaptive thinking is always interleaved.
  const kept =
    thinking.type === "adaptive" ? requested.filter((value) => value !== beta.interleavedThinking) : requested;
  const isHeaderEmpty = wanted.every((value) => value === "");
  const needed = [
    ...(isHeaderEmpty && thinking.budget_tokens != null && !model.supports.adaptiveThinking
      ? [beta.interleavedThinking]
      : []),
    ...(body.context_management != null ? [beta.contextManagement] : []),
    ...(usesToolSearch(body) ? [beta.advancedToolUse] : []),
  ];
  const added = needed.filter((value) => !kept.includes(value));
  return { betas: [...kept, ...added], added };
}

/** Tool search needs the beta `advanced-tool-use`; without it the request is refused. */
export function usesToolSearch(body: JsonObject): boolean {
  const isSearched = (tool: unknown) =>
    isObject(tool) &&
    (tool.defer_loading === true || (typeof tool.type === "string" && tool.type.startsWith("tool_search_tool_")));
  return Array.isArray(body.tools) && body.tools.some(isSearched);
}
