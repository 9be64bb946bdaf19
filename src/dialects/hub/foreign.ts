/** Parts that only one dialect has: what a model that is asked in another one is shown of them. */
import { isObject } from "../../json";
import type { Dialect, ForeignPart, Part, Turn } from "./conversation";

/**
 * The turns with each such part in everybody's words: what it says, or that it was left out. What the model itself did in
 * another dialect is left to the encoders, which name it: words of ours in its mouth would be imitated.
 * @returns The very same turns where there is nothing to say; `dropped` names what could not be shown.
 */
export function showForeign(turns: Turn[], target: Dialect): { turns: Turn[]; dropped: string[] } {
  const dropped = new Set<string>();
  const isOther = (part: Part): part is ForeignPart => part.kind === "foreign" && part.dialect !== target;

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
    return [{ kind: "text", text: `[Left out here, because this model cannot be shown it: ${name}.]` }];
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

/** What a foreign part or tool calls itself, else what it is called here. */
export const nameOf = ({ value }: { value: unknown }): string =>
  isObject(value) && typeof value.type === "string" ? value.type : "an unknown part";
