/** Responses passed through, with the few edits that clients or the upstream need; each has a fixture. */
import { isObject } from "../../lib/json";
import { commentFrame, jsonFrame } from "../../lib/net/stream/sse";
import type { ReplyContext } from "../codec";
import type { FramedBeat } from "../hub/beat";
import type { JsonObject } from "../hub/conversation";
import { countIn } from "../hub/json";
import type { Notes } from "../hub/notes";
import type { ReplyFailure } from "../hub/reply";
import { frameOf, PassedStream, withModel, withoutCopilot } from "../hub/upstream-stream";
import { inOrder } from "./normalize";

// ── Full reply ──

/** Restores the requested model name and removes Copilot's own fields. */
export const fixFull = (response: JsonObject, context: ReplyContext, notes: Notes): JsonObject =>
  withModel(plain(response, notes), context, notes);

/** The two fields that Copilot adds here, looked for by their names: events come often. */
const plain = (object: JsonObject, notes: Notes): JsonObject =>
  "copilot_usage" in object || "copilot_quota_snapshots" in object ? withoutCopilot(object, notes) : object;

// ── Stream ──

/** A stream on its way to a Responses client. */
export class PassedResponse extends PassedStream {
  /** The response of the first event that has one. */
  #created: JsonObject | undefined;
  readonly #done = new Map<number, JsonObject>();
  /** The number of the upstream's last event. */
  #last = -1;
  /** Events of our own, by which the numbers of the upstream's events move on. */
  #inserted = 0;

  protected pass({ type, json, frame }: FramedBeat): void {
    let fixed = plain(json, this.notes);
    if (isObject(json.response)) {
      const response = fixFull(json.response, this.context, this.notes);
      if (response !== json.response) fixed = { ...fixed, response };
      this.#created ??= response;
    }
    const index = countIn(json.output_index);
    if (type === "response.output_item.done" && isObject(json.item) && index !== undefined)
      this.#done.set(index, json.item);
    const number = countIn(json.sequence_number);
    this.#last = number ?? -1;
    if (this.#inserted > 0 && number !== undefined) {
      this.notes.addFixup("sequence-number");
      fixed = { ...fixed, sequence_number: number + this.#inserted };
    }
    if (frame.event && frame.event !== type) this.notes.addFixup("event-name");
    this.next.push(frameOf(frame, fixed, frame.event && type));
  }

  protected writeError({ code, message }: ReplyFailure): void {
    const sequence_number = this.#last + this.#inserted + 1;
    const response = { ...this.#created, status: "failed", error: { code, message }, output: inOrder(this.#done) };
    this.next.push(
      this.#created
        ? jsonFrame({ type: "response.failed", sequence_number, response }, "response.failed")
        : jsonFrame({ type: "error", code, message, param: null, sequence_number }, "error"),
    );
  }

  /** Codex only counts events as activity, and the OpenAI SDK throws on `ping`; repeating `in_progress` suits both. */
  protected writeBeat() {
    if (!this.#created) return this.next.push(commentFrame("waiting"));
    const type = "response.in_progress";
    const response = { ...this.#created, status: "in_progress", output: [] };
    this.next.push(jsonFrame({ type, sequence_number: this.#last + this.#inserted + 1, response }, type));
    this.#inserted++;
  }
}
