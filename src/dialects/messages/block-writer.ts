/** Writes the content blocks of a message. */
import { isObject } from "../../lib/json";
import type { JsonObject, Signature, WithExtras } from "../hub/conversation";
import { randomId } from "../hub/ids";
import type { Block, BlockEnd, DeltaBlock } from "../hub/reply";
import { packSignature } from "../hub/signature";
import { inputObject } from "../hub/tool-input";
import { restoreExtras } from "./extras";
import { encodeCitation, writeServerBlock } from "./server-tools";

/**
 * The block, or nothing if this dialect does not have it. Empty text blocks are omitted, because they are refused
 * later.
 */
export function writeBlock(block: Block, text: string, end: BlockEnd): JsonObject[] {
  const { signature } = end;
  switch (block.kind) {
    case "text": {
      const textBlock = restoreExtras(
        restoreExtras({ type: "text", text }, block.extras?.anthropic),
        end.extras?.anthropic,
      );
      const citations = citationsOf(end);
      if (citations.length > 0) textBlock.citations = citations;
      return text === "" && !end.extras?.anthropic ? [] : [textBlock];
    }
    case "thinking":
      if (text === "" && !signature) return [];
      return [signature && isRedacted(text, signature) ? redacted(signature) : thinking(block, text, signature)];
    case "tool-call":
      return [{ ...toolUse(block), input: inputObject({ input: text, freeform: block.freeform }) }];
    case "server-call":
    case "server-result":
      return block.isHidden ? [] : [writeServerBlock(block)];
    case "foreign":
      return block.dialect === "messages" ? [block.value] : [];
  }
}

/** Anthropic's own citations as they are, and those of the hub. */
export function citationsOf({ extras, citations = [] }: BlockEnd): unknown[] {
  const own = extras?.anthropic?.citations;
  return [...(Array.isArray(own) ? own : []), ...citations.map(encodeCitation)];
}

/** Thinking without text is written as `redacted_thinking`, except Anthropic's own, which may be just hidden. */
const isRedacted = (text: string, { dialect, redacted }: Signature): boolean =>
  redacted === true || (text === "" && dialect !== "messages");

const redacted = (signature: Signature): JsonObject => ({
  type: "redacted_thinking",
  data: packSignature(signature, "messages"),
});

const thinking = (block: Block & WithExtras, text: string, signature: Signature | undefined): JsonObject =>
  restoreExtras(
    { type: "thinking", thinking: text, signature: signature ? packSignature(signature, "messages") : "" },
    block.extras?.anthropic,
  );

export const toolUse = (block: Block & { kind: "tool-call" }): JsonObject =>
  restoreExtras(
    { type: "tool_use", id: block.id || `toolu_${randomId()}`, name: block.name, input: {} },
    block.extras?.anthropic,
  );

export const emptyBlock = (block: DeltaBlock): JsonObject =>
  block.kind === "thinking"
    ? thinking(block, "", undefined)
    : restoreExtras({ type: "text", text: "" }, block.extras?.anthropic);

/** The start of a complete block: input, citations and signature follow as deltas. */
export function startOf(whole: JsonObject): JsonObject {
  const started = { ...whole };
  delete started.citations;
  if (whole.type === "thinking") started.signature = "";
  if (isObject(whole.input)) started.input = {};
  return started;
}
