/** Reads chat completions, full or as a stream. */
import { isObject, numberIn } from "../../json";
import { collectInto } from "../../net/stream/stream";
import { gaveUp } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import { textIn } from "../hub/json";
import { objectsAmong } from "../hub/lists";
import type { ReplyEvent, ReplyFailure, StopReason, Usage } from "../hub/reply";
import { EventReader } from "../hub/upstream-stream";
import { inventedCallId } from "./calls";
import { errorIn, invalidEvent, invalidReply } from "./errors";
import { MessageReader } from "./message-blocks";
import { decodeUsage } from "./usage";

const stopReasons: Record<string, StopReason> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool-call",
  function_call: "tool-call",
  content_filter: "refusal",
};

/** A full reply is read like a stream of one chunk, with `message` in the place of `delta`. */
export function decodeReply(body: unknown): ReplyEvent[] {
  const events: ReplyEvent[] = [];
  const reply = new ChunkReader(collectInto(events));
  const failure = isObject(body) ? errorIn(body) : invalidReply;
  if (failure) reply.fail(failure);
  else if (isObject(body) && Array.isArray(body.choices) && body.choices.length > 0) {
    reply.read("chunk", body, asDeltas(body.choices, body.id));
    reply.read("done");
  } else reply.fail(invalidReply);
  return events;
}

/** All choices are one message, because Claude's text and calls come as separate choices. */
function asDeltas(choices: unknown[], replyId: unknown): JsonObject[] {
  let count = 0;
  const numbered = (call: unknown) => {
    const index = count++;
    return isObject(call) ? { ...call, index, id: call.id || inventedCallId(replyId, index) } : call;
  };
  return objectsAmong(choices).map(({ message, finish_reason }) => {
    if (!isObject(message) || !Array.isArray(message.tool_calls)) return { finish_reason, delta: message };
    return { finish_reason, delta: { ...message, tool_calls: message.tool_calls.map(numbered) } };
  });
}

/** Reads normalized chunks: of several replies only the first one. `finish` waits for the end, because usage may follow the finish reason. */
export class ChunkReader extends EventReader {
  readonly #message = new MessageReader(this.writer, () => this.fail(invalidEvent));
  #id = "";
  #model = "";
  #finishReason: string | undefined;
  #usage: Partial<Usage> = {};

  /** @param choices Those of a full reply as a chunk has them. */
  read(type: string, chunk: JsonObject = {}, choices = chunk.choices) {
    if (type === "done") return this.finish();
    if (type === "error") return this.fail(errorIn(chunk) ?? gaveUp);
    this.#id = textIn(chunk.id) || this.#id;
    this.#model = textIn(chunk.model) || this.#model;
    if (isObject(chunk.usage) || isObject(chunk.copilot_usage)) Object.assign(this.#usage, decodeUsage(chunk));
    for (const choice of Array.isArray(choices) ? choices : []) {
      if (!isObject(choice) || this.ended) continue;
      this.writer.start(this.#id, this.#model);
      if ((numberIn(choice.index) ?? 0) > 0) continue;
      const { delta, finish_reason: reason } = choice;
      if (reason === "error") return this.fail(gaveUp);
      if (isObject(delta)) this.#message.read(delta);
      if (typeof reason === "string" && this.#finishReason !== "tool_calls") this.#finishReason = reason;
    }
  }

  override fail(error: ReplyFailure) {
    if (this.ended) return;
    this.writeUsage();
    super.fail(error);
  }

  private finish() {
    this.#message.end();
    if (this.ended) return;
    this.writeUsage();
    const raw = this.#finishReason;
    this.writer.finish(reasonOf(raw ?? "stop", this.#message), raw);
  }

  private writeUsage() {
    this.writer.close();
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
