/** Brings an upstream's stream into the grammar of OpenAI's Responses API. */
import { isObject } from "../../lib/json";
import type { SseFrame } from "../../lib/net/stream/sse";
import type { JsonObject } from "../hub/conversation";
import { countIn, textIn, withMember } from "../hub/json";
import { Normalizer } from "../hub/upstream-stream";
import { errorIn, invalidEvent } from "./errors";
import { outputIndexes } from "./output-indexes";

/** The events that end a response. */
const terminalTypes: ReadonlySet<string> = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.cancelled",
]);

export class ResponsesNormalizer extends Normalizer {
  protected readonly invalid = invalidEvent;
  /** The id of the first event that has the response; undefined before. */
  #responseId: { value: unknown } | undefined;
  /** The first id of each output index. */
  readonly #itemIds = new Map<number, string>();
  /** The items of `output_item.added` and `output_item.done` events. */
  readonly #shown = new Map<number, JsonObject>();
  readonly #done = new Map<number, JsonObject>();

  protected readEvent(json: JsonObject, frame: SseFrame) {
    const type = textIn(json.type) || (frame.event ?? "");
    if (!type.startsWith("response.")) return this.readOther(type, json, frame);
    const isLast = terminalTypes.has(type);
    let fixed = json;
    const index = countIn(json.output_index);
    if (isObject(json.response)) fixed = withMember(fixed, "response", this.fixResponse(json.response, isLast));
    if (index !== undefined) {
      const isDone = type === "response.output_item.done";
      if (isObject(json.item)) fixed = withMember(fixed, "item", this.fixItem(json.item, index, isDone));
      fixed = withMember(fixed, "item_id", this.firstId(json.item_id, index));
    }
    this.emit(type, fixed, frame, isLast);
  }

  protected readMark(data: "" | "[DONE]"): void {
    if (data === "") this.fail(invalidEvent);
  }

  /** Reads an event that is no part of the response: an error in any of its forms, or an event of Copilot's own. */
  private readOther(type: string, json: JsonObject, frame: SseFrame) {
    const error = errorIn(json);
    if (!error) return this.notes.addFixup("foreign-event");
    // Codex ignores an `error` event and opencode would retry forever: a response that has started must end with
    // `response.failed`.
    if (!this.#responseId && type === "error" && typeof json.message === "string")
      return this.emit(type, json, frame, true);
    this.notes.addFixup("error-event");
    this.fail(error);
  }

  private fixResponse(response: JsonObject, isLast: boolean): JsonObject {
    let fixed = response;
    this.#responseId ??= { value: response.id };
    if (response.id !== this.#responseId.value) {
      this.notes.addFixup("response-id");
      fixed = { ...fixed, id: this.#responseId.value };
    }
    const output: unknown[] = Array.isArray(response.output) ? response.output : [];
    if (output.length === 0 && this.#done.size > 0 && isLast) {
      this.notes.addFixup("empty-output");
      return { ...fixed, output: inOrder(this.#done) };
    }
    const indexes = outputIndexes(output, this.#shown);
    const fixedOutput = output.map((item, at) =>
      isObject(item) && indexes[at] !== undefined ? this.withFirstId(item, indexes[at]) : item,
    );
    return fixedOutput.some((item, at) => item !== output[at]) ? { ...fixed, output: fixedOutput } : fixed;
  }

  private fixItem(item: JsonObject, index: number, isDone: boolean): JsonObject {
    const fixed = this.withFirstId(item, index);
    this.#shown.set(index, fixed);
    if (isDone) this.#done.set(index, fixed);
    return fixed;
  }

  private withFirstId(item: JsonObject, index: number): JsonObject {
    return withMember(item, "id", this.firstId(item.id, index));
  }

  /** Copilot gives each event of an item a new id, and strict clients correlate events by the first one. */
  private firstId(id: unknown, index: number): unknown {
    if (typeof id !== "string") return id;
    const first = this.#itemIds.get(index);
    if (first === undefined) this.#itemIds.set(index, id);
    if (first === undefined || first === id) return id;
    this.notes.addFixup("item-ids");
    return first;
  }
}

/** The items by their `output_index`. */
export const inOrder = (items: Map<number, JsonObject>): JsonObject[] =>
  [...items].sort(([one], [other]) => one - other).map(([, item]) => item);
