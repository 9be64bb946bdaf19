/** What the strictest reader of a chat stream demands, in the words of its complaint. */

import type { Conversation, JsonObject } from "../../src/dialects/hub/conversation";
import { isObject } from "../../src/lib/json";
import { jsonOf, type SseFrame } from "../../src/lib/net/stream/sse";

/** Throws unless the frames are a whole chat stream without an error. */
export function checkChatStream(frames: SseFrame[], asked: Conversation): void {
  const events = frames.filter((frame) => frame.data !== undefined);
  const where = (at: number) => `frame ${at} (${events[at]?.data})`;
  const demand = (claim: boolean, at: number, complaint: string) => {
    if (!claim) throw new Error(`${where(at)}: ${complaint}`);
  };
  const calls: { id: unknown; name: unknown; input: string }[] = [];
  let finished: unknown;
  let spoke = false;

  events.forEach(({ data, event }, at) => {
    demand(event === undefined, at, "chat has no named events");
    demand((data === "[DONE]") === (at === events.length - 1), at, "[DONE] is the last frame and only that");
    if (data === "[DONE]") return;
    const chunk = jsonOf(events[at]!);
    if (!isObject(chunk)) throw new Error(`${where(at)}: no JSON object`);
    demand(!("error" in chunk), at, "an error in a stream that ends well");
    demand("object" in chunk && typeof chunk.created === "number", at, "object or created is missing");
    demand(typeof chunk.id === "string" && typeof chunk.model === "string", at, "id or model is missing");
    if (!Array.isArray(chunk.choices)) throw new Error(`${where(at)}: choices is no list`);
    if (chunk.choices.length > 0) demand(chunk.object === "chat.completion.chunk", at, "the object's name is wrong");
    for (const choice of chunk.choices) {
      demand(isObject(choice) && choice.index === 0, at, "a choice without index, or of another index");
      demand(isObject(choice.delta), at, "a choice without delta");
      if (isSilent(choice.delta)) continue;
      if (!spoke) demand(choice.delta.role === "assistant", at, "the first delta must name its role");
      spoke = true;
      if (finished !== undefined)
        for (const key of ["content", "refusal", "reasoning_text", "tool_calls"])
          demand(!choice.delta[key], at, "words after the finish reason");
      for (const piece of choice.delta.tool_calls ?? []) checkCall(piece, (claim, why) => demand(claim, at, why));
      if (choice.finish_reason != null) finished = choice.finish_reason;
    }
  });

  function checkCall(piece: JsonObject, demandHere: (claim: boolean, complaint: string) => void): void {
    const words = isObject(piece.function) ? piece.function : {};
    demandHere(typeof piece.index === "number", "a piece of a call without index");
    const at = Number(piece.index);
    demandHere(at <= calls.length && at >= calls.length - 1, "calls come one after the other, counted from 0");
    if (at === calls.length) {
      demandHere(typeof piece.id === "string" && piece.id !== "", "a call without id");
      demandHere(typeof words.name === "string" && words.name !== "", "a call without name");
      demandHere(
        calls.every((call) => call.id !== piece.id),
        "two calls of one id",
      );
      calls.push({ id: piece.id, name: words.name, input: "" });
    } else demandHere(!piece.id || piece.id === calls[at]?.id, "the id of a call changed");
    calls[at]!.input += typeof words.arguments === "string" ? words.arguments : "";
  }

  for (const call of calls) if (call.input !== "") JSON.parse(call.input);
  const reasons = ["stop", "length", "tool_calls", "content_filter"];
  if (!reasons.includes(String(finished))) throw new Error(`no finish reason: ${finished}`);
  const options = asked.extras?.openai?.stream_options;
  const isUsage = (frame: SseFrame) => {
    const chunk = jsonOf(frame);
    return isObject(chunk) && isObject(chunk.usage);
  };
  if (isObject(options) && options.include_usage && !events.some(isUsage))
    throw new Error("no usage, though asked for");
}

/** Summaries of thinking in Azure's own words, which no client reads. */
const isSilent = (delta: JsonObject): boolean => {
  const keys = Object.keys(delta);
  return keys.length > 0 && keys.every((key) => key.startsWith("cot_"));
};
