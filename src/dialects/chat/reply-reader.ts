/** Reads chat completions, full or as a stream. */
import { isObject, numberIn } from "../../json";
import { jsonOf, type SseFrame } from "../../net/stream/sse";
import { collectInto, type Sink, type Stage } from "../../net/stream/stream";
import type { ReplyContext } from "../codec";
import { cutReply, replyWriter } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import type { ReplyError, ReplyEvent, StopReason, Usage } from "../hub/reply";
import { errorIn, gaveUp, invalidEvent, invalidReply } from "./errors";
import { messageWriter } from "./message-blocks";
import { decodeUsage } from "./usage";

const stopReasons: Record<string, StopReason> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool-call",
  function_call: "tool-call",
  content_filter: "refusal",
};

/** Reads chunks into events. `finish` waits for the end, because usage may follow the finish reason. */
export function decodeStream(context?: Pick<ReplyContext, "replies">): Stage<SseFrame, ReplyEvent> {
  return (next) => {
    const reply = replyReader(next, context?.replies);
    return {
      push(frame) {
        if (!frame.data || reply.ended) return;
        if (frame.data === "[DONE]") return reply.done();
        const chunk = jsonOf(frame);
        if (!isObject(chunk)) return reply.fail(invalidEvent);
        reply.chunk(chunk, "delta");
      },
      end() {
        reply.cut();
        next.end();
      },
    };
  };
}

/** A full reply is read like a stream of one chunk, with `message` in the place of `delta`. */
export function decodeReply(body: unknown): ReplyEvent[] {
  const events: ReplyEvent[] = [];
  const reply = replyReader(collectInto(events));
  if (!isObject(body) || (!body.error && (!Array.isArray(body.choices) || body.choices.length === 0)))
    reply.fail(invalidReply);
  else {
    reply.chunk(body, "message");
    reply.done();
  }
  return events;
}

/**
 * Reads chunks into a reply. All choices are one message, because Claude's text and calls come as separate choices.
 * @param replies The number of requested replies; only the first one is read.
 */
function replyReader(next: Sink<ReplyEvent>, replies = 1) {
  const writer = replyWriter(next);
  const message = messageWriter(writer, () => fail(invalidEvent));
  const finished = new Set<number | undefined>();
  let id = "";
  let model = "";
  let finishReason: string | undefined;
  let usage: Partial<Usage> | undefined;

  const chunk = (json: JsonObject, key: "delta" | "message") => {
    const failure = errorIn(json);
    if (failure) return fail(failure);
    if (typeof json.id === "string" && json.id !== "") id = json.id;
    if (typeof json.model === "string" && json.model !== "") model = json.model;
    if (isObject(json.usage) || isObject(json.copilot_usage)) usage = { ...usage, ...decodeUsage(json) };
    if (!Array.isArray(json.choices)) return;
    for (const choice of json.choices) {
      if (!isObject(choice)) continue;
      writer.start(id, model);
      const index = numberIn(choice.index);
      if (typeof choice.finish_reason === "string") finished.add(index);
      if (choice.finish_reason === "error") return fail(gaveUp);
      if (replies > 1 && index !== undefined && index > 0) continue;
      const delta = choice[key];
      if (isObject(delta)) message.write(delta, key === "message", id);
      const reason = choice.finish_reason;
      if (typeof reason === "string" && finishReason !== "tool_calls") finishReason = reason;
      if (writer.ended) return;
    }
  };

  const writeUsage = () => {
    writer.close();
    if (usage && Object.keys(usage).length > 0) writer.usage(usage);
    usage = undefined;
  };

  const fail = ({ code, message }: Pick<ReplyError, "code" | "message">) => {
    if (writer.ended) return;
    writeUsage();
    writer.error(code, message);
  };

  const finish = (raw?: string) => {
    message.end();
    if (writer.ended) return;
    writeUsage();
    writer.finish(reasonOf(raw ?? "stop", message.hasCalls, message.isRefused), raw);
  };

  return {
    chunk,
    fail,
    /** The upstream sent `[DONE]`. */
    done() {
      // Claude may omit the finish reason. The reply counts as complete if the input of its calls is complete.
      if (finishReason !== undefined || message.isComplete) finish(finishReason);
      else fail(cutReply);
    },
    /** The upstream closed the connection: a normal end if each reply has a finish reason. */
    cut() {
      if (finishReason === undefined || (replies > 1 && finished.size < replies)) fail(cutReply);
      else this.done();
    },
    get ended() {
      return writer.ended;
    },
  };
}

/** Some models finish with `stop` although they call a tool or refuse. */
function reasonOf(raw: string, called: boolean, refused: boolean): StopReason {
  const reason = Object.hasOwn(stopReasons, raw) ? stopReasons[raw] : undefined;
  if (reason && reason !== "stop") return reason;
  return called ? "tool-call" : refused ? "refusal" : "stop";
}
