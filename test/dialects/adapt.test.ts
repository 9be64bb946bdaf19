/** Property: what is put in other words because the upstream's dialect has none for it; examples are in `fixtures/pairs/hub/`. */
import { expect, test } from "bun:test";
import type { Conversation, Tool } from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { ProxyError } from "../../src/lib/errors";
import { run } from "../../src/lib/net/stream/stream";
import { adapt } from "../support/adapt";
import fc from "../support/random";

const word = /^[a-zA-Z0-9_-]{1,64}$/;
const conversation = (members: Partial<Conversation>): Conversation => ({
  ...{ model: "m", turns: [], tools: [], stream: true },
  ...members,
});
const withTools = (names: string[]) =>
  conversation({ tools: names.map((name): Tool => ({ kind: "function", name, schema: { type: "object" } })) });

test("names that differ only in what is cut off stay apart, in any company, and begin as Google's models want it", () => {
  const long = `mcp__${"server".repeat(10)}__search`;
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
        const { tools } = adapt(withTools(names), "chat", vendor).conversation;
        const short = tools.map((tool) => (tool.kind === "foreign" ? "" : tool.name));
        expect(new Set(short).size).toBe(names.length);
        for (const name of short) expect(name).toMatch(word);
        if (vendor === "Google") for (const name of short) expect(name).toMatch(/^[a-zA-Z_]/);
        else expect(short.includes("21st_magic")).toBe(names.includes("21st_magic"));
      },
    ),
  );
});

test("more tools than a chat model takes are refused, with count, limit and the largest groups", () => {
  const names = [
    ...Array.from({ length: 90 }, (_, at) => `mcp__github__tool_${at}`),
    ...Array.from({ length: 30 }, (_, at) => `mcp__linear__tool_${at}`),
    ...Array.from({ length: 9 }, (_, at) => `browser_tool_${at}`),
  ];
  const many = withTools(names);
  expect(() => adapt(many, "chat")).toThrow(ProxyError);
  expect(() => adapt(many, "chat")).toThrow(
    "has 129 tools, but this model accepts at most 128. Disable some of them; the largest groups are: mcp__github (90), mcp__linear (30), browser (9).",
  );
  expect(adapt(many, "messages").conversation).toBe(many);
  expect(adapt(withTools(names.slice(1)), "chat").dropped).toEqual([]);
});

test("the reply to a wrapped schema is the value as the model wrote it, in whatever pieces it comes", () => {
  const asked = conversation({ format: { schema: { type: "array", items: { type: "string" } } } });
  const cut = (text: string, places: number[]) =>
    [0, ...places.map((place) => place % (text.length + 1)).sort((a, b) => a - b), text.length].map((to, at, all) =>
      text.slice(all[at - 1] ?? 0, to),
    );
  fc.assert(
    fc.property(
      fc.json({ maxDepth: 3 }),
      fc.constantFrom("", " ", "\n  "),
      // Some places, or every one.
      fc.oneof(fc.array(fc.nat(200), { maxLength: 8 }), fc.constant<number[]>([...Array(200).keys()])),
      (value, space, places) => {
        const text = `{${space}"answer"${space}:${space}${value}${space}}${space}`;
        const events: ReplyEvent[] = [
          { type: "start", id: "1", model: "m" },
          { type: "block-start", block: { kind: "text" } },
          ...cut(text, places).map((text) => ({ type: "block-delta" as const, text })),
          { type: "block-end" },
          { type: "finish", reason: "stop" },
        ];
        const texts = run(adapt(asked, "responses").restore!, events);
        const others = (all: ReplyEvent[]) => all.filter(({ type }) => type !== "block-delta");
        expect(others(texts)).toEqual(others(events));
        expect(texts.map((event) => (event.type === "block-delta" ? event.text : "")).join("")).toBe(value);
      },
    ),
  );
});
