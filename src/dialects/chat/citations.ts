/** Citations in a reply: the responses dialect has the fields of a citation one level higher. */
import { isObject } from "../../json";
import type { JsonObject, WithExtras } from "../hub/conversation";

/**
 * The citations of a block as a message's `annotations`: chat has only citations of web pages.
 * @param end The end of the block.
 * @param before Length of the message before the block: citation offsets count from the start of the message.
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
