/** Messages passed through: the edits that a request or a reply may need. */
import { isObject, parseWithSource } from "../../json";
import { editedTo } from "../../net/json/json-edit";
import { jsonFrame, jsonOf, type SseFrame } from "../../net/stream/sse";
import type { ClientSink, ReplyContext, RequestFixup, ToClient, TranslationOptions } from "../codec";
import { cutReply } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import { dedupe } from "../hub/dedupe";
import { omit, textIn } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import type { ReplyError, ReplyEvent } from "../hub/reply";
import { asFixup } from "../hub/rules";
import { errorFrame, errorIn, invalidEvent } from "./errors";
import { pingFrame } from "./reply-writer";
import { applyProviderRules, applyRules } from "./rules";

/** The event types that Anthropic's clients know; some of them fail on others. */
const eventTypes: ReadonlySet<unknown> = new Set([
  "message_start",
  "content_block_start",
  "content_block_delta",
  "content_block_stop",
  "message_delta",
  "message_stop",
  "ping",
  "error",
]);

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
  const report = (name: string) => void fixups.add(name);
  const fixed = fixMessage(withoutCopilot(body, report), report);
  if (typeof fixed.model !== "string" || fixed.model === context.model) return { body: fixed, fixups: [...fixups] };
  return { body: { ...fixed, model: context.model }, fixups: [...fixups, "model-name"] };
}

export const fixStream =
  (context: ReplyContext, onFixup: (name: string) => void): ToClient<SseFrame> =>
  (next): ClientSink<SseFrame> => {
    const report = dedupe(onFixup);
    let open: { index: unknown; isText: boolean } | undefined;
    let ended = false;

    const fail = (error: ReplyError) => {
      if (ended) return;
      ended = true;
      // An incomplete call must not look complete.
      if (open?.isText) next.push(jsonFrame({ type: "content_block_stop", index: open.index }, "content_block_stop"));
      next.push(errorFrame(error));
    };

    const pass = (frame: SseFrame, event: JsonObject) => {
      const type = textIn(event.type ?? frame.event);
      const fixedEvent = fixEvent(event.type === undefined ? { type, ...event } : event, report);
      const text = frame.data ?? "";
      const edited = fixedEvent === event ? text : editedTo(text, event, fixedEvent);
      const data = withModelName(edited, fixedEvent.message, context, report);
      if (frame.event !== type) report("event-name");
      next.push(frame.event === type && data === frame.data ? frame : { event: type, data });
    };

    return {
      push(frame) {
        if (ended) return frame.data === undefined ? undefined : report("foreign-event");
        if (frame.data === undefined) return next.push(frame);
        if (frame.data === "" || frame.data === "[DONE]") return report("foreign-event");
        const event = jsonOf(frame);
        if (!isObject(event)) return fail(invalidEvent);
        const failure = errorIn(event);
        if (failure && !isProperError(event)) {
          report("error-event");
          return fail(failure);
        }
        const type = event.type ?? frame.event;
        if (!eventTypes.has(type)) return report("foreign-event");
        if (type === "content_block_start") open = { index: event.index, isText: isText(event.content_block) };
        if (type === "content_block_stop") open = undefined;
        pass(frame, event);
        ended = type === "message_stop" || type === "error";
      },
      end() {
        fail({ type: "error", ...cutReply });
        next.end();
      },
      keepAlive() {
        if (!ended) next.push(pingFrame());
      },
      fail,
    };
  };

/** Judges the event by itself, without the events before it. */
export function endIn(frame: SseFrame): ReplyEvent | undefined {
  const event = jsonOf(frame);
  const type = isObject(event) ? (event.type ?? frame.event) : undefined;
  if (type === "message_stop") return { type: "finish", reason: "stop" };
  if (type !== "error") return undefined;
  return { type, code: "upstream_error", message: "The stream ended with an error event." };
}

function fixEvent(event: JsonObject, report: (name: string) => void): JsonObject {
  const plain = withoutCopilot(event, report);
  if (plain.type === "message_delta") return withUsage(plain, { output_tokens: 0 }, report);
  if (plain.type !== "message_start" || !isObject(plain.message)) return plain;
  const message = fixMessage(withoutCopilot(plain.message, report), report);
  return message === plain.message ? plain : { ...plain, message };
}

const fixMessage = (message: JsonObject, report: (name: string) => void): JsonObject =>
  withUsage(message, { input_tokens: 0, output_tokens: 0 }, report);

/** Strict clients fail without these numbers. */
function withUsage(holder: JsonObject, unknown: JsonObject, report: (name: string) => void): JsonObject {
  if (isObject(holder.usage)) return holder;
  report("usage-field");
  return { ...holder, usage: unknown };
}

/** Removes Copilot's own fields, which strict clients do not expect. */
function withoutCopilot(object: JsonObject, report: (name: string) => void): JsonObject {
  const own = Object.keys(object).filter((key) => key.startsWith("copilot_"));
  if (own.length === 0) return object;
  report("copilot-fields");
  return omit(object, new Set(own)) ?? {};
}

/** Writes the requested model name into the text. Quotes in content are escaped, so content cannot match. */
function withModelName(data: string, message: unknown, context: ReplyContext, report: (name: string) => void): string {
  if (!isObject(message) || typeof message.model !== "string" || message.model === context.model) return data;
  report("model-name");
  const serialized = `"model":${JSON.stringify(message.model)}`;
  const text = data.includes(serialized) ? data : JSON.stringify(parseWithSource(data));
  return text.replace(serialized, () => `"model":${JSON.stringify(context.model)}`);
}

/** An error in Anthropic's form, which is passed on unchanged. */
const isProperError = ({ type, error }: JsonObject): boolean =>
  type === "error" && isObject(error) && typeof error.type === "string" && typeof error.message === "string";

const isText = (block: unknown): boolean => isObject(block) && (block.type === "text" || block.type === "thinking");
