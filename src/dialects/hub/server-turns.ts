/** Calls of tools that run while the model answers, as the model itself sees them: functions that were called. */
import type { Part, ServerCallPart, ServerResultPart, ToolResultPart, Turn } from "./conversation";
import { searches } from "./searches";
import { errorSentences, type ServerToolOutput } from "./server-tools";

/**
 * The turns with calls and results of functions in place of those that ran within a turn: a result ends the assistant's
 * turn, as it did when the model was asked. A reply that is continued and one that the client sends back give the same
 * turns, so that the prompt cache finds them.
 * @returns The same array if there are none.
 */
export function asFunctionCalls(turns: Turn[]): Turn[] {
  if (!turns.some((turn) => turn.parts.some(isServerPart))) return turns;
  return turns.flatMap((turn) => (turn.parts.some(isServerPart) ? split(turn) : [turn]));
}

const isServerPart = (part: Part): part is ServerCallPart | ServerResultPart =>
  part.kind === "server-call" || part.kind === "server-result";

function split(turn: Turn): Turn[] {
  const split: Turn[] = [];
  let current: Turn | undefined;
  const add = (role: Turn["role"], part: Part) => {
    if (current?.role !== role) {
      current = role === turn.role ? { ...turn, parts: [] } : { role, parts: [] };
      split.push(current);
    }
    current.parts.push(part);
  };
  for (const part of turn.parts)
    if (part.kind === "server-result") add("user", resultOf(part));
    else if (part.kind === "server-call")
      add(turn.role, {
        kind: "tool-call",
        id: part.id,
        name: searches[part.tool].function,
        input: JSON.stringify(part.input),
        ...(part.cache ? { cache: true } : {}),
      });
    else add(turn.role, part);
  return split;
}

function resultOf({ id, output, cache }: ServerResultPart): ToolResultPart {
  return {
    kind: "tool-result",
    id,
    parts: [{ kind: "text", text: outputText(output) }],
    ...(output.kind === "error" ? { failed: true } : {}),
    ...(cache ? { cache } : {}),
  };
}

/** The text that the model gets for an output. It depends on nothing else, so that a history gives the same text again. */
export function outputText(output: ServerToolOutput): string {
  if (output.kind === "error") return errorSentences[output.code];
  if (output.kind === "unknown") return "The result is not kept here. The text that follows was written with it.";
  if (output.kind === "tools")
    return output.names.length === 0
      ? "No tool was found. Try other words."
      : `These tools were found and can be called now: ${output.names.join(", ")}.`;
  // A client's history has no place for the report of a search that named no page: this is true of that one too.
  if (output.pages.length === 0) return output.report ?? "No page was found.";
  const pages = output.pages.map(({ url, title, text, age }, at) =>
    [`${at + 1}. ${title}`, title !== url && url, age && `(${age})`, text].filter((line) => line).join("\n"),
  );
  return [...pages, "Cite a page that you use as a Markdown link: [title](address)."].join("\n\n");
}
