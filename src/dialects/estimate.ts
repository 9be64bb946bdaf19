/**
 * Estimates a conversation's tokens with the local vocabulary: all kinds of parts count, images by their size, and
 * base64 data is never tokenized. The estimate errs high, so that a client compacts in time.
 */
import type { Conversation, Part, Tool } from "./hub/conversation";
import { imageTokens } from "./image-size";
import type { Tokenizer } from "./tokenizer";

/** Tokens of the framing of each turn and each tool. */
const perTurn = 4;
const perTool = 8;
/** Tokens of a document's page, and the bytes of a page where only the file's size is known. */
const perDocument = 1500;
const documentPageBytes = 50_000;

/**
 * The input tokens, rounded up.
 * @param multiplier Claude's tokenizer yields more tokens than `o200k_base`, by this factor.
 * @throws Error if the tokenizer cannot be run.
 */
export async function estimateTokens(
  conversation: Conversation,
  tokenizer: Tokenizer,
  multiplier: number,
): Promise<number> {
  const texts: string[] = [];
  let fixed = 0;
  for (const turn of conversation.turns) {
    fixed += perTurn;
    for (const part of turn.parts) fixed += addPart(part, texts);
  }
  for (const tool of conversation.tools) {
    fixed += perTool;
    texts.push(toolText(tool));
  }
  if (conversation.format?.schema !== undefined) texts.push(JSON.stringify(conversation.format.schema));
  return Math.ceil((await tokenizer.count(texts)) * multiplier + fixed);
}

/** Adds the part's texts to `texts`; returns the tokens of everything else. */
function addPart(part: Part, texts: string[]): number {
  switch (part.kind) {
    case "text":
    case "thinking":
      texts.push(part.text);
      return 0;
    case "tool-call":
      texts.push(part.name, part.input);
      return perTool;
    case "tool-result":
      return part.parts.reduce((sum, inner) => sum + addPart(inner, texts), perTool);
    case "image":
      return imageTokens("base64" in part.source ? part.source.base64 : undefined);
    case "file":
      return perDocument * Math.max(1, Math.ceil((part.base64.length * 0.75) / documentPageBytes));
    case "file-link":
      return perDocument;
    case "foreign":
      texts.push(withoutBinary(part.value));
      return 0;
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
