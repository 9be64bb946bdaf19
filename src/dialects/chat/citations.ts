/** Citations in a reply: the responses dialect has the fields of a citation one level higher. */
import { isObject } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import { countIn, textIn, without } from "../hub/json";
import { objectsAmong } from "../hub/lists";
import type { Notes } from "../hub/notes";
import type { BlockEnd } from "../hub/reply";
import type { Citation } from "../hub/server-tools";
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

/**
 * The citations of web pages among a message's `annotations`, of a search that the upstream ran.
 * @param before Length of the message before the text that they belong to.
 */
export const citationsIn = (annotations: unknown, before: number): Citation[] =>
  objectsAmong(annotations).flatMap(({ type, url_citation: cited }) => {
    if (type !== "url_citation" || !isObject(cited) || textIn(cited.url) === "") return [];
    const at = (index: unknown) => Math.max(0, (countIn(index) ?? before) - before);
    const { url, title, start_index, end_index } = cited;
    return [
      { url: textIn(url), title: textIn(title) || textIn(url), start: at(start_index), end: at(end_index), quote: "" },
    ];
  });

/**
 * `annotations` is a list in OpenAI's API. Copilot has an object there, of what its filters found in code, and sends the same as
 * `copilot_annotations` (recorded by VS Code's tests). The same message if it has none.
 */
export function withoutFindings(message: JsonObject, notes: Notes): JsonObject {
  const { annotations } = message;
  if (annotations == null || Array.isArray(annotations)) return message;
  notes.addFixup("annotations");
  return without(message, ["annotations"]);
}
