/** What a reply's words cite: the responses dialect has a citation's members one level higher. */
import { isObject } from "../../json";
import type { JsonObject, WithExtras } from "../hub/conversation";

/**
 * The citations of a block as a message's `annotations`: only those of pages, for which chat has a word.
 * @param end How the block ended.
 * @param before Characters of the message before the block: citations count from its start.
 */
export function annotationsOf(end: WithExtras, before: number): JsonObject[] {
  const listed = end.extras?.openai?.annotations;
  const annotations: unknown[] = Array.isArray(listed) ? listed : [];
  return annotations.flatMap((annotation) => {
    if (!isObject(annotation) || annotation.type !== "url_citation") return [];
    const { type, ...members } = annotation;
    const at = (index: unknown) => (typeof index === "number" ? index + before : index);
    return [
      { type, url_citation: { ...members, start_index: at(members.start_index), end_index: at(members.end_index) } },
    ];
  });
}
