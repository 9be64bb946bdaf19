/** `JSON.parse` does not say where it stopped; a person mending a file by hand needs to know. */

/** Both from 1. */
export interface TextPosition {
  line: number;
  column: number;
}

type State = "value" | "item" | "key" | "anotherKey" | "colon" | "inObject" | "inArray" | "end";
type Token = "{" | "}" | "[" | "]" | ":" | "," | "text" | "scalar";

/** Which token may follow in which state, and what is expected then; "after" depends on what is still open. */
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

/** The first token that cannot stand where it stands; the end when the text is cut short. */
export function findJsonError(text: string): TextPosition {
  return placeAt(
    text,
    walk(text, () => {}),
  );
}

/**
 * Where a path stands in a text that is JSON, or, if it is missing there, what should hold it: the member's name, or the
 * item. Of a name that is written twice the last one counts, as it does for `JSON.parse`.
 * @param spell A path as the caller spells it, for example `auth.apiKeys[1]`.
 */
export function positionOf(text: string, path: string, spell: (parts: readonly PropertyKey[]) => string): TextPosition {
  let [offset, length] = [0, 0];
  walk(text, (parts, at) => {
    if (parts.length > deepest) return;
    const serialized = spell(parts);
    const holds = path === serialized || (path.startsWith(serialized) && /^[.[]/.test(path.slice(serialized.length)));
    if (holds && serialized.length >= length) [offset, length] = [at, serialized.length];
  });
  return placeAt(text, offset);
}

/** Levels; nothing we know is deeper, and spelling a path takes time by its length. */
const deepest = 8;

/** Tells of every member and item where it begins. @returns Where the text ends, or stops to be JSON. */
function walk(text: string, tell: (path: readonly PropertyKey[], offset: number) => void): number {
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
    if (next === "colon" || first || later) tell(path, offset);
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
