/** Brings an upstream's stream into the grammar of OpenAI's Chat Completions API. */
import { isObject, numberIn } from "../../lib/json";
import { jsonFrame, type SseFrame } from "../../lib/net/stream/sse";
import { cutReply, gaveUp } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import { textIn, without } from "../hub/json";
import { Normalizer } from "../hub/upstream-stream";
import { CallNumbers } from "./calls";
import { withoutFindings } from "./citations";
import { errorIn, invalidEvent } from "./errors";
import { withoutEmptyReason } from "./finish-reason";
import { hasText } from "./thinking";

/** Its events are of the types `chunk`, `error` (a chunk with an error) and `done`, for `[DONE]`. */
export class ChatNormalizer extends Normalizer {
  protected readonly invalid = invalidEvent;
  /** The calls of each of the replies (of `n`), by its index. */
  readonly #calls = new Map<unknown, CallNumbers>();
  /** The replies that have a role, by their index. */
  readonly #withRole = new Set<unknown>();
  /** The replies that have ended, by the upstream's index. */
  readonly #finished = new Set<unknown>();
  #hasContent = false;
  /** The pieces of calls cannot be told apart: from there on each chunk stays as it is. */
  #isOdd = false;
  #last: JsonObject = {};
  #id = "";

  protected readEvent(chunk: JsonObject, frame: SseFrame) {
    if (chunk.error) return this.emit("error", chunk, frame, true);
    const failure = errorIn(chunk);
    if (failure) return this.fail(failure);
    this.#id = textIn(chunk.id) || this.#id;
    this.#last = chunk;
    const choices = Array.isArray(chunk.choices) ? this.fixChoices(chunk.choices) : undefined;
    if (this.ended) return;
    if (this.#isOdd) this.emitOdd("chunk", chunk, frame);
    else this.emit("chunk", choices ? { ...chunk, choices } : chunk, frame);
  }

  /** The standard of event streams ignores an event with empty data, but clients parse it and fail. */
  protected readMark(data: "" | "[DONE]", frame: SseFrame) {
    if (data === "") return this.notes.addFixup("empty-data");
    const reason = this.#finished.size === 0 ? this.missingReason() : undefined;
    if (this.#finished.size === 0 && !reason) return this.fail(cutReply);
    if (reason && this.context.replies === 1) {
      this.notes.addFixup("finish-reason");
      const { usage: _, copilot_usage: __, ...chunk } = this.#last;
      const last = { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: reason }] };
      this.emit("chunk", last, jsonFrame(last));
    }
    this.emit("done", {}, frame, true);
  }

  protected override cut() {
    if (this.#finished.size < this.context.replies) return this.fail(cutReply);
    // The reply is complete, but some clients wait for `[DONE]`.
    this.notes.addFixup("done-event");
    this.emit("done", {}, { data: "[DONE]" }, true);
  }

  /** Claude may omit the finish reason. Undefined if the reply is not complete. */
  private missingReason(): "stop" | "tool_calls" | undefined {
    const calls = this.#calls.get(0);
    if (!this.#hasContent || calls?.areComplete === false) return undefined;
    return calls ? "tool_calls" : "stop";
  }

  /** Undefined if none had to change. */
  private fixChoices(choices: unknown[]): unknown[] | undefined {
    let fixed: unknown[] | undefined;
    let isGivenUp = false;
    for (let at = 0; at < choices.length; at++) {
      const choice = choices[at];
      if (!isObject(choice)) continue;
      const changed = this.fixChoice(choice);
      if (changed !== choice) {
        fixed ??= [...choices];
        fixed[at] = changed;
      }
      isGivenUp ||= choice.finish_reason === "error";
    }
    if (isGivenUp && !this.ended) this.fail(gaveUp);
    return fixed;
  }

  /** Claude's text and each of its calls come as separate choices, although one was asked for. */
  private fixChoice(choice: JsonObject): JsonObject {
    const index = numberIn(choice.index);
    if (textIn(choice.finish_reason) !== "") this.#finished.add(index);
    const isNumbered = index === 0 || (this.context.replies > 1 && index !== undefined);
    if (!isNumbered) this.notes.addFixup("split-choices");
    const ended = withoutEmptyReason(choice, this.notes);
    const fixed = isNumbered ? ended : { ...ended, index: 0 };
    if (!isObject(choice.delta)) return fixed;
    this.#hasContent ||= hasText(choice.delta);
    const said = withoutFindings(choice.delta, this.notes);
    const delta = this.withCalls(this.withRole(said, fixed.index), fixed.index);
    return delta === choice.delta ? fixed : { ...fixed, delta };
  }

  /** OpenAI's SDK rejects a reply without a role. */
  private withRole(delta: JsonObject, index: unknown): JsonObject {
    if (this.#withRole.has(index)) return delta;
    this.#withRole.add(index);
    if (textIn(delta.role) !== "") return delta;
    this.notes.addFixup("role");
    return { role: "assistant", ...without(delta, ["role"]) };
  }

  private withCalls(delta: JsonObject, index: unknown): JsonObject {
    if (!Array.isArray(delta.tool_calls) || delta.tool_calls.length === 0) return delta;
    this.#hasContent = true;
    const calls = this.#calls.get(index) ?? new CallNumbers(this.notes);
    this.#calls.set(index, calls);
    const pieces = this.#isOdd ? undefined : calls.fix(delta.tool_calls, this.#id);
    if (!pieces) this.#isOdd = true;
    return !pieces || pieces === delta.tool_calls ? delta : { ...delta, tool_calls: pieces };
  }
}
