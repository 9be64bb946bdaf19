/**
 * Scenario: a value that a model does not take, though its list says so or says nothing, costs one more try and no
 * error.
 */
import { describe, expect, test } from "bun:test";
import { type RunningProxy, startProxy } from "../../support/proxy";

type Asked = Record<string, unknown>;

/** Refuses as long as `objection` has words; what was sent. */
function refuse(proxy: RunningProxy, path: string, objection: (body: Asked) => object | undefined): Asked[] {
  const sent: Asked[] = [];
  proxy.demo.intercept(
    path,
    ({ body }) => {
      sent.push(body as Asked);
      const error = objection(body as Asked);
      return error && Response.json(error, { status: 400 });
    },
    Number.POSITIVE_INFINITY,
  );
  return sent;
}

const inner = (body: Asked, name: string) => (body[name] as Asked | undefined)?.effort;

const cases = {
  messages: {
    path: "/v1/messages",
    body: {
      model: "claude-sonnet-4.6",
      max_tokens: 100,
      messages: [{ role: "user", content: "Hello" }],
      output_config: { effort: "high" },
    },
    effortIn: (body: Asked) => inner(body, "output_config"),
    error: {
      error: {
        code: "invalid_reasoning_effort",
        message:
          'output_config.effort "high" is not supported by model claude-sonnet-4.6; supported values: [low medium max]',
      },
    },
    nearest: "medium",
  },
  anthropic: {
    path: "/v1/messages",
    body: {
      model: "claude-sonnet-4.6",
      max_tokens: 100,
      messages: [{ role: "user", content: "Hello" }],
      output_config: { effort: "low" },
    },
    effortIn: (body: Asked) => inner(body, "output_config"),
    error: {
      type: "error",
      error: { type: "invalid_request_error", message: "output_config.effort: Input should be 'medium' or 'high'" },
    },
    nearest: "medium",
  },
  responses: {
    path: "/v1/responses",
    body: { model: "gpt-5.1", input: "Hello", reasoning: { effort: "none" } },
    effortIn: (body: Asked) => inner(body, "reasoning"),
    error: {
      error: {
        code: "unsupported_value",
        param: "reasoning.effort",
        message:
          "Unsupported value: 'none' is not supported with the 'gpt-5.1' model. Supported values are: 'low', 'medium', and 'high'.",
      },
    },
    nearest: "low",
  },
  chat: {
    path: "/v1/chat/completions",
    body: { model: "gpt-5.1", messages: [{ role: "user", content: "Hello" }], reasoning_effort: "high" },
    effortIn: (body: Asked) => body.reasoning_effort,
    error: {
      error: {
        code: "invalid_reasoning_effort",
        message: 'reasoning_effort "high" is not supported by model gpt-5.1; supported values: [low medium]',
      },
    },
    nearest: "medium",
  },
} as const;

test.each(Object.entries(cases))("an effort: %s: the nearest one that the refusal lists is sent", async (_, each) => {
  await using proxy = await startProxy();
  const sent = refuse(proxy, each.path.replace(/^\/v1(?=\/[cr])/, ""), (body) =>
    each.effortIn(body) === each.effortIn(each.body) ? each.error : undefined,
  );
  expect((await proxy.post(each.path, each.body)).status).toBe(200);
  expect(sent.map((body) => each.effortIn(body))).toEqual([each.effortIn(each.body), each.nearest]);
  expect(JSON.parse(proxy.rows()[0]!.fixups)).toContain("effort");
});

test("a refusal that names no other effort reaches the client", async () => {
  await using proxy = await startProxy();
  const error = {
    error: { code: "invalid_reasoning_effort", message: "effort is not supported; supported values: [high]" },
  };
  const sent = refuse(proxy, "/v1/messages", () => error);
  const answer = await proxy.post("/v1/messages", cases.messages.body);
  expect([answer.status, sent.length]).toEqual([400, 1]);
});

describe("a tool that the upstream rejects", () => {
  const builtIn = { type: "tool_search_tool_regex_20251119", name: "tool_search_tool_regex" };
  const own = { name: "look", input_schema: { type: "object" } };
  const ask = (tools: object[]) => ({ ...cases.messages.body, tools });
  const error = {
    error: { code: "invalid_request_body", message: "rejected tool(s): tool_search_tool_regex" },
  };
  const rejects = (body: Asked) =>
    (body.tools as Asked[] | undefined)?.some(({ type }) => type === builtIn.type) ? error : undefined;

  test("is left out, and the others stay", async () => {
    await using proxy = await startProxy();
    const sent = refuse(proxy, "/v1/messages", rejects);
    expect((await proxy.post("/v1/messages", ask([builtIn, own]))).status).toBe(200);
    expect(sent.map(({ tools }) => (tools as Asked[]).length)).toEqual([2, 1]);
    expect(JSON.parse(proxy.rows()[0]!.dropped)).toContain("tools");
  });

  test("stays where it is the only one: the client is told", async () => {
    await using proxy = await startProxy();
    const sent = refuse(proxy, "/v1/messages", rejects);
    const answer = await proxy.post("/v1/messages", ask([builtIn]));
    expect([answer.status, sent.length]).toEqual([400, 1]);
    expect(await answer.text()).toContain("rejected tool(s)");
  });
});
