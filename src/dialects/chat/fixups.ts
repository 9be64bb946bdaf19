/** Chat completions passed through, with the few edits that clients or the upstream need. */
import { isObject, numberIn } from "../../lib/json";
import { commentFrame, type SseFrame } from "../../lib/net/stream/sse";
import type { ReplyContext } from "../codec";
import type { FramedBeat } from "../hub/beat";
import type { JsonObject } from "../hub/conversation";
import { textIn } from "../hub/json";
import { isSameList } from "../hub/lists";
import type { Notes } from "../hub/notes";
import type { ReplyFailure } from "../hub/reply";
import { frameOf, PassedStream, withModel } from "../hub/upstream-stream";
import { withOwnIds } from "./calls";
import { withoutFindings } from "./citations";
import { errorFrame } from "./errors";

// ── Request ──

export const contextOf = ({ model, stream_options: options, n }: JsonObject): ReplyContext => ({
  model: textIn(model),
  usage: isObject(options) && options.include_usage === true,
  replies: Math.max(1, numberIn(n) ?? 1),
});

// ── Full reply ──

/** The same object, or a copy with fixups. */
export function fixFull(body: JsonObject, context: ReplyContext, notes: Notes): JsonObject {
  if (!Array.isArray(body.choices)) return body;
  let fixed = body;
  if (body.object !== "chat.completion") {
    notes.addFixup("object-field");
    fixed = { ...fixed, object: "chat.completion" };
  }
  if (!("created" in body)) {
    notes.addFixup("created-field");
    fixed = { ...fixed, created: now() };
  }
  let choices: unknown[] = body.choices;
  if (context.replies === 1 && choices.length > 1) {
    notes.addFixup("split-choices");
    choices = [merged(choices.filter(isObject))];
  }
  choices = choices.map((choice, at) => (isObject(choice) ? fixFullChoice(choice, at, body.id, notes) : choice));
  if (!isSameList(choices, body.choices)) fixed = { ...fixed, choices };
  return withModel(fixed, context, notes);
}

/** Claude's text and each of its calls come as separate choices, although one was asked for. */
function merged(choices: JsonObject[]): JsonObject {
  const messages = choices.map(({ message }) => message).filter(isObject);
  const join = (key: string) =>
    messages.map((message) => (typeof message[key] === "string" ? message[key] : "")).join("");
  const calls = messages.flatMap(({ tool_calls }) => (Array.isArray(tool_calls) ? tool_calls : []));
  const message: JsonObject = Object.assign({}, ...messages.toReversed(), { content: join("content") || null });
  for (const key of ["refusal", "reasoning_text"]) if (key in message) message[key] = join(key) || null;
  if (calls.length > 0) message.tool_calls = calls;
  const reasons = choices.map((choice) => choice.finish_reason).filter((reason) => textIn(reason) !== "");
  const reason = reasons.includes("tool_calls") ? "tool_calls" : reasons.at(-1);
  return { ...choices[0], index: 0, message, ...(reason === undefined ? {} : { finish_reason: reason }) };
}

function fixFullChoice(choice: JsonObject, at: number, replyId: unknown, notes: Notes): JsonObject {
  let fixed = choice;
  if (numberIn(choice.index) === undefined) {
    notes.addFixup("choice-index");
    fixed = { ...fixed, index: at };
  }
  if (isObject(choice.message)) {
    const message = fixMessage(choice.message, replyId, notes);
    if (message !== choice.message) fixed = { ...fixed, message };
    if (choice.finish_reason == null || choice.finish_reason === "") {
      notes.addFixup("finish-reason");
      fixed = { ...fixed, finish_reason: Array.isArray(choice.message.tool_calls) ? "tool_calls" : "stop" };
    }
  }
  return fixed;
}

function fixMessage(message: JsonObject, replyId: unknown, notes: Notes): JsonObject {
  let fixed = withoutFindings(message, notes);
  if (textIn(message.role) === "") {
    notes.addFixup("role");
    fixed = { ...fixed, role: "assistant" };
  }
  if (!("content" in message)) {
    notes.addFixup("content-key");
    fixed = { ...fixed, content: null };
  }
  const { tool_calls: calls } = message;
  const tool_calls = Array.isArray(calls) ? withOwnIds(calls, replyId) : calls;
  if (tool_calls !== calls) {
    notes.addFixup("tool-id");
    fixed = { ...fixed, tool_calls };
  }
  if (message.padding === undefined) return fixed;
  notes.addFixup("padding");
  const { padding: _, ...others } = fixed;
  return others;
}

// ── Stream ──

/** A stream on its way to a chat client. */
export class PassedChat extends PassedStream {
  #created: number | undefined;

  protected pass({ type, json, frame }: FramedBeat) {
    if (type !== "chunk") return this.next.push(this.asEvent(frame));
    const unwanted = unwantedIn(json, this.context.usage);
    if (unwanted) this.notes.addFixup(unwanted);
    else this.next.push(this.asEvent(frameOf(frame, this.whole(json))));
  }

  protected writeError(error: ReplyFailure): void {
    this.next.push(errorFrame(error));
  }

  protected writeBeat(): void {
    this.next.push(commentFrame("keep-alive"));
  }

  /** The chunk with the members that strict clients require, and the model's requested name; the same object if it has them. */
  private whole(chunk: JsonObject): JsonObject {
    let set: JsonObject | undefined;
    if (!Array.isArray(chunk.choices)) {
      this.notes.addFixup("choices-field");
      set = { choices: [] };
    }
    if (!("created" in chunk)) {
      this.notes.addFixup("created-field");
      set ??= {};
      set.created = this.#created ??= now();
    }
    // The first chunk of Azure has "".
    if (chunk.object !== "chat.completion.chunk") {
      this.notes.addFixup("object-field");
      set ??= {};
      set.object = "chat.completion.chunk";
    }
    const { model } = this.context;
    if (typeof chunk.model === "string" && chunk.model !== "" && chunk.model !== model) {
      this.notes.addFixup("model-name");
      set ??= {};
      set.model = model;
    }
    return set ? { ...chunk, ...set } : chunk;
  }

  /** Copilot may end a stream with its error as bare JSON; clients read it only after `data:`. */
  private asEvent(frame: SseFrame): SseFrame {
    if (frame.bytes?.[0] !== 0x7b) return frame;
    this.notes.addFixup("data-field");
    return { data: frame.data };
  }
}

/** The fixup that removes a chunk without text from the stream; undefined if it may pass. */
function unwantedIn({ choices, usage, copilot_usage }: JsonObject, wantsUsage: boolean): string | undefined {
  if (!Array.isArray(choices) || choices.length > 0) return undefined;
  if (isObject(usage)) return wantsUsage ? undefined : "usage-chunk";
  // OpenAI's SDK takes the `usage: null` of such a chunk as the final value.
  return isObject(copilot_usage) ? "bill-chunk" : undefined;
}

/** Unix seconds. */
export const now = () => Math.floor(Date.now() / 1000);
