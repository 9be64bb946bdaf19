/** Responses passed through, with the few edits that clients or the upstream need; each has a fixture. */
import { isObject, parseJson } from "../../json";
import { editedTo } from "../../net/json/json-edit";
import { commentFrame, jsonFrame, jsonOf, type SseFrame } from "../../net/stream/sse";
import type { ReplyContext, RequestFixup, ToClient, TranslationOptions } from "../codec";
import { cutReply } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import { dedupe } from "../hub/dedupe";
import { countIn, omit } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import type { ReplyError } from "../hub/reply";
import { asFixup } from "../hub/rules";
import { inOrder } from "./collect";
import { errorIn, invalidEvent } from "./errors";
import { outputIndexes } from "./output-indexes";
import { eventType, looksWhole, numberAt, terminalTypes } from "./raw-fields";
import { applyProviderRules, applyRules, refuseStored } from "./rules";

// ── Request ──

/** The edits of a client's request. */
export function fixRequest(
  body: JsonObject,
  model: ModelFacts,
  options: TranslationOptions = { webSearch: true },
): RequestFixup {
  refuseStored(body);
  return asFixup(body, (model.provider ? applyProviderRules : applyRules)(body, model, options));
}

/** What fixing the reply needs to know about the request. */
export const replyContext = (body: JsonObject): ReplyContext => ({
  model: String(body.model ?? ""),
  usage: true,
  replies: 1,
});

// ── Full reply ──

/** Restores the requested model name and removes Copilot's own fields. */
export function fixReply(body: JsonObject, context: ReplyContext): { body: JsonObject; fixups: string[] } {
  const fixups = new Set<string>();
  const fixed = fixResponse(withoutCopilot(body, fixups), context, fixups);
  return { body: fixed, fixups: [...fixups] };
}

const copilotFields = new Set(["copilot_usage", "copilot_quota_snapshots"]);

function withoutCopilot(object: JsonObject, fixups: { add(name: string): void }): JsonObject {
  if (!("copilot_usage" in object) && !("copilot_quota_snapshots" in object)) return object;
  fixups.add("copilot-fields");
  return omit(object, copilotFields) ?? {};
}

function fixResponse(response: JsonObject, context: ReplyContext, fixups: { add(name: string): void }): JsonObject {
  if (typeof response.model !== "string" || response.model === context.model) return response;
  fixups.add("model-name");
  return { ...response, model: context.model };
}

// ── Stream ──

/** Events that contain the response object. */
const lifecycleTypes = new Set([...terminalTypes, "response.created", "response.queued", "response.in_progress"]);

/** Passes frames through unchanged, except for fixups. */
export function fixStream(context: ReplyContext, onFixup: (name: string) => void): ToClient<SseFrame> {
  return (next) => {
    const fixups: Fixups = { add: dedupe(onFixup) };
    const ids = itemIds(() => fixups.add("item-ids"));
    const numbers = sequenceNumbers(fixups);
    const response = responseFixer(context, ids, fixups);
    let ended = false;

    const push = (frame: SseFrame) => {
      if (ended || frame.data === "[DONE]") return;
      if (frame.data === undefined) return next.push(frame);
      if (!looksWhole(frame.data) && !isObject(jsonOf(frame))) return fail(invalidEvent);
      const type = eventType(frame);
      if (type === "error" || !type.startsWith("response.")) return handleOther(frame, type);
      numbers.last = frame;
      const isShort = !lifecycleTypes.has(type) && !type.startsWith("response.output_item.");
      const short = isShort ? ids.fixText(frame.data) : undefined;
      if (short === undefined) passWhole(frame, type);
      else passShort(frame, numbers.fixText(short));
    };

    /** Passes a short event with edits in its text, because parsing each delta would cost more than everything else. */
    const passShort = (frame: SseFrame, data: string) =>
      next.push(data === frame.data ? frame : { event: frame.event, data });

    const passWhole = (frame: SseFrame, type: string) => {
      const event = jsonOf(frame);
      if (!isObject(event)) return fail(invalidEvent);
      ended = terminalTypes.has(type);
      const fixedEvent = numbers.fix(response.fix(event, type));
      if (fixedEvent === event) return next.push(frame);
      next.push({ event: frame.event, data: editedTo(frame.data ?? "", event, fixedEvent) });
    };

    /**
     * Handles an event that is not part of the response: an error in any of its forms, or an event of Copilot's own.
     */
    const handleOther = (frame: SseFrame, type: string) => {
      const event = jsonOf(frame);
      const error = isObject(event) ? errorIn(event) : undefined;
      if (!error) return fixups.add("foreign-event");
      // Codex ignores an `error` event and opencode would retry forever: a response that has started must end with
      // `response.failed`.
      if (!response.created && type === "error" && isObject(event) && typeof event.message === "string") {
        ended = true;
        return next.push(frame);
      }
      fixups.add("error-event");
      fail(error);
    };

    const fail = (error: Pick<ReplyError, "code" | "message">) => {
      if (ended) return;
      ended = true;
      next.push(errorFrame(error, response.failed(error), numbers.next()));
    };

    return {
      push,
      end() {
        fail(cutReply);
        next.end();
      },
      /**
       * Codex only counts events as activity, and the OpenAI SDK throws on `ping`; repeating `in_progress` suits both.
       */
      keepAlive() {
        if (ended) return;
        if (!response.created) return next.push(commentFrame("waiting"));
        const type = "response.in_progress";
        const repeated = { ...response.created, status: "in_progress", output: [] };
        next.push(jsonFrame({ type, sequence_number: numbers.insert(), response: repeated }, type));
      },
      fail,
    };
  };
}

interface Fixups {
  add(name: string): void;
}

/** @param failed The response, if it has started. */
function errorFrame(
  { code, message }: Pick<ReplyError, "code" | "message">,
  failed: JsonObject | undefined,
  sequence_number: number,
): SseFrame {
  return failed
    ? jsonFrame({ type: "response.failed", sequence_number, response: failed }, "response.failed")
    : jsonFrame({ type: "error", code, message, param: null, sequence_number }, "error");
}

/** The sequence numbers of the events, which move on with each event that we insert. */
function sequenceNumbers(fixups: Fixups) {
  let inserted = 0;
  return {
    /** The upstream's last event. */
    last: {} as SseFrame,
    /** The number of an event of our own that ends the stream. */
    next(): number {
      const event = jsonOf(this.last);
      return (isObject(event) ? (countIn(event.sequence_number) ?? -1) : -1) + inserted + 1;
    },
    /** The number of an event that we insert. */
    insert(): number {
      const number = this.next();
      inserted++;
      return number;
    },
    fix(event: JsonObject): JsonObject {
      const number = inserted === 0 ? undefined : countIn(event.sequence_number);
      if (number === undefined) return event;
      fixups.add("sequence-number");
      return { ...event, sequence_number: number + inserted };
    },
    fixText(data: string): string {
      const number = inserted === 0 ? undefined : numberAt(data, sequenceNumber);
      if (number === undefined) return data;
      fixups.add("sequence-number");
      const start = data.indexOf(sequenceNumber) + sequenceNumber.length;
      return `${data.slice(0, start)}${number + inserted}${data.slice(start + String(number).length)}`;
    },
  };
}

/** Fixes the events that contain the response or an item of it, and remembers both for the events to come. */
function responseFixer(context: ReplyContext, ids: ReturnType<typeof itemIds>, fixups: Fixups) {
  const done = new Map<number, JsonObject>();
  /** The items of `output_item.added` and `output_item.done` events. */
  const shown = new Map<number, JsonObject>();
  let created: JsonObject | undefined;

  const fixItem = (item: JsonObject, index: number, type: string): JsonObject => {
    const fixedItem = ids.fix(item, "id", index);
    shown.set(index, fixedItem);
    if (type === "response.output_item.done") done.set(index, fixedItem);
    return fixedItem;
  };

  const fixLifecycle = (response: JsonObject, type: string): JsonObject => {
    let fixedResponse = fixResponse(withoutCopilot(response, fixups), context, fixups);
    if (created && response.id !== created.id) {
      fixups.add("response-id");
      fixedResponse = { ...fixedResponse, id: created.id };
    }
    const output: unknown[] = Array.isArray(response.output) ? response.output : [];
    const isMissing = output.length === 0 && done.size > 0 && terminalTypes.has(type);
    if (isMissing) fixups.add("empty-output");
    const fixedOutput = isMissing ? inOrder(done) : fixOutput(output);
    const isFixed = isMissing || fixedOutput.some((item, at) => item !== output[at]);
    return isFixed ? { ...fixedResponse, output: fixedOutput } : fixedResponse;
  };

  const fixOutput = (output: unknown[]): unknown[] => {
    const indexes = outputIndexes(output, shown);
    return output.map((item, at) => {
      const index = indexes[at];
      return isObject(item) && index !== undefined ? ids.fix(item, "id", index) : item;
    });
  };

  return {
    /** The response of the first event that has one. */
    get created() {
      return created;
    },
    /** The response as it is when it fails; undefined if it has not started. */
    failed: (error: Pick<ReplyError, "code" | "message">): JsonObject | undefined =>
      created && {
        ...created,
        status: "failed",
        error: { code: error.code, message: error.message },
        output: inOrder(done),
      },
    /** The same event, or a fixed copy. */
    fix(event: JsonObject, type: string): JsonObject {
      let fixedEvent = withoutCopilot(event, fixups);
      const set = (key: string, value: JsonObject) => {
        if (value !== event[key]) fixedEvent = { ...fixedEvent, [key]: value };
        return value;
      };
      const index = countIn(event.output_index);
      if (isObject(event.response)) {
        const response = set("response", fixLifecycle(event.response, type));
        created ??= response;
      }
      if (index === undefined) return fixedEvent;
      if (isObject(event.item)) set("item", fixItem(event.item, index, type));
      return ids.fix(fixedEvent, "item_id", index);
    },
  };
}

/**
 * Keeps the first id of each item: Copilot gives each event of an item a new id, and strict clients correlate events by
 * the first one.
 */
function itemIds(onChange: () => void) {
  /** The first id of each output index, JSON-escaped. */
  const firstIds = new Map<number, string>();
  return {
    /** The object with the item's first id. */
    fix(holder: JsonObject, key: "id" | "item_id", index: number): JsonObject {
      const id = holder[key];
      if (typeof id !== "string") return holder;
      const serialized = JSON.stringify(id).slice(1, -1);
      const first = firstIds.get(index);
      if (first === undefined) firstIds.set(index, serialized);
      if (first === undefined || first === serialized) return holder;
      onChange();
      return { ...holder, [key]: JSON.parse(`"${first}"`) };
    },
    /**
     * An event's JSON with the item's first id; undefined if it must be parsed. Quotes inside a JSON string are escaped,
     * so text cannot match a key.
     */
    fixText(data: string): string | undefined {
      const index = numberAt(data, '"output_index":');
      const found = data.indexOf(itemId);
      if (found === -1 && data.includes('"item_id"')) return undefined;
      if (index === undefined || found === -1) return data;
      const start = found + itemId.length;
      const end = data.indexOf('"', start);
      const first = firstIds.get(index);
      // An id that ends in an escape, or that is not valid JSON, is left to the parser.
      if (data[end - 1] === "\\" || (!first && parseJson(data.slice(start - 1, end + 1)) === undefined))
        return undefined;
      if (first === undefined) firstIds.set(index, data.slice(start, end));
      if (first === undefined || (end - start === first.length && data.startsWith(first, start))) return data;
      onChange();
      return data.slice(0, start) + first + data.slice(end);
    },
  };
}

const itemId = '"item_id":"';
const sequenceNumber = '"sequence_number":';
