/** Replaces dialect-specific parts for an upstream of another dialect. */
import { isObject } from "../../json";
import type { Dialect, ForeignPart, Part, Turn } from "./conversation";

/** Replaces the parts of other dialects. */
export const showForeign = (turns: Turn[], target: Dialect): { turns: Turn[]; dropped: string[] } =>
  replaceForeign(turns, ({ dialect }) => dialect !== target);

/**
 * Replaces each such part by its `instead`, or by a note that it was left out. Parts of the assistant stay: the encoders
 * drop them by name, because a model would imitate a note in its own turn.
 * @returns The same array if nothing changed; `dropped` names the parts that were left out.
 */
export function replaceForeign(
  turns: Turn[],
  isReplaced: (part: ForeignPart) => boolean,
): { turns: Turn[]; dropped: string[] } {
  const dropped = new Set<string>();
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
    dropped.add(name);
    return [{ kind: "text", text: `[Left out, because this model does not support it: ${name}.]` }];
  };
  const showAll = (parts: Part[], isHeard: boolean): Part[] => {
    const after = parts.flatMap((part) => show(part, isHeard));
    return after.length === parts.length && after.every((part, at) => part === parts[at]) ? parts : after;
  };

  const shown = turns.map((turn) => {
    const parts = showAll(turn.parts, turn.role !== "assistant");
    return parts === turn.parts ? turn : { ...turn, parts };
  });
  return { turns: shown.every((turn, at) => turn === turns[at]) ? turns : shown, dropped: [...dropped] };
}

/** The `type` of a foreign part or tool, or a general name if it has none. */
export const nameOf = ({ value }: { value: unknown }): string =>
  isObject(value) && typeof value.type === "string" ? value.type : "an unknown part";
