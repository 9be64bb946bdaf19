/** Reads chat completions, full or as a stream. */
import { isObject, numberIn } from "../../lib/json";
import { gaveUp } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import { textIn } from "../hub/json";
import { unnoted } from "../hub/notes";
import type { StopReason, Usage } from "../hub/reply";
import { EventReader } from "../hub/upstream-stream";
import { inventedCallId, withCalls } from "./calls";
import { errorIn, invalidEvent, invalidReply } from "./errors";
import { withoutEmptyReason } from "./finish-reason";
import { MessageReader } from "./message-blocks";
import { decodeUsage } from "./usage";

const stopReasons: Record<string, StopReason> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool-call",
  function_call: "tool-call",
  content_filter: "refusal",
};

/** All choices are one message, because Claude's text and calls come as separate choices. */
function asDeltas(choices: unknown[], replyId: unknown): JsonObject[] {
  let count = 0;
  const deltas: JsonObject[] = [];
  for (const choice of choices) {
    if (!isObject(choice)) continue;
    const { message, finish_reason } = withoutEmptyReason(choice, unnoted);
    const calls = isObject(message) && Array.isArray(message.tool_calls) ? message.tool_calls : undefined;
    const delta = calls ? { ...(message as JsonObject), tool_calls: numbered(calls, count, replyId) } : message;
    count += calls?.length ?? 0;
    deltas.push({ finish_reason, delta });
  }
  return deltas;
}

/** @param count How many came before them. */
const numbered = (calls: unknown[], count: number, replyId: unknown) =>
  calls.map((call, at) =>
    isObject(call) ? { ...call, index: count + at, id: call.id || inventedCallId(replyId, count + at) } : call,
  );

/** Reads normalized chunks: of several replies only the first one. `finish` waits for the end, because usage may follow the finish reason. */
export class ChunkReader extends EventReader {
  protected readonly invalid = invalidEvent;
  readonly #message = new MessageReader(this.writer, () => this.cannotFollow());
  #id = "";
  #model = "";
  #finishReason: string | undefined;
  #usage: Partial<Usage> = {};

  /** A full reply is read like a stream of one chunk, with `message` in the place of `delta`. */
  protected readReply(body: unknown) {
    const failure = isObject(body) ? errorIn(body) : invalidReply;
    if (failure) return this.failed(failure);
    if (!isObject(body) || !Array.isArray(body.choices)) return this.failed(invalidReply);
    if (body.choices.length === 0) this.cannotFollow(invalidReply);
    this.read("chunk", body, asDeltas(body.choices, body.id));
    this.read("done");
  }

  /** @param choices Those of a full reply as a chunk has them. */
  protected read(type: string, chunk: JsonObject = {}, choices = chunk.choices) {
    if (type === "done") return this.finish();
    if (type === "error") return this.failed(errorIn(chunk) ?? gaveUp);
    this.#id = textIn(chunk.id) || this.#id;
    this.#model = textIn(chunk.model) || this.#model;
    if (isObject(chunk.usage) || isObject(chunk.copilot_usage)) Object.assign(this.#usage, decodeUsage(chunk));
    for (const choice of Array.isArray(choices) ? choices : []) {
      if (!isObject(choice) || this.ended) continue;
      this.writer.start(this.#id, this.#model);
      if ((numberIn(choice.index) ?? 0) > 0) continue;
      const { delta, finish_reason: reason } = choice;
      if (reason === "error") return this.failed(gaveUp);
      if (isObject(delta)) this.#message.read(withCalls(delta, this.#id));
      if (typeof reason === "string" && this.#finishReason !== "tool_calls") this.#finishReason = reason;
    }
  }

  override heard(length: number): void {
    this.#message.heard(length);
  }

  protected override settle() {
    this.writer.leaveOutBlocks();
    this.writeUsage();
  }

  private finish() {
    this.#message.end();
    this.writeUsage();
    const raw = this.#finishReason;
    this.writer.finish(reasonOf(raw ?? "stop", this.#message), raw);
  }

  private writeUsage() {
    if (Object.keys(this.#usage).length > 0) this.writer.usage(this.#usage);
    this.#usage = {};
  }
}

/** Some models finish with `stop` although they call a tool or refuse. */
function reasonOf(raw: string, { hasCalls, isRefused }: MessageReader): StopReason {
  const reason = Object.hasOwn(stopReasons, raw) ? stopReasons[raw] : undefined;
  if (reason && reason !== "stop") return reason;
  return hasCalls ? "tool-call" : isRefused ? "refusal" : "stop";
}
