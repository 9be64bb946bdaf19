/** Every row of the table: what is measured, the goal, and what dragoman does that the floor does not. */

export interface RowKind {
  /** `--only` takes the name of a part, or words of a row's name. */
  part: string;
  name: string;
  goal?: Limit;
  /** What stands between the floor and dragoman. */
  between: string;
}

interface Limit {
  atMost: number;
  /** Of a floor of the same run. */
  times?: "elysia" | "pull" | "parse" | "translate" | "untraced";
  /** Describes no user, and is there to notice a step back: 64 requests at once on one core, a thousand events in one read. */
  isGuard?: true;
}

const stages = "each event is decoded, recorded, and written in the other dialect; by hand it is parsed once";

const row = (part: string, name: string, [atMost, times, isGuard]: Goal, between: string): RowKind => ({
  ...{ part, name, between },
  ...(atMost !== undefined && { goal: { atMost, times, isGuard } }),
});
type Goal = [atMost?: number, times?: Limit["times"], isGuard?: true];

// biome-ignore format: a table is read by its rows
export const kinds = {
  startExecutable: row("start", "executable: start to first answer, ms", [60],
    "a second start for Bun's settings (8 ms); Elysia, zod, SQLite and the history's file"),
  startBundle: row("start", "bundle: start to first answer, ms", [200], "as above, and its text is parsed"),
  startSource: row("start", "source: start to first answer, ms", [450], "as above, and each module is found and transpiled"),
  startCpu: row("start", "start to first answer: CPU, ms", [], "the same, on a machine that is busy"),
  idle: row("start", "idle RSS, MiB", [70], "Bun is 40 of them; the modules, SQLite's cache"),
  smallFirst: row("small", "small request at 64 connections, first 12,000: CPU µs", [3.5, "elysia", true], "as below, and the compiler"),
  smallSteady: row("small", "small request at 64 connections, steady: CPU µs", [3.2, "elysia", true],
    "checks of the caller, facts of the request, account, limits of time, usage, history row, log line"),
  smallOne: row("small", "small request at one connection, steady: CPU µs", [2.2, "elysia"],
    "as above, where little of the code is in the processor's caches"),
  smallRate: row("small", "small request at 500 a second: p99, ms", [2, "elysia"], "as above, and the collector"),
  alone: row("small", "small request alone, added p50, µs", [], "as above"),
  first: row("first", "first event of a stream, added p50, µs", [1.2, "elysia"],
    "the request's own work, all of it before the first event"),
  startCold: row("starts", "1,000 streams begun in a second, fresh process: CPU µs each", [3.5, "elysia"], "as above, and the compiler"),
  startWarm: row("starts", "… after 4,000: CPU µs each", [2.2, "elysia"], "the request's own work up to the first event"),
  startFirst: row("starts", "… first event of the slowest, ms", [], "those before it"),
  passedSaturated: row("saturated", "passed on, many events per read, CPU µs per event", [3, "parse", true],
    "each event is brought into its vendor's form and recorded; no model sends a thousand in one read"),
  passedPaced: row("paced", "passed on, each event its own packet, CPU µs per event", [1.4, "pull"],
    "limits, hang-up, keep-alives, record, fixups, and a 200th of a stream's start and end; a stream in JavaScript costs 1.35 × Elysia by itself"),
  translatedSaturated: row("saturated", "translated, many events per read, CPU µs per event", [3, "translate", true], stages),
  translatedPaced: row("paced", "translated, each event its own packet, CPU µs per event", [1.4, "translate"], stages),
  prompt1: row("prompts", "1 MB prompt, added p50, ms", [12], "the body is checked and read once"),
  prompt1Cpu: row("prompts", "… CPU of all threads, ms", [4, "elysia"], "as above, and what is done while the model thinks"),
  passedPrompt: row("prompts", "10 MB prompt passed on, added p50, ms", [35],
    "the body is checked as UTF-8 and JSON, and routed by its model"),
  passedPromptMemory: row("prompts", "… RSS growth, MiB", [80], "copies of the body"),
  translatedPrompt: row("prompts", "10 MB prompt translated, added p50, ms", [80], "the body is decoded and encoded"),
  translatedPromptMemory: row("prompts", "… translated: RSS growth, MiB", [], "both forms of the body"),
  thousand: row("thousand", "1,000 streams, unfinished", [0], ""),
  thousandMemory: row("thousand", "… RSS growth, MiB", [50], "a record, a reader and two buffers for each"),
  tracedSmall: row("traced", "small request, traced: CPU µs", [1.5, "untraced"],
    "two spans of 25 attributes, and their protobuf; the same program without a collector is the floor"),
  tracedStreams: row("traced", "1,000 streams of 20 events, traced: CPU s", [1.1, "untraced"], "as above; nothing is done for an event"),
  stall: row("stall", "client stops reading 200 MB, first: RSS growth, MiB", [20],
    "what was read until the sockets were full, as text and JSON that wait for the collector"),
  stallLater: row("stall", "… the third: RSS growth, MiB", [20], "as above"),
  hangUp: row("stall", "… and hangs up: upstream closed after, ms", [100], ""),
  countFirst: row("count", "longest gap of a 10 ms stream beside count_tokens of 100 kB, first: added, ms", [10],
    "the vocabulary is loaded on another thread, which shares the core here"),
  countLater: row("count", "… later: added, ms", [10], "the count, on a shared core"),
  history: row("history", "slowest page or statistic of a full history, p50, ms", [50],
    "a worker reads the hours and days that are added up, and the rows of the rest"),
  historyGap: row("history", "longest gap of a 10 ms stream beside them: added, ms", [10], "the worker that reads, on a shared core"),
};

/** The rows that each form of a full reply has. */
export const replyRows: readonly RowKind[] = [kinds.smallSteady, kinds.smallOne, kinds.smallRate];

export interface Row {
  kind: RowKind;
  /** Which of several rows of this kind: `chat, GPT`. */
  variant?: string;
  values: Record<string, number>;
  met?: boolean;
}

const nameOf = (kind: RowKind, variant?: string) => (variant ? `${variant}: ${kind.name}` : kind.name);

/** Whether a row is asked for: by its part, by words of its name, or because nothing was. */
export const isAsked = (kind: RowKind, variant: string | undefined, only: readonly string[]): boolean =>
  only.length === 0 || only.some((word) => says(word, kind, variant));

/** Whether a row of this part may be asked for. Words of no row's own name are of a variant: `chat, GPT`. */
export function isPartAsked(part: string, only: readonly string[]): boolean {
  const all = Object.values<RowKind>(kinds);
  const asks = (word: string) => {
    const meant = all.filter((kind) => says(word, kind));
    return meant.length > 0 ? meant.some((kind) => kind.part === part) : withVariants.has(part);
  };
  return only.length === 0 || only.some(asks);
}

/** A part's name means the part alone, also where it is a word of other rows. */
const says = (word: string, kind: RowKind, variant?: string): boolean =>
  Object.values<RowKind>(kinds).some(({ part }) => part === word)
    ? kind.part === word
    : nameOf(kind, variant).toLowerCase().includes(word.toLowerCase());

const withVariants: ReadonlySet<string> = new Set(["small", "saturated", "paced", "prompts"]);

export function judged(kind: RowKind, variant: string | undefined, values: Record<string, number>): Row {
  const { goal } = kind;
  const value = values.dragoman ?? values.executable ?? values.source;
  if (!goal || value === undefined) return { kind, variant, values };
  return { kind, variant, values, met: value <= goal.atMost * (goal.times ? values[goal.times]! : 1) };
}

const floorNames = ["direct", "bun", "elysia", "pull", "parse", "translate", "guarantees", "alone", "untraced"];

export const table = (rows: readonly Row[]): string =>
  ["| case | floor | peers | dragoman | goal | met |", "| --- | --: | --: | --: | --- | --- |", ...rows.map(line)].join(
    "\n",
  );

export function line({ kind, variant, values, met }: Row): string {
  const { goal } = kind;
  const of = (names: string[]) => names.map((name) => `${name} ${shown(values[name]!)}`).join(", ");
  const names = Object.keys(values);
  const ours = names.filter((name) => /^(?:dragoman|source|bundle|executable)$/.test(name));
  const floors = names.filter((name) => floorNames.includes(name));
  const peers = names.filter((name) => ![...ours, ...floors].includes(name));
  const ratio =
    goal?.times && values.dragoman !== undefined
      ? ` (${(values.dragoman / values[goal.times]!).toFixed(2).replace(/0$/, "")} ×)`
      : "";
  const own = ours.length === 1 && ours[0] === "dragoman" ? shown(values.dragoman!) : of(ours);
  const limit = goal && `≤ ${goal.atMost}${goal.times ? ` × ${goal.times}` : ""}`;
  const wanted = goal?.isGuard ? `guard: ${limit}` : (limit ?? "");
  const verdict = met === undefined ? "" : met ? "yes" : "no";
  return `| ${[nameOf(kind, variant), of(floors), of(peers), own + ratio, wanted, verdict].join(" | ")} |`;
}

function shown(value: number): string {
  if (!Number.isFinite(value)) return "never";
  return Math.abs(value) >= 10 ? Math.round(value).toLocaleString("en") : value.toFixed(2);
}
