/** Citations in a reply: the responses dialect has the fields of a citation one level higher. */
import { isObject } from "../../json";
import type { JsonObject } from "../hub/conversation";
import type { BlockEnd } from "../hub/reply";

/**
 * The citations of a block as a message's `annotations`: chat has only citations of web pages.
 * @param end The end of the block.
 * @param before Length of the message before the block: citation offsets count from the start of the message.
 */
export function annotationsOf({ extras, citations = [] }: BlockEnd, before: number): JsonObject[] {
  const listed = extras?.openai?.annotations;
  const annotations: unknown[] = Array.isArray(listed) ? listed : [];
  const own = annotations.flatMap((annotation) => {
    if (!isObject(annotation) || annotation.type !== "url_citation") return [];
    const { type, ...members } = annotation;
    const at = (index: unknown) => (typeof index === "number" ? index + before : index);
    return [
      { type, url_citation: { ...members, start_index: at(members.start_index), end_index: at(members.end_index) } },
    ];
  });
  const hubs = citations.map(({ url, title, start, end }) => ({
    type: "url_citation",
    url_citation: { url, title, start_index: start + before, end_index: end + before },
  }));
  return [...own, ...hubs];
}
