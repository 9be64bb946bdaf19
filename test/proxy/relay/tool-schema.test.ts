/** Rows: a tool schema the upstream refuses: mended and sent once more, for a client of the same dialect too. */
import { expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import type { JsonObject } from "../../../src/dialects/hub/conversation";
import { type Offers, offerOnly } from "../../support/catalogue";
import { startProxy } from "../../support/proxy";

interface Case {
  name: string;
  path: string;
  endpoint: Offers[string][number];
  refusal: string;
  body: JsonObject & { model: string };
  fixups: string[];
  dropped: string[];
}

const union = { anyOf: [{ properties: { a: { type: "string", pattern: "\\p{L}" } } }] };

const cases: Case[] = [
  {
    name: "OpenAI's union",
    path: "/v1/responses",
    endpoint: "/responses",
    refusal:
      "Invalid schema for function 'f': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
    body: {
      model: "gpt-5.3-codex",
      input: "Hi",
      tools: [{ type: "function", name: "f", parameters: union, strict: false }],
    },
    fixups: ["schema-pattern", "schema-union"],
    dropped: ["schema union"],
  },
  {
    name: "OpenAI's pattern",
    path: "/v1/chat/completions",
    endpoint: "/chat/completions",
    refusal: "Invalid schema for function 'f': '^\\p{L}$' is not a 'regex'.",
    body: {
      model: "gpt-5-mini",
      messages: [{ role: "user", content: "Hi" }],
      tools: [
        {
          type: "function",
          function: { name: "f", parameters: { type: "object", properties: { a: { pattern: "^\\p{L}$" } } } },
        },
      ],
    },
    fixups: ["schema-pattern"],
    dropped: [],
  },
  {
    name: "Anthropic's union",
    path: "/v1/messages",
    endpoint: "/v1/messages",
    refusal: "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
    body: {
      model: "claude-sonnet-4.6",
      max_tokens: 100,
      messages: [{ role: "user", content: "Hi" }],
      tools: [{ name: "f", input_schema: { type: "object", ...union } }],
    },
    fixups: ["schema-union"],
    dropped: ["schema union"],
  },
];

test.each(cases)(
  "a schema that the upstream refused is sent again without what it refused: $name",
  async ({ path, endpoint, refusal, body, fixups, dropped }) => {
    const [account] = demoAccounts();
    await using proxy = await startProxy({ demo: { accounts: [{ ...account!, quota: quotas.unlimited() }] } });
    offerOnly(proxy.demo, { [body.model]: [endpoint] });
    const sent: string[] = [];
    proxy.demo.intercept(
      endpoint,
      ({ bytes }) => {
        const asked: JsonObject = JSON.parse(new TextDecoder().decode(bytes));
        const tools = JSON.stringify(asked.tools);
        sent.push(tools);
        const isBad = tools.includes("anyOf") || (endpoint !== "/v1/messages" && tools.includes('"pattern":'));
        return isBad
          ? Response.json({ error: { message: refusal, code: "invalid_request_body" } }, { status: 400 })
          : undefined;
      },
      2,
    );
    const answer = await proxy.post(path, body);
    expect(answer.status).toBe(200);
    expect(sent).toHaveLength(2);
    const [row] = proxy.rows();
    expect(JSON.parse(row!.fixups)).toEqual(expect.arrayContaining(fixups));
    expect(JSON.parse(row!.dropped)).toEqual(dropped);
    expect(JSON.parse(row!.attempts)).toHaveLength(2);

    // What is nobody's known shape is the client's to mend.
    proxy.demo.intercept(endpoint, () => Response.json({ error: { message: refusal } }, { status: 400 }));
    const plain = { ...body, tools: [] };
    const refused = await proxy.post(path, plain);
    expect(refused.status).toBe(400);
    expect(await refused.text()).toContain(refusal.slice(0, 20));
  },
);
