/** Responses passed through, with the few edits that clients or the upstream need; each has a fixture. */
import { isObject } from "../../json";
import { commentFrame, jsonFrame, type SseFrame } from "../../net/stream/sse";
import type { Sink } from "../../net/stream/stream";
import type { ReplyContext, RequestFixup, TranslationOptions } from "../codec";
import type { JsonObject } from "../hub/conversation";
import { countIn, omit } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import type { ReplyFailure } from "../hub/reply";
import { asFixup } from "../hub/rules";
import { frameOf, PassedStream, type ReportFixup, type WireEvent } from "../hub/upstream-stream";
import { inOrder } from "./normalize";
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
  const fixed = fixResponse(body, context, (name) => void fixups.add(name));
  return { body: fixed, fixups: [...fixups] };
}

const copilotFields = new Set(["copilot_usage", "copilot_quota_snapshots"]);

function withoutCopilot(object: JsonObject, report: ReportFixup): JsonObject {
  if (!("copilot_usage" in object) && !("copilot_quota_snapshots" in object)) return object;
  report("copilot-fields");
  return omit(object, copilotFields) ?? {};
}

function fixResponse(response: JsonObject, context: ReplyContext, report: ReportFixup): JsonObject {
  const fixed = withoutCopilot(response, report);
  if (typeof fixed.model !== "string" || fixed.model === context.model) return fixed;
  report("model-name");
  return { ...fixed, model: context.model };
}

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

  constructor(
    next: Sink<SseFrame>,
    report: ReportFixup,
    private readonly context: ReplyContext,
  ) {
    super(next, report);
  }

  protected pass({ type, json, frame }: WireEvent): void {
    let fixed = withoutCopilot(json, this.report);
    if (isObject(json.response)) {
      const response = fixResponse(json.response, this.context, this.report);
      if (response !== json.response) fixed = { ...fixed, response };
      this.#created ??= response;
    }
    const index = countIn(json.output_index);
    if (type === "response.output_item.done" && isObject(json.item) && index !== undefined)
      this.#done.set(index, json.item);
    const number = countIn(json.sequence_number);
    this.#last = number ?? -1;
    if (this.#inserted > 0 && number !== undefined) {
      this.report("sequence-number");
      fixed = { ...fixed, sequence_number: number + this.#inserted };
    }
    if (frame.event && frame.event !== type) this.report("event-name");
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
