/**
 * Writes the log to stderr. Callers must not log secrets; the scrubber below is only a second line of defense.
 */
import { beginningOf } from "./beginning";

const levels = ["error", "warn", "info", "debug"] as const;
export type Level = (typeof levels)[number];

/** `text`: a line for people. `json`: one object a line, with `time`, `level`, `message` and what else is known. */
export const logFormats = ["text", "json"] as const;
export type LogFormat = (typeof logFormats)[number];

/** What a line says besides its text, by name; called only for JSON. */
type LogFields = () => Record<string, unknown>;

export interface Logger {
  error(line: string, cause?: unknown): void;
  warn(line: string, cause?: unknown, fields?: LogFields): void;
  info(line: string, fields?: LogFields): void;
  debug(line: string, cause?: unknown): void;
  /** Hides this value in all later lines. */
  conceal(secret: string): void;
  /** The text with secrets replaced, and otherwise unchanged. */
  withoutSecrets(text: string): string;
  /** The text with secrets replaced and control characters escaped, at most `max` characters long; 512 by default. */
  scrub(text: string, max?: number): string;
}

/** @param isUrgent The line is an error or a warning, and is written at once. */
type WriteLine = (line: string, isUrgent: boolean) => void;

/** Writes nothing: whoever has it reports what goes wrong in another way. */
export const quietLogger = (): Logger =>
  createLogger(
    () => "error",
    () => {},
  );

/** @param level Read for each line, so that a change of the config takes effect at once. */
export function createLogger(level: () => Level, write: WriteLine = gatherLine, format: LogFormat = "text"): Logger {
  /** The longest first: one may have another in it. */
  const secrets: string[] = [];
  const withoutSecrets = (text: string) => {
    let shown = text;
    for (const secret of secrets) shown = shown.replaceAll(secret, standIn);
    return hideShapes(shown).replaceAll(standIn, "[secret]");
  };
  const scrub = (text: string, max = 512) => {
    const read = 4 * max + longestSecret;
    // A client chooses how long its texts are: what a line cannot show is not looked at. At the cut, half a secret is not known by its shape.
    const isCut = text.length > read;
    const safe = isCut ? withoutSecrets(text.slice(0, read)).slice(0, -longestSecret) : withoutSecrets(text);
    const shown = printable(safe);
    return isCut || shown.length > max ? `${beginningOf(shown, max - 1)}…` : shown;
  };
  const written = writers[format];
  const troubles = floodgate((left) =>
    write(written("warn", `${left} more warnings and errors were left out.`, scrub), true),
  );
  const say = (at: Level, line: string, cause?: unknown, fields?: LogFields) => {
    if (levels.indexOf(at) > levels.indexOf(level())) return;
    const isTrouble = at === "error" || at === "warn";
    if (isTrouble && !troubles.open()) return;
    const because = cause === undefined ? "" : ` (${describeCause(cause)})`;
    write(written(at, line + because, scrub, fields), isTrouble);
  };
  return {
    error: (line, cause) => say("error", line, cause),
    warn: (line, cause, fields) => say("warn", line, cause, fields),
    info: (line, fields) => say("info", line, undefined, fields),
    debug: (line, cause) => say("debug", line, cause),
    conceal(secret) {
      // Short values would hide ordinary words. Values of a known shape are found by their shape.
      const known = secretShapes.some(([shape]) => secret.replace(shape, "").length < 8);
      if (secret.length < 8 || known || secrets.includes(secret)) return;
      const place = secrets.findIndex((each) => each.length < secret.length);
      secrets.splice(place < 0 ? secrets.length : place, 0, secret);
    },
    withoutSecrets,
    scrub,
  };
}

type Scrub = (text: string) => string;

/** Each text is scrubbed by itself: across the quotes of JSON, the shape of a secret could take a whole object. */
const writers: Record<LogFormat, (level: Level, message: string, scrub: Scrub, fields?: LogFields) => string> = {
  text: (level, message, scrub) => `${new Date().toISOString()} ${shownLevels[level]} ${scrub(message)}\n`,
  json(level, message, scrub, fields) {
    const line = { time: new Date().toISOString(), level, message, ...fields?.() };
    return `${JSON.stringify(line, (_name, value) => (typeof value === "string" ? scrub(value) : value))}\n`;
  },
};

const shownLevels: Record<Level, string> = { error: "error", warn: "warn ", info: "info ", debug: "debug" };

const maxTroubles = 500;

/** Lets 500 lines a second pass. The next line after that reports how many were dropped. */
function floodgate(tell: (left: number) => void) {
  let second = 0;
  let lines = 0;
  return {
    open(): boolean {
      const now = Math.floor(performance.now() / 1000);
      if (now !== second) {
        const left = lines - maxTroubles;
        [second, lines] = [now, 0];
        if (left > 0) tell(left);
      }
      lines++;
      return lines <= maxTroubles;
    },
  };
}

/** A thrown value as a short text without its stack: class, code and message. */
export function describeCause(cause: unknown): string {
  if (!(cause instanceof Error)) return typeof cause === "string" ? cause : typeof cause;
  const code = "code" in cause && typeof cause.code === "string" ? ` ${cause.code}` : "";
  const inner = cause.cause === undefined ? "" : `: ${describeCause(cause.cause)}`;
  // An error that quotes an upstream or a client has a form that may be written down.
  const message = "written" in cause && typeof cause.written === "string" ? cause.written : cause.message;
  return `${cause.name}${code}: ${message}${inner}`;
}

/** Characters. */
const longestSecret = 8192;

/** A secret that was told may be the beginning of a longer one that is known by its shape: a word in its place leaves the shape. */
const standIn = "a1secret2that3was4told";

/** The shapes of the secrets of known services. Each takes linear time: what is searched may be a stranger's, and of any length. */
const secretShapes: [RegExp, string][] = [
  [/\b(?:gh[opusr]_|github_pat_)\w{16,}/g, "[github token]"],
  [/\btid=[^\s"']+/g, "[copilot token]"],
  [/\b(?:sk-|drg_)[\w-]{16,}/g, "[api key]"],
  [/\b(Bearer)\s+(?!authenticat|authori[sz]ation)[\w.~+/=;:-]{12,}/gi, "$1 [secret]"],
  // An ordinary word may follow, as in "token authentication is not supported". It has no digits and only one case.
  [
    /\b([Tt]oken|TOKEN)\s+(?!(?:[A-Z]?[a-z]{1,40}|[A-Z]{1,40})(?:[-/](?:[A-Z]?[a-z]{1,40}|[A-Z]{1,40})){0,6}[.:;]?(?![\w.~+/=;:-]))[\w.~+/=;:-]{12,}/g,
    "$1 [secret]",
  ],
  // `x-api-key: <key>` is a placeholder, `unused` and `…wner` are no secrets.
  [/(x-(?:goog-)?api-key["':=\s]+)(?![<…"':=\s]|unused\b)[^\s"',]+/gi, "$1[secret]"],
  [/([?&]key=)[^\s&"'#]+/gi, "$1[secret]"],
  [/:\/\/[^/@\s:]*:[^/@\s]+@/g, "://[secret]@"],
];

/** What each of the shapes begins with, or has inside: most texts have nothing of it, and need not be searched for each shape. */
const mayHaveSecret = /gh[opusr]_|github_pat_|tid=|sk-|drg_|bearer|token|api-key|key=|:\/\//i;

/** Hides everything that has the shape of a known service's secret. */
export const hideShapes = (text: string): string => (mayHaveSecret.test(text) ? searched(text) : text);

const searched = (text: string): string =>
  secretShapes.reduce((shown, [pattern, replacement]) => shown.replace(pattern, replacement), text);

// C0, DEL and C1 controls, line and paragraph separators, bidirectional overrides.
const controls = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** The text as one line that is safe to print at a terminal: control characters are escaped, for example as `\u001b`. */
export const printable = (text: string): string =>
  text.replace(controls, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Lines that are not written yet: one write for many lines costs less. */
let gathered = "";
let timer: Timer | undefined;
let isFlushedAtExit = false;

/** Maximum milliseconds until a line is written. Only SIGKILL can lose it; any other exit runs the `exit` handlers. */
const gatherMs = 20;
/** More characters than this are written at once. */
const maxGathered = 64 * 1024;

function gatherLine(line: string, isUrgent: boolean): void {
  gathered += line;
  if (!isFlushedAtExit) process.on("exit", flushLines);
  isFlushedAtExit = true;
  if (isUrgent || gathered.length > maxGathered) flushLines();
  else timer ??= setTimeout(flushLines, gatherMs);
}

let isStderrOpened = false;

/**
 * The stream of stderr, opened at its first use: it takes 10 to 20 ms of CPU to load (Bun 1.4.5). If its reader goes away, the
 * process goes on without its lines.
 */
export function stderr(): NodeJS.WriteStream {
  if (!isStderrOpened) process.stderr.on("error", () => {});
  isStderrOpened = true;
  return process.stderr;
}

/** Writes the gathered lines. Call it before writing to stderr directly, to keep the order. */
export function flushLines(): void {
  clearTimeout(timer);
  timer = undefined;
  const lines = gathered;
  gathered = "";
  if (lines === "") return;
  try {
    stderr().write(lines);
  } catch {
    // As above.
  }
}
