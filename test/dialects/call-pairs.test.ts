/** Rows: every call has one result and every result its call, in each dialect and each translation. */
import { expect, test } from "bun:test";
import { codecs } from "../../src/dialects/codecs";
import {
  type ClientDialect,
  clientDialects,
  type Dialect,
  dialects,
  type JsonObject,
} from "../../src/dialects/hub/conversation";
import { adapt } from "../support/adapt";
import { ableModel } from "../support/facts";
import fc from "../support/random";

/** What a history says. A call says `m` and its number, a result `r` and its number. */
type Said =
  | { say: "user" | "assistant" }
  | { say: "calls"; calls: { id: string; freeform: boolean }[] }
  /** The kinds are those that a Responses client writes. */
  | { say: "results"; results: { id: string; freeform: boolean }[] };

interface Piece {
  kind: "call" | "result";
  id: string;
  freeform: boolean;
  text: string;
}
/** A message: its calls, its results, or words. */
type Message = { role: "user" | "assistant"; pieces: Piece[] };

function messagesOf(history: Said[]): Message[] {
  let calls = 0;
  let results = 0;
  return history.map((said): Message => {
    if (said.say === "calls")
      return {
        role: "assistant",
        pieces: said.calls.map((call) => ({ kind: "call", text: `m${++calls};`, ...call })),
      };
    if (said.say === "results")
      return {
        role: "user",
        pieces: said.results.map((result) => ({ kind: "result", text: `r${++results};`, ...result })),
      };
    return { role: said.say, pieces: [] };
  });
}

/** The result of each call, as the rule in the documents of `pairCalls` says it, looked for from each result. */
function expectedPairs(messages: Message[]): Map<string, string | undefined> {
  let turn = 0;
  const all = messages.flatMap(({ role, pieces }) => {
    if (role === "user") turn++;
    return pieces.map((piece) => ({ ...piece, turn }));
  });
  const pairs = new Map<string, string | undefined>(
    all.flatMap(({ kind, text }) => (kind === "call" ? [[text, undefined]] : [])),
  );
  const nearest = (at: number) => all.slice(0, at).findLast((call) => call.kind === "call" && call.id === all[at]!.id);
  for (const [at, result] of all.entries()) {
    const owner = result.kind === "result" ? nearest(at)?.turn : undefined;
    if (owner === undefined) continue;
    const calls = all.filter(({ kind, id, turn }) => kind === "call" && id === result.id && turn === owner);
    const results = all.filter(
      ({ kind, id }, place) => kind === "result" && id === result.id && nearest(place)?.turn === owner,
    );
    const call = calls[Math.max(0, calls.length - results.length) + results.indexOf(result)];
    if (call) pairs.set(call.text, result.text);
  }
  return pairs;
}

const schema = { type: "object", properties: { of: { type: "string" } } };
const nameOf = ({ freeform }: { freeform: boolean }) => (freeform ? "patch" : "look");
const inputOf = ({ text }: Piece) => JSON.stringify({ of: text });

/** A request of each dialect with a history. */
const writers: Record<ClientDialect, (messages: Message[]) => JsonObject> = {
  chat: (messages) => ({
    model: "m",
    tools: [
      { type: "function", function: { name: "look", parameters: schema } },
      { type: "custom", custom: { name: "patch" } },
    ],
    messages: messages.flatMap(({ role, pieces }): JsonObject[] => {
      const calls = pieces.filter(({ kind }) => kind === "call");
      if (pieces.length === 0) return [{ role, content: "Well." }];
      if (calls.length === 0) return pieces.map(({ id, text }) => ({ role: "tool", tool_call_id: id, content: text }));
      const tool_calls = calls.map((call) => ({
        id: call.id,
        ...(call.freeform
          ? { type: "custom", custom: { name: "patch", input: call.text } }
          : { type: "function", function: { name: "look", arguments: inputOf(call) } }),
      }));
      return [{ role, content: null, tool_calls }];
    }),
  }),
  responses: (messages) => ({
    model: "m",
    tools: [
      { type: "function", name: "look", parameters: schema, strict: false },
      { type: "custom", name: "patch" },
    ],
    input: messages.flatMap(({ role, pieces }): JsonObject[] => {
      const type = role === "user" ? "input_text" : "output_text";
      if (pieces.length === 0) return [{ type: "message", role, content: [{ type, text: "Well." }] }];
      return pieces.map((piece) => {
        const kind = piece.freeform ? "custom_tool_call" : "function_call";
        if (piece.kind === "result") return { type: `${kind}_output`, call_id: piece.id, output: piece.text };
        const input = piece.freeform ? { input: piece.text } : { arguments: inputOf(piece) };
        return { type: kind, call_id: piece.id, name: nameOf(piece), ...input };
      });
    }),
  }),
  messages: (messages) => ({
    model: "m",
    max_tokens: 1000,
    tools: ["look", "patch"].map((name) => ({ name, input_schema: schema })),
    messages: messages.map(({ role, pieces }) => ({
      role,
      content:
        pieces.length === 0
          ? "Well."
          : pieces.map((piece) =>
              piece.kind === "call"
                ? { type: "tool_use", id: piece.id, name: nameOf(piece), input: { of: piece.text } }
                : { type: "tool_result", tool_use_id: piece.id, content: piece.text },
            ),
    })),
  }),
  gemini: (messages) => ({
    model: "m",
    stream: false,
    tools: [{ functionDeclarations: ["look", "patch"].map((name) => ({ name, parametersJsonSchema: schema })) }],
    contents: messages.map(({ role, pieces }) => ({
      role: role === "user" ? "user" : "model",
      parts:
        pieces.length === 0
          ? [{ text: "Well." }]
          : pieces.map((piece) =>
              piece.kind === "call"
                ? { functionCall: { id: piece.id, name: nameOf(piece), args: { of: piece.text } } }
                : { functionResponse: { id: piece.id, name: nameOf(piece), response: { output: piece.text } } },
            ),
    })),
  }),
};

const marked = (value: unknown, letter: string): string | undefined =>
  JSON.stringify(value)?.match(new RegExp(`${letter}\\d+;`))?.[0];

/** A vendor's rule: each call has exactly one result, of its own kind, where the vendor looks for it. */
function take<Item>(open: Item[], isOwn: (call: Item) => boolean): Item {
  const at = open.findIndex(isOwn);
  if (at === -1) throw new Error("The vendor refuses a result without a call.");
  return open.splice(at, 1)[0]!;
}

/** The result of each call, as the upstream of a dialect understands the request. */
const readers: Record<Dialect, (body: JsonObject) => Map<string, string | undefined>> = {
  chat({ messages }) {
    const pairs = new Map<string, string | undefined>();
    const ids = new Set<unknown>();
    let open: JsonObject[] = [];
    for (const message of messages as JsonObject[]) {
      if (message.role === "tool") {
        const call = take(open, ({ id }) => id === message.tool_call_id);
        pairs.set(marked(call, "m")!, marked(message.content, "r"));
        continue;
      }
      if (open.length > 0) throw new Error("The vendor refuses a call without a result.");
      open = [...((message.tool_calls as JsonObject[] | undefined) ?? [])];
      for (const { id } of open) {
        if (ids.has(id)) throw new Error("The vendor refuses two calls of one id.");
        ids.add(id);
      }
    }
    if (open.length > 0) throw new Error("The vendor refuses a call without a result.");
    return pairs;
  },
  responses({ input }) {
    const pairs = new Map<string, string | undefined>();
    const calls = new Map<unknown, JsonObject>();
    for (const item of input as JsonObject[]) {
      const type = String(item.type);
      if (type.endsWith("_call")) {
        if (calls.has(item.call_id)) throw new Error("The vendor refuses two calls of one id.");
        calls.set(item.call_id, item);
      } else if (type.endsWith("_output")) {
        const call = calls.get(item.call_id);
        if (`${call?.type}_output` !== type) throw new Error("The vendor refuses a result of another kind.");
        if (pairs.has(marked(call, "m")!)) throw new Error("The vendor refuses a second result.");
        pairs.set(marked(call, "m")!, marked(item.output, "r"));
      }
    }
    if (pairs.size < calls.size) throw new Error("The vendor refuses a call without a result.");
    return pairs;
  },
  messages({ messages }) {
    const pairs = new Map<string, string | undefined>();
    const ids = new Set<unknown>();
    let open: JsonObject[] = [];
    const list = messages as JsonObject[];
    for (const [at, { role, content }] of list.entries()) {
      const blocks = Array.isArray(content) ? (content as JsonObject[]) : [];
      if (role === "assistant") {
        for (const block of blocks.filter(({ type }) => type === "tool_use")) {
          if (ids.has(block.id)) throw new Error("`tool_use` ids must be unique");
          ids.add(block.id);
          open.push(block);
        }
        if (list[at + 1]?.role === "assistant") continue;
        if (open.length > 0 && list[at + 1] === undefined)
          throw new Error("The vendor refuses a call without a result.");
        continue;
      }
      let mayAnswer = true;
      for (const block of blocks) {
        if (block.type !== "tool_result") mayAnswer = false;
        else {
          const call = take(open, ({ id }) => mayAnswer && id === block.tool_use_id);
          pairs.set(marked(call, "m")!, marked(block.content, "r"));
        }
      }
      if (open.length > 0) throw new Error("The vendor refuses a call without a result.");
      open = [];
    }
    return pairs;
  },
};

const model = ableModel("some-model", "OpenAI");

function sent(client: ClientDialect, upstream: Dialect, messages: Message[]): JsonObject {
  const body = writers[client](messages);
  const options = { webSearch: true };
  if (client === upstream) return codecs[upstream].fixRequest(body, model, options);
  const { conversation } = adapt(codecs[client].decodeRequest(body), upstream);
  return codecs[upstream].encodeRequest(conversation, model, options);
}

const routes = clientDialects.flatMap((client) =>
  dialects.map((upstream): [ClientDialect, Dialect] => [client, upstream]),
);

/** Compares what each upstream understands, and that nothing that a tool said is lost or said twice. */
function check(history: Said[]): void {
  const messages = messagesOf(history);
  const expected = expectedPairs(messages);
  const results = messages.flatMap(({ pieces }) => pieces.flatMap(({ kind, text }) => (kind === "result" ? text : [])));
  for (const [client, upstream] of routes) {
    const body = sent(client, upstream, messages);
    const understood = readers[upstream](body);
    expect([client, upstream, ...[...expected.keys()].map((text) => [text, understood.get(text)])]).toEqual([
      ...[client, upstream],
      ...expected,
    ]);
    const said = JSON.stringify(body).match(/r\d+;/g) ?? [];
    expect([client, upstream, ...said.sort()]).toEqual([client, upstream, ...results.sort()]);
  }
}

/** `say` is what a person says, `a b*` are calls by their ids, `*` freeform, and `=a =b*` results. */
const historyOf = (text: string): Said[] =>
  text.split(", ").map((words) => {
    if (words === "say") return { say: "user" };
    const pieces = words.split(" ").map((word) => ({ id: word.replace(/[=*]/g, ""), freeform: word.endsWith("*") }));
    return words.startsWith("=") ? { say: "results", results: pieces } : { say: "calls", calls: pieces };
  });

test.each([
  ["the call after an interrupted one of the same id", "say, a, say, a, =a"],
  ["the call of its place, of two calls of one id and of two kinds", "say, a a*, =a =a*"],
  ["the nearest of two calls in a row", "say, a*, a, =a"],
  ["its call, although something else stands between", "say, a b, =b, say, =a =a"],
])("each dialect, and each translation, gives a result to: %s", (_, history) => check(historyOf(history)));

test("the call that the oracle names, whatever the history", () => {
  // `a_2` is the name that a second call of `a` would get.
  const piece = fc.record({ id: fc.constantFrom("a", "b", "a_2"), freeform: fc.boolean() });
  const said = fc.oneof(
    { weight: 1, arbitrary: fc.constantFrom<Said>({ say: "user" }, { say: "assistant" }) },
    {
      weight: 3,
      arbitrary: fc.array(piece, { minLength: 1, maxLength: 3 }).map((calls): Said => ({ say: "calls", calls })),
    },
    {
      weight: 3,
      arbitrary: fc.array(piece, { minLength: 1, maxLength: 3 }).map((results): Said => ({ say: "results", results })),
    },
  );
  let pairs = 0;
  let lost = 0;
  fc.assert(
    fc.property(fc.array(said, { minLength: 5, maxLength: 10 }), (rest) => {
      const history: Said[] = [{ say: "user" }, ...rest];
      for (const result of expectedPairs(messagesOf(history)).values()) result ? pairs++ : lost++;
      check(history);
    }),
  );
  expect(pairs).toBeGreaterThan(20);
  expect(lost).toBeGreaterThan(20);
});
