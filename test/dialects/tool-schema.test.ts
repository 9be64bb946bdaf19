/** Rows: tool schemas that one family or the other is known to refuse with the whole request. */
import { describe, expect, test } from "bun:test";
import { codecs } from "../../src/dialects/codecs";
import { type Dialect, dialects, type JsonObject } from "../../src/dialects/hub/conversation";
import { mendRefused } from "../../src/dialects/hub/refused-schemas";
import { fitSchema, vendorRow } from "../../src/dialects/hub/tool-schema";
import { parseWithSource } from "../../src/lib/json";
import { adapt } from "../support/adapt";
import { ableModel } from "../support/facts";

const fit = (schema: JsonObject) => fitSchema(schema, vendorRow("responses", "OpenAI").fixups);

describe("a pattern that OpenAI cannot compile", () => {
  test.each(["^[\\p{L}]+$", "^(?!\\.)\\w+$", "(?=a)", "a(?<=a)", "a(?<!b)"])(
    "%s is said in words wherever a schema can stand; other patterns and properties of that name stay",
    (pattern) => {
      const name = { type: "string", pattern };
      const plain = { type: "string", description: `{pattern: ${JSON.stringify(pattern)}}` };
      const { schema, fixups, dropped } = fit({
        type: "object",
        properties: {
          pattern: name,
          plain: { type: "string", pattern: "^\\w+$" },
          list: { items: name, type: "array" },
        },
        additionalProperties: { anyOf: [name, { type: "null" }] },
        $defs: { pattern: name },
      });
      expect(schema).toEqual({
        type: "object",
        properties: {
          pattern: plain,
          plain: { type: "string", pattern: "^\\w+$" },
          list: { items: plain, type: "array" },
        },
        additionalProperties: { anyOf: [plain, { type: "null" }] },
        $defs: { pattern: plain },
      });
      expect([fixups, dropped]).toEqual([["schema-pattern"], []]);
    },
  );

  test.each(["\\\\p{2}", "\\(?=", "[(?=]", "(?:a)", "(?<name>a)"])("%s is another one", (pattern) => {
    const schema = { type: "object", properties: { a: { pattern } } };
    expect(fit(schema).schema).toBe(schema);
  });
});

describe("a union at the root", () => {
  const [a, b, c] = [{ type: "string" }, { type: "number" }, { type: "boolean" }];

  test("a union at the root is one object of all properties; what every branch requires is required", () => {
    const { schema, fixups, dropped } = fit({
      description: "Either.",
      properties: { c },
      required: ["c"],
      anyOf: [
        { type: "object", properties: { a, b }, required: ["a", "b"] },
        { properties: { a: b }, required: ["a"] },
        { type: "null" },
      ],
    });
    expect(schema).toEqual({
      description: "Either.",
      type: "object",
      properties: { c, a: { anyOf: [a, b] }, b },
      required: ["c", "a"],
    });
    expect([fixups, dropped]).toEqual([["schema-union"], ["schema union"]]);
  });

  test("a union of references and of unions within is followed at the root, in a circle too", () => {
    const schema = {
      oneOf: [{ $ref: "#/$defs/A" }, { anyOf: [{ properties: { b } }, { $ref: "#/$defs/A" }] }, { $ref: "#" }],
      $defs: { A: { type: "object", properties: { a } } },
    };
    expect(fit(schema).schema).toMatchObject({ type: "object", properties: { a, b } });
    expect(Object.keys(fit(schema).schema)).not.toContain("oneOf");
  });

  test("a union of demands only (`required`) keeps the root's properties; allOf demands all", () => {
    const properties = { a, b };
    const either = { type: "object", properties, anyOf: [{ required: ["a"] }, { required: ["b"] }] };
    expect(fit(either).schema).toEqual({ type: "object", properties });
    const both = { type: "object", properties, allOf: [{ required: ["a"] }, { required: ["b"] }] };
    expect(fit(both).schema).toEqual({ type: "object", properties, required: ["a", "b"] });
  });

  test("a union that stands deeper than the root stays", () => {
    const schema = { type: "object", properties: { a: { anyOf: [a, b] } } };
    expect(fit(schema).schema).toBe(schema);
  });
});

test("a root without a type, or with more than one, is an object", () => {
  expect(fit({ properties: {} })).toEqual({
    schema: { type: "object", properties: {} },
    fixups: ["schema-type"],
    dropped: [],
  });
  expect(fit({ type: ["object", "null"] }).schema).toEqual({ type: "object" });
  expect(fit({ type: "string" }).fixups).toEqual([]);
});

const bad = { anyOf: [{ properties: { name: { type: "string", pattern: "\\p{L}" } }, required: ["name"] }] };
const requests: Record<Dialect, JsonObject> = {
  chat: {
    model: "m",
    messages: [{ role: "user", content: "Hi" }],
    tools: [{ type: "function", function: { name: "f", parameters: bad } }],
  },
  responses: { model: "m", input: "Hi", tools: [{ type: "function", name: "f", parameters: bad }] },
  messages: {
    model: "m",
    max_tokens: 99,
    messages: [{ role: "user", content: "Hi" }],
    tools: [{ name: "f", input_schema: bad }],
  },
};
const models = {
  chat: ableModel("gpt-4.1", "OpenAI"),
  responses: ableModel("gpt-5.3-codex", "OpenAI"),
  messages: ableModel("claude-sonnet-4.6", "Anthropic"),
};
const pairs = dialects.flatMap((client) =>
  dialects.filter((upstream) => upstream !== client).map((upstream) => [client, upstream] as const),
);

test.each(pairs)("%s → %s sends none of them, and names what it did", (client, upstream) => {
  const adapted = adapt(codecs[client].decodeRequest(requests[client]), upstream);
  const { body } = codecs[upstream].encodeRequest(adapted.conversation, models[upstream]);
  const sent = JSON.stringify(body.tools);
  expect(sent).not.toContain("anyOf");
  expect(sent).toContain('"type":"object"');
  expect(sent.includes('"pattern":')).toBe(upstream === "messages");
  expect(adapted.fixups).toContain("schema-union");
  expect(adapted.dropped).toEqual(["schema union"]);
});

test.each([...dialects])("a client of %s is fixed as much when it was refused, and else not at all", (dialect) => {
  const target = { dialect, vendor: "", places: codecs[dialect].schemas };
  const { tools } = mendRefused(requests[dialect], target, {}, false)?.set ?? {};
  expect(JSON.stringify(tools)).not.toContain("anyOf");
  const plain = JSON.parse(JSON.stringify(requests[dialect]).replace(JSON.stringify(bad), '{"type":"object"}'));
  expect(mendRefused(plain, target, {}, false)).toBeUndefined();
});

test("schemas that differ in a number's digits alone are two", () => {
  const branch = (digits: string) => ({ properties: { a: parseWithSource(`{"maximum":${digits}}`) } });
  const { schema } = fit({ anyOf: [branch("12345678901234567890"), branch("12345678901234567891")] });
  expect(JSON.stringify(schema.properties)).toBe(
    '{"a":{"anyOf":[{"maximum":12345678901234567890},{"maximum":12345678901234567891}]}}',
  );
});

test("identical duplicates of a tool become one", () => {
  const tool = { type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } };
  const { conversation, fixups } = adapt(
    codecs.chat.decodeRequest({ ...requests.chat, tools: [tool, tool] }),
    "messages",
  );
  expect(conversation.tools).toHaveLength(1);
  expect(fixups).toEqual(["tool-repeated"]);
});

test("a tool that an item of the input repeats word for word is one for others, under its own name", () => {
  const exec = { type: "custom", name: "exec", description: "Runs." };
  const input = [
    { type: "additional_tools", role: "developer", tools: [exec] },
    { type: "message", role: "user", content: "Hi" },
    { type: "custom_tool_call", call_id: "c1", name: "exec", input: "ls" },
    { type: "custom_tool_call_output", call_id: "c1", output: "a" },
  ];
  const conversation = codecs.responses.decodeRequest({ model: "m", tools: [exec], input });
  for (const upstream of ["chat", "messages"] as const) {
    const adapted = adapt(conversation, upstream);
    expect(adapted.conversation.tools).toMatchObject([{ name: "exec" }]);
    expect(adapted.fixups).toEqual(["tool-repeated"]);
    expect(JSON.stringify(adapted.conversation)).not.toContain("exec_2");
  }
  const { body } = codecs.responses.encodeRequest(conversation, models.responses);
  expect(body.tools).toEqual([exec]);
  expect(body.input).toContainEqual(input[0]);
});
