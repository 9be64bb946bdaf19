/** Finds the line and column of a JSON error, which `JSON.parse` does not report, and of a path in valid JSON. */

/** Both from 1. */
export interface TextPosition {
  line: number;
  column: number;
}

type State = "value" | "item" | "key" | "anotherKey" | "colon" | "inObject" | "inArray" | "end";
type Token = "{" | "}" | "[" | "]" | ":" | "," | "text" | "scalar";

/** The state after each token that is allowed in a state; "after" depends on the innermost open bracket. */
const values = { "{": "key", "[": "item", text: "after", scalar: "after" } as const;
const grammar: Record<State, Partial<Record<Token, State | "after">>> = {
  value: values,
  item: { ...values, "]": "after" },
  key: { text: "colon", "}": "after" },
  anotherKey: { text: "colon" },
  colon: { ":": "value" },
  inObject: { ",": "anotherKey", "}": "after" },
  inArray: { ",": "value", "]": "after" },
  end: {},
};

const blank = /[ \t\r\n]*/y;
const tokens =
  /([{}[\]:,])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y;

/** The position of the first unexpected token; the end of a truncated text. */
export function findJsonError(text: string): TextPosition {
  return placeAt(
    text,
    walk(text, () => {}),
  );
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
  walk(text, (parts, at) => {
    if (parts.length > maxDepth) return;
    const serialized = format(parts);
    const contains =
      path === serialized || (path.startsWith(serialized) && /^[.[]/.test(path.slice(serialized.length)));
    if (contains && serialized.length >= length) [offset, length] = [at, serialized.length];
  });
  return placeAt(text, offset);
}

/** No known key is deeper, and formatting longer paths takes time. */
const maxDepth = 8;

/** Calls `visit` with the path and offset of each member and item. @returns The offset of the text's end, or of the first error. */
function walk(text: string, visit: (path: readonly PropertyKey[], offset: number) => void): number {
  const open: ("inObject" | "inArray")[] = [];
  const path: PropertyKey[] = [];
  let state: State = "value";
  let offset = 0;
  for (;;) {
    blank.lastIndex = offset;
    blank.test(text);
    offset = blank.lastIndex;
    tokens.lastIndex = offset;
    const match = tokens.exec(text);
    const token = (match?.[1] ?? (match?.[2] ? "text" : "scalar")) as Token;
    const next: State | "after" | undefined = match ? grammar[state][token] : undefined;
    if (!match || !next) return offset;
    const first = state === "item" && token !== "]";
    const later = state === "value" && open.at(-1) === "inArray";
    if (next === "colon") path[open.length - 1] = JSON.parse(match[0]);
    else if (first) path[open.length - 1] = 0;
    else if (later) path[open.length - 1] = (path[open.length - 1] as number) + 1;
    if (next === "colon" || first || later) visit(path, offset);
    if (token === "{" || token === "[") open.push(token === "{" ? "inObject" : "inArray");
    if (token === "}" || token === "]") {
      open.pop();
      path.length = open.length;
    }
    state = next === "after" ? (open.at(-1) ?? "end") : next;
    offset = tokens.lastIndex;
  }
}

function placeAt(text: string, offset: number): TextPosition {
  const before = text.slice(0, offset).split(/\r\n|\n|\r/);
  return { line: before.length, column: before.at(-1)!.length + 1 };
}
