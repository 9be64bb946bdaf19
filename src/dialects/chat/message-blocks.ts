/** Reads the deltas of a message into blocks. */
import { isObject } from "../../lib/json";
import type { Lane, ReplyEmitter } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import { textIn } from "../hub/json";
import { objectsAmong } from "../hub/lists";
import type { Block, BlockEnd } from "../hub/reply";
import { callPieceIn } from "./calls";
import { citationsIn } from "./citations";
import { ObjectEnd } from "./object-end";
import { thoughtIn } from "./thinking";

const blocks = {
  thinking: { kind: "thinking" },
  text: { kind: "text" },
  refusal: { kind: "text", refusal: true },
} as const satisfies Record<string, Block>;
type TextKey = keyof typeof blocks;

interface Call {
  lane: Lane;
  id: string;
  name: string;
  input: string;
  inputEnd: ObjectEnd;
  isFreeform: boolean;
}

/** The wire does not say where a block ends: text ends with what comes next, and a call when something waits for its end. */
export class MessageReader {
  #calls: Map<unknown, Call> | undefined;
  /** The calls that have not ended. */
  #open: Set<Call> | undefined;
  #text: { key: TextKey; lane: Lane } | undefined;
  #signature: string | undefined;
  #isRefused = false;
  /** Annotations of the open text. */
  #annotations: unknown[] | undefined;
  /** Length of the content: so far, and before the open text. */
  #length = 0;
  #before = 0;

  constructor(
    private readonly writer: ReplyEmitter,
    private readonly cannotFollow: () => void,
  ) {}

  get hasCalls(): boolean {
    return this.#calls !== undefined;
  }

  get isRefused(): boolean {
    return this.#isRefused;
  }

  read(delta: JsonObject): void {
    this.addText("thinking", thoughtIn(delta));
    const signature = textIn(delta.reasoning_opaque);
    if (signature !== "") {
      this.#signature = signature;
      if (this.#text?.key === "thinking") this.endText();
    }
    if (Array.isArray(delta.content)) this.addContent(delta.content);
    else this.addText("text", textIn(delta.content));
    if (Array.isArray(delta.annotations) && delta.annotations.length > 0) {
      this.#annotations ??= [];
      for (const annotation of delta.annotations) this.#annotations.push(annotation);
    }
    const refusal = textIn(delta.refusal);
    this.#isRefused ||= refusal !== "";
    this.addText("refusal", refusal);
    if (Array.isArray(delta.tool_calls))
      for (const piece of delta.tool_calls) if (isObject(piece)) this.addPiece(piece);
  }

  /** Of Mistral's models that think: parts with texts and thoughts (recorded from its API, 2026-01). */
  private addContent(content: unknown[]): void {
    for (const { thinking, text } of objectsAmong(content)) {
      for (const thought of objectsAmong(thinking)) this.addText("thinking", textIn(thought.text));
      this.addText("text", textIn(text));
    }
  }

  /** Characters of the open text came and were not read: citations count them. */
  heard(length: number): void {
    if (this.#text?.key === "text") this.#length += length;
  }

  end(): void {
    this.endText();
    if (this.#open) for (const call of this.#open) this.endCall(call);
    this.writeSignature();
  }

  private addText(key: TextKey, text: string): void {
    if (text === "") return;
    if (this.#text?.key !== key) {
      this.endText();
      if (key !== "thinking") this.writeSignature();
      this.#text = { key, lane: this.writer.lane() };
      this.#text.lane.open(blocks[key]);
      this.endCalls();
    }
    if (key === "text") this.#length += text.length;
    this.#text.lane.delta(text);
  }

  /** Ends the open text: thinking takes its signature, and a text its citations, if they have arrived. */
  private endText(): void {
    if (!this.#text) return;
    const { key, lane } = this.#text;
    this.#text = undefined;
    const end: BlockEnd = {};
    if (key === "thinking" && this.#signature !== undefined) {
      end.signature = { dialect: "chat", value: this.#signature };
      this.#signature = undefined;
    }
    if (key === "text" && this.#annotations) {
      end.citations = citationsIn(this.#annotations, this.#before);
      this.#annotations = undefined;
    }
    if (key === "text") this.#before = this.#length;
    lane.end(end);
  }

  /** Writes a remaining signature as an empty thinking block: it arrived late, or the thinking is not shown. */
  private writeSignature(): void {
    if (this.#signature === undefined) return;
    this.#text = { key: "thinking", lane: this.writer.lane() };
    this.#text.lane.open(blocks.thinking);
    this.endText();
  }

  /** @param piece With its call's index, which no other call has. */
  private addPiece(piece: JsonObject): void {
    if (this.writer.ended) return;
    const { id, name, input, index } = callPieceIn(piece);
    const call = this.#calls?.get(index) ?? this.beginCall(index);
    if (call.lane.hasEnded) {
      // Appending it to another call would produce wrong JSON.
      if (input.trim() !== "") this.cannotFollow();
      return;
    }
    call.id ||= id;
    call.name ||= name;
    call.isFreeform ||= isObject(piece.custom);
    call.input += input;
    call.inputEnd.add(input);
    if (call.lane.isOpen) call.lane.delta(input);
    else if (call.name !== "" && (call.id !== "" || call.input !== "")) openCall(call);
    this.endCalls();
  }

  private beginCall(index: unknown): Call {
    this.endText();
    this.writeSignature();
    const inputEnd = new ObjectEnd();
    const call: Call = { lane: this.writer.lane(), id: "", name: "", input: "", inputEnd, isFreeform: false };
    this.#calls ??= new Map();
    this.#calls.set(index, call);
    this.#open ??= new Set();
    this.#open.add(call);
    return call;
  }

  /** Ends the calls whose input is complete, as far as something waits for their end. */
  private endCalls(): void {
    if (!this.#open) return;
    for (const call of this.#open) {
      // A freeform call is complete only when the upstream ends it.
      if (!call.lane.next || call.isFreeform || !call.inputEnd.isReached(call.input)) return;
      this.endCall(call);
    }
  }

  private endCall(call: Call): void {
    const { lane, id, name, input } = call;
    this.#open?.delete(call);
    if (!lane.isOpen && name !== "") openCall(call);
    else if (!lane.isOpen && (id !== "" || input !== "")) this.cannotFollow();
    lane.end();
  }
}

function openCall({ lane, id, name, input, isFreeform }: Call): void {
  lane.open({ kind: "tool-call", id, name, ...(isFreeform ? { freeform: true } : {}) });
  lane.delta(input);
}
