/** Replaces dialect-specific parts for an upstream of another dialect. */

import { quoted, words } from "../../lib/errors";
import { plainName } from "../../lib/json-shape";
import { beginningOfLong } from "../../lib/net/json/json-skeleton";
import type { Dialect, ForeignPart, JsonObject, Part, ToolResultPart, Turn } from "./conversation";
import { refuse } from "./json";
import { isSameList } from "./lists";
import type { Notes } from "./notes";

/**
 * Replaces the parts of other dialects.
 * @throws ProxyError `invalid_request` for a turn or a tool's result of which nothing would be left, and for a part that
 * stands for the earlier conversation.
 */
export function showForeign(turns: Turn[], target: Dialect, notes: Notes): Turn[] {
  for (const { parts } of turns) {
    refuseSealed(parts, target);
    refuseLost(parts, target);
  }
  return replaceForeign(turns, ({ dialect }) => dialect !== target, notes);
}

/** Refuses a part that stands for the earlier conversation: without it the conversation would be lost. */
function refuseSealed(parts: Part[], target: Dialect): void {
  const sealed = parts.find((part) => part.kind === "foreign" && part.signature && part.dialect !== target);
  if (sealed?.kind !== "foreign") return;
  const sentence = `The beginning of this conversation is a \`${nameOf(sealed)}\` that only models of its maker can read. Go on with such a model, or begin a new conversation.`;
  refuse("input", sentence, "unsupported_value");
}

/** Items that say nothing by themselves: the list of a server's tools, and references to reasoning. */
const saysNothing = new Set(["mcp_list_tools", "item_reference"]);

/** Refuses a turn of which nothing would be left: the model would answer as if nobody had said it. */
function refuseLost(parts: Part[], target: Dialect, result?: ToolResultPart): void {
  const isLeft = (part: Part): boolean => {
    if (part.kind === "text") return /\S/.test(beginningOfLong(part.text));
    if (part.kind !== "foreign") return part.kind !== "thinking";
    return part.dialect === target || part.toolSearch !== undefined || (part.instead?.some(isLeft) ?? false);
  };
  for (const part of parts) if (part.kind === "tool-result") refuseLost(part.parts, target, part);
  if (parts.some(isLeft)) return;
  const lost = parts.find((part): part is ForeignPart => part.kind === "foreign" && !saysNothing.has(nameOf(part)));
  if (!lost) return;
  const param = { chat: "messages", messages: "messages", responses: "input", gemini: "contents" }[lost.dialect];
  // The client keeps it: a person who knows which call it was can take it out.
  const where = result ? words`the result of the call \`${quoted(beginningOfLong(result.id, 64))}\`` : "a turn";
  const sentence = words`\`${param}\` has ${where} with nothing but \`${nameOf(lost).slice(0, 64)}\`, which this model's API has no form for. Send its content as text, or choose a model whose API has it.`;
  refuse(param, sentence, "unsupported_value");
}

/**
 * Replaces each such part by its `instead`, or by a note that it was left out. Parts of the assistant stay: the encoders
 * drop them by name, because a model would imitate a note in its own turn.
 * @returns The same array if nothing changed.
 */
export function replaceForeign(turns: Turn[], isReplaced: (part: ForeignPart) => boolean, notes: Notes): Turn[] {
  const isOther = (part: Part): part is ForeignPart => part.kind === "foreign" && isReplaced(part);

  const show = (part: Part, isHeard: boolean): Part[] => {
    if (part.kind === "tool-result") {
      const parts = showAll(part.parts, true);
      return [parts === part.parts ? part : { ...part, parts }];
    }
    if (!isOther(part)) return [part];
    if (part.instead) return showAll(part.instead, isHeard);
    if (!isHeard) return [part];
    const name = nameOf(part);
    notes.addDropped(name);
    return [{ kind: "text", text: `[Left out, because this model does not support it: ${name}.]` }];
  };
  const showAll = (parts: Part[], isHeard: boolean): Part[] => {
    const after = parts.flatMap((part) => show(part, isHeard));
    return isSameList(after, parts) ? parts : after;
  };

  const shown = turns.map((turn) => {
    const parts = showAll(turn.parts, turn.role !== "assistant");
    return parts === turn.parts ? turn : { ...turn, parts };
  });
  return isSameList(shown, turns) ? turns : shown;
}

/** The `type` of a foreign part or tool, or a general name if it has none. */
export const nameOf = ({ value }: { value: JsonObject }): string =>
  typeof value.type === "string" ? plainName(value.type) : "an unknown part";
