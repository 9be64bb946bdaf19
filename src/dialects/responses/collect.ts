/** Collects a streamed response into the body that a full reply would have. */
import { isObject } from "../../json";
import { jsonOf } from "../../net/stream/sse";
import type { Collector } from "../codec";
import type { JsonObject } from "../hub/conversation";
import { countIn } from "../hub/json";
import { eventType, terminalTypes } from "./raw-fields";

/** The last event holds the response; an output that is missing there is taken from the items. */
export function collectStream(tell: (fixup: string) => void): Collector {
  const done = new Map<number, JsonObject>();
  let response: JsonObject = {};
  return {
    push(frame) {
      if (frame.data === undefined) return;
      const type = eventType(frame);
      if (type !== "response.output_item.done" && !terminalTypes.has(type)) return;
      const event = jsonOf(frame);
      if (!isObject(event)) return;
      const index = countIn(event.output_index);
      if (isObject(event.item) && index !== undefined) done.set(index, event.item);
      if (isObject(event.response)) response = event.response;
    },
    end() {},
    body() {
      const hasOutput = Array.isArray(response.output) && response.output.length > 0;
      if (hasOutput || done.size === 0) return response;
      tell("empty-output");
      return { ...response, output: inOrder(done) };
    },
  };
}

/** The items by their `output_index`. */
export const inOrder = (items: Map<number, JsonObject>): JsonObject[] =>
  [...items].sort(([one], [other]) => one - other).map(([, item]) => item);
