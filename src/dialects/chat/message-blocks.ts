/** Reads the deltas of a message into blocks. */
import { isObject } from "../../json";
import type { ReplyEmitter } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import { textIn } from "../hub/json";
import type { Block } from "../hub/reply";
import { CallQueue } from "./call-queue";
import { thoughtIn } from "./thinking";

/**
 * Writes the deltas of a message as blocks in sequence: text that arrives during a call waits until the call ends, and
 * a signature goes to the thinking it belongs to.
 */
export class MessageReader {
  readonly #calls: CallQueue;
  #signature: string | undefined;
  /** Text that arrived during a call's input: it is written after the call. */
  #late: { key: string; block: Block; text: string }[] = [];
  #isRefused = false;

  constructor(
    private readonly writer: ReplyEmitter,
    failCall: () => void,
  ) {
    const closeText = () => {
      this.close();
      this.writeSignature();
    };
    this.#calls = new CallQueue({ writer, closeText, fail: failCall });
  }

  get hasCalls(): boolean {
    return this.#calls.count > 0;
  }

  get isRefused(): boolean {
    return this.#isRefused;
  }

  read(delta: JsonObject): void {
    this.addText("thinking", { kind: "thinking" }, thoughtIn(delta));
    const signature = textIn(delta.reasoning_opaque);
    if (signature !== "") {
      this.#signature = signature;
      if (this.writer.openKey === "thinking") this.closeAll();
    }
    this.addText("text", { kind: "text" }, textIn(delta.content));
    const refusal = textIn(delta.refusal);
    this.#isRefused ||= refusal !== "";
    this.addText("refusal", { kind: "text", refusal: true }, refusal);
    if (Array.isArray(delta.tool_calls))
      for (const piece of delta.tool_calls) if (isObject(piece)) this.#calls.add(piece);
  }

  end(): void {
    this.closeAll();
    this.writeSignature();
  }

  private addText(key: string, block: Block, text: string): void {
    if (text === "") return;
    const last = this.#late.at(-1);
    if (!this.#calls.mayGoOn) {
      this.open(key, block);
      this.writer.delta(text);
    } else if (last?.key === key) last.text += text;
    else this.#late.push({ key, block, text });
  }

  private open(key: string, block: Block): void {
    if (this.writer.openKey === key) return;
    this.closeAll();
    if (block.kind !== "thinking") this.writeSignature();
    this.writer.open(key, block);
  }

  /** Closes the open text or thinking block; thinking takes its signature, if it has arrived. */
  private close(): void {
    const hasSignature = this.writer.openKey === "thinking" && this.#signature !== undefined;
    this.writer.close(hasSignature ? { signature: { dialect: "chat", value: this.#signature! } } : {});
    if (hasSignature) this.#signature = undefined;
  }

  /** Closes the open block and all calls, then writes the text that waited for them. */
  private closeAll(): void {
    this.close();
    this.#calls.end();
    for (const { key, block, text } of this.#late.splice(0)) {
      this.writer.open(key, block);
      this.writer.delta(text);
      this.close();
    }
  }

  /** Writes a remaining signature as an empty thinking block: it arrived late, or the thinking is not shown. */
  private writeSignature(): void {
    if (this.#signature === undefined) return;
    this.writer.open("thinking", { kind: "thinking" });
    this.close();
  }
}
