/** Where a messages request's long texts need not be read: nothing looks past their beginning. */
import type { MarkPlace } from "../../net/json-skeleton";
import { keepsText } from "../long-texts";

const block: MarkPlace["members"] = {
  text: { keeps: keepsText },
  source: { members: { data: { keeps: keepsText } } },
};

/** The content of a message, with that of a tool's result. */
const content: MarkPlace = {
  keeps: keepsText,
  members: { ...block, content: { keeps: keepsText, members: block } },
};

export const longTexts: MarkPlace = { members: { system: content, messages: { members: { content } } } };
