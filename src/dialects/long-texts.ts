/**
 * Where long texts of a request may stay marks of a skeleton, as a `LongText`: they are carried along, and nothing looks past
 * their beginning.
 */
import type { MarkPlace } from "../lib/net/json/json-skeleton";
import type { ClientDialect } from "./hub/conversation";
import { isBilled } from "./messages/traverse";

/**
 * The rules and codecs ask of a text whether it is blank, what it starts with, and which data its URL holds. A text whose
 * beginning does not answer that is read whole.
 */
const keepsText = (beginning: string): boolean =>
  /\S/.test(beginning) && (!beginning.startsWith("data:") || dataStart.test(beginning));

const dataStart = /^data:.{0,280};base64,/s;

/** A line is taken out of a billed text of Claude Code, so that it is read whole. */
const keepsSystem = (beginning: string): boolean => keepsText(beginning) && !isBilled(beginning);

const text: MarkPlace = { keeps: keepsText };
/** A PDF; a text file is decoded for some upstreams. */
const file: MarkPlace = { keeps: (beginning) => beginning.startsWith("data:application/pdf;base64,") };
/** The base64 of a PNG, JPEG, GIF, WebP or PDF file; a text file is decoded for some upstreams. */
const media: MarkPlace = {
  members: { data: { keeps: (beginning) => /^(?:iVBORw0KGgo|\/9j\/|R0lGOD|UklGR|JVBERi0)/.test(beginning) } },
};

const texts = (members: MarkPlace["members"]): MarkPlace => ({ keeps: keepsText, members });

const chatPart = { text, image_url: texts({ url: text }), file: { members: { file_data: file } } };
const block = { text, source: media };
/** The content of a message, or the output of a tool. */
const item = texts({ text, image_url: text, file_data: file });
/** Not the data of files: Google takes them in an alphabet that no other API takes, so that they are read to their end. */
const googleContent: MarkPlace = { members: { parts: { members: { text } } } };

export const longTexts: Readonly<Record<ClientDialect, MarkPlace>> = {
  chat: { members: { messages: { members: { content: texts(chatPart) } } } },
  responses: { members: { input: texts({ content: item, output: item }) } },
  messages: {
    members: {
      system: { keeps: keepsSystem, members: { text: { keeps: keepsSystem } } },
      messages: { members: { content: texts({ ...block, content: texts(block) }) } },
    },
  },
  gemini: {
    members: { contents: googleContent, systemInstruction: googleContent, system_instruction: googleContent },
  },
};
