/** What the strictest reader of a responses stream asks for: the OpenAI SDK's helper, and Codex, opencode and ai besides. */

import type { Conversation, JsonObject } from "../../src/dialects/hub/conversation";
import { isObject } from "../../src/lib/json";
import { jsonOf, type SseFrame } from "../../src/lib/net/stream/sse";

const terminalStatus: Record<string, string> = {
  "response.completed": "completed",
  "response.incomplete": "incomplete",
  "response.failed": "failed",
};

interface Item {
  id: unknown;
  type: unknown;
  /** Texts by what they are and where they stand, as the deltas told them. */
  texts: Map<string, string>;
  /** Parts that were announced and not ended. */
  openParts: Set<string>;
  parts: number;
}

/** Throws unless the frames are one whole stream. */
export function checkResponsesStream(frames: SseFrame[], _asked?: Conversation): void {
  const done: JsonObject[] = [];
  let sequence: number | undefined;
  let response: JsonObject | undefined;
  let item: Item | undefined;
  let ended = "";

  for (const [at, frame] of frames.entries()) {
    if (frame.data === undefined) continue;
    const event = jsonOf(frame);
    const where = `frame ${at} (${frame.event})`;
    const check = (holds: unknown, sentence: string) => {
      if (!holds) throw new Error(`${where}: ${sentence}\n${frame.data}`);
    };
    if (!isObject(event)) throw new Error(`${where} is no JSON object: ${frame.data}`);
    const { type } = event;
    check(!ended, `it follows ${ended}`);
    check(frame.event === type, "its event line and its type differ");
    check(
      event.sequence_number === (sequence === undefined ? event.sequence_number : sequence + 1),
      "its number is not the next",
    );
    sequence = Number(event.sequence_number);
    check(Number.isInteger(sequence), "it has no number");

    if (isObject(event.response)) {
      check(response || type === "response.created", "it comes before response.created");
      check(!response || type !== "response.created", "there were two response.created");
      check(typeof event.response.id === "string" && event.response.id !== "", "the response has no id");
      check(!response || response.id === event.response.id, "the response changed its id");
      check(!response || response.model === event.response.model, "the response changed its model");
      check(Array.isArray(event.response.output), "the response has no output");
      response = event.response;
      const status = terminalStatus[String(type)];
      if (!status) {
        check(response.status === "in_progress", "the response is not in progress");
        continue;
      }
      ended = String(type);
      check(response.status === status, "its status is another");
      if (status !== "failed") check(!item, "an item was never done");
      check(Bun.deepEquals(response.output, done), `its output is not what was done: ${JSON.stringify(done)}`);
      if (status === "failed") check(isObject(response.error) && response.error.message, "it does not say why");
      else check(response.usage === null || isUsage(response.usage), "its usage is not what clients read");
      continue;
    }
    check(response, "it comes before response.created");
    if (type === "response.output_item.added") {
      check(!item, "the item before was never done");
      check(event.output_index === done.length, "it is not the next item");
      const added = isObject(event.item) ? event.item : {};
      check(typeof added.id === "string" && added.id !== "", "the item has no id");
      item = { id: added.id, type: added.type, texts: new Map(), openParts: new Set(), parts: 0 };
      continue;
    }
    check(item && event.output_index === done.length, "it belongs to no open item");
    if (!item) continue;
    if (type === "response.output_item.done") {
      const end = isObject(event.item) ? event.item : {};
      check(end.id === item.id && end.type === item.type, "the item is not the one that was added");
      check(item.openParts.size === 0, "a part was never done");
      for (const [key, text] of item.texts) check(textIn(end, key) === text, `its ${key} is not what the deltas said`);
      done.push(end);
      item = undefined;
      continue;
    }
    check(event.item_id === item.id, "its item_id is not the item's");
    checkWithin(item, event, check);
  }
  if (!ended) throw new Error("the stream has no end");
}

/** Each kind of text: the item it belongs to, and the member that holds it when it is done. */
const texts: Record<string, [item: string, field: string]> = {
  output_text: ["message", "text"],
  refusal: ["message", "refusal"],
  reasoning_summary_text: ["reasoning", "text"],
  function_call_arguments: ["function_call", "arguments"],
  custom_tool_call_input: ["custom_tool_call", "input"],
};

function checkWithin(item: Item, event: JsonObject, check: (holds: unknown, sentence: string) => void): void {
  const [, kind = "", step = ""] = String(event.type).split(".");
  const part = event.content_index ?? event.summary_index;
  if (kind === "content_part" || kind === "reasoning_summary_part") {
    if (step === "added") {
      check(part === item.parts, "it is not the next part");
      item.parts++;
      item.openParts.add(String(part));
    } else check(item.openParts.delete(String(part)), "the part was not open");
    return;
  }
  if (kind === "output_text" && step === "annotation") return;
  if (kind === "web_search_call") {
    check(item.type === kind, "it is not for an item of this type");
    check(["in_progress", "searching", "completed"].includes(step), "no client knows this event");
    return;
  }
  const [type, field = ""] = texts[kind] ?? [];
  check(type !== undefined, "no client knows this event");
  check(item.type === type, "it is not for an item of this type");
  if (type === "message" || type === "reasoning") check(item.openParts.has(String(part)), "its part was not announced");
  const key = part === undefined ? field : `${part}.${field}`;
  const told = item.texts.get(key) ?? "";
  if (step === "delta") {
    check(typeof event.delta === "string", "the delta is no text");
    item.texts.set(key, told + String(event.delta));
  } else {
    check(step === "done", "no client knows this event");
    check(event[field] === told, "it is not what the deltas said");
    item.texts.set(key, told);
  }
}

function textIn(item: JsonObject, key: string): unknown {
  const [first = "", field] = key.split(".");
  if (field === undefined) return item[first];
  const parts = item.type === "reasoning" ? item.summary : item.content;
  const part: unknown = Array.isArray(parts) ? parts[Number(first)] : undefined;
  return isObject(part) ? part[field] : undefined;
}

function isUsage(usage: unknown): boolean {
  if (!isObject(usage) || !isObject(usage.input_tokens_details)) return false;
  const numbers = [usage.input_tokens, usage.output_tokens, usage.total_tokens];
  numbers.push(usage.input_tokens_details.cached_tokens);
  numbers.push(isObject(usage.output_tokens_details) ? usage.output_tokens_details.reasoning_tokens : undefined);
  return numbers.every((number) => typeof number === "number");
}
