/** Reads the deltas of a message into blocks. */
import { isObject } from "../../json";
import type { ReplyWriter } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import type { Block } from "../hub/reply";
import { callQueue } from "./call-queue";
import { thoughtIn } from "./thinking";

/**
 * Writes the deltas of a message as blocks in sequence: text that arrives during a call waits until the call ends, and
 * a signature goes to the thinking it belongs to.
 */
export function messageWriter(writer: ReplyWriter, failCall: () => void) {
  let opaque: string | undefined;
  /** Text that arrived during a call's input: it is written after the call. */
  let late: { key: string; block: Block; text: string }[] = [];
  let hasContent = false;
  let isRefused = false;

  const writeText = (key: string, block: Block, text: string) => {
    if (!calls.mayGoOn) {
      open(key, block);
      writer.delta(text);
      return;
    }
    const last = late.at(-1);
    if (last?.key === key) last.text += text;
    else late.push({ key, block, text });
  };

  const open = (key: string, block: Block) => {
    if (writer.openKey === key) return;
    closeAll();
    if (block.kind !== "thinking") writeSignature();
    hasContent = true;
    writer.open(key, block);
  };

  /** Closes the open text or thinking block; thinking takes its signature, if it has arrived. */
  const close = () => {
    if (writer.openKey === "thinking" && opaque !== undefined) {
      writer.close({ signature: { dialect: "chat", value: opaque } });
      opaque = undefined;
    } else writer.close();
  };

  /** Closes the open block and all calls, then writes the text that waited for them. */
  const closeAll = () => {
    close();
    calls.end();
    const waited = late;
    late = [];
    for (const { key, block, text } of waited) {
      writer.open(key, block);
      writer.delta(text);
      close();
    }
  };

  /** Writes a remaining signature as an empty thinking block: it arrived late, or the thinking is not shown. */
  const writeSignature = () => {
    if (opaque === undefined) return;
    writer.open("thinking", { kind: "thinking" });
    close();
  };

  const calls = callQueue({
    writer,
    closeText() {
      close();
      writeSignature();
      hasContent = true;
    },
    fail: failCall,
  });

  return {
    /** @param isFull Whether it is the message of a full reply, not a delta. */
    write(delta: JsonObject, isFull: boolean, replyId: string) {
      const thought = thoughtIn(delta);
      if (thought !== "") writeText("thinking", { kind: "thinking" }, thought);
      if (typeof delta.reasoning_opaque === "string" && delta.reasoning_opaque !== "") {
        opaque = delta.reasoning_opaque;
        if (writer.openKey === "thinking") closeAll();
      }
      if (typeof delta.content === "string" && delta.content !== "") writeText("text", { kind: "text" }, delta.content);
      if (typeof delta.refusal === "string" && delta.refusal !== "") {
        isRefused = true;
        writeText("refusal", { kind: "text", refusal: true }, delta.refusal);
      }
      if (Array.isArray(delta.tool_calls)) for (const piece of delta.tool_calls) calls.piece(piece, isFull, replyId);
      else if (isObject(delta.function_call)) calls.piece({ index: 0, function: delta.function_call }, false, replyId);
    },
    end() {
      closeAll();
      writeSignature();
    },
    get hasCalls() {
      return calls.count > 0;
    },
    get isRefused() {
      return isRefused;
    },
    /** Whether it has content, and no call with incomplete input. */
    get isComplete() {
      return (hasContent || calls.count > 0) && calls.isWhole;
    },
  };
}
