/**
 * Rows: one tool with a name and everything in its schema that some vendor refuses, from every client's own package to every
 * vendor's model: the session goes on, and calls have the client's own names.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { z } from "zod";
import { demoAccounts, quotas } from "../../src/demo/accounts";
import { clientDialects } from "../../src/dialects/hub/conversation";
import { offerOnly } from "../support/catalogue";
import { clients, type Turn } from "../support/clients";
import { tap } from "../support/log-capture";
import { startProxy } from "../support/proxy";
import { drawn } from "../support/random";

const upstreams = [
  ["Claude", "claude-sonnet-4.6", "/v1/messages"],
  ["GPT", "gpt-5.3-codex", "/responses"],
  ["Gemini", "gemini-3.1-pro-preview", "/chat/completions"],
] as const;
const pairs = clientDialects.flatMap((dialect) => upstreams.map(([maker, model]) => [dialect, maker, model] as const));

const [account] = demoAccounts();
const proxy = await startProxy({ demo: { accounts: [{ ...account!, quota: quotas.unlimited() }] } });
offerOnly(proxy.demo, Object.fromEntries(upstreams.map(([, model, endpoint]) => [model, [endpoint]])));
const upstream = tap(proxy.demo);
afterAll(() => proxy[Symbol.asyncDispose]());

const input = z.object({
  to: z.email(),
  // As `z.email()` is written by other versions of the package.
  from: z.string().regex(/^(?!\.)(?!.*\.\.)[\w.+-]+@[\w.-]+$/),
  note: z.string().nullable(),
  priority: z.literal([1, 2, 3]),
  extra: z.any(),
  pair: z.tuple([z.string(), z.number()]),
  "filter[name]": z.string(),
});
const names = Object.keys(input.shape);

/** By its name, or by the one that Gemini has in its place. */
const call = "Call 2nd_mail or _2nd_mail_9224bf3a.";

/** In the newest draft, and in the one that most servers of MCP write. */
const schemas = { "draft 2020-12": z.toJSONSchema(input), "draft 7": z.toJSONSchema(input, { target: "draft-7" }) };

const toolsWith = (schema: Record<string, unknown>) => [
  { name: "2nd_mail", description: "Sends a mail.", schema },
  { name: "plain", description: "Does nothing.", schema: { type: "object", properties: {} } },
];

describe.each(drawn("tool schemas", pairs))("a client of %s and %s", (dialect, _, model) => {
  test.each(["full", "stream"] as const)("%s", async (mode) => {
    const client = clients[dialect](proxy.url);
    for (const schema of Object.values(schemas)) {
      const tools = toolsWith(schema);
      const turns: Turn[] = [{ user: call }];
      // The second call goes up with the first one in the history.
      for (let round = 1; round <= 2; round++) {
        const called = await client[mode]({ turns, tools }, model);
        expect(called.calls.map(({ name }) => name)).toEqual(["2nd_mail"]);
        const [made] = called.calls;
        expect(Object.keys(made!.input).toSorted()).toEqual(names.toSorted());
        expect(made!.input).toMatchObject({ "filter[name]": "demo", priority: 1 });
        turns.push({ said: called }, { results: [{ id: made!.id, text: "Sent." }] });
        const answer = await client[mode]({ turns, tools }, model);
        expect(answer.text).toContain("Sent.");
        turns.push({ said: answer }, { user: call });
      }
    }
    const [row] = proxy.rows(1);
    expect(row).toMatchObject({ http_status: 200, client_dialect: dialect });
    // What a refusal has taught is not asked again.
    expect(JSON.parse(row!.attempts)).toHaveLength(1);
    // Claude reads its own calls under the names of the schema that it has.
    const sent = JSON.stringify(upstream.seen().body);
    if (model.startsWith("claude-")) expect(sent).not.toMatch(/"filter\[name\]\\?":/);
    else expect(sent).toMatch(/"filter\[name\]\\?":/);
  });
});

describe.each(upstreams)("%s refuses the tool", (_, model, path) => {
  test.each(Object.entries(schemas))("%s", async (_draft, schema) => {
    await clients.chat(proxy.url).full({ turns: [{ user: "Hi" }] }, model);
    const { headers, body } = upstream.seen();
    const tools = {
      "/v1/messages": [{ name: "send_mail", input_schema: schema }],
      "/responses": [{ type: "function", name: "send_mail", parameters: schema, strict: false }],
      "/chat/completions": [{ type: "function", function: { name: "send_mail", parameters: schema } }],
    };
    const { host, connection, "content-length": length, ...others } = headers;
    const answer = await fetch(proxy.demo.url + path, {
      method: "POST",
      headers: others,
      body: JSON.stringify({ ...(body as object), tools: tools[path] }),
    });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toMatch(/Property keys|is not of type|missing items|Bad Request|is invalid/);
  });
});
