/** Collects a streamed response into the body that a full reply would have. */
import { isObject } from "../../lib/json";
import type { FramedBeat } from "../hub/beat";
import type { JsonObject } from "../hub/conversation";

/**
 * The last event holds the response. Its ids stay as they are there, since no other event is left to agree with; only an
 * output that it lacks is the normalizer's.
 */
export class CollectedResponse {
  #response: JsonObject = {};

  read({ json, frame: { json: sent } }: FramedBeat): void {
    if (!isObject(json.response) || !isObject(sent) || !isObject(sent.response)) return;
    const hasOutput = Array.isArray(sent.response.output) && sent.response.output.length > 0;
    this.#response = hasOutput ? sent.response : { ...sent.response, output: json.response.output };
  }

  body(): JsonObject {
    return this.#response;
  }
}
