/** The `anthropic-beta` header: which of the client's wishes the upstream knows, and which the body needs beside them. */
import { isObject } from "../../json";
import type { HeaderFixup } from "../codec";
import type { JsonObject } from "../hub/conversation";
import type { ModelFacts } from "../hub/model";

const beta = {
  interleavedThinking: "interleaved-thinking-2025-05-14",
  advancedToolUse: "advanced-tool-use-2025-11-20",
  contextManagement: "context-management-2025-06-27",
} as const;

/** An unknown value is refused with the whole request, so only these go upstream. */
const supported: ReadonlySet<string> = new Set(Object.values(beta));

/** The header for a body as it goes up; none when no beta is left. */
export function requestHeaders(client: Headers | null, body: JsonObject, model: ModelFacts): HeaderFixup {
  const header = client?.get("anthropic-beta") ?? client?.get("vendorx-beta") ?? null;
  const { betas, added } = betasFor(header, body, model);
  const headers: Record<string, string> = betas.length === 0 ? {} : { "anthropic-beta": betas.join(",") };
  return { headers, fixups: added.map((name) => `beta:${name}`) };
}

/**
 * The betas to send, in the client's order, and which of them are ours.
 * @param clientHeader The client's header, null when it sent none.
 * @param body The request as it goes upstream.
 */
export function betasFor(
  clientHeader: string | null,
  body: JsonObject,
  model: ModelFacts,
): { betas: string[]; added: string[] } {
  const wanted = (clientHeader ?? "").split(",").map((value) => value.trim());
  const requested = [...new Set(wanted.filter((value) => supported.has(value)))];
  const thinking = isObject(body.thinking) ? body.thinking : {};
  // Adaptive thinking is interleaved by itself.
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

/** Tools are shown to the model only when it looks for them: refused without the beta of advanced tool use. */
export function usesToolSearch(body: JsonObject): boolean {
  const isSearched = (tool: unknown) =>
    isObject(tool) &&
    (tool.defer_loading === true || (typeof tool.type === "string" && tool.type.startsWith("tool_search_tool_")));
  return Array.isArray(body.tools) && body.tools.some(isSearched);
}
