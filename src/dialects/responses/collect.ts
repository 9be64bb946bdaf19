/** Collects a streamed response into the body that a full reply would have. */
import { isObject } from "../../lib/json";
import type { FramedBeat } from "../hub/beat";
import type { JsonObject } from "../hub/conversation";
import { without } from "../hub/json";

/**
 * The last event holds the response; what stands beside it there, such as what it cost, is in it where it is full. Its ids
 * stay as they are there, since no other event is left to agree with; only an output that it lacks is the normalizer's.
 */
export class CollectedResponse {
  #response: JsonObject = {};

  read({ json, frame }: FramedBeat): void {
    if (!isObject(json.response)) return;
    const { response: sent } = frame.json as { response: JsonObject };
    const hasOutput = Array.isArray(sent.output) && sent.output.length > 0;
    const output = hasOutput ? {} : { output: json.response.output };
    this.#response = { ...without(json, ofEvent), ...sent, ...output };
  }

  body(): JsonObject {
    return this.#response;
  }
}

/** Members of an event that belong to no response. */
const ofEvent = ["type", "sequence_number", "response"];
