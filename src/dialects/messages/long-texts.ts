/** Where a messages request's long texts need not be read: nothing looks past their beginning. */
import type { MarkPlace } from "../../net/json-skeleton";
import { keepsText } from "../long-texts";

/** Of an image or a PDF. A text file is decoded for some upstreams. */
const data: MarkPlace = {
  keeps: (_, { type, media_type }) =>
    type === "base64" && typeof media_type === "string" && /^(?:image\/|application\/pdf$)/.test(media_type),
};

const block: MarkPlace["members"] = { text: { keeps: keepsText }, source: { members: { data } } };

/** The content of a message, with that of a tool's result. */
const content: MarkPlace = {
  keeps: keepsText,
  members: { ...block, content: { keeps: keepsText, members: block } },
};

export const longTexts: MarkPlace = { members: { system: content, messages: { members: { content } } } };
