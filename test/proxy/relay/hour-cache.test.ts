/** Scenario: Claude's prompt cache of one hour: asked for if the owner wants it, and given up where it is refused. */
import { expect, test } from "bun:test";
import type { DemoOptions } from "../../../src/demo/demo";
import { type RunningProxy, startProxy } from "../../support/proxy";

type Json = Record<string, unknown>;
const beta = "extended-cache-ttl-2025-04-11";
const hour = { type: "ephemeral", ttl: "1h" };
const model = "claude-sonnet-4.6";
const tool = { name: "look", description: "Looks.", input_schema: { type: "object", properties: {} } };
/** What Claude Code asks for. */
const marked = {
  model,
  max_tokens: 1000,
  tools: [{ ...tool, cache_control: hour }],
  system: [{ type: "text", text: "You are Claude Code.", cache_control: hour }],
  messages: [{ role: "user", content: [{ type: "text", text: "Hello", cache_control: hour }] }],
};

const start = (promptCache: string, generation: DemoOptions["generation"] = "C") =>
  startProxy({ config: { promptCache }, demo: { generation } });
const posts = ({ demo }: RunningProxy) => demo.journal.filter((seen) => seen.path === "/v1/messages");
const newest = (proxy: RunningProxy) => {
  const { body, headers } = posts(proxy).at(-1)!;
  return { body: body as Json, text: JSON.stringify(body), betas: (headers["anthropic-beta"] ?? "").split(",") };
};
const ask = async (proxy: RunningProxy, body: Json = marked) =>
  (await proxy.post("/v1/messages", body, { headers: { "anthropic-beta": `${beta},claude-code-20250219` } })).status;

test("a client's marks of one hour go upstream with their beta if the owner wants that, and without both if not", async () => {
  await using wanted = await start("1h");
  expect(await ask(wanted)).toBe(200);
  expect(newest(wanted).text.match(/"ttl":"1h"/g)?.length).toBe(3);
  expect(newest(wanted).betas).toContain(beta);
  expect(JSON.parse(wanted.rows()[0]!.fixups)).not.toContain("cache-ttl");
  for (const promptCache of ["auto", "off"]) {
    await using plain = await start(promptCache);
    expect(await ask(plain)).toBe(200);
    expect(newest(plain).text).not.toContain("ttl");
    expect(newest(plain).betas).not.toContain(beta);
  }
});

test("a client's marks of one hour are the only reason to send the beta", async () => {
  await using proxy = await start("1h");
  expect(await ask(proxy, { ...marked, system: "Hi.", tools: [], messages: [{ role: "user", content: "Hi." }] })).toBe(
    200,
  );
  expect(newest(proxy).betas).not.toContain(beta);
});

test("a client's marks of one hour are given up with the beta where the upstream does not know it, which is remembered for the model", async () => {
  await using proxy = await start("1h", "A");
  for (const calls of [2, 3]) {
    expect(await ask(proxy)).toBe(200);
    expect(posts(proxy).length).toBe(calls);
    expect(newest(proxy).text).not.toContain("ttl");
    expect(newest(proxy).text).toContain('"cache_control"');
    expect(newest(proxy).betas).not.toContain(beta);
  }
  expect(proxy.app.unsupportedParams.known(model)).toEqual([`anthropic-beta.${beta}`]);
  // The other models may know it.
  expect(proxy.app.unsupportedParams.known("claude-haiku-4.5")).toEqual([]);
});

test("a client's marks of one hour are given up one by one where a host refuses the field, which is remembered too", async () => {
  await using proxy = await start("1h");
  proxy.demo.intercept(
    "/v1/messages",
    ({ body }) => {
      const path = Object.entries({ tools: "tools.0", system: "system.0", messages: "messages.0.content.0" }).find(
        ([name]) => JSON.stringify((body as Json)[name]).includes('"ttl"'),
      )?.[1];
      if (path === undefined) return undefined;
      const message = `${path}.cache_control.ephemeral.ttl: Extra inputs are not permitted`;
      return Response.json({ type: "error", error: { type: "invalid_request_error", message } }, { status: 400 });
    },
    Number.POSITIVE_INFINITY,
  );
  for (const calls of [4, 5]) {
    expect(await ask(proxy)).toBe(200);
    expect(posts(proxy).length).toBe(calls);
  }
});

test("marks that are added for a client of another API last an hour on tools and instructions, which come first, and five minutes on messages", async () => {
  await using proxy = await start("1h");
  expect(
    (await proxy.post("/v1/responses", { model, input: "Hello", instructions: "Be brief.", tools: [] })).status,
  ).toBe(200);
  const responses = { ...newest(proxy).body };
  expect(JSON.stringify(responses.system)).toContain('"ttl":"1h"');
  expect(JSON.stringify(responses.messages)).toContain('"cache_control":{"type":"ephemeral"}');
  expect(newest(proxy).betas).toContain(beta);
});

test("marks that are added for a client of another API are five minutes long where the hour was refused", async () => {
  await using proxy = await start("1h", "A");
  for (const calls of [2, 3]) {
    expect((await proxy.post("/v1/responses", { model, input: "Hello", instructions: "Be brief." })).status).toBe(200);
    expect(posts(proxy).length).toBe(calls);
    expect(newest(proxy).text).toContain('"cache_control":{"type":"ephemeral"}');
    expect(newest(proxy).text).not.toContain("ttl");
  }
});

test("a beta whose field the request cannot be without is not given up: the client hears the refusal", async () => {
  await using proxy = await start("auto");
  const name = "advanced-tool-use-2025-11-20";
  const message = `Unexpected value(s) \`${name}\` for the \`anthropic-beta\` header. Please consult our documentation.`;
  const refusal = () => Response.json({ type: "error", error: { message } }, { status: 400 });
  proxy.demo.intercept("/v1/messages", refusal);
  const tools = [
    { ...tool, defer_loading: true },
    { type: "tool_search_tool_bm25_20251119", name: "tool_search" },
  ];
  expect(await ask(proxy, { ...marked, tools })).toBe(400);
  expect(posts(proxy).length).toBe(1);
  const named = message.replace(name, "context-management-2025-06-27");
  proxy.demo.intercept("/v1/messages", () =>
    Response.json({ type: "error", error: { message: named } }, { status: 400 }),
  );
  const edits = { edits: [{ type: "clear_tool_uses_20250919" }] };
  expect(await ask(proxy, { ...marked, context_management: edits })).toBe(200);
  expect(newest(proxy).body.context_management).toBeUndefined();
});
