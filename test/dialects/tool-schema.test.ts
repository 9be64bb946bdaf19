/** Rows: tool schemas that one family or the other is known to refuse with the whole request. */
import { expect, test } from "bun:test";
import { codecs } from "../../src/dialects/codecs";
import { type Dialect, dialects, type JsonObject } from "../../src/dialects/hub/conversation";
import { unnoted } from "../../src/dialects/hub/notes";
import { mendRefused } from "../../src/dialects/hub/refused-schemas";
import { fitSchema, vendorRow } from "../../src/dialects/hub/tool-schema";
import { parseWithSource } from "../../src/lib/json";
import { adapt } from "../support/adapt";
import { ableModel } from "../support/facts";

const fit = (schema: JsonObject) => fitSchema(schema, vendorRow("responses", "OpenAI").fixups);

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
  const body = codecs[upstream].encodeRequest(adapted.conversation, models[upstream]);
  const sent = JSON.stringify(body.tools);
  expect(sent).not.toContain("anyOf");
  expect(sent).toContain('"type":"object"');
  expect(sent.includes('"pattern":')).toBe(upstream === "messages");
  expect(adapted.fixups).toContain("schema-union");
  expect(adapted.dropped).toEqual(["schema union"]);
});

test.each([...dialects])("a client of %s is fixed as much when it was refused, and else not at all", (dialect) => {
  const target = { dialect, vendor: "", places: codecs[dialect].schemas, notes: unnoted };
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
