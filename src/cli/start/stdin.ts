/** Reads stdin for a program that starts dragoman: an optional token in the first line; afterwards only whether it stays open matters. */
import { fstatSync } from "node:fs";
import { UsageError } from "../usage-error";

/** Characters; no token is longer. */
const maxLineLength = 16_384;

export interface Stdin {
  /** Up to the first line break, or to the end; cut where it is too long to be a token. */
  firstLine: Promise<string>;
  ended: Promise<void>;
  /** Reads no more, so that its end is not seen. */
  letGo(): void;
}

/** Reads from now on; what follows the first line is thrown away. */
export function readStdin(): Stdin {
  const line = Promise.withResolvers<string>();
  const ended = Promise.withResolvers<void>();
  const { stdin } = process;
  let text: string | undefined = "";
  const settle = (first: string) => {
    line.resolve(first);
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

/** @throws UsageError when nobody can hold stdin open: a file, or /dev/null, which is what many programs give unless told. */
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
