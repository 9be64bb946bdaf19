/**
 * Writes the items of a streamed response, one after the other. The pieces of a text are joined at its end: one string
 * that grows with each delta costs more than the rest of the delta's work.
 */
import type { JsonObject } from "../hub/conversation";
import type { BlockEnd } from "../hub/reply";
import { packSignature } from "../hub/signature";
import { urlAnnotations } from "./server-tools";

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

/** Writes one content part of a message. */
export function textPart({ index, id, item }: ShownItem, refusal: boolean, wire: Wire): OpenItem {
  const content: unknown[] = Array.isArray(item.content) ? item.content : [];
  const at = { item_id: id, output_index: index, content_index: content.length };
  const [events, more] = refusal ? ["response.refusal", {}] : ["response.output_text", { logprobs: [] }];
  const part = (text: string, annotations: unknown[]): JsonObject =>
    refusal ? { type: "refusal", refusal: text } : { type: "output_text", text, annotations, ...more };
  const sendDelta = wire.deltas(`${events}.delta`, { ...at, ...more });
  const pieces: string[] = [];
  wire.send("response.content_part.added", { ...at, part: part("", []) });
  return {
    index,
    id,
    item,
    delta(piece) {
      pieces.push(piece);
      sendDelta(piece);
    },
    endBlock(end) {
      const text = pieces.join("");
      const annotations = urlAnnotations(end);
      for (const [annotation_index, annotation] of annotations.entries())
        wire.send(`${events}.annotation.added`, { ...at, annotation_index, annotation });
      wire.send(`${events}.done`, { ...at, ...(refusal ? { refusal: text } : { text }), ...more });
      const done = part(text, annotations);
      item.content = [...content, done];
      wire.send("response.content_part.done", { ...at, part: done });
    },
  };
}

export function reasoningItem({ index, id, item }: ShownItem, wire: Wire): OpenItem {
  const at = { item_id: id, output_index: index, summary_index: 0 };
  const sendDelta = wire.deltas("response.reasoning_summary_text.delta", at);
  const pieces: string[] = [];
  return {
    index,
    id,
    item,
    delta(piece) {
      if (pieces.length === 0)
        wire.send("response.reasoning_summary_part.added", { ...at, part: { type: "summary_text", text: "" } });
      pieces.push(piece);
      sendDelta(piece);
    },
    endBlock({ signature }) {
      item.encrypted_content = signature ? packSignature(signature, "responses") : null;
      if (pieces.length === 0) return;
      const text = pieces.join("");
      const part = { type: "summary_text", text };
      item.summary = [part];
      wire.send("response.reasoning_summary_text.done", { ...at, text });
      wire.send("response.reasoning_summary_part.done", { ...at, part });
    },
  };
}

export function callItem({ index, id, item }: ShownItem, wire: Wire): OpenItem {
  const at = { item_id: id, output_index: index };
  const freeform = item.type === "custom_tool_call";
  const events = freeform ? "response.custom_tool_call_input" : "response.function_call_arguments";
  const sendDelta = wire.deltas(`${events}.delta`, at);
  const pieces: string[] = [];
  const delta = (piece: string) => {
    pieces.push(piece);
    sendDelta(piece);
  };
  return {
    index,
    id,
    item,
    delta,
    endBlock() {
      if (pieces.length === 0 && !freeform) delta("{}");
      const text = pieces.join("");
      const done = freeform ? { input: text } : { arguments: text };
      Object.assign(item, done);
      wire.send(`${events}.done`, freeform ? { ...at, ...done } : { ...at, name: item.name, ...done });
    },
  };
}

/** An item that only this dialect has: it is complete from the beginning. */
export const foreignItem = (shown: ShownItem): OpenItem => ({ ...shown, delta() {}, endBlock() {} });
