/**
 * Compaction: a client has its conversation summarized and goes on with the summary. It asks with a `compaction_trigger`
 * as an item of its input, and expects one `compaction` item, whose content only its maker can read. (OpenAI's guide
 * “Compaction”; Codex, codex-rs/core/src/compact_remote_v2.rs, fails for any other number of them.) GitHub Copilot takes the
 * trigger for its models of this dialect (seen 2026-07), and some of them answer with two items. Where it does not, the
 * model is asked for a summary in words, which the item then holds.
 */
import { isObject, parseJson } from "../../lib/json";
import { editMembers, memberText } from "../../lib/net/json/json-edit";
import type { Stage } from "../../lib/net/stream/stream";
import type { JsonObject, Signature } from "../hub/conversation";
import { refuse, textIn } from "../hub/json";
import type { Block, ReplyEvent } from "../hub/reply";
import { isSealed, seal, unseal } from "../hub/seal";
import { ownId } from "./ids";

/** Whether an upstream took the trigger and did not do what it asks for. */
export const isNotMade = (event: ReplyEvent): boolean => event.type === "error" && event.code === notMade.code;

/** The type of the item with which a client asks. */
export const trigger = "compaction_trigger";

/** What the model is asked in place of the trigger. */
const summaryPrompt = `Write a summary of this conversation. It replaces the conversation: whoever continues the work sees your summary and some of the user's messages, and nothing else.
Include: what the user wants, with every requirement and preference; what was decided, and why; what was done, with exact names of files, commands, functions and values; what was found out; what failed; what is still to be done, and the next step.
Do not call a tool, and do not continue the work. Write the summary only.`;

const heading = "A summary of the conversation before this point:";

/** What the content of a compaction holds that dragoman made: a summary, or several items of the upstream in the one that clients expect. */
const [ofSummary, ofItems] = ["summary.", "compactions."];

/** Opens an item that dragoman made: it stands for a message with the summary, or for the upstream's items. Any other is returned alone. */
export function unpacked(item: JsonObject): JsonObject[] {
  const content = item.type === "compaction" ? item.encrypted_content : undefined;
  if (isSealed(content, ofSummary)) return [messageOf(`${heading}\n\n${unseal(content, ofSummary) ?? ""}`)];
  const items = parseJson(unseal(content, ofItems) ?? "");
  return Array.isArray(items) ? items.filter(isObject) : [item];
}

/** Opens all items that dragoman made: none goes upstream. */
export const readSummaries = (input: unknown[]): unknown[] =>
  input.flatMap((item) => (isObject(item) ? unpacked(item) : [item]));

/** The content of a compaction, which only its maker can read; undefined for other items. */
export function sealOf({ type, encrypted_content }: JsonObject): Signature | undefined {
  const value = type === "compaction" ? textIn(encrypted_content) : "";
  return value === "" ? undefined : { dialect: "responses", value };
}

const messageOf = (text: string): JsonObject => ({
  type: "message",
  role: "user",
  content: [{ type: "input_text", text }],
});

const isTrigger = (item: unknown): boolean => isObject(item) && item.type === trigger;

/**
 * The request for a summary; undefined if the body has no trigger.
 * @throws ProxyError `invalid_request` if there is nothing to summarize.
 */
export function summaryRequest(body: JsonObject): JsonObject | undefined {
  if (!Array.isArray(body.input) || !body.input.some(isTrigger)) return undefined;
  const { input, text: _, ...others } = body;
  const items = body.input.filter((item) => !isTrigger(item));
  if (items.length === 0) refuse("input", "`input` is empty: there is nothing to summarize.");
  return { ...others, input: [...items, messageOf(summaryPrompt)], tool_choice: "none" };
}

/** The text of a compaction item in place of the reply's own blocks. A reply without a whole summary is an error. */
export const summaryReply: Stage<ReplyEvent, ReplyEvent> = (next) => {
  const texts: string[] = [];
  let open: Block | undefined;
  const finish = (event: Extract<ReplyEvent, { type: "finish" }>) => {
    const summary = texts.join("").trim();
    if (event.reason !== "stop" || summary === "") return next.push(noSummary);
    const value = { type: "compaction", id: ownId("cmp"), encrypted_content: seal(summary, ofSummary) };
    next.push({ type: "block-start", block: { kind: "foreign", dialect: "responses", value } });
    next.push({ type: "block-end" });
    next.push(event);
  };
  return {
    push(event) {
      if (event.type === "block-start") open = event.block;
      else if (event.type === "block-end") open = undefined;
      else if (event.type === "finish") finish(event);
      else if (event.type !== "block-delta") next.push(event);
      else if (open?.kind === "text" && !open.refusal) texts.push(event.text);
    },
    end: () => next.end(),
  };
};

/** The upstream's compaction in place of all it answered, as one item. A reply without one is an error. */
export const compactionReply: Stage<ReplyEvent, ReplyEvent> = (next) => {
  const made: JsonObject[] = [];
  const finish = (event: Extract<ReplyEvent, { type: "finish" }>) => {
    const [first, ...others] = made;
    if (event.reason !== "stop") return next.push(noSummary);
    if (first === undefined) return next.push(notMade);
    const value =
      others.length === 0
        ? first
        : { type: "compaction", id: ownId("cmp"), encrypted_content: seal(JSON.stringify(made), ofItems) };
    next.push({ type: "block-start", block: { kind: "foreign", dialect: "responses", value } });
    next.push({ type: "block-end", signature: sealOf(made.at(-1)!) });
    next.push(event);
  };
  return {
    push(event) {
      if (event.type === "finish") return finish(event);
      if (event.type === "block-start") {
        const { block } = event;
        if (block.kind === "foreign" && sealOf(block.value)) made.push(block.value);
      } else if (event.type !== "block-end" && event.type !== "block-delta") next.push(event);
    },
    end: () => next.end(),
  };
};

const notMade = {
  type: "error",
  code: "compaction_not_made",
  message: "The upstream answered without a summary of the conversation; the next one is asked for in words.",
  isOurs: true,
} as const;

const noSummary = {
  type: "error",
  code: "compaction_failed",
  message: "The model did not write a whole summary of the conversation; try again, or with another model.",
  isOurs: true,
} as const;

// ── POST /v1/responses/compact ──

/** A compaction request as a request with a trigger. @param text A JSON object. */
export function triggered(text: string): string {
  const input = memberText(text, "input") ?? "[]";
  const items = input.startsWith('"') ? `{"role":"user","content":${input}}` : input.slice(1, -1).trim();
  const others = editMembers(text, { stream: false }, ["input"]).slice(0, -1);
  return `${others},"input":[${items}${items === "" ? "" : ","}{"type":"${trigger}"}]}`;
}

/** Characters of the client's messages that stay beside the summary: about 64,000 tokens, as OpenAI keeps. */
const maxRetained = 256_000;
/** Characters that an image or a file counts as, whatever the length of its data. */
const mediaLength = 6_000;

/** The answer to a compaction request: the newest messages of the user, and the compaction item. */
export function compactedReply(request: JsonObject, reply: JsonObject): JsonObject {
  const items: unknown[] = Array.isArray(request.input) ? request.input : [messageOf(textIn(request.input))];
  const retained: JsonObject[] = [];
  let left = maxRetained;
  for (const item of items.toReversed()) {
    if (!isObject(item) || item.role !== "user") continue;
    const whole = typeof item.content === "string" ? [{ type: "input_text", text: item.content }] : item.content;
    const parts = Array.isArray(whole) ? whole.filter(isObject) : [];
    const length = parts.reduce((sum, part) => sum + lengthOf(part), 0);
    // The newest message stays, as far as its words fit.
    if (length > left && retained.length > 0) break;
    const content = length > left ? shortened(parts, left) : whole;
    left -= length;
    retained.unshift({ type: "message", id: ownId("msg"), status: "completed", role: "user", content });
  }
  const made: unknown[] = Array.isArray(reply.output) ? reply.output : [];
  const { id, created_at, usage } = reply;
  return { id, object: "response.compaction", created_at, output: [...retained, ...made], usage };
}

const lengthOf = ({ text }: JsonObject): number => (typeof text === "string" ? text.length : mediaLength);

/** The parts up to this length; a text that does not fit ends there. */
function shortened(parts: JsonObject[], most: number): JsonObject[] {
  let left = most;
  return parts.flatMap((part) => {
    const length = lengthOf(part);
    const room = left;
    left = Math.max(0, left - length);
    if (length <= room) return [part];
    return typeof part.text === "string" && room > 0 ? [{ ...part, text: wholeStart(part.text, room) }] : [];
  });
}

/** The beginning of a text that does not end within a character. */
function wholeStart(text: string, length: number): string {
  const code = text.charCodeAt(length - 1);
  return text.slice(0, code >= 0xd800 && code < 0xdc00 ? length - 1 : length);
}
