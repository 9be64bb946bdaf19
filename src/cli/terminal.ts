/** Talks to a person at a terminal: lines, yes/no questions, a countdown, and Ctrl-C. Results go to stdout, messages to stderr. */
import fs from "node:fs";
import { sep } from "node:path";
import { styleText } from "node:util";
import { homeFolder } from "../config/environment";
import { ProxyError } from "../lib/errors";
import { flushLines, printable, stderr } from "../lib/logger";
import { typedName } from "./installation";
import { UsageError } from "./usage-error";

/** Whether a person can read and answer. */
export const atTerminal = (): boolean => Boolean(process.stdin.isTTY && process.stderr.isTTY);

/** Prints a message on stderr. */
export function say(...lines: string[]): void {
  flushLines();
  for (const line of lines) stderr().write(`${broken(shown(line), messageWidth())}\n`);
}

/** Of a line on stderr; unlimited where it is no terminal. */
const messageWidth = (): number => (process.stderr.isTTY ? process.stderr.columns || 80 : Number.POSITIVE_INFINITY);

/** Breaks a paragraph between words. An indented line stays whole: it is to be copied, or is part of a table. */
export const broken = (text: string, width: number): string =>
  width === Number.POSITIVE_INFINITY || text.startsWith(" ")
    ? text
    : Bun.wrapAnsi(text, Math.max(1, width), { hard: false });

/** Prints a result on stdout. @throws ProxyError `unable` if it cannot be written: a full disk would lose a key that is shown once. */
export function print(...lines: string[]): void {
  for (const line of lines) writeLine(shown(line));
}

/** At once: the process may exit right after. */
function writeLine(line: string): void {
  let rest = Buffer.from(`${line}\n`);
  while (rest.length > 0)
    try {
      rest = rest.subarray(fs.writeSync(1, rest));
    } catch (thrown) {
      const code = thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
      // Such as `head`: it has what it wanted.
      if (code === "EPIPE") return;
      if (code !== "EAGAIN") throw new ProxyError("unable", `The output could not be written: ${String(thrown)}.`);
      // A pipe that does not block, and is full.
      Bun.sleepSync(1);
    }
}

/** Prints a result as one line of JSON. Control characters are escaped as JSON escapes, so the value stays the same. */
export const printJson = (value: unknown): void => writeLine(printable(JSON.stringify(value)));

/** Those that `styled` makes. */
const styles = /(\x1b\[(?:1|2|22|3[1-3]|39)m)/;
const kept = /(\x1b\[(?:1|2|22|3[1-3]|39)m|[\n\t])/;

/** Escapes control characters. All output to the terminal passes through here. */
const shown = (text: string): string => escapeBetween(text, kept);

/** The same for a part of a line: line breaks and tabs are escaped too. */
export const styledOnly = (text: string): string => escapeBetween(text, styles);

/** A command in backticks as it can be typed here: `dragoman auth` is `bun ./src/main.ts auth` in a clone. */
const typed = (text: string): string =>
  text.includes("`dragoman ") ? text.replaceAll("`dragoman ", () => `\`${typedName()} `) : text;

const escapeBetween = (text: string, allowed: RegExp): string =>
  typed(text)
    .split(allowed)
    .map((part, at) => (at % 2 === 1 ? part : printable(part)))
    .join("");

/** A path with `~` for the home folder. */
export function shortened(path: string): string {
  const own = homeFolder();
  return path === own || path.startsWith(own + sep) ? `~${path.slice(own.length)}` : path;
}

/**
 * Text in a style, with control characters escaped. It is plain where the stream is no terminal and with NO_COLOR; FORCE_COLOR
 * overrides both, as `util.styleText` does (https://no-color.org, Node's documentation, 2026-11).
 * @param stream Where it will be printed.
 */
export const styled = (
  style: "bold" | "dim" | "green" | "yellow" | "red",
  text: string,
  stream: NodeJS.WriteStream = process.stdout,
): string => styleText(style, printable(text), { stream });

/** For messages. */
export const bold = (text: string): string => styled("bold", text, process.stderr);

/** Aborts at Ctrl-C or SIGTERM. */
export function interrupted(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => controller.abort());
  return controller.signal;
}

/**
 * Asks a yes/no question. An empty line means the default.
 * @returns False also if the input ends or the signal aborts.
 */
export async function confirm(question: string, usual: boolean, signal: AbortSignal): Promise<boolean> {
  process.stderr.write(`${broken(`${shown(question)} [${usual ? "Y/n" : "y/N"}]`, messageWidth() - 1)} `);
  const answer = await readLine(signal);
  if (answer === undefined) process.stderr.write("\n");
  if (answer?.trim() === "") return usual;
  return /^\s*(?:y|yes)\s*$/i.test(answer ?? "");
}

/**
 * Asks for a yes, without which nothing is done.
 * @param or What else may be added where nobody can answer: `, or --print to look`.
 * @throws UsageError where nobody can answer
 */
export async function agreedTo(question: string, usual: boolean, or = ""): Promise<boolean> {
  if (!atTerminal()) throw new UsageError(`This is no terminal, so nobody can be asked. Add --yes to confirm${or}.`);
  return confirm(question, usual, interrupted());
}

/** A person pressed Ctrl-C at a question. */
export class Interrupted extends Error {}

/**
 * Asks before something is removed that cannot be put back. Whoever calls this from a script has decided already.
 * @returns False if the person declines, which is said.
 * @throws Interrupted at Ctrl-C
 */
export async function mayRemove(question: string, yes: boolean, unchanged = "Nothing was removed."): Promise<boolean> {
  const signal = interrupted();
  if (yes || !atTerminal() || (await confirm(question, false, signal))) return true;
  if (signal.aborted) throw new Interrupted(unchanged);
  say(unchanged);
  return false;
}

function readLine(signal: AbortSignal): Promise<string | undefined> {
  const { stdin } = process;
  return new Promise((resolve) => {
    let text = "";
    const end = (line: string | undefined) => {
      stdin.off("data", read).off("end", give);
      signal.removeEventListener("abort", give);
      stdin.pause();
      resolve(line);
    };
    const give = () => end(undefined);
    const read = (bytes: Buffer | string) => {
      text += bytes.toString();
      if (/[\r\n]/.test(text)) end(text.split(/[\r\n]/)[0]);
    };
    // After an earlier question it stays paused, whoever listens.
    stdin.on("data", read).on("end", give).resume();
    signal.addEventListener("abort", give);
    if (signal.aborted) give();
  });
}

/** A line with the remaining time, updated each second; only at a terminal. @returns Removes the line. */
export function countdown(seconds: number, line: (left: string) => string): () => void {
  return liveLine((passed) => {
    const left = Math.max(0, Math.round(seconds - passed / 1000));
    return line(`${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`);
  }, 0);
}

/** What is being done, with the seconds that it has taken, for as long as it takes more than one; only at a terminal. */
export async function withProgress<Result>(doing: string, work: () => Promise<Result>): Promise<Result> {
  const end = liveLine((passed) => `${doing} … ${Math.floor(passed / 1000)} s`, 1000);
  return work().finally(end);
}

/** @param line Milliseconds since the beginning → the line. @param afterMs When it is first shown. @returns Removes the line. */
function liveLine(line: (passed: number) => string, afterMs: number): () => void {
  if (!process.stderr.isTTY) return () => {};
  const began = performance.now();
  let isShown = false;
  const show = () => {
    const passed = performance.now() - began;
    if (passed < afterMs) return;
    isShown = true;
    // A line that wraps would leave an extra row each second.
    const text = printable(line(passed)).slice(0, Math.max(1, (process.stderr.columns || 80) - 1));
    process.stderr.write(`\r${text}\x1b[K`);
  };
  show();
  const timer = setInterval(show, 1000);
  return () => {
    clearInterval(timer);
    if (isShown) process.stderr.write("\r\x1b[K");
    isShown = false;
  };
}
