/** Adapts messages to the upstream; each function returns the same array if nothing changed. */
import { isObject } from "../../lib/json";
import { type CallPiece, isAnswered, lostResultHeading, ownCallIds, pairCalls } from "../hub/call-pairs";
import type { JsonObject } from "../hub/conversation";
import { withMember } from "../hub/json";
import { mapObjects } from "../hub/lists";
import type { ModelFacts } from "../hub/model";
import { isPacked } from "../hub/signature";
import { inputText } from "../hub/tool-input";
import { noteOfImage, withFileName } from "../openai";
import { longestWireId } from "./calls";

/** Removes thinking whose signature dragoman packed for another dialect, and messages that are empty without it. */
export function withoutForeignThinking(messages: unknown[]): unknown[] {
  const own = mapObjects(messages, (message) => {
    if (message.role !== "assistant" || !isPacked(message.reasoning_opaque)) return message;
    const { reasoning_text, reasoning_opaque, ...spoken } = message;
    return spoken;
  });
  if (own === messages) return messages;
  return own.filter((message, at) => message === messages[at] || !isObject(message) || saysSomething(message));
}

const saysSomething = ({ content, refusal, tool_calls }: JsonObject): boolean =>
  (content != null && content !== "") || !!refusal || (Array.isArray(tool_calls) && tool_calls.length > 0);

/**
 * Puts each result directly after the message of its call. What a result without a call says, or a second one of a
 * call, becomes a message of the user.
 */
export function withToolResults(messages: unknown[]): unknown[] {
  if (isAnswered(messages.flatMap(placesOf))) return messages;
  const pairs = pairCalls(messages.flatMap(piecesOf));
  return messages.flatMap((message) => {
    if (isResult(message)) return pairs.get(message)?.partner ? [] : [lostResult(message)];
    return [message, ...callsIn(message).map((call) => pairs.get(call)?.partner?.item ?? noAnswer(idOf(call)))];
  });
}

/**
 * Calls of one id get ids of their own, and so do their results. Behind this API as well Claude's ids must be unique in the
 * whole conversation, and of two results of one id no model knows which call each is of.
 */
export function repeatedCallIds(messages: unknown[]): unknown[] {
  const own = ownCallIds(messages.flatMap(piecesOf), longestWireId);
  if (own.size === 0) return messages;
  const renamed = (item: JsonObject, member: string) => {
    const id = own.get(item);
    return id === undefined ? item : { ...item, [member]: id };
  };
  return mapObjects(messages, (message) => {
    if (callsIn(message).length === 0) return renamed(message, "tool_call_id");
    return withMember(
      message,
      "tool_calls",
      mapObjects(callsIn(message), (call) => renamed(call, "id")),
    );
  });
}

/** The calls of a message, or the result that it is. */
function piecesOf(message: unknown): (CallPiece<unknown> | undefined)[] {
  if (isResult(message)) return [{ kind: "result", id: message.tool_call_id, item: message }];
  if (!isSpeech(message)) return [undefined];
  return callsIn(message).map((item) => ({ kind: "call", id: idOf(item), item }));
}

/** The same for a history in which nothing may stand between a message and the results of its calls. */
const placesOf = (message: unknown) => (isResult(message) ? piecesOf(message) : [undefined, ...piecesOf(message)]);

function lostResult({ tool_call_id, content }: JsonObject): JsonObject {
  const heading = lostResultHeading(tool_call_id);
  if (Array.isArray(content)) return { role: "user", content: [{ type: "text", text: heading }, ...content] };
  return { role: "user", content: typeof content === "string" && content !== "" ? `${heading}\n${content}` : heading };
}

const isResult = (message: unknown): message is JsonObject => isObject(message) && message.role === "tool";

const isSpeech = (message: unknown): message is JsonObject => isObject(message) && message.role === "assistant";

const noAnswer = (id: unknown) => ({ role: "tool", tool_call_id: id, content: "This call was never answered." });

const callsIn = (message: unknown): unknown[] =>
  isSpeech(message) && Array.isArray(message.tool_calls) ? message.tool_calls : [];

const idOf = (call: unknown): unknown => (isObject(call) ? call.id : undefined);

/**
 * The message with an object as the input of each of its calls. Claude and Gemini get it as such, so that Copilot refuses any
 * other: "Invalid JSON format in tool call arguments" (microsoft/vscode#281405, 2025-12; for `[]` avante-corp/avante.nvim#2837),
 * and "tool_use.input: Input should be a valid dictionary" (for `null` editor-code-assistant/eca#340, 2026-03). A call that the
 * model wrote wrongly, or that was cut, stays in the conversation.
 */
export function withCallInputs(message: JsonObject): JsonObject {
  const calls = callsIn(message);
  const fit = mapObjects(calls, (call) => {
    if (!isObject(call.function) || call.function.arguments === undefined) return call;
    const called = withMember(call.function, "arguments", inputText(call.function.arguments));
    return withMember(call, "function", called);
  });
  return fit === calls ? message : { ...message, tool_calls: fit };
}

/** Tool messages may hold text only; other content moves to a user message after the results. */
export function moveToUser(messages: unknown[]): unknown[] {
  if (!messages.some((message) => isResult(message) && hasMoreThanText(message.content))) return messages;
  const moved: unknown[] = [];
  let shown: unknown[] = [];
  const show = () => {
    if (shown.length > 0) moved.push({ role: "user", content: shown });
    shown = [];
  };
  for (const message of messages) {
    if (!isResult(message)) show();
    if (!isResult(message) || !hasMoreThanText(message.content)) moved.push(message);
    else {
      const texts = message.content.filter(isText).map((part) => part.text);
      moved.push({ ...message, content: texts.join("\n\n") || "See below." });
      shown.push({ type: "text", text: `From the result of ${message.tool_call_id}:` });
      for (const part of message.content) if (!isText(part)) shown.push(part);
    }
  }
  show();
  return moved;
}

const isText = (part: unknown): part is JsonObject => isObject(part) && part.type === "text";

const hasMoreThanText = (content: unknown): content is unknown[] =>
  Array.isArray(content) && content.some((part) => !isText(part));

/**
 * Converts the client's cache marks to Copilot's, which are limited: two on system messages, one on the last other
 * message.
 */
export function withCacheMarks(messages: unknown[]): unknown[] {
  const markedAt = messages.flatMap((message, at) => (isObject(message) && isMarked(message) ? [at] : []));
  if (markedAt.length === 0) return messages;
  const isSystem = (message: unknown) => isObject(message) && message.role === "system";
  const chosen = new Set(markedAt.filter((at) => isSystem(messages[at])).slice(-2));
  if (markedAt.some((at) => !isSystem(messages[at])))
    chosen.add(messages.findLastIndex((message) => !isSystem(message)));
  return messages.map((message, at) => {
    if (!isObject(message)) return message;
    const plain = isMarked(message) ? withoutMarks(message) : message;
    return chosen.has(at) ? { ...plain, copilot_cache_control: { type: "ephemeral" } } : plain;
  });
}

/**
 * Marks the end of the instructions, the newest message, and the end of the turn before it, which the previous request
 * has written to the cache. Not if the client set marks of its own.
 */
export function withAddedCacheMarks(messages: unknown[]): unknown[] {
  const isOwn = (message: unknown) => isObject(message) && (message.copilot_cache_control != null || isMarked(message));
  if (messages.some(isOwn)) return messages;
  const roleAt = (at: number) => (isObject(messages[at]) ? messages[at].role : undefined);
  const last = messages.findLastIndex((message) => isObject(message) && isInput(message.role));
  const reply = messages.findLastIndex((_, at) => at < last && roleAt(at) === "assistant");
  const before = messages.findLastIndex((_, at) => at < reply && isInput(roleAt(at)));
  const system = messages.findIndex((_, at) => roleAt(at) !== "system");
  const chosen = new Set([(system === -1 ? messages.length : system) - 1, before, last]);
  return messages.map((message, at) =>
    chosen.has(at) && isObject(message) ? { ...message, copilot_cache_control: { type: "ephemeral" } } : message,
  );
}

const isInput = (role: unknown): boolean => role === "user" || role === "tool";

function isMarked({ cache_control, content }: JsonObject): boolean {
  return cache_control != null || (Array.isArray(content) && content.some((part) => part?.cache_control != null));
}

function withoutMarks({ cache_control: _, ...message }: JsonObject): JsonObject {
  if (!Array.isArray(message.content)) return message;
  const content = message.content.map((part: unknown) => {
    if (!isObject(part)) return part;
    const { cache_control: _, ...plain } = part;
    return plain;
  });
  return { ...message, content };
}

/**
 * Only OpenAI takes empty text parts and messages without content. Kimi says "the message at position 31 with role 'assistant' must
 * not be empty" (anomalyco/opencode#39451, 2026-07), Google "it must include at least one parts field" (langchain-ai/langchainjs#9987,
 * 2026-02).
 */
export function withContent(message: JsonObject): JsonObject {
  const { content } = message;
  const calls = callsIn(message).length > 0;
  if (!Array.isArray(content))
    return (content === "" || content == null) && !calls ? { ...message, content: " " } : message;
  const parts = content.filter((part) => !isText(part) || part.text !== "");
  if (parts.length === content.length && parts.length > 0) return message;
  return { ...message, content: parts.length > 0 ? parts : calls ? null : " " };
}

/** The message with a name for each of its files; the same object if they have one. */
export function withFileNames(message: JsonObject): JsonObject {
  const { content } = message;
  if (!Array.isArray(content)) return message;
  const parts = mapObjects(content, (part) => {
    const file = isObject(part.file) ? withFileName(part.file) : part.file;
    return file === part.file ? part : { ...part, file };
  });
  return parts === content ? message : { ...message, content: parts };
}

/** The message with a note in place of each image of a type that the model does not take. */
export function withSeenImages(message: JsonObject, model: ModelFacts): JsonObject {
  const { content } = message;
  if (!Array.isArray(content)) return message;
  const parts = mapObjects(content, (part) => {
    const note = isObject(part.image_url) ? noteOfImage(part.image_url.url, model) : undefined;
    return note === undefined ? part : { type: "text", text: note };
  });
  return parts === content ? message : { ...message, content: parts };
}
