/** Chat completions passed through, with the few edits that clients or the upstream need. */
import { isObject, numberIn, parseSpelt } from "../../json";
import { editMembers } from "../../net/json-edit";
import { commentFrame, type SseFrame } from "../../net/sse";
import type { ReplyContext, RequestFixup, ToClient } from "../codec";
import { cutReply } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import { dedupe } from "../hub/dedupe";
import { omit } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import type { ReplyError } from "../hub/reply";
import { asFixup } from "../hub/rules";
import { deltaReader } from "../hub/text-delta";
import { type CallNumbers, callNumbers, inventedCallId } from "./calls";
import { deltaText } from "./delta-text";
import { errorFrame, errorIn, gaveUp, invalidEvent } from "./errors";
import { applyRules } from "./rules";

// ── Request ──

/** What fixing the reply needs to know about the request. */
export function replyContext(body: JsonObject): ReplyContext {
  const { model, stream_options: options, n } = body;
  return {
    model: typeof model === "string" ? model : "",
    usage: isObject(options) && options.include_usage === true,
    replies: Math.max(1, numberIn(n) ?? 1),
  };
}

/** The edits of a client's request. */
export function fixRequest(body: JsonObject, model: ModelFacts): RequestFixup {
  return asFixup(body, applyRules(body, model));
}

// ── Full reply ──

type Report = (fixup: string) => void;

/** The same object, or a copy with fixups. */
export function fixReply(body: JsonObject, context: ReplyContext): { body: JsonObject; fixups: string[] } {
  const fixups = new Set<string>();
  const report: Report = (name) => void fixups.add(name);
  const set: JsonObject = {};

  if (!Array.isArray(body.choices)) return { body, fixups: [] };
  if (body.object !== "chat.completion") {
    report("object-field");
    set.object = "chat.completion";
  }
  if (!("created" in body)) {
    report("created-field");
    set.created = now();
  }
  if (typeof body.model === "string" && body.model !== context.model) {
    report("model-name");
    set.model = context.model;
  }
  let choices: unknown[] = body.choices;
  if (context.replies === 1 && choices.length > 1) {
    report("split-choices");
    choices = [merged(choices.filter(isObject))];
  }
  set.choices = choices.map((choice, at) => (isObject(choice) ? fixFullChoice(choice, at, body.id, report) : choice));
  return fixups.size === 0 ? { body, fixups: [] } : { body: { ...body, ...set }, fixups: [...fixups] };
}

/** Claude's text and each of its calls come as separate choices, although one was asked for. */
function merged(choices: JsonObject[]): JsonObject {
  const messages = choices.map(({ message }) => message).filter(isObject);
  const join = (key: string) =>
    messages.map((message) => (typeof message[key] === "string" ? message[key] : "")).join("");
  const calls = messages.flatMap(({ tool_calls }) => (Array.isArray(tool_calls) ? tool_calls : []));
  const message: JsonObject = Object.assign({}, ...messages.toReversed(), { content: join("content") || null });
  for (const key of ["refusal", "reasoning_text"]) if (key in message) message[key] = join(key) || null;
  if (calls.length > 0) message.tool_calls = calls;
  const reasons = choices.map((choice) => choice.finish_reason).filter((reason) => typeof reason === "string");
  const reason = reasons.includes("tool_calls") ? "tool_calls" : reasons.at(-1);
  return { ...choices[0], index: 0, message, ...(reason === undefined ? {} : { finish_reason: reason }) };
}

function fixFullChoice(choice: JsonObject, at: number, replyId: unknown, report: Report): JsonObject {
  const set: JsonObject = {};
  if (numberIn(choice.index) === undefined) {
    report("choice-index");
    set.index = at;
  }
  if (isObject(choice.message)) {
    set.message = fixMessage(choice.message, replyId, report);
    if (choice.finish_reason == null) {
      report("finish-reason");
      set.finish_reason = Array.isArray(choice.message.tool_calls) ? "tool_calls" : "stop";
    }
  }
  return { ...choice, ...set };
}

function fixMessage(message: JsonObject, replyId: unknown, report: Report): JsonObject {
  const { padding, ...fixed } = message;
  if (padding !== undefined) report("padding");
  if (!hasRole(fixed)) {
    report("role");
    fixed.role = "assistant";
  }
  if (!("content" in fixed)) {
    report("content-key");
    fixed.content = null;
  }
  if (Array.isArray(fixed.tool_calls) && fixed.tool_calls.some((call) => isObject(call) && !call.id)) {
    report("tool-id");
    fixed.tool_calls = fixed.tool_calls.map((call, number) =>
      isObject(call) && !call.id ? { ...call, id: inventedCallId(replyId, number) } : call,
    );
  }
  return fixed;
}

// ── Stream ──

/** Passes frames through unchanged, except for fixups. */
export function fixStream(context: ReplyContext, onFixup: (name: string) => void): ToClient<SseFrame> {
  return (next) => {
    const report = dedupe(onFixup);
    const readJson = deltaReader(deltaText);
    const rename = modelRenamer(context.model);
    const calls = new Map<unknown, CallNumbers>();
    let lastChunk: JsonObject = {};
    let hasContent = false;
    /** The replies (of `n`) that have a role, by their index. */
    const withSpeaker = new Set<unknown>();
    /** The replies (of `n`) that have ended, by their index. */
    const finished = new Set<unknown>();
    let ended = false;

    const push = (frame: SseFrame) => {
      if (ended) return;
      if (frame.data === undefined) return next.push(frame);
      if (frame.data === "[DONE]") return done(frame);
      // The SSE standard ignores an event with empty data, but clients parse it and fail.
      if (frame.data === "") return report("empty-data");
      const chunk = readJson(frame);
      if (!isObject(chunk)) return fail(invalidEvent);
      if (chunk.error) return end(asEvent(frame, report));
      const failure = errorIn(chunk);
      if (failure) return fail(failure);
      if (isWordless(chunk)) {
        if (isObject(chunk.usage) && !context.usage) return report("usage-chunk");
        // OpenAI's SDK takes the `usage: null` of such a chunk as the final value.
        if (isObject(chunk.copilot_usage) && !isObject(chunk.usage)) return report("bill-chunk");
      }

      lastChunk = chunk;
      const choices = fixChoices(chunk);
      if (ended) return;
      const data = fixMembers(choices ? JSON.stringify({ ...chunk, choices }) : frame.data, chunk);
      next.push(data === frame.data ? asEvent(frame, report) : { data });
    };

    /** The fixed choices; undefined if none had to change. */
    const fixChoices = ({ choices, id }: JsonObject): unknown[] | undefined => {
      if (!Array.isArray(choices)) return undefined;
      const fixed = choices.map((choice) => (isObject(choice) ? fixChoice(choice, id) : choice));
      return fixed.some((choice, at) => choice !== choices[at]) ? fixed : undefined;
    };

    const fixChoice = (choice: JsonObject, replyId: unknown): JsonObject => {
      let fixed = choice;
      if (choice.finish_reason === "error") fail(gaveUp);
      if (typeof choice.finish_reason === "string") finished.add(numberIn(choice.index));
      const index = numberIn(choice.index);
      if (index !== 0 && (context.replies === 1 || index === undefined)) {
        report("split-choices");
        fixed = { ...fixed, index: 0 };
      }
      if (!isObject(choice.delta)) return fixed;
      const delta = withRole(choice.delta, fixed.index);
      if (delta !== choice.delta) fixed = { ...fixed, delta };
      hasContent ||= deltaText({ choices: [choice] }) !== undefined;
      if (!Array.isArray(delta.tool_calls) || delta.tool_calls.length === 0) return fixed;
      hasContent = true;
      const numbers = calls.get(fixed.index) ?? callNumbers(report);
      calls.set(fixed.index, numbers);
      const pieces = numbers.fix(delta.tool_calls, replyId);
      if (!pieces) fail(invalidEvent);
      return pieces === delta.tool_calls ? fixed : { ...fixed, delta: { ...delta, tool_calls: pieces } };
    };

    /** OpenAI's SDK rejects a reply without a role. */
    const withRole = (delta: JsonObject, index: unknown): JsonObject => {
      if (withSpeaker.has(index)) return delta;
      withSpeaker.add(index);
      if (hasRole(delta)) return delta;
      report("role");
      return { role: "assistant", ...omit(delta, roleAlone) };
    };

    /** Fixes the chunk's own fields in its text, because a stream may need it in every chunk. */
    const fixMembers = (data: string, chunk: JsonObject): string => {
      let fixed = data;
      const add = (name: string, member: string) => {
        report(name);
        fixed = `{${member},${fixed.slice(fixed.indexOf("{") + 1)}`;
      };
      if (!Array.isArray(chunk.choices)) {
        report("choices-field");
        fixed = JSON.stringify({ ...objectOf(fixed), choices: [] });
      }
      if (!("created" in chunk)) add("created-field", `"created":${now()}`);
      if (!("object" in chunk)) add("object-field", '"object":"chat.completion.chunk"');
      else if (chunk.object !== "chat.completion.chunk") {
        // The first chunk of Azure has "".
        report("object-field");
        fixed = editMembers(fixed, { object: "chat.completion.chunk" }, []);
      }
      if (typeof chunk.model !== "string" || chunk.model === "" || chunk.model === context.model) return fixed;
      report("model-name");
      return rename(fixed, chunk.model);
    };

    const done = (frame: SseFrame) => {
      if (finished.size === 0 && context.replies === 1) {
        const called = calls.get(0);
        if (!hasContent || called?.whole === false) return fail(cutReply);
        report("finish-reason");
        const { usage: _, copilot_usage: __, ...chunk } = lastChunk;
        const choices = [{ index: 0, delta: {}, finish_reason: called ? "tool_calls" : "stop" }];
        next.push({ data: fixMembers(JSON.stringify({ ...chunk, choices }), chunk) });
      }
      end(frame);
    };

    const end = (frame: SseFrame) => {
      ended = true;
      next.push(frame);
    };

    const fail = (error: Pick<ReplyError, "code" | "message">) => {
      if (!ended) end(errorFrame(error));
    };

    return {
      push,
      end() {
        if (finished.size < context.replies) fail(cutReply);
        // The reply is complete, but some clients wait for `[DONE]`.
        else if (!ended) {
          report("done-event");
          end({ data: "[DONE]" });
        }
        next.end();
      },
      keepAlive() {
        if (!ended) next.push(commentFrame("keep-alive"));
      },
      fail,
    };
  };
}

/** Copilot may end a stream with its error as bare JSON; clients read it only after `data:`. */
function asEvent(frame: SseFrame, report: Report): SseFrame {
  if (frame.bytes?.[0] !== 0x7b) return frame;
  report("data-field");
  return { data: frame.data };
}

const roleAlone = new Set(["role"]);

const hasRole = ({ role }: JsonObject): boolean => typeof role === "string" && role !== "";

function isWordless({ choices }: JsonObject): boolean {
  return Array.isArray(choices) && choices.length === 0;
}

/** Replaces the upstream's model name by the requested one. Quotes in text are escaped, so text cannot match. */
function modelRenamer(requested: string): (data: string, model: string) => string {
  const to = `"model":${JSON.stringify(requested)}`;
  return (data, model) => {
    const from = `"model":${JSON.stringify(model)}`;
    const at = data.indexOf(from);
    // Found twice: `copilot_usage` names the model too. Not found: the JSON has spaces or escapes.
    if (at === -1 || data.indexOf(from, at + 1) !== -1) return JSON.stringify({ ...objectOf(data), model: requested });
    return data.slice(0, at) + to + data.slice(at + from.length);
  };
}

/** Parses a string that is known to hold an object. */
const objectOf = (text: string): JsonObject => parseSpelt(text) as JsonObject;

const now = () => Math.floor(Date.now() / 1000);
