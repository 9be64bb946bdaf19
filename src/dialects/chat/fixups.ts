/** Chat completions passed through, with the few edits that clients or the upstream need. */
import { isEmpty, isObject, numberIn, parseWithSource } from "../../json";
import { editMembers } from "../../net/json/json-edit";
import { commentFrame, jsonOf, type SseFrame } from "../../net/stream/sse";
import type { ReplyContext, RequestFixup, ToClient, TranslationOptions } from "../codec";
import { cutReply } from "../hub/block-lifecycle";
import type { JsonObject } from "../hub/conversation";
import { dedupe } from "../hub/dedupe";
import { omit } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import type { ReplyError } from "../hub/reply";
import { asFixup } from "../hub/rules";
import { type CallNumbers, callNumbers, inventedCallId } from "./calls";
import { errorFrame, errorIn, gaveUp, invalidEvent } from "./errors";
import { applyProviderRules, applyRules } from "./rules";
import { hasText } from "./thinking";

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
export function fixRequest(body: JsonObject, model: ModelFacts, options?: TranslationOptions): RequestFixup {
  return asFixup(body, (model.provider ? applyProviderRules : applyRules)(body, model, options));
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
    const message = fixMessage(choice.message, replyId, report);
    if (message !== choice.message) set.message = message;
    if (choice.finish_reason == null) {
      report("finish-reason");
      set.finish_reason = Array.isArray(choice.message.tool_calls) ? "tool_calls" : "stop";
    }
  }
  return isEmpty(set) ? choice : { ...choice, ...set };
}

function fixMessage(message: JsonObject, replyId: unknown, report: Report): JsonObject {
  const set: JsonObject = {};
  if (!hasRole(message)) {
    report("role");
    set.role = "assistant";
  }
  if (!("content" in message)) {
    report("content-key");
    set.content = null;
  }
  const { tool_calls: calls } = message;
  if (Array.isArray(calls) && calls.some((call) => isObject(call) && !call.id)) {
    report("tool-id");
    set.tool_calls = calls.map((call, number) =>
      isObject(call) && !call.id ? { ...call, id: inventedCallId(replyId, number) } : call,
    );
  }
  const isPadded = message.padding !== undefined;
  if (isPadded) report("padding");
  if (!isPadded && isEmpty(set)) return message;
  const { padding: _, ...others } = message;
  return { ...others, ...set };
}

// ── Stream ──

/** Passes frames through unchanged, except for fixups. */
export function fixStream(context: ReplyContext, onFixup: (name: string) => void): ToClient<SseFrame> {
  return (next) => {
    const report = dedupe(onFixup);
    const fixMembers = memberFixer(context.model, report);
    const replies = replyFixer(context.replies, report);
    /** The last chunk. */
    let last: SseFrame = {};
    let ended = false;

    const push = (frame: SseFrame) => {
      if (ended) return;
      if (frame.data === undefined) return next.push(frame);
      if (frame.data === "[DONE]") return done(frame);
      // The SSE standard ignores an event with empty data, but clients parse it and fail.
      if (frame.data === "") return report("empty-data");
      const chunk = jsonOf(frame);
      if (!isObject(chunk)) return fail(invalidEvent);
      if (chunk.error) return end(asEvent(frame, report));
      const failure = errorIn(chunk);
      if (failure) return fail(failure);
      const unwanted = unwantedIn(chunk, context.usage);
      if (unwanted) return report(unwanted);
      last = frame;
      pass(frame, frame.data, chunk);
    };

    const pass = (frame: SseFrame, text: string, chunk: JsonObject) => {
      const { choices, error } = replies.fix(chunk);
      if (error) return fail(error);
      const data = fixMembers(choices ? JSON.stringify({ ...chunk, choices }) : text, chunk);
      next.push(data === text ? asEvent(frame, report) : { data });
    };

    const done = (frame: SseFrame) => {
      if (replies.finished === 0 && context.replies === 1) {
        const reason = replies.missingReason();
        if (!reason) return fail(cutReply);
        report("finish-reason");
        const { usage: _, copilot_usage: __, ...chunk } = objectOf(last.data ?? "{}");
        const choices = [{ index: 0, delta: {}, finish_reason: reason }];
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
        if (replies.finished < context.replies) fail(cutReply);
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

/** The fixup that removes a chunk without text from the stream; undefined if it may pass. */
function unwantedIn({ choices, usage, copilot_usage }: JsonObject, wantsUsage: boolean): string | undefined {
  if (!Array.isArray(choices) || choices.length > 0) return undefined;
  if (isObject(usage)) return wantsUsage ? undefined : "usage-chunk";
  // OpenAI's SDK takes the `usage: null` of such a chunk as the final value.
  return isObject(copilot_usage) ? "bill-chunk" : undefined;
}

/** Fixes the chunk's own fields in its text: a stream may need it in every chunk, and it is the same in all of them. */
function memberFixer(model: string, report: Report): (data: string, chunk: JsonObject) => string {
  const rename = modelRenamer(model);
  let created: number | undefined;
  return (data, chunk) => {
    let fixed = data;
    const add = (name: string, member: string) => {
      report(name);
      fixed = `{${member},${fixed.slice(fixed.indexOf("{") + 1)}`;
    };
    const set = (name: string, member: JsonObject) => {
      report(name);
      fixed = editMembers(fixed, member, []);
    };
    if (!Array.isArray(chunk.choices)) set("choices-field", { choices: [] });
    if (!("created" in chunk)) {
      created ??= now();
      add("created-field", `"created":${created}`);
    }
    if (!("object" in chunk)) add("object-field", '"object":"chat.completion.chunk"');
    // The first chunk of Azure has "".
    else if (chunk.object !== "chat.completion.chunk") set("object-field", { object: "chat.completion.chunk" });
    if (typeof chunk.model !== "string" || chunk.model === "" || chunk.model === model) return fixed;
    report("model-name");
    return rename(fixed, chunk.model);
  };
}

/** Fixes the choices of chunks, and knows how far each of the replies (of `n`) has come. */
function replyFixer(replyCount: number, report: Report) {
  const calls = new Map<unknown, CallNumbers>();
  let hasContent = false;
  /** The replies that have a role, by their index. */
  const withSpeaker = new Set<unknown>();
  /** The replies that have ended, by their index. */
  const finished = new Set<unknown>();
  let error: Pick<ReplyError, "code" | "message"> | undefined;

  const fixChoice = (choice: JsonObject, replyId: unknown): JsonObject => {
    if (choice.finish_reason === "error") error ??= gaveUp;
    const index = numberIn(choice.index);
    if (typeof choice.finish_reason === "string") finished.add(index);
    const fixed = index === 0 || (replyCount > 1 && index !== undefined) ? choice : { ...choice, index: 0 };
    if (fixed !== choice) report("split-choices");
    if (!isObject(choice.delta)) return fixed;
    hasContent ||= hasText(choice.delta);
    const delta = withCalls(withRole(choice.delta, fixed.index), fixed.index, replyId);
    return delta === choice.delta ? fixed : { ...fixed, delta };
  };

  /** OpenAI's SDK rejects a reply without a role. */
  const withRole = (delta: JsonObject, index: unknown): JsonObject => {
    if (withSpeaker.has(index)) return delta;
    withSpeaker.add(index);
    if (hasRole(delta)) return delta;
    report("role");
    return { role: "assistant", ...omit(delta, roleAlone) };
  };

  const withCalls = (delta: JsonObject, index: unknown, replyId: unknown): JsonObject => {
    if (!Array.isArray(delta.tool_calls) || delta.tool_calls.length === 0) return delta;
    hasContent = true;
    const numbers = calls.get(index) ?? callNumbers(report);
    calls.set(index, numbers);
    const pieces = numbers.fix(delta.tool_calls, replyId);
    if (!pieces) error ??= invalidEvent;
    return pieces === delta.tool_calls ? delta : { ...delta, tool_calls: pieces };
  };

  return {
    /** The fixed choices, missing if none had to change; or an error that ends the stream. */
    fix({ choices, id }: JsonObject): { choices?: unknown[]; error?: typeof error } {
      if (!Array.isArray(choices)) return {};
      const fixed = choices.map((choice) => (isObject(choice) ? fixChoice(choice, id) : choice));
      if (error) return { error };
      return fixed.some((choice, at) => choice !== choices[at]) ? { choices: fixed } : {};
    },
    /** How many have ended. */
    get finished() {
      return finished.size;
    },
    /** The finish reason that the only reply lacks; undefined if the reply is not complete. */
    missingReason(): "stop" | "tool_calls" | undefined {
      const called = calls.get(0);
      if (!hasContent || called?.whole === false) return undefined;
      return called ? "tool_calls" : "stop";
    },
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

/** Replaces the upstream's model name by the requested one. Quotes in text are escaped, so text cannot match. */
function modelRenamer(requested: string): (data: string, model: string) => string {
  const to = `"model":${JSON.stringify(requested)}`;
  return (data, model) => {
    const from = `"model":${JSON.stringify(model)}`;
    const at = data.indexOf(from);
    // Found twice: `copilot_usage` names the model too. Not found: the JSON has spaces or escapes.
    if (at === -1 || data.indexOf(from, at + 1) !== -1) return editMembers(data, { model: requested }, []);
    return data.slice(0, at) + to + data.slice(at + from.length);
  };
}

/** Parses a string that is known to hold an object. */
const objectOf = (text: string): JsonObject => parseWithSource(text) as JsonObject;

const now = () => Math.floor(Date.now() / 1000);
