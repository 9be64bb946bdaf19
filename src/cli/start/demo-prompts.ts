/** What the prompts of the demo's past were made of. */
import type { PieceKind } from "../../dialects/prompt-pieces";
import type { MeasuredPrompt } from "../../proxy/tokens/measured-prompt";

/** Tokens of a prompt's beginning, and shares of what follows it. */
const beginnings: readonly [kind: PieceKind, tool: string | null, share: number][] = [
  ["tools", "Bash", 0.09],
  ["tools", "Agent", 0.08],
  ["tools", null, 0.2],
  ["tools", "mcp__github", 0.24],
  ["tools", "mcp__playwright", 0.16],
  ["system", null, 0.23],
];
const conversation: typeof beginnings = [
  ["client", null, 0.09],
  ["person", null, 0.04],
  ["results", "Read", 0.34],
  ["results", "Bash", 0.22],
  ["results", "Grep", 0.1],
  ["answers", null, 0.09],
  ["calls", "Bash", 0.12],
];

const turns = 12;

/** A prompt of so many tokens, of which the tools and instructions come first. */
export function madeOf(head: number, input: number): MeasuredPrompt {
  const ofHead = Math.min(head, input * 0.9);
  const [first, others] = [beginnings.length, conversation.length];
  const runs = beginnings.flatMap(([, , share], at) => [at, Math.round(share * ofHead * 4), 0]);
  for (let turn = 0; turn < turns; turn += 1)
    for (const [at, [, , share]] of conversation.entries())
      runs.push(first + at, Math.round((share * (input - ofHead) * 4) / turns), 0);
  return {
    groups: [...beginnings, ...conversation].map(([kind, tool], at) => ({ kind, tool, count: at < first ? 1 : turns })),
    runs,
    markedRuns: first + others * turns,
    hashes: { tools: new Map(), system: 0, messages: new Int32Array(), messageCount: 0, isLarge: true },
  };
}
