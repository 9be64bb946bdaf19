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

export const kinds = {
  startExecutable: {
    part: "start",
    name: "executable: start to first answer, ms",
    goal: { atMost: 60 },
    between: "a second start for Bun's settings (8 ms); Elysia, zod, SQLite and the history's file",
  },
  startBundle: {
    part: "start",
    name: "bundle: start to first answer, ms",
    goal: { atMost: 200 },
    between: "as above, and its text is parsed",
  },
  startSource: {
    part: "start",
    name: "source: start to first answer, ms",
    goal: { atMost: 450 },
    between: "as above, and each module is found and transpiled",
  },
  startCpu: { part: "start", name: "start to first answer: CPU, ms", between: "the same, on a machine that is busy" },
  idle: {
    part: "start",
    name: "idle RSS, MiB",
    goal: { atMost: 70 },
    between: "Bun is 40 of them; the modules, SQLite's cache",
  },
  smallFirst: {
    part: "small",
    name: "small request at 64 connections, first 12,000: CPU µs",
    goal: { atMost: 3.5, times: "elysia", isGuard: true },
    between: "as below, and the compiler",
  },
  smallSteady: {
    part: "small",
    name: "small request at 64 connections, steady: CPU µs",
    goal: { atMost: 3.2, times: "elysia", isGuard: true },
    between: "checks of the caller, facts of the request, account, limits of time, usage, history row, log line",
  },
  smallOne: {
    part: "small",
    name: "small request at one connection, steady: CPU µs",
    goal: { atMost: 2.2, times: "elysia" },
    between: "as above, where little of the code is in the processor's caches",
  },
  smallRate: {
    part: "small",
    name: "small request at 500 a second: p99, ms",
    goal: { atMost: 2, times: "elysia" },
    between: "as above, and the collector",
  },
  alone: {
    part: "small",
    name: "small request alone, added p50, µs",
    between: "as above",
  },
  first: {
    part: "first",
    name: "first event of a stream, added p50, µs",
    goal: { atMost: 1.2, times: "elysia" },
    between: "the request's own work, all of it before the first event",
  },
  startCold: {
    part: "starts",
    name: "1,000 streams begun in a second, fresh process: CPU µs each",
    goal: { atMost: 3.5, times: "elysia" },
    between: "as above, and the compiler",
  },
  startWarm: {
    part: "starts",
    name: "… after 4,000: CPU µs each",
    goal: { atMost: 2.2, times: "elysia" },
    between: "the request's own work up to the first event",
  },
  startFirst: { part: "starts", name: "… first event of the slowest, ms", between: "those before it" },
  passedSaturated: {
    part: "saturated",
    name: "passed on, many events per read, CPU µs per event",
    goal: { atMost: 3, times: "parse", isGuard: true },
    between: "each event is brought into its vendor's form and recorded; no model sends a thousand in one read",
  },
  passedPaced: {
    part: "paced",
    name: "passed on, each event its own packet, CPU µs per event",
    goal: { atMost: 1.4, times: "pull" },
    between:
      "limits, hang-up, keep-alives, record, fixups, and a 200th of a stream's start and end; a stream in JavaScript costs 1.35 × Elysia by itself",
  },
  translatedSaturated: {
    part: "saturated",
    name: "translated, many events per read, CPU µs per event",
    goal: { atMost: 3, times: "translate", isGuard: true },
    between: stages,
  },
  translatedPaced: {
    part: "paced",
    name: "translated, each event its own packet, CPU µs per event",
    goal: { atMost: 1.4, times: "translate" },
    between: stages,
  },
  prompt1: {
    part: "prompts",
    name: "1 MB prompt, added p50, ms",
    goal: { atMost: 12 },
    between: "the body is checked and read once",
  },
  prompt1Cpu: {
    part: "prompts",
    name: "… CPU of all threads, ms",
    goal: { atMost: 4, times: "elysia" },
    between: "as above, and what is done while the model thinks",
  },
  passedPrompt: {
    part: "prompts",
    name: "10 MB prompt passed on, added p50, ms",
    goal: { atMost: 35 },
    between: "the body is checked as UTF-8 and JSON, and routed by its model",
  },
  passedPromptMemory: {
    part: "prompts",
    name: "… RSS growth, MiB",
    goal: { atMost: 80 },
    between: "copies of the body",
  },
  translatedPrompt: {
    part: "prompts",
    name: "10 MB prompt translated, added p50, ms",
    goal: { atMost: 80 },
    between: "the body is decoded and encoded",
  },
  translatedPromptMemory: { part: "prompts", name: "… translated: RSS growth, MiB", between: "both forms of the body" },
  thousand: { part: "thousand", name: "1,000 streams, unfinished", goal: { atMost: 0 }, between: "" },
  thousandMemory: {
    part: "thousand",
    name: "… RSS growth, MiB",
    goal: { atMost: 50 },
    between: "a record, a reader and two buffers for each",
  },
  tracedSmall: {
    part: "traced",
    name: "small request, traced: CPU µs",
    goal: { atMost: 1.5, times: "untraced" },
    between: "two spans of 25 attributes, and their protobuf; the same program without a collector is the floor",
  },
  tracedStreams: {
    part: "traced",
    name: "1,000 streams of 20 events, traced: CPU s",
    goal: { atMost: 1.1, times: "untraced" },
    between: "as above; nothing is done for an event",
  },
  stall: {
    part: "stall",
    name: "client stops reading 200 MB, first: RSS growth, MiB",
    goal: { atMost: 20 },
    between: "what was read until the sockets were full, as text and JSON that wait for the collector",
  },
  stallLater: { part: "stall", name: "… the third: RSS growth, MiB", goal: { atMost: 20 }, between: "as above" },
  hangUp: { part: "stall", name: "… and hangs up: upstream closed after, ms", goal: { atMost: 100 }, between: "" },
  countFirst: {
    part: "count",
    name: "longest gap of a 10 ms stream beside count_tokens of 100 kB, first: added, ms",
    goal: { atMost: 10 },
    between: "the vocabulary is loaded on another thread, which shares the core here",
  },
  countLater: {
    part: "count",
    name: "… later: added, ms",
    goal: { atMost: 10 },
    between: "the count, on a shared core",
  },
  history: {
    part: "history",
    name: "slowest page or statistic of a full history, p50, ms",
    goal: { atMost: 50 },
    between: "a worker reads the hours and days that are added up, and the rows of the rest",
  },
  historyGap: {
    part: "history",
    name: "longest gap of a 10 ms stream beside them: added, ms",
    goal: { atMost: 10 },
    between: "the worker that reads, on a shared core",
  },
} as const satisfies Record<string, RowKind>;

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
