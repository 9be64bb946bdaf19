/** Talks to a person at a terminal: lines, yes/no questions, a countdown, and Ctrl-C. Results go to stdout, messages to stderr. */
import { homedir } from "node:os";
import { sep } from "node:path";
import { flushLines, printable } from "../logger";

/** Somebody reads and can answer. */
export const atTerminal = (): boolean => Boolean(process.stdin.isTTY && process.stderr.isTTY);

/** For the person, on stderr. */
export function say(...lines: string[]): void {
  flushLines();
  for (const line of lines) process.stderr.write(`${shown(line)}\n`);
}

/** Prints a result on stdout, synchronously, so that nothing is lost if the process exits right after. */
export function print(...lines: string[]): void {
  for (const line of lines) console.log(shown(line));
}

/** A result as one line of JSON; what a terminal would obey is escaped, which JSON reads back as the same. */
export const printJson = (value: unknown): void => print(JSON.stringify(value));

const [boldOn, boldOff] = ["\x1b[1m", "\x1b[22m"];
const kept = /(\x1b\[1m|\x1b\[22m|[\n\t])/;

/** Every word that reaches the terminal goes through here: whoever it came from, no control character of it arrives. */
const shown = (text: string): string =>
  text
    .split(kept)
    .map((part, at) => (at % 2 === 1 ? part : printable(part)))
    .join("");

/** A path as people write it: what lies in their own folder begins with `~`. */
export function shortened(path: string): string {
  const own = homedir();
  return path === own || path.startsWith(own + sep) ? `~${path.slice(own.length)}` : path;
}

export const bold = (text: string): string =>
  process.stderr.isTTY && !process.env.NO_COLOR ? boldOn + printable(text) + boldOff : text;

/** Aborts at Ctrl-C, or when somebody ends us; what was to be done then is not done. */
export function interrupted(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => controller.abort());
  return controller.signal;
}

/**
 * A question that one line of the terminal answers; an empty one with what is usual.
 * @returns False too when the input ends or the signal aborts.
 */
export async function confirm(question: string, usual: boolean, signal: AbortSignal): Promise<boolean> {
  process.stderr.write(`${shown(question)} [${usual ? "Y/n" : "y/N"}] `);
  const answer = await readLine(signal);
  if (answer === undefined) process.stderr.write("\n");
  if (answer?.trim() === "") return usual;
  return /^\s*(?:y|yes)\s*$/i.test(answer ?? "");
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
    stdin.on("data", read).on("end", give);
    signal.addEventListener("abort", give);
    if (signal.aborted) give();
  });
}

/** One line, in ASCII, that says how much time is left, written anew each second, at a terminal only. @returns Takes it away. */
export function countdown(seconds: number, line: (left: string) => string): () => void {
  if (!process.stderr.isTTY) return () => {};
  const end = Date.now() + seconds * 1000;
  const show = () => {
    const left = Math.max(0, Math.round((end - Date.now()) / 1000));
    const text = line(`${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`);
    // A line that wraps would leave a row behind each second.
    process.stderr.write(`\r${text.slice(0, Math.max(1, (process.stderr.columns || 80) - 1))}\x1b[K`);
  };
  show();
  const timer = setInterval(show, 1000);
  let over = false;
  return () => {
    clearInterval(timer);
    if (!over) process.stderr.write("\r\x1b[K");
    over = true;
  };
}
