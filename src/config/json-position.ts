/** Finds the line and column of a JSON error, which `JSON.parse` does not report, and of a path in valid JSON. */
import type { Node, ParseError } from "jsonc-parser";
import { lazy } from "../lib/lazy";

/** Loaded with the first error in a file. The form that `require` gets by itself cannot be packed into one file. */
const parser = lazy((): typeof import("jsonc-parser") => require("jsonc-parser/lib/esm/main"));

/** Both from 1. */
export interface TextPosition {
  line: number;
  column: number;
}

/** The position of the first unexpected token; the end of a truncated text. */
export function findJsonError(text: string): TextPosition {
  const errors: ParseError[] = [];
  parser().parse(text, errors, { disallowComments: true });
  return placeAt(text, errors[0]?.offset ?? text.length);
}

/**
 * The position of a path in valid JSON (the member's name, or the item), or of its nearest parent if it is missing. Of a
 * duplicate name the last one counts, as for `JSON.parse`.
 * @param format Formats a path, for example as `auth.apiKeys[1]`.
 */
export function positionOf(
  text: string,
  path: string,
  format: (parts: readonly PropertyKey[]) => string,
): TextPosition {
  let [offset, length] = [0, 0];
  const visit = (node: Node | undefined, above: readonly PropertyKey[]): void => {
    for (const [at, child] of (node?.children ?? []).entries()) {
      const [name, value] = child.type === "property" ? child.children! : [undefined, child];
      const parts = [...above, name ? (name.value as string) : at];
      const own = format(parts);
      if (path !== own && !(path.startsWith(own) && /^[.[]/.test(path.slice(own.length)))) continue;
      if (own.length >= length) [offset, length] = [child.offset, own.length];
      visit(value, parts);
    }
  };
  visit(parser().parseTree(text), []);
  return placeAt(text, offset);
}

function placeAt(text: string, offset: number): TextPosition {
  const before = text.slice(0, offset).split(/\r\n|\n|\r/);
  return { line: before.length, column: before.at(-1)!.length + 1 };
}
