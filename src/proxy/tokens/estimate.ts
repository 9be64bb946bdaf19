/**
 * Estimates a conversation's tokens with the local vocabulary: all kinds of parts count, images by their size, and
 * base64 data is never tokenized. The estimate errs high, so that a client compacts in time.
 */

import type { Conversation, Part, Tool } from "../../dialects/hub/conversation";
import { outputText } from "../../dialects/hub/server-turns";
import { bytesOf, type LongText, type ReadText, readUnmarked } from "../../lib/net/json/json-skeleton";
import { imageTokens } from "./image-size";

/** Tokens of the framing of each turn and each tool. */
const perTurn = 4;
const perTool = 8;
/** Tokens of a document's page, and the bytes of a page where only the file's size is known. */
const perDocument = 1500;
const documentPageBytes = 50_000;

/** @param base64 Bytes of the document's data. */
export const documentTokens = (base64: number): number =>
  perDocument * Math.max(1, Math.ceil((base64 * 0.75) / documentPageBytes));

/** What is counted of a conversation. */
export interface PromptParts {
  /** Among them the definitions of tools and the schema of the reply. */
  texts: LongText[];
  /** Reads the texts. */
  whole: ReadText;
  /** Tokens of everything that is no text: framing and media. */
  fixed: number;
  /** The part of `fixed` that images and documents are. */
  media: number;
  /** Of the texts, roughly: a long text of a large request counts as it stands in the JSON. */
  bytes: number;
}

/**
 * Takes the conversation apart. Nothing is counted yet but what is no text.
 * @param whole Reads the texts, which may have marks.
 */
export function promptPartsOf({ turns, tools, format }: Conversation, whole = readUnmarked): PromptParts {
  const parts: PromptParts = { texts: tools.map(toolText), whole, fixed: 0, media: 0, bytes: 0 };
  if (format?.schema !== undefined) parts.texts.push(JSON.stringify(format.schema));
  for (const turn of turns) for (const part of turn.parts) addPart(part, parts);
  parts.fixed += parts.media + perTurn * turns.length + perTool * tools.length;
  for (const text of parts.texts) parts.bytes += bytesOf(text);
  return parts;
}

/** Adds the part's texts, and the tokens of everything else. */
function addPart(part: Part, to: PromptParts): void {
  switch (part.kind) {
    case "text":
    case "thinking":
      to.texts.push(part.text);
      return;
    case "tool-call":
      to.texts.push(part.name, part.input);
      to.fixed += perTool;
      return;
    case "tool-result":
      to.fixed += perTool;
      for (const inner of part.parts) addPart(inner, to);
      return;
    case "image":
      to.media += imageTokens("base64" in part.source ? to.whole(part.source.base64, 64 * 1024) : undefined);
      return;
    case "file":
      to.media += documentTokens(bytesOf(part.base64));
      return;
    case "file-link":
      to.media += perDocument;
      return;
    case "server-call":
      to.texts.push(part.tool, JSON.stringify(part.input));
      to.fixed += perTool;
      return;
    case "server-result":
      to.texts.push(outputText(part.output));
      to.fixed += perTool;
      return;
    case "foreign":
      to.texts.push(withoutBinary(part.value));
      return;
    default:
      part satisfies never;
  }
}

function toolText(tool: Tool): string {
  if (tool.kind === "foreign") return withoutBinary(tool.value);
  const input = tool.kind === "function" ? tool.schema : tool.grammar;
  return `${tool.name}\n${tool.description ?? ""}\n${input === undefined ? "" : JSON.stringify(input)}`;
}

/** The JSON of an unknown value, without long unbroken strings (base64, signatures). */
function withoutBinary(value: unknown): string {
  return (
    JSON.stringify(value, (_key, member) =>
      typeof member === "string" && member.length > 1024 && !/\s/.test(member.slice(0, 1024)) ? "" : member,
    ) ?? ""
  );
}
