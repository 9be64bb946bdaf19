/** Rows: what is put in other words because the upstream's dialect has none for it, and put back in the reply. */
import { describe, expect, test } from "bun:test";
import type { Conversation, Part, Tool } from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { ProxyError } from "../../src/lib/errors";
import { run } from "../../src/lib/net/stream/stream";
import { adapt } from "../support/adapt";
import fc from "../support/random";
import { meaningOf } from "../support/reply-grammar";

const word = /^[a-zA-Z0-9_-]{1,64}$/;
const tool = (name: string): Tool => ({ kind: "function", name, schema: { type: "object", properties: {} } });
const grammar = { type: "grammar", syntax: "lark", definition: "start: /.+/" };
const patch: Tool = { kind: "freeform", name: "apply_patch", description: "Changes files.", grammar };

function conversation(members: Partial<Conversation>): Conversation {
  return { model: "m", turns: [], tools: [], stream: true, ...members };
}

/** An assistant that called, and the results. */
function history(...calls: { id: string; name: string; input?: string; freeform?: true }[]): Conversation["turns"] {
  return [
    {
      role: "assistant",
      parts: calls.map((call): Part => ({ kind: "tool-call", input: "{}", ...call })),
    },
    {
      role: "user",
      parts: calls.map(
        ({ id, freeform }): Part => ({ kind: "tool-result", id, parts: [], ...(freeform ? { freeform } : {}) }),
      ),
    },
  ];
}

const reply = (name: string, ...pieces: string[]): ReplyEvent[] => [
  { type: "start", id: "r", model: "m" },
  { type: "block-start", block: { kind: "tool-call", id: "call_1", name } },
  ...pieces.map((text): ReplyEvent => ({ type: "block-delta", text })),
  { type: "block-end" },
  { type: "finish", reason: "tool-call" },
];

const namesOf = ({ tools }: Conversation) => tools.map((each) => (each.kind === "foreign" ? "" : each.name));
const callsOf = ({ turns }: Conversation) =>
  turns.flatMap(({ parts }) => parts).filter((part) => part.kind === "tool-call");
const resultsOf = ({ turns }: Conversation) =>
  turns.flatMap(({ parts }) => parts).filter((part) => part.kind === "tool-result");

test("what every upstream can say stays the very same", () => {
  const plain = conversation({ tools: [tool("read_file")], turns: history({ id: "call_1", name: "read_file" }) });
  for (const target of ["chat", "responses", "messages"] as const) {
    const adapted = adapt(plain, target);
    expect(adapted.conversation).toBe(plain);
    expect(adapted.dropped).toEqual([]);
    expect(adapted.restore).toBeUndefined();
  }
  const freeform = conversation({ tools: [patch], turns: history({ id: "c", name: "apply_patch", freeform: true }) });
  expect(adapt(freeform, "responses").conversation).toBe(freeform);
});

describe("a freeform tool", () => {
  const asked = conversation({
    tools: [patch, { kind: "freeform", name: "say" }],
    turns: history({ id: "call_0", name: "apply_patch", input: '*** Begin "Patch"\n', freeform: true }),
  });

  test.each(["chat", "messages"] as const)(
    "a freeform tool is a function of one text for %s, with its grammar in words",
    (target) => {
      const { conversation: adapted, dropped } = adapt(asked, target);
      const [tool] = adapted.tools;
      expect(tool).toMatchObject({ kind: "function", name: "apply_patch", schema: { required: ["input"] } });
      expect(tool?.kind === "function" && tool.description).toContain("start: /.+/");
      expect(tool?.kind === "function" && tool.description).toStartWith("Changes files.");
      expect(dropped).toEqual(["tools[0].format"]);
      expect(callsOf(adapted)).toEqual([
        { kind: "tool-call", id: "call_0", name: "apply_patch", input: '{"input":"*** Begin \\"Patch\\"\\n"}' },
      ]);
      expect(resultsOf(adapted)).toEqual([{ kind: "tool-result", id: "call_0", parts: [] }]);
    },
  );

  test.each([
    ["JSON in pieces", ['{"inp', 'ut":"a\\n', '\\"b\\""}'], 'a\n"b"'],
    ["JSON under another name", ['{"patch":"a"}'], "a"],
    ["JSON of more than was asked", ['{"input":"a","why":"b"}'], "a"],
    ["a bare JSON string", ['"a"'], "a"],
    ["text after all", ["*** Begin Patch"], "*** Begin Patch"],
    ["JSON of another kind", ['{"a":"1","b":2}'], '{"a":"1","b":2}'],
    ["nothing", [], ""],
  ])("a freeform tool is called with %s and gives back the text", (_, pieces, text) => {
    const events = run(adapt(asked, "chat").restore!, reply("apply_patch", ...pieces));
    expect(meaningOf(events).blocks).toEqual([
      { kind: "tool-call", id: "call_1", name: "apply_patch", freeform: true, text: text || "{}" },
    ]);
    expect(events.filter(({ type }) => type === "block-delta")).toHaveLength(text === "" ? 0 : 1);
  });

  test("a freeform tool leaves the calls of other tools as they come", () => {
    const events = reply("read_file", '{"a"', ":1}");
    expect(run(adapt(asked, "chat").restore!, events)).toEqual(events);
  });

  test("whose call breaks off breaks off", () => {
    const cut: ReplyEvent[] = [
      ...reply("apply_patch", '{"inp').slice(0, -1),
      { type: "error", code: "x", message: "y" },
    ];
    expect(meaningOf(run(adapt(asked, "chat").restore!, cut)).end).toEqual({ type: "error" });
  });

  test("whose call breaks off gives no part of the JSON around its text", () => {
    const cut: ReplyEvent[] = [
      ...reply("apply_patch", '{"input":"*** Begin Pa').slice(0, -1),
      { type: "error", code: "x", message: "y" },
    ];
    const out = run(adapt(asked, "chat").restore!, cut);
    expect(out.map(({ type }) => type)).toEqual(["start", "block-start", "block-end", "error"]);
  });
});

const long = `mcp__${"server".repeat(10)}__search`;

test("names that are too long or of other letters become words, everywhere alike, and come back", () => {
  const asked = conversation({
    tools: [tool("files.read"), tool(long), tool("files_read")],
    toolChoice: { name: "files.read" },
    turns: history({ id: "c", name: "files.read" }, { id: "d", name: "gone.by" }),
  });
  const { conversation: adapted, restore } = adapt(asked, "chat");
  const names = namesOf(adapted);
  for (const name of [...names, ...callsOf(adapted).map(({ name }) => name)]) expect(name).toMatch(word);
  expect(new Set(names).size).toBe(3);
  expect(names[2]).toBe("files_read");
  expect(adapted.toolChoice).toEqual({ name: names[0] ?? "" });
  expect(callsOf(adapted)[0]?.name).toBe(names[0] ?? "");
  for (const [index, name] of ["files.read", long, "files_read"].entries())
    expect(meaningOf(run(restore!, reply(names[index] ?? "", "{}"))).blocks).toMatchObject([{ name }]);
  expect(namesOf(adapt(asked, "messages").conversation)).toEqual(names);
});

test("names never become what another tool is called", () => {
  const [short = ""] = namesOf(adapt(conversation({ tools: [tool("a.b")] }), "chat").conversation);
  const names = namesOf(adapt(conversation({ tools: [tool("a.b"), tool(short)] }), "chat").conversation);
  expect(names[1]).toBe(short);
  expect(names[0]).not.toBe(short);
});

test("names that differ only in what is cut off stay apart, in any company, and begin as Google's models want it", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(
        fc.oneof(
          fc.string({ maxLength: 5 }),
          fc.constantFrom(`${long}1`, `${long}2`, "21st_magic", "ä", "ö", "\ud800"),
        ),
      ),
      fc.constantFrom("OpenAI", "Google"),
      (names, vendor) => {
        const short = namesOf(adapt(conversation({ tools: names.map(tool) }), "chat", vendor).conversation);
        expect(new Set(short).size).toBe(names.length);
        for (const name of short) expect(name).toMatch(word);
        if (vendor === "Google") for (const name of short) expect(name).toMatch(/^[a-zA-Z_]/);
        else expect(short.includes("21st_magic")).toBe(names.includes("21st_magic"));
      },
    ),
  );
});

test("ids of calls become words, in call and result alike", () => {
  const turns = history({ id: "call:1|x", name: "f" }, { id: "i".repeat(400), name: "f" }, { id: "call_2", name: "f" });
  const adapted = adapt(conversation({ turns }), "messages").conversation;
  const ids = callsOf(adapted).map(({ id }) => id);
  expect(ids).toEqual(resultsOf(adapted).map(({ id }) => id));
  for (const id of ids) expect(id).toMatch(word);
  expect(new Set(ids).size).toBe(3);
  expect(ids[2]).toBe("call_2");
  expect(
    callsOf(adapt(conversation({ turns: turns.slice(0, 1) }), "messages").conversation).map(({ id }) => id),
  ).toEqual(ids);
});

test("more tools than a chat model takes are refused, with count, limit and the largest groups", () => {
  const names = [
    ...Array.from({ length: 90 }, (_, at) => `mcp__github__tool_${at}`),
    ...Array.from({ length: 30 }, (_, at) => `mcp__linear__tool_${at}`),
    ...Array.from({ length: 9 }, (_, at) => `browser_tool_${at}`),
  ];
  const many = conversation({ tools: names.map(tool) });
  expect(() => adapt(many, "chat")).toThrow(ProxyError);
  expect(() => adapt(many, "chat")).toThrow(
    "has 129 tools, but this model accepts at most 128. Disable some of them; the largest groups are: mcp__github (90), mcp__linear (30), browser (9).",
  );
  expect(adapt(many, "messages").conversation).toBe(many);
  expect(adapt(conversation({ tools: names.slice(1).map(tool) }), "chat").dropped).toEqual([]);
});
