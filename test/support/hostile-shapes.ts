/**
 * Requests and replies of any size that repeat what a client or an upstream may repeat. They are made of the fixtures: each
 * list of each one is filled with copies of its items, each frame of each stream comes again and again, so a new fixture
 * brings its own shapes. {@link schemas} adds those that only references make, and {@link withRuleWords} those of a new rule.
 */
import { rules as chatRules } from "../../src/dialects/chat/rules";
import { type ClientDialect, clientDialects, type Dialect, type JsonObject } from "../../src/dialects/hub/conversation";
import type { RuleTable } from "../../src/dialects/hub/rules";
import { rules as messagesRules } from "../../src/dialects/messages/rules";
import { rules as responsesRules } from "../../src/dialects/responses/rules";
import { isObject } from "../../src/lib/json";
import { jsonFrame, readSse, type SseFrame } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import type { Json } from "./json";
import { bytesAt, jsonAt, recorded } from "./streams";

/** A shape, and how it is made in about so many bytes. */
interface Shape<T> {
  name: string;
  dialect: ClientDialect;
  make(bytes: number): T;
}

/** The requests, or replies, of all fixtures in a dialect. */
export const samples = (kind: "request" | "reply", dialect: ClientDialect): [folder: string, sample: JsonObject][] =>
  recorded(dialect, `${kind}.json`).map(([folder, file]) => [folder, jsonAt(folder, file)]);

type Path = (string | number)[];

/** The places of all lists in a JSON. */
function listsIn(value: unknown, path: Path = []): Path[] {
  if (Array.isArray(value)) return [path, ...value.flatMap((item, at) => listsIn(item, [...path, at]))];
  return isObject(value) ? Object.entries(value).flatMap(([key, item]) => listsIn(item, [...path, key])) : [];
}

const listAt = (value: Json, path: Path): unknown[] => path.reduce((part, step) => part[step], value);

/** A copy of the JSON with another list in this place. */
function withList(value: unknown, [step, ...rest]: Path, change: (list: unknown[]) => unknown[]): unknown {
  if (step === undefined) return change(value as unknown[]);
  if (Array.isArray(value)) return value.map((item, at) => (at === step ? withList(item, rest, change) : item));
  return { ...(value as JsonObject), [step]: withList((value as JsonObject)[step], rest, change) };
}

/** A copy of an item in which the texts of these members have a number. */
function numbered(item: unknown, turn: number, members: RegExp): unknown {
  if (Array.isArray(item)) return item.map((each) => numbered(each, turn, members));
  if (!isObject(item)) return item;
  return Object.fromEntries(
    Object.entries(item).map(([key, value]) => [
      key,
      typeof value === "string" && members.test(key) ? `${value}${turn}` : numbered(value, turn, members),
    ]),
  );
}

/** How the copies of a list's items differ. */
const copies: Record<string, (list: unknown[], turn: number) => unknown[]> = {
  "the same": (list) => list,
  "with ids and words of their own": (list, turn) =>
    list.map((item) => numbered(item, turn, /(?:^|_)id$|^name$|^text$|^description$/)),
};

/** All lists of a JSON at once, each with its part of the bytes: what goes through two of them has to look from one into the other. */
function repeatedTogether(dialect: ClientDialect, kind: "request" | "reply"): Shape<JsonObject>[] {
  const seen = new Set<string>();
  return samples(kind, dialect).flatMap(([folder, sample]) => {
    // The innermost come first: an outer list is filled with what it had before.
    const lists = listsIn(sample).reverse();
    const places = JSON.stringify(lists);
    if (lists.length < 2 || seen.has(places)) return [];
    seen.add(places);
    return Object.entries(copies).map(([how, copy]) => ({
      name: `${dialect} ${kind}, ${folder}: all lists at once, ${how}`,
      dialect,
      make: (bytes: number) =>
        lists.reduce<unknown>((filled, path) => {
          const filling = listAt(sample, path);
          const count = Math.floor(bytes / lists.length / JSON.stringify(filling).length);
          return withList(filled, path, (list) => [
            ...list,
            ...many(filling.length === 0 ? 0 : count, (turn) => copy(filling, turn)).flat(),
          ]);
        }, sample) as JsonObject,
    }));
  });
}

/** Each list of a JSON filled with copies of what stands in it. */
function repeated(dialect: ClientDialect, kind: "request" | "reply"): Shape<JsonObject>[] {
  const seen = new Set<string>();
  return samples(kind, dialect).flatMap(([folder, sample]) =>
    listsIn(sample).flatMap((path) => {
      const filling = listAt(sample, path);
      if (filling.length === 0) return [];
      const place = path.map((step) => (typeof step === "number" ? "*" : step)).join(".");
      const kinds = [...new Set(filling.map((item) => (isObject(item) ? `${item.type ?? item.role ?? ""}` : "")))];
      const key = `${place} ${kinds.join()}`;
      if (seen.has(key)) return [];
      seen.add(key);
      return Object.entries(copies).map(([how, copy]) => ({
        name: `${dialect} ${kind}, ${folder}: ${place} (${kinds.join(", ")}), ${how}`,
        dialect,
        make: (bytes: number) => {
          const count = Math.max(1, Math.floor(bytes / JSON.stringify(filling).length));
          const items = many(count, (turn) => copy(filling, turn)).flat();
          return withList(sample, path, (list) => [...list, ...items]) as JsonObject;
        },
      }));
    }),
  );
}

const tool: Record<ClientDialect, (parameters: JsonObject) => JsonObject> = {
  chat: (parameters) => ({ tools: [{ type: "function", function: { name: "look", parameters } }] }),
  responses: (parameters) => ({ tools: [{ type: "function", name: "look", parameters }] }),
  messages: (input_schema) => ({ max_tokens: 100, tools: [{ name: "look", input_schema }] }),
  gemini: (parametersJsonSchema) => ({ tools: [{ functionDeclarations: [{ name: "look", parametersJsonSchema }] }] }),
};

const ask: Record<ClientDialect, JsonObject> = {
  chat: { messages: [{ role: "user", content: "Hello" }] },
  responses: { input: "Hello" },
  messages: { messages: [{ role: "user", content: "Hello" }] },
  gemini: { contents: [{ role: "user", parts: [{ text: "Hello" }] }] },
};

const many = <T>(count: number, item: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => item(at));
const named = <T>(count: number, item: (at: number) => T) =>
  Object.fromEntries(many(count, (at) => [`A${at}`, item(at)]));
const toA = (at: number | string = "") => ({ $ref: `#/$defs/A${at}` });

/** Schemas of a tool that refer to themselves and to each other, by the number of their parts. */
const schemas: Record<string, (n: number) => JsonObject> = {
  "references of a definition to itself": (n) => ({ anyOf: [toA()], $defs: { A: { anyOf: many(n, () => toA()) } } }),
  "references of definitions to all definitions": (n) => {
    const side = Math.ceil(Math.sqrt(n));
    const properties = (at: number) => ({ [`p${at}`]: { const: at } });
    return {
      anyOf: [toA(0)],
      $defs: named(side, (at) => ({ properties: properties(at), required: ["x"], oneOf: many(side, (to) => toA(to)) })),
    };
  },
  "references in a chain": (n) => ({ anyOf: [toA(0)], $defs: named(n, (at) => ({ anyOf: [toA(at + 1)] })) }),
  "references that demand all": (n) => {
    const side = Math.ceil(Math.sqrt(n));
    const required = (at: number) => many(side, (name) => `n${at}_${name}`);
    return {
      allOf: [toA(0)],
      $defs: named(side, (at) => ({ required: required(at), allOf: many(side, (to) => toA(to)) })),
    };
  },
  "branches with one property": (n) => ({
    anyOf: many(n, (at) => ({ type: "object", properties: { p: { const: at } } })),
  }),
  "branches with the same property": (n) => ({ oneOf: many(n, () => ({ properties: { p: { type: "string" } } })) }),
  "branches that are nested": (n) =>
    many(Math.min(n, 400), () => 0).reduce<JsonObject>(
      (schema) => ({ anyOf: [schema, { required: many(n / 400, (at) => `a${at}`) }] }),
      {},
    ),
  "demands that differ": (n) => ({ anyOf: many(n, (at) => ({ required: [`a${at}`, `a${at + 1}`] })) }),
  "alternatives of a property": (n) => ({
    anyOf: [{ properties: { p: { anyOf: many(n, (at) => ({ const: at })) } } }, {}],
  }),
  "empty properties": (n) => ({ type: "object", properties: named(n, () => ({})) }),
  patterns: (n) => ({ type: "object", properties: named(n, () => ({ pattern: "\\p{L}(?!a)" })) }),
  "patterns of signs": (n) => ({ type: "object", properties: { a: { pattern: "(\\\\[".repeat(n) } } }),
  "tuples within tuples": (n) =>
    nested(n, (inner) => ({ type: "array", prefixItems: [inner, { type: "string" }], items: false })),
  "what may be null within what may be null": (n) =>
    nested(n, (inner) => ({ description: "Either.", anyOf: [inner, { type: "null" }] })),
  "names of properties that are not taken": (n) => ({
    type: "object",
    properties: Object.fromEntries(many(n, (at) => [`[${"]".repeat(at % 40)}${at % 7}${"[".repeat(at % 31)}`, {}])),
    required: many(n / 3, (at) => `[${"]".repeat(at % 40)}`),
  }),
  "an older draft": (n) => ({
    type: "OBJECT",
    properties: named(n / 3, () => ({
      type: "INTEGER",
      minimum: 1,
      exclusiveMinimum: true,
      nullable: true,
      required: true,
    })),
  }),
  "lists of types": (n) => ({
    type: "object",
    properties: named(n, () => ({ type: ["string", "null"], enum: [1, null] })),
  }),
};

/** A schema of many parts, in others to a depth that requests may have. */
function nested(n: number, around: (inner: JsonObject) => JsonObject): JsonObject {
  const core: JsonObject = { type: "object", properties: named(n, () => ({ type: ["string", "null"] })) };
  const whole = many(90, () => 0).reduce<JsonObject>(around, core);
  return { type: "object", properties: { a: whole } };
}

/** Bytes of one part, as a first guess. */
const partBytes = 30;

/** @param body Makes a request of so many parts. @returns Makes one of about so many bytes. */
function sized(body: (parts: number) => JsonObject): (bytes: number) => JsonObject {
  return (bytes) => {
    const guess = bytes / partBytes;
    const guessed = JSON.stringify(body(Math.ceil(guess))).length;
    return body(Math.max(1, Math.floor((guess * bytes) / guessed)));
  };
}

const withSchemas = (dialect: ClientDialect): Shape<JsonObject>[] =>
  Object.entries(schemas).map(([name, schema]) => ({
    name: `${dialect} request: a tool with ${name}`,
    dialect,
    make: sized((n) => ({ ...ask[dialect], ...tool[dialect](schema(n)) })),
  }));

const withMembers = (dialect: ClientDialect): Shape<JsonObject>[] => [
  {
    name: `${dialect} request: members that nobody knows`,
    dialect,
    make: sized((n) => ({ ...ask[dialect], ...named(n, () => ({ type: "x" })) })),
  },
];

const functions = (n: number) => many(n, (at) => ({ type: "function", name: `f${at}`, parameters: {} }));

/** Shapes of a dialect that no fixture repeats. */
const ofDialect: Record<ClientDialect, Record<string, (n: number) => JsonObject>> = {
  chat: {
    "a choice among many tools": (n) => {
      const tools = functions(n / 4).map(({ type, ...definition }) => ({ type, function: definition }));
      return { ...ask.chat, tools, tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools } } };
    },
  },
  responses: {
    "calls of the tools in a namespace": (n) => ({
      tools: [{ type: "namespace", name: "n", description: "N.", tools: functions(n / 6) }],
      input: many(n / 6, (at) => ({
        ...{ type: "function_call", call_id: `c${at}`, namespace: "n", name: `f${at}`, arguments: "{}" },
      })),
    }),
    "a choice among the tools in a namespace": (n) => ({
      ...ask.responses,
      tools: [{ type: "namespace", name: "n", description: "N.", tools: functions(n / 3) }],
      tool_choice: {
        type: "allowed_tools",
        mode: "auto",
        tools: functions(n / 3).map(({ type, name }) => ({ type, name: `n__${name}` })),
      },
    }),
    "a choice among a provider's tools": (n) => ({
      ...ask.responses,
      tools: many(n / 3, (at) => ({ type: "web_search", a: at })),
      tool_choice: {
        type: "allowed_tools",
        mode: "auto",
        tools: many(n / 3, (at) => ({ type: "web_search", b: at })),
      },
    }),
    "calls of one id, and then their results": (n) => ({
      input: [
        ...many(n / 4, () => ({ type: "function_call", call_id: "a", name: "f", arguments: "{}" })),
        ...many(n / 4, () => ({ type: "function_call_output", call_id: "a", output: "" })),
      ],
    }),
    "calls whose ids begin alike, each twice": (n) => ({
      input: many(n / 4, (at) => at >> 1).map((at) => ({
        type: "function_call",
        call_id: "a".repeat(58) + String(at).padStart(6, "0"),
        name: "f",
        arguments: "{}",
      })),
    }),
    "tools of one name": (n) => ({
      input: "Hello",
      tools: many(n / 3, (at) => ({ type: "function", name: "f", description: String(at), parameters: {} })),
    }),
  },
  messages: {
    "words of a person in a row after a result": (n) => ({
      max_tokens: 9000,
      thinking: { type: "enabled", budget_tokens: 2000 },
      messages: [
        { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "" }] },
        ...many(n, () => ({ role: "user", content: "hi" })),
      ],
    }),
  },
  gemini: {
    "a choice among many tools": (n) => ({
      ...ask.gemini,
      tools: [{ functionDeclarations: many(n / 3, (at) => ({ name: `f${at}` })) }],
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: many(n / 3, (at) => `f${at}`) } },
    }),
    "a turn of calls without ids, and their results": (n) => ({
      contents: [
        { role: "model", parts: many(n / 2, () => ({ functionCall: { name: "f", args: {} } })) },
        { role: "user", parts: many(n / 2, () => ({ functionResponse: { name: "f", response: {} } })) },
      ],
    }),
  },
};

const ofItsOwn = (dialect: ClientDialect): Shape<JsonObject>[] =>
  Object.entries(ofDialect[dialect]).map(([name, body]) => ({
    name: `${dialect} request: ${name}`,
    dialect,
    make: sized(body),
  }));

/** The rules of each upstream's dialect. */
export const rulesOf: Record<Dialect, RuleTable["rules"]> = {
  chat: chatRules,
  messages: messagesRules,
  responses: responsesRules,
};

/** The member that holds the conversation. */
const history: Record<Dialect, string> = { chat: "messages", messages: "messages", responses: "input" };
const roles = ["user", "assistant", "system", "developer", "tool"];

/** Messages and tools that have what a rule looks for, as names of members and as types and roles. */
const withRuleWords = (dialect: Dialect): Shape<JsonObject>[] =>
  Object.entries(rulesOf[dialect]).flatMap(([rule, row]) => {
    const words = row.slice(0, -1) as string[];
    if (words.length === 0) return [];
    const item = (at: number) => {
      const word = words[at % words.length]!;
      const part = { type: word, [word]: word };
      return { ...part, role: roles.includes(word) ? word : roles[at % 2], content: [part] };
    };
    const tool = (at: number) => {
      const definition = { ...item(at), name: `f${at}`, input_schema: {}, parameters: {} };
      return { ...definition, function: definition };
    };
    const make = (n: number) => ({
      ...Object.fromEntries(words.map((word) => [word, word])),
      ...ask[dialect],
      [history[dialect]]: many(n / 3, item),
      tools: many(n / 9, tool),
    });
    return [{ name: `${dialect} request, the rule ${rule}: items with its words`, dialect, make: sized(make) }];
  });

export const hostileRequests: readonly Shape<JsonObject>[] = clientDialects.flatMap((dialect) => [
  ...withSchemas(dialect),
  ...withMembers(dialect),
  ...ofItsOwn(dialect),
  ...(dialect === "gemini" ? [] : withRuleWords(dialect)),
  ...repeated(dialect, "request"),
  ...repeatedTogether(dialect, "request"),
]);

export const hostileReplies: readonly Shape<JsonObject>[] = clientDialects.flatMap((dialect) => [
  ...repeated(dialect, "reply"),
  ...repeatedTogether(dialect, "reply"),
]);

/** A stream of calls whose last event has them in another order. */
const inOtherOrder: Shape<SseFrame[]> = {
  name: "responses stream: items that stand in another order in the end",
  dialect: "responses",
  make(bytes) {
    const call = { type: "function_call", name: "f", arguments: "{}" };
    const items = many(bytes / 250, (at) => ({ ...call, id: `fc${at}`, call_id: `c${at}` }));
    const response = { id: "r", object: "response", model: "m", status: "completed" };
    return [
      ...items.map((item, output_index) => jsonFrame({ type: "response.output_item.done", output_index, item })),
      jsonFrame({ type: "response.completed", response: { ...response, output: items.toReversed() } }),
    ];
  },
};

/** The streams of all fixtures, each frame of a form again and again in its place. */
const ofFixtures: readonly Shape<SseFrame[]>[] = clientDialects.flatMap((dialect) => {
  const seen = new Set<string>();
  return recorded(dialect, "stream.txt").flatMap(([folder, file]) => {
    const frames = run(readSse, [bytesAt(folder, file)]);
    return frames.flatMap((frame, at): Shape<SseFrame[]>[] => {
      const form = `${frame.event ?? ""} ${frame.data?.replace(/"[^"\\]*"(?!:)|[\d.]+/g, "_")}`;
      if (seen.has(form) || !frame.data) return [];
      seen.add(form);
      const size = frame.data.length + 10;
      const make = (bytes: number, copy: (turn: number) => SseFrame) => [
        ...frames.slice(0, at),
        ...many(Math.floor(bytes / size), copy),
        ...frames.slice(at),
      ];
      const withNumber = (turn: number): SseFrame => ({
        event: frame.event,
        data: frame.data!.replace(/"(id|index|output_index|item_id)":(?:"[^"\\]*"|\d+)/g, (_, name) =>
          name === "id" || name === "item_id" ? `"${name}":"x${turn}"` : `"${name}":${turn}`,
        ),
      });
      const name = `${dialect} stream, ${folder}: frame ${at} again and again`;
      return [
        { name, dialect, make: (bytes) => make(bytes, () => ({ ...frame, json: undefined })) },
        { name: `${name}, numbered`, dialect, make: (bytes) => make(bytes, withNumber) },
      ];
    });
  });
});

export const hostileStreams: readonly Shape<SseFrame[]>[] = [...ofFixtures, inOtherOrder];
