/** `JSON.parse` does not say where it stopped; a person mending a file by hand needs to know. */

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

/** Line and column, both from 1, of the first token that cannot stand where it stands; the end when the text is cut short. */
export function jsonFault(text: string): { line: number; column: number } {
  const open: ("inObject" | "inArray")[] = [];
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
    if (!next) break;
    if (token === "{" || token === "[") open.push(token === "{" ? "inObject" : "inArray");
    if (token === "}" || token === "]") open.pop();
    state = next === "after" ? (open.at(-1) ?? "end") : next;
    offset = tokens.lastIndex;
  }
  const before = text.slice(0, offset).split(/\r\n|\n|\r/);
  return { line: before.length, column: before.at(-1)!.length + 1 };
}
