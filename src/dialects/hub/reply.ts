/**
 * A reply as events. Every decoder writes them in this order, and every encoder may rely on it:
 *
 *     [ start ( block-start block-delta* block-end | usage )* ] ( finish | error )
 *
 * One block is open at a time. A full reply is the same list of events.
 */
import type { ClientDialect, JsonObject, Signature, WithExtras } from "./conversation";
import { without } from "./json";
import type { ServerToolName } from "./searches";
import type { Citation, ServerToolCall, ServerToolResult } from "./server-tools";

export type ReplyEvent =
  | {
      type: "start";
      id: string;
      model: string;
      /** The numbers that the upstream reports at the beginning, if it does; a `usage` event follows all the same. */
      usage?: Partial<Usage>;
    }
  | { type: "block-start"; block: Block }
  /** A delta is text in every dialect: text, thinking, or the JSON of a tool call. */
  | { type: "block-delta"; text: string }
  | ({ type: "block-end" } & BlockEnd)
  /** Later numbers replace earlier ones. */
  | { type: "usage"; usage: Partial<Usage> }
  | {
      type: "finish";
      reason: StopReason;
      /** The wire's own word. */
      raw?: string;
      stopSequence?: string;
      /** Why the service refused, in words that are no part of the reply. */
      explanation?: string;
      /** Why the service did not show its model all reasoning that it was sent: its own words for it. */
      lostReasoning?: string[];
    }
  | ReplyError;

export interface ReplyError extends ReplyFailure {
  type: "error";
}

export interface ReplyFailure {
  /** For programs, for example `upstream_disconnected` or the upstream's own code. */
  code: string;
  message: string;
  /** The message is dragoman's own; any other is the upstream's, and is not written down. */
  isOurs?: true;
}

export interface BlockEnd extends WithExtras {
  signature?: Signature;
  /** The web pages that a text refers to. */
  citations?: Citation[];
}

/** A block that is written piece by piece. */
export type DeltaBlock =
  | ({ kind: "text"; refusal?: true } & WithExtras)
  | ({ kind: "thinking" } & WithExtras)
  | ({ kind: "tool-call"; id: string; name: string; freeform?: true } & WithExtras);

/** A block that is complete at its start. The result of a call of a tool that ran here follows it, perhaps after other blocks. */
export type CompleteBlock =
  | ({ kind: "server-call" } & ServerToolCall)
  | ({ kind: "server-result" } & ServerToolResult)
  | ForeignBlock;

export interface ForeignBlock {
  kind: "foreign";
  dialect: ClientDialect;
  value: JsonObject;
  /** The provider has run this tool, and it did not fail. */
  ran?: ServerToolName;
}

export type Block = DeltaBlock | CompleteBlock;

export const isDeltaBlock = (block: Block): block is DeltaBlock =>
  block.kind === "text" || block.kind === "thinking" || block.kind === "tool-call";

/** A web search ran for the reply: here, or at the upstream. */
export const hasSearched = (block: Block): boolean =>
  block.kind === "server-result"
    ? block.tool === "web-search" && block.output.kind !== "error"
    : block.kind === "foreign" && block.ran === "web-search";

export type StopReason = "stop" | "stop-sequence" | "length" | "tool-call" | "refusal" | "pause";

/** Tokens of one request. `input` includes cached tokens, `output` includes reasoning; encoders subtract where needed. */
export interface Usage {
  input: number;
  /** Part of `input` that was read from the cache. */
  cachedInput: number;
  /** Part of `input` that was written to the cache. */
  cacheWrite: number;
  /** Part of `cacheWrite` that the cache keeps for an hour. */
  cacheWriteHour: number;
  output: number;
  /** Part of `output` that was spent on thinking. */
  reasoning: number;
  /** The upstream's charge, in billionths of an AI credit. */
  nanoCredits: number;
}

/** The usage without numbers that cannot be true. Tokens are whole numbers up to `most`; a charge is at most 10,000 dollars. */
export function believable(usage: Partial<Usage>, most: number): Partial<Usage> {
  let kept = usage;
  for (const name in usage) {
    const value = usage[name as keyof Usage];
    if (value !== undefined && !isBelievable(name, value, most)) kept = without(kept, [name]) as Partial<Usage>;
  }
  return kept;
}

const isBelievable = (name: string, value: number, most: number): boolean =>
  name === "nanoCredits"
    ? value >= 0 && value <= mostNanoCredits
    : Number.isInteger(value) && value >= 0 && value <= most;

const mostNanoCredits = 1e15;
