/** Citations in a reply: the responses dialect has the fields of a citation one level higher. */
import type { JsonObject } from "../hub/conversation";
import { without } from "../hub/json";
import { objectsAmong } from "../hub/lists";
import type { BlockEnd } from "../hub/reply";
import type { ReportFixup } from "../hub/upstream-stream";
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
 * `annotations` is a list in OpenAI's API. Copilot has an object there, of what its filters found in code, and sends the same as
 * `copilot_annotations` (recorded by VS Code's tests). The same message if it has none.
 */
export function withoutFindings(message: JsonObject, report: ReportFixup): JsonObject {
  const { annotations } = message;
  if (annotations == null || Array.isArray(annotations)) return message;
  report("annotations");
  return without(message, ["annotations"]);
}
