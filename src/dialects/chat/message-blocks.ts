/** Reads the deltas of a message into blocks. */
import { isObject } from "../../lib/json";
import type { ReplyEmitter } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import { textIn } from "../hub/json";
import { objectsAmong } from "../hub/lists";
import type { Block, BlockEnd } from "../hub/reply";
import { CallQueue } from "./call-queue";
import { citationsIn } from "./citations";
import { thoughtIn } from "./thinking";

const blocks = {
  thinking: { kind: "thinking" },
  text: { kind: "text" },
  refusal: { kind: "text", refusal: true },
} as const satisfies Record<string, Block>;
type TextKey = keyof typeof blocks;

/**
 * Writes the deltas of a message as blocks in sequence: text that arrives during a call waits until the call ends, and
 * a signature goes to the thinking it belongs to.
 */
export class MessageReader {
  /** From the first call on. */
  #calls: CallQueue | undefined;
  #signature: string | undefined;
  /** Text that arrived during a call's input: it is written after the call. */
  #late: { key: TextKey; text: string }[] = [];
  #isRefused = false;
  /** Annotations of the open text. */
  #annotations: unknown[] = [];
  /** Length of the content: so far, and before the open text. */
  #length = 0;
  #before = 0;

  constructor(
    private readonly writer: ReplyEmitter,
    private readonly failCall: () => void,
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
      if (this.writer.openKey === "thinking") this.closeAll();
    }
    if (Array.isArray(delta.content)) this.addContent(delta.content);
    else this.addText("text", textIn(delta.content));
    if (Array.isArray(delta.annotations)) this.#annotations.push(...delta.annotations);
    const refusal = textIn(delta.refusal);
    this.#isRefused ||= refusal !== "";
    this.addText("refusal", refusal);
    if (Array.isArray(delta.tool_calls))
      for (const piece of delta.tool_calls) if (isObject(piece)) this.calls().add(piece);
  }

  /** Of Mistral's models that think: parts with texts and thoughts (recorded from its API, 2026-01). */
  private addContent(content: unknown[]): void {
    for (const { thinking, text } of objectsAmong(content)) {
      for (const thought of objectsAmong(thinking)) this.addText("thinking", textIn(thought.text));
      this.addText("text", textIn(text));
    }
  }

  end(): void {
    this.closeAll();
    this.writeSignature();
  }

  private calls(): CallQueue {
    const closeText = () => {
      this.close();
      this.writeSignature();
    };
    this.#calls ??= new CallQueue({ writer: this.writer, closeText, fail: this.failCall });
    return this.#calls;
  }

  private addText(key: TextKey, text: string): void {
    if (text === "") return;
    if (key === "text") this.#length += text.length;
    if (!this.#calls?.mayGoOn) {
      this.open(key);
      this.writer.delta(text);
      return;
    }
    const last = this.#late.at(-1);
    if (last?.key === key) last.text += text;
    else this.#late.push({ key, text });
  }

  private open(key: TextKey): void {
    if (this.writer.openKey === key) return;
    this.closeAll();
    if (key !== "thinking") this.writeSignature();
    this.writer.open(key, blocks[key]);
  }

  /** Closes the open block: thinking takes its signature, and a text its citations, if they have arrived. */
  private close(): void {
    const { openKey } = this.writer;
    const end: BlockEnd = {};
    if (openKey === "thinking" && this.#signature !== undefined) {
      end.signature = { dialect: "chat", value: this.#signature };
      this.#signature = undefined;
    }
    if (openKey === "text" && this.#annotations.length > 0)
      end.citations = citationsIn(this.#annotations.splice(0), this.#before);
    if (openKey === "text") this.#before = this.#length;
    this.writer.close(end);
  }

  /** Closes the open block and all calls, then writes the text that waited for them. */
  private closeAll(): void {
    this.close();
    this.#calls?.end();
    for (const { key, text } of this.#late.splice(0)) {
      this.writer.open(key, blocks[key]);
      this.writer.delta(text);
      this.close();
    }
  }

  /** Writes a remaining signature as an empty thinking block: it arrived late, or the thinking is not shown. */
  private writeSignature(): void {
    if (this.#signature === undefined) return;
    this.writer.open("thinking", blocks.thinking);
    this.close();
  }
}
