/** Reads stdin for a program that starts dragoman: an optional token in the first line; afterwards only whether it stays open matters. */
import { fstatSync } from "node:fs";
import { UsageError } from "../usage-error";

/** Characters; no token is longer. */
const maxLineLength = 16_384;

export interface Stdin {
  /** The text up to the first line break or the end, without blanks around it, cut off if it is too long to be a token. */
  firstLine: Promise<string>;
  ended: Promise<void>;
  /** Stops reading. The end of stdin is not noticed then. */
  letGo(): void;
}

/** Starts reading. Everything after the first line is ignored. */
export function readStdin(): Stdin {
  const line = Promise.withResolvers<string>();
  const ended = Promise.withResolvers<void>();
  const { stdin } = process;
  let text: string | undefined = "";
  const settle = (first: string) => {
    line.resolve(first.trim());
    text = undefined;
  };
  stdin.setEncoding("utf8");
  stdin.on("data", (piece) => {
    if (text === undefined) return;
    text += piece;
    if (text.length > maxLineLength || /[\r\n]/.test(text)) settle(text.split(/[\r\n]/)[0]!);
  });
  const end = () => {
    settle(text ?? "");
    ended.resolve();
  };
  for (const event of ["end", "close", "error"]) stdin.on(event, end);
  return { firstLine: line.promise, ended: ended.promise, letGo: () => void stdin.pause() };
}

/** @throws UsageError if stdin cannot stay open: it is a file, or /dev/null, which many programs pass by default */
export function checkHeldOpen(): void {
  if (process.platform === "win32" || process.stdin.isTTY) return;
  try {
    const kind = fstatSync(0);
    if (kind.isFIFO() || kind.isSocket()) return;
  } catch {
    // it is closed
  }
  throw new UsageError(
    "--stdin-lifetime requires a stdin that stays open, such as a pipe held by the program that starts dragoman.",
  );
}
