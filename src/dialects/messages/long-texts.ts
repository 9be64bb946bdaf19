/** Where a messages request's long texts need not be read: nothing looks past their beginning. */
import type { MarkPlace } from "../../net/json/json-skeleton";
import { keepsMedia, keepsText } from "../long-texts";
import { isBilled } from "./traverse";

const block: MarkPlace["members"] = {
  text: { keeps: keepsText },
  source: { members: { data: { keeps: keepsMedia } } },
};

/** The content of a message, with that of a tool's result. */
const content: MarkPlace = {
  keeps: keepsText,
  members: { ...block, content: { keeps: keepsText, members: block } },
};

/** A line is taken out of a billed text, so that it is read whole. */
const system: MarkPlace = {
  keeps: keepsSystem,
  members: { text: { keeps: keepsSystem } },
};

function keepsSystem(beginning: string): boolean {
  return keepsText(beginning) && !isBilled(beginning);
}

export const longTexts: MarkPlace = { members: { system, messages: { members: { content } } } };
