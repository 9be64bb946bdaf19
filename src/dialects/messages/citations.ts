/**
 * Citations in what a client sends back. Anthropic verifies the index of a page that a search found ("Invalid
 * `encrypted_index` in `text` block") and looks up documents by their places. A search is a call of a function for GitHub
 * Copilot, and a page that another provider read is left out, so that neither can be found there any more.
 */
import { isObject, numberIn } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import { textIn } from "../hub/json";
import { isSealed } from "../hub/seal";
import { eachBlock, objectsIn } from "./traverse";

type Refused = (citation: JsonObject) => boolean;

/** Removes the citations of the model's texts that the upstream cannot find. */
export function lostCitations(body: JsonObject): JsonObject | undefined {
  const blocks = objectsIn(body.messages).flatMap(({ content }) => objectsIn(content));
  // A page that a provider read counts among the documents, and changes the places of all.
  const hasPages = blocks.some(({ type }) => type === "web_fetch_tool_result");
  const inside = blocks.flatMap(({ type, content }) => (type === "tool_result" ? objectsIn(content) : []));
  const documents = [...blocks, ...inside].filter(({ type }) => type === "document").length;
  return withoutCitations(body, ({ type, document_index }) => {
    if (type === "web_search_result_location") return true;
    const place = numberIn(document_index);
    return place !== undefined && (hasPages || place >= documents);
  });
}

/** Removes those that were made here: a provider that runs searches itself can read its own. */
export const ownCitations = (body: JsonObject): JsonObject | undefined =>
  withoutCitations(body, ({ encrypted_index }) => isSealed(encrypted_index));

const withoutCitations = (body: JsonObject, isRefused: Refused): JsonObject | undefined =>
  eachBlock(body, (block) => {
    if (textIn(block.type) !== "text" || !Array.isArray(block.citations)) return block;
    const { citations, ...plain } = block;
    const kept = (citations as unknown[]).filter((citation) => !isObject(citation) || !isRefused(citation));
    if (kept.length === block.citations.length) return block;
    return kept.length === 0 ? plain : { ...block, citations: kept };
  });
