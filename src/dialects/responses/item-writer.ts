/**
 * Writes the items of a streamed response, one after the other. The pieces of a text are joined at its end: one string
 * that grows with each delta costs more than the rest of the delta's work.
 */
import type { JsonObject } from "../hub/conversation";
import type { BlockEnd } from "../hub/reply";
import { packSignature } from "../hub/signature";
import { annotationsOf } from "../openai";

/** Receives the events that are written. */
export interface Wire {
  send(type: string, members: JsonObject): void;
  /** A writer for the deltas of one text, which differ only in the text. */
  deltas(type: string, members: JsonObject): (delta: string) => void;
}

/** The open item. It ends when the next one begins; until then a message can get more content. */
export interface OpenItem {
  index: number;
  id: string;
  /** The item as `output_item.done` will hold it. */
  item: JsonObject;
  delta(text: string): void;
  endBlock(end: BlockEnd): void;
}

/** An item after its `output_item.added`. */
export type ShownItem = Pick<OpenItem, "index" | "id" | "item">;

/**
 * An open item whose text comes in pieces.
 * @param sendDelta Writes a piece. @param end Ends the block with all of its text.
 */
export function pieceByPiece(
  shown: ShownItem,
  sendDelta: (piece: string, isFirst: boolean) => void,
  end: (text: string, end: BlockEnd) => void,
): OpenItem {
  const pieces: string[] = [];
  return {
    ...shown,
    delta(piece) {
      sendDelta(piece, pieces.length === 0);
      pieces.push(piece);
    },
    endBlock: (blockEnd) => end(pieces.join(""), blockEnd),
  };
}

/** Writes one content part of a message. */
export function textPart(shown: ShownItem, refusal: boolean, wire: Wire): OpenItem {
  const { index, id, item } = shown;
  const content: unknown[] = Array.isArray(item.content) ? item.content : [];
  const at = { item_id: id, output_index: index, content_index: content.length };
  const [events, more] = refusal ? ["response.refusal", {}] : ["response.output_text", { logprobs: [] }];
  const part = (text: string, annotations: unknown[]): JsonObject =>
    refusal ? { type: "refusal", refusal: text } : { type: "output_text", text, annotations, ...more };
  wire.send("response.content_part.added", { ...at, part: part("", []) });
  return pieceByPiece(shown, wire.deltas(`${events}.delta`, { ...at, ...more }), (text, end) => {
    const annotations = annotationsOf(end);
    for (const [annotation_index, annotation] of annotations.entries())
      wire.send(`${events}.annotation.added`, { ...at, annotation_index, annotation });
    wire.send(`${events}.done`, { ...at, ...(refusal ? { refusal: text } : { text }), ...more });
    const done = part(text, annotations);
    content.push(done);
    item.content = content;
    wire.send("response.content_part.done", { ...at, part: done });
  });
}

export function reasoningItem(shown: ShownItem, wire: Wire): OpenItem {
  const { index, id, item } = shown;
  const at = { item_id: id, output_index: index, summary_index: 0 };
  const sendDelta = wire.deltas("response.reasoning_summary_text.delta", at);
  const begin = () =>
    wire.send("response.reasoning_summary_part.added", { ...at, part: { type: "summary_text", text: "" } });
  return pieceByPiece(
    shown,
    (piece, isFirst) => {
      if (isFirst) begin();
      sendDelta(piece);
    },
    (text, { signature }) => {
      item.encrypted_content = signature ? packSignature(signature, "responses") : null;
      if (text === "") return;
      const part = { type: "summary_text", text };
      item.summary = [part];
      wire.send("response.reasoning_summary_text.done", { ...at, text });
      wire.send("response.reasoning_summary_part.done", { ...at, part });
    },
  );
}

export function callItem(shown: ShownItem, wire: Wire): OpenItem {
  const { index, id, item } = shown;
  const at = { item_id: id, output_index: index };
  const freeform = item.type === "custom_tool_call";
  const events = freeform ? "response.custom_tool_call_input" : "response.function_call_arguments";
  const sendDelta = wire.deltas(`${events}.delta`, at);
  return pieceByPiece(shown, sendDelta, (written) => {
    const text = written === "" && !freeform ? "{}" : written;
    if (text !== written) sendDelta(text);
    const done = freeform ? { input: text } : { arguments: text };
    Object.assign(item, done);
    wire.send(`${events}.done`, freeform ? { ...at, ...done } : { ...at, name: item.name, ...done });
  });
}

/** An item that only this dialect has: it is complete from the beginning. */
export const foreignItem = (shown: ShownItem): OpenItem => ({ ...shown, delta() {}, endBlock() {} });
