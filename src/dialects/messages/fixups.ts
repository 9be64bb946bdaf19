/** Messages passed through: the edits that a request or a reply may need. */
import { isObject } from "../../json";
import { jsonFrame, jsonOf, type SseFrame } from "../../net/stream/sse";
import type { Sink } from "../../net/stream/stream";
import type { ReplyContext, RequestFixup, TranslationOptions } from "../codec";
import type { JsonObject } from "../hub/conversation";
import { omit, textIn } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import type { ReplyEvent, ReplyFailure } from "../hub/reply";
import { asFixup } from "../hub/rules";
import { frameOf, PassedStream, type ReportFixup, type WireEvent } from "../hub/upstream-stream";
import { errorFrame } from "./errors";
import { pingFrame } from "./reply-writer";
import { applyProviderRules, applyRules } from "./rules";

export const replyContext = (body: JsonObject): ReplyContext => ({
  model: textIn(body.model),
  usage: true,
  replies: 1,
});

export function fixRequest(
  body: JsonObject,
  model: ModelFacts,
  options: TranslationOptions = { webSearch: true },
): RequestFixup {
  return asFixup(body, (model.provider ? applyProviderRules : applyRules)(body, model, options));
}

export function fixReply(body: JsonObject, context: ReplyContext): { body: JsonObject; fixups: string[] } {
  const fixups = new Set<string>();
  const fixed = fixMessage(body, context, (name) => void fixups.add(name));
  return { body: fixed, fixups: [...fixups] };
}

/** A stream on its way to a Messages client. */
export class PassedMessage extends PassedStream {
  #open: { index: unknown; isText: boolean } | undefined;

  constructor(
    next: Sink<SseFrame>,
    report: ReportFixup,
    private readonly context: ReplyContext,
  ) {
    super(next, report);
  }

  protected pass({ type, json, frame }: WireEvent): void {
    if (type === "content_block_start") this.#open = { index: json.index, isText: isText(json.content_block) };
    if (type === "content_block_stop") this.#open = undefined;
    if (frame.event !== type) this.report("event-name");
    this.next.push(frameOf(frame, fixEvent(json, this.context, this.report), type));
  }

  protected writeError(error: ReplyFailure): void {
    // An incomplete call must not look complete.
    if (this.#open?.isText)
      this.next.push(jsonFrame({ type: "content_block_stop", index: this.#open.index }, "content_block_stop"));
    this.next.push(errorFrame(error));
  }

  protected writeBeat(): void {
    this.next.push(pingFrame());
  }
}

/** Judges the event by itself, without the events before it. */
export function endIn(frame: SseFrame): ReplyEvent | undefined {
  const event = jsonOf(frame);
  const type = isObject(event) ? (event.type ?? frame.event) : undefined;
  if (type === "message_stop") return { type: "finish", reason: "stop" };
  if (type !== "error") return undefined;
  return { type, code: "upstream_error", message: "The stream ended with an error event." };
}

function fixEvent(event: JsonObject, context: ReplyContext, report: ReportFixup): JsonObject {
  const plain = withoutCopilot(event, report);
  if (plain.type === "message_delta") return withUsage(plain, { output_tokens: 0 }, report);
  if (plain.type !== "message_start" || !isObject(plain.message)) return plain;
  const message = fixMessage(plain.message, context, report);
  return message === plain.message ? plain : { ...plain, message };
}

function fixMessage(message: JsonObject, context: ReplyContext, report: ReportFixup): JsonObject {
  const fixed = withUsage(withoutCopilot(message, report), { input_tokens: 0, output_tokens: 0 }, report);
  if (typeof fixed.model !== "string" || fixed.model === context.model) return fixed;
  report("model-name");
  return { ...fixed, model: context.model };
}

/** Strict clients fail without these numbers. */
function withUsage(holder: JsonObject, unknown: JsonObject, report: ReportFixup): JsonObject {
  if (isObject(holder.usage)) return holder;
  report("usage-field");
  return { ...holder, usage: unknown };
}

/** Removes Copilot's own fields, which strict clients do not expect. */
function withoutCopilot(object: JsonObject, report: ReportFixup): JsonObject {
  const own = Object.keys(object).filter((key) => key.startsWith("copilot_"));
  if (own.length === 0) return object;
  report("copilot-fields");
  return omit(object, new Set(own)) ?? {};
}

const isText = (block: unknown): boolean => isObject(block) && (block.type === "text" || block.type === "thinking");
