/** Files of lines `NAME=value`, from which a program takes its environment. (npm's `dotenv` is what most of them use.) */
import { ProxyError } from "../lib/errors";
import type { TextEdit } from "../lib/net/json/json-edit";
import { type Edit, SettingsFault } from "./edit";
import { applyEdits, ended, lineAt, lineEnding } from "./text-edits";

/** The expression of dotenv 17, `lib/main.js`: a value in quotes may have several lines. */
const assignment =
  /^[ \t]*(?:export[ \t]+)?([\w.-]+)(?:[ \t]*=[ \t]*?|:[ \t]+?)([ \t]*'(?:\\'|[^'])*'|[ \t]*"(?:\\"|[^"])*"|[ \t]*`(?:\\`|[^`])*`|[^#\r\n]+)?[ \t]*(?:#.*)?$/gm;

/** The variables; of two with one name the last one, as dotenv takes it. @throws SettingsFault for a text with a null character */
export function parseDotenv(text: string): Record<string, string> {
  const at = text.indexOf("\0");
  if (at >= 0) throw new SettingsFault("it is not text", lineAt(text, at));
  return Object.fromEntries(
    [...text.matchAll(assignment)].map(([, name, value = ""]) => [name, unquoted(value.trim())]),
  );
}

function unquoted(written: string): string {
  const quote = /^(['"`])([\s\S]*)\1$/.exec(written);
  if (!quote) return written;
  return quote[1] === '"' ? quote[2]!.replaceAll("\\n", "\n").replaceAll("\\r", "\r") : quote[2]!;
}

/** Sets and removes variables: a path is the name of one. Of a line that is there, only the value changes. */
export const editDotenv = (text: string, edits: readonly Edit[]): string =>
  edits.reduce((now, { path: [name], value }) => {
    const found = [...now.matchAll(assignment)].filter(([, other]) => other === name);
    // The last one counts.
    const last = found.at(-1);
    if (value !== undefined && last) return applyEdits(now, [valueEdit(last, quoted(String(value)))]);
    if (value !== undefined) return `${ended(now)}${String(name)}=${quoted(String(value))}${lineEnding(now)}`;
    const lines = found.map(({ index, 0: { length } }) => {
      const rest = /^\r?\n/.exec(now.slice(index + length))?.[0].length ?? 0;
      return { start: index, end: index + length + rest, text: "" };
    });
    return applyEdits(now, lines);
  }, text);

/** `export`, spaces and a comment stay. */
function valueEdit({ index, 0: line, 2: written }: RegExpExecArray, value: string): TextEdit {
  const [head] = /^[ \t]*(?:export[ \t]+)?[\w.-]+[ \t]*(?:=|:[ \t])/.exec(line)!;
  const at = written === undefined ? head.length : line.indexOf(written.trim(), head.length);
  const start = index + at;
  const end = start + (written?.trim().length ?? 0);
  // A shell takes a # that touches the value for a part of it.
  const touches = line[end - index] === "#" ? " " : "";
  return { start, end, text: value + touches };
}

/** @throws ProxyError `conflict` for a value that cannot be written so that every reader of such files reads the same. */
function quoted(value: string): string {
  if (/^[\w.:/@+=,~-]+$/.test(value)) return value;
  const quote = ["'", '"', "`"].find((mark) => !value.includes(mark) && (mark !== '"' || !value.includes("\\")));
  if (quote === undefined || /[\r\n\0]/.test(value))
    throw new ProxyError("conflict", "a value has characters that such a file cannot hold; use another client key");
  return quote + value + quote;
}
