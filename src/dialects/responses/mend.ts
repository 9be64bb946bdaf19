/** The responses dialect passed through: the few edits that clients or the upstream need, each proven by a fixture. */
import { isObject, parseJson } from "../../json";
import { commentFrame, jsonFrame, jsonOf, type SseFrame } from "../../net/sse";
import type { Asked, RequestMend, ToClient, Wishes } from "../codec";
import type { JsonObject } from "../hub/conversation";
import { countIn, rest } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import { onceEach } from "../hub/once";
import type { ReplyError } from "../hub/reply";
import { asMend } from "../hub/rules";
import { cutReply } from "../hub/writer";
import { inOrder } from "./collect";
import { badEvent, errorIn } from "./errors";
import { looksWhole, numberAt, terminalTypes, typeOf } from "./frames";
import { placesOf } from "./places";
import { applyRules, refuseStored } from "./rules";

// ── Request ──

/** What to change of a client's request. */
export function mendRequest(body: JsonObject, model: ModelFacts, wishes: Wishes = { webSearch: true }): RequestMend {
  refuseStored(body);
  return asMend(body, applyRules(body, model, wishes));
}

/** What a reply must know of its request. */
export const asked = (body: JsonObject): Asked => ({ model: String(body.model ?? ""), usage: true, replies: 1 });

// ── Full reply ──

/** The reply with the model's name as it was asked, without Copilot's own members. */
export function mendReply(body: JsonObject, asked: Asked): { body: JsonObject; mends: string[] } {
  const mends = new Set<string>();
  const mended = mendResponse(withoutCopilot(body, mends), asked, mends);
  return { body: mended, mends: [...mends] };
}

const copilotFields = new Set(["copilot_usage", "copilot_quota_snapshots"]);

function withoutCopilot(object: JsonObject, mends: { add(name: string): void }): JsonObject {
  if (!("copilot_usage" in object) && !("copilot_quota_snapshots" in object)) return object;
  mends.add("copilot-fields");
  return rest(object, copilotFields) ?? {};
}

function mendResponse(response: JsonObject, asked: Asked, mends: { add(name: string): void }): JsonObject {
  if (typeof response.model !== "string" || response.model === asked.model) return response;
  mends.add("model-name");
  return { ...response, model: asked.model };
}

// ── Stream ──

/** Events that show the response itself. */
const lifecycleTypes = new Set([...terminalTypes, "response.created", "response.queued", "response.in_progress"]);

/** Frames as they came, but for the mends. */
export function mendStream(asked: Asked, mended: (name: string) => void): ToClient<SseFrame> {
  return (next) => {
    const mends = { add: onceEach(mended) };
    /** The first id of each output index, as JSON spells it between the quotes. */
    const ids = new Map<number, string>();
    const done = new Map<number, JsonObject>();
    /** The items that were added or done. */
    const shown = new Map<number, JsonObject>();
    let created: JsonObject | undefined;
    let last: SseFrame = {};
    /** How many events of ours came between the upstream's. */
    let inserted = 0;
    let ended = false;

    const nextNumber = () => {
      const event = jsonOf(last);
      return (isObject(event) ? (countIn(event.sequence_number) ?? -1) : -1) + inserted + 1;
    };

    const push = (frame: SseFrame) => {
      if (ended || frame.data === "[DONE]") return;
      if (frame.repeats !== undefined) last = { data: frame.repeats };
      if (frame.data === undefined) return next.push(frame);
      if (!looksWhole(frame.data) && !isObject(jsonOf(frame))) return fail(badEvent);
      const type = typeOf(frame);
      if (type === "error" || !type.startsWith("response.")) return aside(frame, type);
      last = frame;
      const isShort = !lifecycleTypes.has(type) && !type.startsWith("response.output_item.");
      const short = isShort ? mendShort(frame.data) : undefined;
      if (short !== undefined) return next.push(short === frame.data ? frame : { event: frame.event, data: short });
      const event = jsonOf(frame);
      if (!isObject(event)) return fail(badEvent);
      ended = terminalTypes.has(type);
      const mendedEvent = mendEvent(event, type);
      next.push(mendedEvent === event ? frame : jsonFrame(mendedEvent, frame.event));
    };

    /** What is no event of the response: an error, in one of its forms, or a word of Copilot's own. */
    const aside = (frame: SseFrame, type: string) => {
      const event = jsonOf(frame);
      const error = isObject(event) ? errorIn(event) : undefined;
      if (!error) return mends.add("foreign-event");
      // Codex does not hear an `error` event, opencode would ask again for ever: once begun, a response fails in its own words.
      if (!created && type === "error" && isObject(event) && typeof event.message === "string") {
        ended = true;
        return next.push(frame);
      }
      mends.add("error-event");
      fail(error);
    };

    /**
     * An event of a few members: its strings are replaced where they stand, because parsing each would cost more than
     * all the rest. Inside a JSON string quotes are escaped, so no text can look like a member.
     */
    const mendShort = (data: string): string | undefined => {
      const index = numberAt(data, '"output_index":');
      const found = data.indexOf(itemId);
      if (found === -1 && data.includes('"item_id"')) return undefined;
      let whole = data;
      if (index !== undefined && found !== -1) {
        const start = found + itemId.length;
        const end = data.indexOf('"', start);
        const first = ids.get(index);
        // An id that ends in an escape, or is none, is found by reading the whole as JSON.
        if (data[end - 1] === "\\" || (!first && parseJson(data.slice(start - 1, end + 1)) === undefined))
          return undefined;
        if (first === undefined) ids.set(index, data.slice(start, end));
        else if (end - start !== first.length || !data.startsWith(first, start)) {
          mends.add("item-ids");
          whole = data.slice(0, start) + first + data.slice(end);
        }
      }
      return inserted === 0 ? whole : renumbered(whole);
    };

    const renumbered = (data: string): string => {
      const number = numberAt(data, sequenceNumber);
      if (number === undefined) return data;
      mends.add("sequence-number");
      const start = data.indexOf(sequenceNumber) + sequenceNumber.length;
      return `${data.slice(0, start)}${number + inserted}${data.slice(start + String(number).length)}`;
    };

    const mendEvent = (event: JsonObject, type: string): JsonObject => {
      let mendedEvent = withoutCopilot(event, mends);
      const set = (members: JsonObject) => {
        mendedEvent = { ...mendedEvent, ...members };
      };
      const index = countIn(event.output_index);
      if (isObject(event.response)) {
        const response = mendLifecycle(event.response, type);
        if (response !== event.response) set({ response });
        created ??= response;
      }
      if (index !== undefined && isObject(event.item)) {
        const item = withFirstId(event.item, "id", index);
        if (item !== event.item) set({ item });
        shown.set(index, item);
        if (type === "response.output_item.done") done.set(index, item);
      }
      if (index !== undefined) mendedEvent = withFirstId(mendedEvent, "item_id", index);
      const number = countIn(event.sequence_number);
      if (inserted > 0 && number !== undefined) {
        mends.add("sequence-number");
        set({ sequence_number: number + inserted });
      }
      return mendedEvent;
    };

    const mendLifecycle = (response: JsonObject, type: string): JsonObject => {
      let mendedResponse = mendResponse(withoutCopilot(response, mends), asked, mends);
      if (created && response.id !== created.id) {
        mends.add("response-id");
        mendedResponse = { ...mendedResponse, id: created.id };
      }
      const output: unknown[] = Array.isArray(response.output) ? response.output : [];
      if (output.length === 0 && done.size > 0 && terminalTypes.has(type)) {
        mends.add("empty-output");
        return { ...mendedResponse, output: inOrder(done) };
      }
      const places = placesOf(output, shown);
      const steady = output.map((item, at) => {
        const index = places[at];
        return isObject(item) && index !== undefined ? withFirstId(item, "id", index) : item;
      });
      return steady.some((item, index) => item !== output[index])
        ? { ...mendedResponse, output: steady }
        : mendedResponse;
    };

    /** Copilot gives each event of an item a new id; the strict correlate by the first. */
    const withFirstId = (holder: JsonObject, key: "id" | "item_id", index: number): JsonObject => {
      const id = holder[key];
      if (typeof id !== "string") return holder;
      const spelt = JSON.stringify(id).slice(1, -1);
      const first = ids.get(index);
      if (first === undefined) ids.set(index, spelt);
      if (first === undefined || first === spelt) return holder;
      mends.add("item-ids");
      return { ...holder, [key]: JSON.parse(`"${first}"`) };
    };

    const fail = ({ code, message }: Pick<ReplyError, "code" | "message">) => {
      if (ended) return;
      ended = true;
      const sequence_number = nextNumber();
      if (!created)
        return next.push(jsonFrame({ type: "error", code, message, param: null, sequence_number }, "error"));
      const response = { ...created, status: "failed", error: { code, message }, output: inOrder(done) };
      next.push(jsonFrame({ type: "response.failed", sequence_number, response }, "response.failed"));
    };

    return {
      push,
      end() {
        fail(cutReply);
        next.end();
      },
      /** Codex counts nothing but events as life and the OpenAI SDK throws at a `ping`; a repetition suits both. */
      beat() {
        if (ended) return;
        if (!created) return next.push(commentFrame("waiting"));
        const sequence_number = nextNumber();
        inserted++;
        const response = { ...created, status: "in_progress", output: [] };
        next.push(jsonFrame({ type: "response.in_progress", sequence_number, response }, "response.in_progress"));
      },
      fail,
    };
  };
}

const itemId = '"item_id":"';
const sequenceNumber = '"sequence_number":';
