/** What the parts of a prompt came to: their sizes as parts of the input that the upstream has counted, and what each cost. */
import type { Portion } from "../../books/history/portions";
import type { PieceKind } from "../../dialects/prompt-pieces";
import type { MeasuredPrompt } from "./measured-prompt";

/** What the upstream has reported. */
interface Counted {
  input: number;
  cachedInput?: number | undefined;
  cacheWrite?: number | undefined;
  output?: number | undefined;
}

/** Billionths of an AI credit for a token of each kind. */
type Rates = Record<"input" | "cachedInput" | "cacheWrite" | "output", number>;

interface Portions {
  /** In the order in which models read them. Their tokens add up to the input, and to the output. */
  portions: Portion[];
  /** Tokens up to the last mark for the cache. */
  marked: number;
  /** By name, for the next request of the conversation. */
  sizes: ReadonlyMap<string, number>;
}

/** Tools with names of their own, by kind; the others are added up. Calls are small, and tell which servers are of use. */
const maxNamed: Partial<Record<PieceKind, number>> = { tools: 8, calls: 12, results: 7 };

/** Tokens of a byte: a model whose numbers say something else counts something that is not in the prompt. */
const tokensPerByte = { least: 1 / 12, most: 1 };

/**
 * The cache has the beginning of a prompt, and then comes what is written to it.
 * @param before The sizes in the request before in the conversation.
 * @param rates Undefined where prices are unknown.
 */
export function portionsOf(
  { groups, runs, markedRuns }: MeasuredPrompt,
  usage: Counted,
  rates: Rates | undefined,
  before: ReadonlyMap<string, number> | undefined,
): Portions {
  const { input, cachedInput = 0, cacheWrite = 0, output } = usage;
  const found = groups.map(({ kind, tool, count }): Sized => ({ kind, tool, count, tokens: 0, cached: 0, written: 0 }));
  const tokensOf = scaleOf(runs, input);
  let [exact, at, marked] = [0, 0, 0];
  for (let run = 0; run < runs.length; run += 3) {
    exact += tokensOf(runs[run + 1]!, runs[run + 2]!);
    const end = Math.round(exact);
    const portion = found[runs[run]!]!;
    portion.tokens += end - at;
    portion.cached += overlap(at, end, 0, cachedInput);
    portion.written += overlap(at, end, cachedInput, cachedInput + cacheWrite);
    at = end;
    if (run / 3 === markedRuns - 1) marked = end;
  }
  const sizes = new Map<string, number>();
  const portions = withOthers(found).map(({ kind, tool, count, tokens, cached, written }): Portion => {
    const name = `${kind} ${tool ?? ""}`;
    sizes.set(name, tokens);
    const fresh = tokens - cached - written;
    return {
      kind,
      tool,
      count,
      tokens,
      cached,
      cost: rates ? Math.round(fresh * rates.input + cached * rates.cachedInput + written * rates.cacheWrite) : null,
      grown: before ? tokens - (before.get(name) ?? 0) : null,
    };
  });
  if (output !== undefined) {
    const cost = rates ? Math.round(output * rates.output) : null;
    portions.push({ kind: "output", tool: null, count: 1, tokens: output, cached: 0, cost, grown: null });
  }
  return { portions, marked, sizes };
}

interface Sized extends Pick<Portion, "kind" | "tool" | "count" | "tokens" | "cached"> {
  written: number;
}

const overlap = (from: number, to: number, start: number, end: number): number =>
  Math.max(0, Math.min(to, end) - Math.max(from, start));

/** Makes tokens of bytes and of what media count, by the ratio of this request, so that all of them are the input. */
function scaleOf(runs: readonly number[], input: number): (bytes: number, media: number) => number {
  let [bytes, media] = [0, 0];
  for (let run = 0; run < runs.length; run += 3) {
    bytes += runs[run + 1]!;
    media += runs[run + 2]!;
  }
  const { least, most } = tokensPerByte;
  const ratio = Math.min(most, Math.max(least, (input - media) / (bytes || 1)));
  const factor = input / (bytes * ratio + media || 1);
  return (ofBytes, ofMedia) => (ofBytes * ratio + ofMedia) * factor;
}

/** The smaller ones of the tools of a kind as one without a name. */
function withOthers(found: readonly Sized[]): Sized[] {
  const kept: Sized[] = [];
  for (const kind of new Set(found.map((each) => each.kind))) {
    const ofKind = found.filter((each) => each.kind === kind && each.tokens > 0);
    const most = maxNamed[kind as PieceKind] ?? 0;
    const named = ofKind.filter(({ tool }) => tool !== null);
    if (named.length > most) named.sort(byRank);
    let others: Sized | undefined;
    for (const each of [...named.slice(most), ...ofKind.filter(({ tool }) => tool === null)]) {
      if (!others) others = { ...each, tool: null };
      else for (const name of added) others[name] += each[name];
    }
    kept.push(...named.slice(0, most));
    if (others) kept.push(others);
  }
  return kept;
}

const added = ["count", "tokens", "cached", "written"] as const;

/** The largest first; of the calls those of MCP servers. */
const byRank = (one: Sized, other: Sized): number => servers(other) - servers(one) || other.tokens - one.tokens;
const servers = ({ kind, tool }: Sized): number => Number(kind === "calls" && tool!.startsWith("mcp__"));
