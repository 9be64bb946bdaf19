/** Files of lines `NAME=value`, from which a program takes its environment. (npm's `dotenv` is what most of them use.) */
import { ProxyError } from "../errors";
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

/** Sets and removes variables: a path is the name of one. Other lines keep their bytes. */
export const editDotenv = (text: string, edits: readonly Edit[]): string =>
  edits.reduce((now, { path: [name], value }) => {
    const found = [...now.matchAll(assignment)].filter(([, other]) => other === name);
    const line = value === undefined ? undefined : `${String(name)}=${quoted(String(value))}`;
    if (line !== undefined && found.length === 0) return `${ended(now)}${line}${lineEnding(now)}`;
    // The last one counts; it is the one that is replaced.
    const changes = found.map(({ index, 0: { length } }, at) => {
      if (line !== undefined) return at < found.length - 1 ? [] : [{ start: index, end: index + length, text: line }];
      const rest = /^\r?\n/.exec(now.slice(index + length))?.[0].length ?? 0;
      return [{ start: index, end: index + length + rest, text: "" }];
    });
    return applyEdits(now, changes.flat());
  }, text);

/** @throws ProxyError `conflict` for a value that cannot be written so that every reader of such files reads the same. */
function quoted(value: string): string {
  if (/^[\w.:/@+=,~-]+$/.test(value)) return value;
  const quote = ["'", '"', "`"].find((mark) => !value.includes(mark) && (mark !== '"' || !value.includes("\\")));
  if (quote === undefined || /[\r\n\0]/.test(value))
    throw new ProxyError("conflict", "a value has characters that such a file cannot hold; use another client key");
  return quote + value + quote;
}
