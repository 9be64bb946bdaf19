/** Citations in a reply: the responses dialect has the fields of a citation one level higher. */
import type { JsonObject } from "../hub/conversation";
import { objectsAmong } from "../hub/lists";
import type { BlockEnd } from "../hub/reply";
import { annotationsOf } from "../openai";

/**
 * The citations of a block as a message's `annotations`: chat has only citations of web pages.
 * @param end The end of the block.
 * @param before Length of the message before the block: citation offsets count from the start of the message.
 */
export const citationsOf = (end: BlockEnd, before: number): JsonObject[] =>
  objectsAmong(annotationsOf(end)).flatMap(({ type, ...members }) => {
    if (type !== "url_citation") return [];
    const at = (index: unknown) => (typeof index === "number" ? index + before : index);
    const { start_index, end_index } = members;
    return [{ type, url_citation: { ...members, start_index: at(start_index), end_index: at(end_index) } }];
  });
