/**
 * Scenario: one bad tool ends no session: whatever an upstream refuses of a schema, the request goes up again without
 * it.
 */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import type { JsonObject } from "../../../src/dialects/hub/conversation";
import { offerOnly } from "../../support/catalogue";
import { startProxy } from "../../support/proxy";

const models = {
  "/v1/messages": "claude-sonnet-4.6",
  "/responses": "gpt-5.3-codex",
  "/chat/completions": "gemini-3.1-pro-preview",
} as const;
type Endpoint = keyof typeof models;

const [account] = demoAccounts();
const proxy = await startProxy({ demo: { accounts: [{ ...account!, quota: quotas.unlimited() }] } });
offerOnly(proxy.demo, {
  ...Object.fromEntries(Object.entries(models).map(([endpoint, model]) => [model, [endpoint as Endpoint]])),
  "gpt-5-mini": ["/chat/completions"],
});
afterAll(() => proxy[Symbol.asyncDispose]());

/** What the upstream was sent, and its answer; undefined takes it. */
let refuse: (body: JsonObject) => Response | undefined = () => undefined;
const sent: JsonObject[] = [];
proxy.demo.intercept(
  /^\/(chat\/completions|responses|v1\/messages)$/,
  ({ bytes }) => {
    const body: JsonObject = JSON.parse(new TextDecoder().decode(bytes));
    sent.push(body);
    return refuse(body);
  },
  Number.POSITIVE_INFINITY,
);
beforeEach(() => {
  refuse = () => undefined;
  sent.length = 0;
});

interface Tool {
  name: string;
  description?: string;
  schema: JsonObject;
}

/** Functions of a request on the wire. */
const toolsOf = (body: JsonObject): Tool[] =>
  ((body.tools ?? []) as JsonObject[]).map((tool) => {
    const { name, description, parameters, input_schema } = (tool.function ?? tool) as JsonObject;
    return { name, description, schema: parameters ?? input_schema } as Tool;
  });

/** The request of a client of the upstream's own dialect. */
const requestFor: Record<Endpoint, (tools: Tool[]) => { path: string; body: JsonObject }> = {
  "/v1/messages": (tools) => ({
    path: "/v1/messages",
    body: {
      max_tokens: 100,
      messages: [{ role: "user", content: "Hi" }],
      tools: tools.map(({ schema, ...tool }) => ({ ...tool, input_schema: schema })),
    },
  }),
  "/responses": (tools) => ({
    path: "/v1/responses",
    body: {
      input: "Hi",
      tools: tools.map(({ schema, ...tool }) => ({ ...tool, type: "function", parameters: schema })),
    },
  }),
  "/chat/completions": (tools) => ({
    path: "/v1/chat/completions",
    body: {
      messages: [{ role: "user", content: "Hi" }],
      tools: tools.map(({ schema, ...tool }) => ({ type: "function", function: { ...tool, parameters: schema } })),
    },
  }),
};

const words = "Words. ".repeat(5000);
const longer: Record<Endpoint, JsonObject> = {
  "/v1/messages": { system: words },
  "/responses": { instructions: words },
  "/chat/completions": { messages: [{ role: "user", content: words }] },
};

async function ask(endpoint: Endpoint, tools: Tool[], more: JsonObject = {}) {
  const { path, body } = requestFor[endpoint](tools);
  const answer = await proxy.post(path, { ...body, model: models[endpoint], ...more });
  const [row] = proxy.rows(1);
  return { status: answer.status, text: await answer.text(), attempts: JSON.parse(row!.attempts).length, row: row! };
}

const refusal = (message: string, more: JsonObject = {}) =>
  Response.json({ error: { message, code: "invalid_request_body", ...more } }, { status: 400 });

/** Numbers the schemas, so that no test finds what another one has taught. */
let turn = 0;
const odd = (name = "odd"): Tool => ({
  name,
  description: "Odd.",
  schema: {
    type: "object",
    properties: { [`a${turn++}`]: { type: "string", contentEncoding: "base64", examples: ["QQ=="] } },
  },
});
const good: Tool = { name: "good", schema: { type: "object", properties: { b: { type: "string" } }, required: ["b"] } };
const isOdd = ({ schema }: Tool) => JSON.stringify(schema).includes("contentEncoding");

const forms: [Endpoint, string, (tool: Tool, at: number) => Response][] = [
  [
    "/v1/messages",
    "tools.1.custom.input_schema",
    (_, at) => refusal(`tools.${at}.custom.input_schema: JSON schema is odd.`),
  ],
  ["/v1/messages", "tools.1", (_, at) => refusal(`tools.${at}: the schema is odd`)],
  ["/responses", "function 'odd'", ({ name }) => refusal(`Invalid schema for function '${name}': it is odd.`)],
  ["/responses", "a param", (_, at) => refusal("This schema is odd.", { param: `tools[${at}].parameters` })],
  [
    "/responses",
    "a path in the schema",
    ({ schema }) => {
      const [name] = Object.keys(schema.properties as JsonObject);
      const message = `Invalid JSON schema: it is odd. Found at $.properties.${name}.examples[0].`;
      return refusal(message, { code: "invalid_json_schema", param: "tools" });
    },
  ],
  [
    "/chat/completions",
    "Google's own place",
    (_, at) =>
      refusal(
        `* GenerateContentRequest.tools[0].function_declarations[${at}].parameters.properties[a].items: missing field.`,
      ),
  ],
  ["/chat/completions", "a bare Bad Request", () => new Response("Bad Request\n", { status: 400 })],
];

describe.each(forms)("at %s, a refusal that names %s", (endpoint, named, answer) => {
  test("costs one more try, after which the tool is open and its schema in words; the next turn knows it", async () => {
    refuse = (body) => {
      const at = toolsOf(body).findIndex(isOdd);
      return at === -1 ? undefined : answer(toolsOf(body)[at]!, at);
    };
    const tool = odd();
    const properties = { b: { type: "string", contentMediaType: "text/x" } };
    // A schema that would be said in words too, if the path named none.
    const other = named === "a path in the schema" ? { ...good, schema: { ...good.schema, properties } } : good;
    const first = await ask(endpoint, [other, tool]);
    expect(first).toMatchObject({ status: 200, attempts: 2 });
    const [same, mended] = toolsOf(sent.at(-1)!);
    expect(same).toEqual(other);
    expect(mended!.schema).toEqual({ type: "object", properties: {} });
    expect(mended!.description).toStartWith("Odd.");
    expect(mended!.description).toContain(JSON.stringify(tool.schema));
    expect(JSON.parse(first.row.fixups)).toContain("schema-words");

    const second = await ask(endpoint, [other, tool]);
    expect(second).toMatchObject({ status: 200, attempts: 1 });
    expect(toolsOf(sent.at(-1)!)).toEqual([same!, mended!]);
    // In a large request a long schema is a mark of its text.
    const more = longer[endpoint];
    const long = { ...tool, schema: { ...tool.schema, description: "Long. ".repeat(2000) } };
    expect(await ask(endpoint, [other, long], more)).toMatchObject({ status: 200, attempts: 2 });
    expect(await ask(endpoint, [other, long], more)).toMatchObject({ status: 200, attempts: 1 });
  });
});

test.each<[string, Endpoint, JsonObject, refused: RegExp, words: string, fixups: string[], dropped: string[]]>([
  [
    "OpenAI's union",
    "/responses",
    { anyOf: [{ properties: { a: { type: "string", pattern: "\\p{L}" } } }] },
    /anyOf|"pattern":/,
    "Invalid schema for function 'f': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
    ["schema-pattern", "schema-union"],
    ["schema union"],
  ],
  [
    "OpenAI's pattern",
    "/chat/completions",
    { type: "object", properties: { a: { pattern: "^\\p{L}$" } } },
    /anyOf|"pattern":/,
    "Invalid schema for function 'f': '^\\p{L}$' is not a 'regex'.",
    ["schema-pattern"],
    [],
  ],
  [
    "Anthropic's union",
    "/v1/messages",
    { type: "object", anyOf: [{ properties: { a: { type: "string", pattern: "\\p{L}" } } }] },
    /anyOf/,
    "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
    ["schema-union"],
    ["schema union"],
  ],
])(
  "a schema that the upstream refused is sent again without what it refused: %s",
  async (_, endpoint, schema, refused, words, fixups, dropped) => {
    refuse = ({ tools }) => (refused.test(JSON.stringify(tools)) ? refusal(words) : undefined);
    const model = endpoint === "/chat/completions" ? "gpt-5-mini" : models[endpoint];
    const { row, ...answer } = await ask(endpoint, [{ name: "f", schema }], { model });
    expect(answer).toMatchObject({ status: 200, attempts: 2 });
    expect(sent).toHaveLength(2);
    expect(JSON.parse(row.fixups)).toEqual(expect.arrayContaining(fixups));
    expect(JSON.parse(row.dropped)).toEqual(dropped);
    // What is nobody's known shape is the client's to mend.
    refuse = () => refusal(words, { code: undefined });
    expect(await ask(endpoint, [], { model })).toMatchObject({
      status: 400,
      text: expect.stringContaining(words.slice(0, 20)),
    });
  },
);

test("tools that are refused one after the other are all said in words with the last try", async () => {
  refuse = (body) => {
    const found = toolsOf(body).find(isOdd);
    return found && refusal(`Invalid schema for function '${found.name}': it is odd.`);
  };
  const tools = Array.from({ length: 10 }, (_, at) => odd(`odd${at}`));
  expect(await ask("/responses", [good, ...tools])).toMatchObject({ status: 200, attempts: 4 });
  expect(toolsOf(sent.at(-1)!)[0]).toEqual(good);
  expect(await ask("/responses", [good, ...tools])).toMatchObject({ status: 200, attempts: 1 });
});

test("all known means come before words", async () => {
  refuse = (body) => {
    const found = toolsOf(body).find(({ schema }) => JSON.stringify(schema).includes('["string","null"]'));
    return found && refusal(`Invalid schema for function '${found.name}': no lists of types.`);
  };
  const schema = { type: "object", properties: { a: { type: ["string", "null"] } } };
  expect(await ask("/responses", [{ name: "f", schema }])).toMatchObject({ status: 200, attempts: 2 });
  expect(toolsOf(sent.at(-1)!)[0]!.schema).toEqual({
    type: "object",
    properties: { a: { type: "string", description: "May be null." } },
  });
});

test("a call of an open tool has what the client's schema names", async () => {
  refuse = (body) => {
    const at = toolsOf(body).findIndex(
      ({ name, schema }) => name === "odd" && Object.keys(schema.properties as object).length > 0,
    );
    return at === -1 ? undefined : refusal(`tools.${at}.custom.input_schema: JSON schema is odd.`);
  };
  const answer = await ask("/v1/messages", [odd()], { messages: [{ role: "user", content: "Call odd." }] });
  expect(answer).toMatchObject({ status: 200, attempts: 2 });
  expect(answer.text).toContain('"tool_use"');
});

test.each<[string, Endpoint, Tool[], Response]>([
  ["a bare Bad Request of another vendor", "/responses", [odd()], new Response("Bad Request\n", { status: 400 })],
  ["a bare Bad Request without tools", "/chat/completions", [], new Response("Bad Request\n", { status: 400 })],
  ["a tool's name", "/v1/messages", [odd()], refusal("tools.0.custom.name: String should match pattern '^a$'")],
  ["a tool that is not there", "/responses", [odd()], refusal("Invalid schema for function 'other': it is odd.")],
  ["another field", "/responses", [odd()], refusal("Invalid value for 'input': it matches no schema.")],
])("is sent once only: %s", async (_, endpoint, tools, response) => {
  refuse = () => response.clone() as Response;
  const answer = await ask(endpoint, tools);
  expect(answer).toMatchObject({ status: 400, attempts: 1 });
});

const email = (pattern: string) => ({
  type: "object",
  properties: { to: { type: "string", pattern, maxLength: 99 - turn++ } },
  required: ["to"],
  additionalProperties: false,
});
const format = (schema: JsonObject) => ({ type: "json_schema", name: "mail", schema, strict: true });
const formatOf = (body: JsonObject) => (body.text as { format?: { schema: JsonObject } } | undefined)?.format;

test("the schema of a reply is sent again without the look-around that was refused, and then at once", async () => {
  const text = { format: format(email("^(?!\\.).+@.+$")) };
  // The demo refuses it as OpenAI does.
  expect(await ask("/responses", [], { text })).toMatchObject({ status: 200, attempts: 2 });
  expect(formatOf(sent.at(-1)!)!.schema.properties).toMatchObject({ to: { type: "string" } });
  expect(JSON.stringify(formatOf(sent.at(-1)!)!.schema)).not.toContain('"pattern":');
  expect(await ask("/responses", [], { text })).toMatchObject({ status: 200, attempts: 1 });
});

test("the schema of a reply is said in the instructions if nothing else helps", async () => {
  refuse = (body) => (formatOf(body) ? refusal("Invalid schema for response_format 'mail': it is odd.") : undefined);
  const text = { format: format(email("^a")) };
  const answer = await ask("/responses", [], { text, instructions: "Be brief." });
  expect(answer).toMatchObject({ status: 200, attempts: 2 });
  expect(sent.at(-1)!.instructions).toStartWith("Be brief.\n\n");
  expect(sent.at(-1)!.instructions).toContain(JSON.stringify(text.format.schema));
  expect(await ask("/responses", [], { text, instructions: "Be brief." })).toMatchObject({ attempts: 1 });
});

describe("structured output of Claude", () => {
  const schema = {
    type: "object",
    properties: {
      age: { type: "integer", minimum: 0, maximum: 150 },
      tags: { type: "array", items: { type: "string", minLength: 1 }, minItems: 2, maxItems: 4 },
    },
    required: ["age", "tags"],
  };
  const google = {
    type: "OBJECT",
    properties: { age: { type: "INTEGER", format: "int32" }, note: { type: "STRING", nullable: true } },
    required: ["age"],
  };
  const map = { type: "object", additionalProperties: { type: "number" } };
  const hi = [{ role: "user", content: "Hi" }];
  const contents = [{ role: "user", parts: [{ text: "Hi" }] }];
  const asks: Record<string, (schema: JsonObject) => [string, JsonObject]> = {
    chat: (schema) => [
      "/v1/chat/completions",
      { messages: hi, response_format: { type: "json_schema", json_schema: { name: "a", schema } } },
    ],
    responses: (schema) => [
      "/v1/responses",
      { input: "Hi", text: { format: { type: "json_schema", name: "a", schema } } },
    ],
    messages: (schema) => [
      "/v1/messages",
      { max_tokens: 99, messages: hi, output_config: { format: { type: "json_schema", schema } } },
    ],
    "gemini, JSON Schema": (responseJsonSchema) => [
      "/v1beta/models/claude-sonnet-4.6:generateContent",
      { contents, generationConfig: { responseMimeType: "application/json", responseJsonSchema } },
    ],
    "gemini, its own": (responseSchema) => [
      "/v1beta/models/claude-sonnet-4.6:generateContent",
      { contents, generationConfig: { responseMimeType: "application/json", responseSchema } },
    ],
  };
  const run = async (client: string, given: JsonObject) => {
    const [path, body] = asks[client]!(given);
    const answer = await proxy.post(path, {
      ...body,
      ...(path.includes("models") ? {} : { model: models["/v1/messages"] }),
    });
    return { status: answer.status, attempts: JSON.parse(proxy.rows(1)[0]!.attempts).length };
  };

  test.each(Object.keys(asks))(
    "of a client of %s: in Anthropic's form with the first try, or in words",
    async (client) => {
      expect(await run(client, client === "gemini, its own" ? google : schema)).toEqual({ status: 200, attempts: 1 });
      expect(sent.at(-1)!.output_config).toMatchObject({ format: { schema: { additionalProperties: false } } });
      if (client === "gemini, its own") return;
      expect(await run(client, map)).toEqual({ status: 200, attempts: 1 });
      expect(sent.at(-1)!.output_config).toBeUndefined();
      expect(JSON.stringify(sent.at(-1)!.system)).toContain("JSON Schema: ");
    },
  );
});
