/** Rules about the history: roles, blank text, signatures, and tool calls with their results. */
import { isObject, isSameJson } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import { wordId } from "../hub/ids";
import { isSameList, mapped } from "../hub/lists";
import type { ModelFacts } from "../hub/model";
import type { RuleRow } from "../hub/rules";
import { isPacked } from "../hub/signature";
import { inputObject } from "../hub/tool-input";
import { missingToolResult, orphanToolResult, repeatedCallIds, toolResultOrder } from "./call-rules";
import { simplified } from "./parts";
import { placedSystemTurns } from "./system-turns";
import { blocksOf, changed, eachBlock, isThinking, objectsIn } from "./traverse";

/** Applied in this order. */
export const turnRules: Record<string, RuleRow> = {
  "empty-text": [emptyText],
  "failed-result": ["is_error", failedResult],
  "system-role": ["system", systemRole],
  "call-input": ["tool_use", callInput],
  "tool-ids": ["tool_use", "tool_result", toolIds],
  "repeated-call-ids": ["tool_use", repeatedCallIds],
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

/** A text that is not the person's own within a user's message. */
export function asReminder(block: JsonObject): JsonObject {
  if (typeof block.text !== "string" || block.text.startsWith("<system-reminder>")) return block;
  return { ...block, text: `<system-reminder>\n${block.text}\n</system-reminder>` };
}

/**
 * "Invalid `signature` in `thinking` block": of another provider, packed by another proxy, or missing. caozhiyuan/copilot-api
 * and its kin write the proof of an OpenAI model with its id after an `@`, and "Thinking..." where they have no words; they
 * leave both out for Claude themselves (looked up 2026-11).
 */
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
    if (content === undefined) {
      if (message.output_config == null) return undefined;
      // A system message may have nothing but an effort.
      return isSameJson(message.content, []) ? message : { ...message, content: [] };
    }
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

/** "tool_use.input: Input should be a valid dictionary": also for a call that the model wrote wrongly, or that was cut. */
function callInput(body: JsonObject): JsonObject | undefined {
  return eachBlock(body, (block) => {
    const { type, input } = block;
    if (type !== "tool_use" || input === undefined || isObject(input)) return block;
    return { ...block, input: inputObject({ input: typeof input === "string" ? input : JSON.stringify(input) }) };
  });
}

/** Ids of other providers may have characters that are refused; an id is always replaced by the same one. */
function toolIds(body: JsonObject): JsonObject | undefined {
  const safe = (key: string, block: JsonObject) => {
    const id = block[key];
    return typeof id !== "string" || wordId(id) === id ? block : { ...block, [key]: wordId(id) };
  };
  return eachBlock(body, (block) =>
    block.type === "tool_use" ? safe("id", block) : block.type === "tool_result" ? safe("tool_use_id", block) : block,
  );
}

function append(list: JsonObject[], more: JsonObject[]): void {
  for (const item of more) list.push(item);
}

/** Claude refuses a conversation that ends with an assistant message. */
function noPrefill(body: JsonObject): JsonObject | undefined {
  const messages = objectsIn(body.messages);
  if (messages.at(-1)?.role !== "assistant") return undefined;
  return { messages: [...messages, { role: "user", content: "Please continue." }] };
}
