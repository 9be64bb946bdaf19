/** Rules about the history: roles, blank text, signatures, and tool calls with their results. */
import { isObject } from "../../json";
import type { JsonObject } from "../hub/conversation";
import { isSameList, mapped } from "../hub/lists";
import { lostResultHeading } from "../hub/lost-result";
import type { ModelFacts } from "../hub/model";
import type { RuleRow } from "../hub/rules";
import { isPacked } from "../hub/signature";
import { simplified } from "./parts";
import { placedSystemTurns } from "./system-turns";
import { blocksOf, changed, eachBlock, isThinking, objectsIn } from "./traverse";

/** Applied in this order. */
export const turnRules: Record<string, RuleRow> = {
  "empty-text": [emptyText],
  "failed-result": ["is_error", failedResult],
  "system-role": ["system", systemRole],
  "tool-ids": ["tool_use", "tool_result", toolIds],
  "tool-result-order": ["tool_use", toolResultOrder],
  "missing-tool-result": ["tool_use", missingToolResult],
  "orphan-tool-result": ["tool_result", orphanToolResult],
  "no-prefill": ["assistant", noPrefill],
};

function systemRole(body: JsonObject, { supports }: ModelFacts): JsonObject | undefined {
  return withSystemFolded(body, supports.systemTurns === true);
}

/**
 * Most models know only the roles `user` and `assistant`. Leading system messages join `system`; later ones stay in place
 * as a reminder in a user message, because a changed `system` would invalidate the prompt cache.
 * @param areTaken Whether the model takes system messages where they follow a user's.
 */
export function withSystemFolded(body: JsonObject, areTaken: boolean): JsonObject | undefined {
  const messages = objectsIn(body.messages);
  if (!messages.some(({ role }) => role === "system")) return undefined;
  const placed = areTaken ? placedSystemTurns(messages) : undefined;
  const system = [...blocksOf(body.system)];
  const before = system.length;
  const folded: JsonObject[] = [];
  /** The user message that collects reminders, and whether it holds reminders only. */
  let gathering: { content: JsonObject[]; ours: boolean } | undefined;
  for (const message of messages) {
    const last = folded.at(-1);
    const content = blocksOf(message.content);
    if (message.role !== "system") {
      if (message.role === "user" && gathering?.ours) {
        append(gathering.content, content);
        folded[folded.length - 1] = { ...message, content: gathering.content };
        gathering = { content: gathering.content, ours: false };
      } else {
        folded.push(message);
        gathering = undefined;
      }
    } else if (!last) {
      append(system, content);
    } else if (placed?.has(message)) {
      if (last.role === "system") folded[folded.length - 1] = joined(last, message);
      else folded.push(message);
      gathering = undefined;
    } else {
      if (!gathering && last.role === "user") {
        gathering = { content: [...blocksOf(last.content)], ours: false };
        folded[folded.length - 1] = { ...last, content: gathering.content };
      } else if (!gathering) {
        gathering = { content: [], ours: true };
        folded.push({ role: "user", content: gathering.content });
      }
      append(gathering.content, content.map(asReminder));
    }
  }
  if (isSameList(folded, messages)) return undefined;
  return { messages: folded, ...(system.length === before ? {} : { system }) };
}

/** Two system messages as one: the later one's effort counts. */
const joined = (one: JsonObject, other: JsonObject): JsonObject => ({
  ...one,
  ...other,
  content: [...blocksOf(one.content), ...blocksOf(other.content)],
});

/** A request needs a message: a system text alone, which OpenAI accepts, becomes a user message. */
export function systemAlone(body: JsonObject): JsonObject | undefined {
  if (!Array.isArray(body.messages) || body.messages.length > 0) return undefined;
  const content = blocksOf(body.system);
  if (content.length === 0) return undefined;
  return { system: undefined, messages: [{ role: "user", content: simplified(content) }] };
}

function asReminder(block: JsonObject): JsonObject {
  if (typeof block.text !== "string" || block.text.startsWith("<system-reminder>")) return block;
  return { ...block, text: `<system-reminder>\n${block.text}\n</system-reminder>` };
}

/** "Invalid `signature` in `thinking` block": of another provider, packed by another proxy, or missing. */
export function foreignThinking(body: JsonObject): JsonObject | undefined {
  return eachBlock(body, (block, message) => {
    const proof = block.type === "thinking" ? block.signature : block.type === "redacted_thinking" ? block.data : true;
    if (proof === true) return block;
    const own = typeof proof === "string" && proof !== "" && !isPacked(proof) && !proof.includes("@");
    return own && message.role === "assistant" && block.thinking !== "Thinking..." ? block : undefined;
  });
}

/** "text content blocks must be non-empty": removes them, and messages that have nothing else. */
function emptyText(body: JsonObject): JsonObject | undefined {
  const messages = objectsIn(body.messages);
  const spoken = mapped(messages, (message) => {
    const content = withoutBlankText(message.content);
    // A system message may have nothing but an effort.
    if (content === undefined) return message.output_config == null ? undefined : { ...message, content: [] };
    return content === message.content ? message : { ...message, content };
  });
  const system = withoutBlankText(body.system);
  if (spoken === messages && system === body.system) return undefined;
  return { ...changed("messages", messages, spoken), ...(system === body.system ? {} : { system }) };
}

/** The content without blank texts; their cache mark moves to the block before. Undefined if nothing is left. */
function withoutBlankText(content: unknown): unknown {
  if (typeof content === "string") return isBlank(content) ? undefined : content;
  if (!Array.isArray(content)) return content ?? undefined;
  const kept: unknown[] = [];
  for (const block of content) {
    const last = kept.at(-1);
    if (!isObject(block)) kept.push(block);
    else if (block.type === "tool_result") kept.push(withoutBlankResultText(block));
    else if (block.type !== "text" || !isBlank(block.text)) kept.push(block);
    else if (block.cache_control && isObject(last) && !isThinking(last))
      kept[kept.length - 1] = { ...last, cache_control: block.cache_control };
  }
  if (kept.length === 0) return undefined;
  return kept.length === content.length && kept.every((block, index) => block === content[index]) ? content : kept;
}

function withoutBlankResultText(result: JsonObject): JsonObject {
  const { content } = result;
  if (typeof content === "string") return content === "" || !isBlank(content) ? result : { ...result, content: "" };
  const inner = objectsIn(content);
  const kept = inner.filter((block) => block.type !== "text" || !isBlank(block.text));
  return kept.length === inner.length ? result : { ...result, content: kept };
}

/** "content cannot be empty if `is_error` is true" */
function failedResult(body: JsonObject): JsonObject | undefined {
  const says = (block: JsonObject) => block.type !== "text" || !isBlank(block.text);
  return eachBlock(body, (block) => {
    if (block.type !== "tool_result" || block.is_error !== true || blocksOf(block.content).some(says)) return block;
    return { ...block, content: "The tool failed, and did not say why." };
  });
}

const isBlank = (text: unknown): boolean => typeof text !== "string" || !/\S/.test(text);

/** Ids of other providers may have characters that are refused; an id is always replaced by the same one. */
function toolIds(body: JsonObject): JsonObject | undefined {
  const safe = (key: string, block: JsonObject) => {
    const id = block[key];
    if (typeof id !== "string" || /^[\w-]+$/.test(id)) return block;
    return { ...block, [key]: `${id.replace(/[^\w-]/g, "_").slice(0, 40)}_${Bun.hash(id).toString(36)}` };
  };
  return eachBlock(body, (block) =>
    block.type === "tool_use" ? safe("id", block) : block.type === "tool_result" ? safe("tool_use_id", block) : block,
  );
}

/**
 * Whether each call has one result at the beginning of the message after it, and no result is without a call: as in nearly
 * all histories, which the three rules below leave as they are.
 */
function arePaired(messages: JsonObject[]): boolean {
  const open = new Set<unknown>();
  for (const { role, content } of messages) {
    let mayAnswer = role !== "assistant";
    for (const { type, id, tool_use_id } of objectsIn(content))
      if (type === "tool_result") {
        if (!mayAnswer || !open.delete(tool_use_id)) return false;
      } else if (role === "assistant" && type === "tool_use") open.add(id);
      else mayAnswer = false;
    if (role !== "assistant" && open.size > 0) return false;
  }
  return open.size === 0;
}

/** Results must come first in the message after their calls: late results are moved there. */
function toolResultOrder(body: JsonObject): JsonObject | undefined {
  const messages = objectsIn(body.messages);
  if (arePaired(messages)) return undefined;
  const resultOf = resultFinder(messages);
  const moved = new Set<JsonObject>();
  const brought = new Map<number, JsonObject[]>();
  messages.forEach((message, index) => {
    const ids = callsBefore(messages, index);
    if (ids.length === 0) return;
    const next = blocksOf(message.content);
    const settled = new Set(next.slice(0, firstOther(next)).map((block) => block.tool_use_id));
    const late = ids.filter((id) => !settled.has(id)).flatMap<JsonObject>((id) => resultOf(id, index) ?? []);
    if (late.length === 0) return;
    for (const result of late) moved.add(result);
    brought.set(index, late);
  });
  if (brought.size === 0) return undefined;

  const ordered = messages.flatMap<JsonObject>((message, index) => {
    const late = brought.get(index) ?? [];
    const stayed = blocksOf(message.content).filter((block) => !moved.has(block));
    if (late.length === 0 && stayed.length === blocksOf(message.content).length) return [message];
    const leading = firstOther(stayed);
    const content = [...stayed.slice(0, leading), ...late, ...stayed.slice(leading)];
    return content.length === 0 ? [] : [{ ...message, content }];
  });
  return { messages: ordered };
}

/** The calls that the message at this index must answer; consecutive messages of one role are one turn. */
function callsBefore(messages: JsonObject[], index: number): unknown[] {
  if (messages[index]?.role === "assistant") return [];
  let start = index;
  while (messages[start - 1]?.role === "assistant") start--;
  const ids = new Set<unknown>();
  for (let at = start; at < index; at++)
    for (const block of objectsIn(messages[at]!.content)) if (block.type === "tool_use") ids.add(block.id);
  return [...ids];
}

function append(list: JsonObject[], more: JsonObject[]): void {
  for (const item of more) list.push(item);
}

const firstOther = (content: JsonObject[]): number => {
  const found = content.findIndex((block) => block.type !== "tool_result");
  return found === -1 ? content.length : found;
};

/**
 * Finds the late result of a call: from the message at `index` on, but not after a later call with the same id, which
 * has a result of its own. Must be called in the order of the messages.
 */
function resultFinder(messages: JsonObject[]): (id: unknown, index: number) => JsonObject | undefined {
  let histories: Map<unknown, CallHistory> | undefined;
  return (id, index) => {
    histories ??= historiesOf(messages);
    const history = histories.get(id);
    while (history && (history.found[history.next]?.index ?? index) < index) history.next++;
    return history?.found[history.next]?.result;
  };
}

interface CallHistory {
  /** The calls with one id, and their results. */
  found: { index: number; result?: JsonObject }[];
  next: number;
}

function historiesOf(messages: JsonObject[]): Map<unknown, CallHistory> {
  const histories = new Map<unknown, CallHistory>();
  messages.forEach(({ role, content }, index) => {
    for (const block of blocksOf(content)) {
      const isCall = role === "assistant" && block.type === "tool_use";
      if (!isCall && !(role === "user" && block.type === "tool_result")) continue;
      const id = isCall ? block.id : block.tool_use_id;
      const history = histories.get(id) ?? { found: [], next: 0 };
      history.found.push(isCall ? { index } : { index, result: block });
      histories.set(id, history);
    }
  });
  return histories;
}

/** A call without a result, for example after an interruption, gets a result that says so. */
function missingToolResult(body: JsonObject): JsonObject | undefined {
  const messages = objectsIn(body.messages);
  if (arePaired(messages)) return undefined;
  const missing = (index: number) => {
    const calls = callsBefore(messages, index);
    if (calls.length === 0) return [];
    const given = new Set(blocksOf(messages[index]?.content).map((block) => block.tool_use_id));
    return calls.filter((id) => !given.has(id)).map(placeholder);
  };
  const answered = mapped(messages, (message, index) => {
    const content = missing(index);
    return content.length === 0 ? message : { ...message, content: [...content, ...blocksOf(message.content)] };
  });
  const last = missing(messages.length);
  if (last.length > 0) return { messages: [...answered, { role: "user", content: last }] };
  return changed("messages", messages, answered);
}

const placeholder = (id: unknown): JsonObject => ({
  type: "tool_result",
  tool_use_id: id,
  content: "The call was interrupted; there is no result.",
  is_error: true,
});

/**
 * A result without a call is refused, for example in a shortened history, and so is a second result of a call. What they say
 * becomes text in their place, but after the results that come first.
 */
function orphanToolResult(body: JsonObject): JsonObject | undefined {
  const messages = objectsIn(body.messages);
  if (arePaired(messages)) return undefined;
  const after = mapped(messages, (message, index) => {
    const content = objectsIn(message.content);
    if (!content.some((block) => block.type === "tool_result")) return message;
    const open = new Set(callsBefore(messages, index));
    const results: JsonObject[] = [];
    const others: JsonObject[] = [];
    let isChanged = false;
    for (const block of content)
      if (block.type !== "tool_result") others.push(block);
      else if (open.delete(block.tool_use_id)) results.push(block);
      else {
        isChanged = true;
        append(others, lostResult(block));
      }
    return isChanged ? { ...message, content: [...results, ...others] } : message;
  });
  return changed("messages", messages, after);
}

/** Blocks of a result that stand by themselves too; others are written out. */
const ownBlocks: ReadonlySet<unknown> = new Set(["text", "image", "document", "search_result"]);

function lostResult({ tool_use_id, content, cache_control }: JsonObject): JsonObject[] {
  const inner = blocksOf(content).filter(({ text }) => text !== "");
  const blocks = [
    { type: "text", text: lostResultHeading(tool_use_id) },
    ...inner.map((block) => (ownBlocks.has(block.type) ? block : { type: "text", text: JSON.stringify(block) })),
  ];
  return cache_control === undefined ? blocks : [...blocks.slice(0, -1), { ...blocks.at(-1), cache_control }];
}

/** Claude refuses a conversation that ends with an assistant message. */
function noPrefill(body: JsonObject): JsonObject | undefined {
  const messages = objectsIn(body.messages);
  if (messages.at(-1)?.role !== "assistant") return undefined;
  return { messages: [...messages, { role: "user", content: "Please continue." }] };
}
