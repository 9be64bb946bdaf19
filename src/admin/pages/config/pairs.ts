/** Names with their values as lines of a form, `name = value`: what could be read otherwise stands in quotes, as in JSON. */

/** Line breaks would end the line; other controls do not survive a form. */
const breaks = /[\p{Cc}\p{Cs}\u2028\u2029]/u;

const isPlain = (text: string) => text === text.trim() && !text.startsWith('"') && !breaks.test(text);

/** One pair; `pairIn` reads it back as the same. */
export function pairLine(name: string, value: string): string {
  const said = name !== "" && isPlain(name) && !name.includes("=") ? name : JSON.stringify(name);
  return `${said} = ${isPlain(value) ? value : JSON.stringify(value)}`;
}

/** A name in quotes, or up to the first `=`; then its value. */
const pair = /^\s*(?:("(?:[^"\\]|\\.)*")\s*|([^"=\s][^=]*))=\s*(.*?)\s*$/su;

/** @returns Undefined for a line that is no pair. */
export function pairIn(line: string): { name: string; value: string } | undefined {
  const [, quoted, plain, rest = ""] = pair.exec(line) ?? [];
  const name = quoted === undefined ? plain?.trim() : unquoted(quoted);
  const value = rest.startsWith('"') ? unquoted(rest) : rest;
  return name === undefined || value === undefined ? undefined : { name, value };
}

function unquoted(text: string): string | undefined {
  try {
    const said: unknown = JSON.parse(text);
    return typeof said === "string" ? said : undefined;
  } catch {
    return undefined; // quotes that do not close
  }
}
