/** Reads and writes lines of the form `name = value`. Ambiguous text is written as a JSON string. */

/** Line breaks would end the line, and forms do not preserve other control characters. */
const breaks = /[\p{Cc}\p{Cs}\u2028\u2029]/u;

const isPlain = (text: string) => text === text.trim() && !text.startsWith('"') && !breaks.test(text);

/** One line, which `pairIn` reads back as the same pair. */
export function pairLine(name: string, value: string): string {
  const safeName = name !== "" && isPlain(name) && !name.includes("=") ? name : JSON.stringify(name);
  return `${safeName} = ${isPlain(value) ? value : JSON.stringify(value)}`;
}

/** A name in quotes, or up to the first `=`; then its value. */
const pair = /^\s*(?:("(?:[^"\\]|\\.)*")\s*|([^"=\s][^=]*))=(.*)$/su;

/** @returns Undefined if the line is not a pair. */
export function pairIn(line: string): { name: string; value: string } | undefined {
  const [, quoted, plain, rest = ""] = pair.exec(line) ?? [];
  const name = quoted === undefined ? plain?.trim() : unquoted(quoted);
  const text = rest.trim();
  const value = text.startsWith('"') ? unquoted(text) : text;
  return name === undefined || value === undefined ? undefined : { name, value };
}

function unquoted(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined; // The quotes are not closed.
  }
}
