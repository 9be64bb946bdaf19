/** Rows: parameters that an upstream refuses are named, left out and tried again later. */
import { expect, test } from "bun:test";
import {
  patternOf,
  refusedParam,
  UnsupportedParams,
  withoutParams,
} from "../../../src/proxy/upstream/copilot/unsupported-params";
import { type RunningProxy, startProxy } from "../../support/proxy";

test.each([
  // Anthropic's way.
  ["context_management: Extra inputs are not permitted", "context_management"],
  ["messages.0.content.1.thinking.mark: Extra inputs are not permitted", "messages.*.content.*.thinking.mark"],
  ["tools.0.custom.eager_input_streaming: Extra inputs are not permitted", "tools.*.custom.eager_input_streaming"],
  ["system.1.cache_control.ephemeral.scope: Extra inputs are not permitted", "system.*.cache_control.ephemeral.scope"],
  ['"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive".', "thinking.disabled"],
  [
    "thinking: Input tag 'disabled' found using 'type' does not match any of the expected tags: 'adaptive'",
    "thinking.disabled",
  ],
  [
    "Unexpected value(s) `extended-cache-ttl-2025-04-11` for the `anthropic-beta` header. Please consult our documentation.",
    "anthropic-beta.extended-cache-ttl-2025-04-11",
  ],
  // OpenAI's, with and without quotes.
  ["Unknown parameter: 'frobnicate'.", "frobnicate"],
  ["Unknown parameter: frobnicate.", "frobnicate"],
  ["Unknown parameter: 'input[0].phase'.", "input.*.phase"],
  ["Unknown parameter: input[0].phase.", "input.*.phase"],
  ["Unknown parameter: 'tools[0].defer_loading'.", "tools.*.defer_loading"],
  ["Unknown parameter: 'input[1].content[0].annotations[2].mark'.", "input.*.content.*.annotations.*.mark"],
  ["Unsupported parameter: 'top_p' is not supported with this model.", "top_p"],
  ['Unrecognized request argument supplied: "seed"', "seed"],
  ["Function tools with reasoning_effort are not supported for this model.", "reasoning_effort"],
])("what an upstream names: %s", (message, pattern) => {
  expect(patternOf(refusedParam({ code: "invalid_request_error", message })!)).toBe(pattern);
});

test("what an upstream names: its own member for it goes before the words", () => {
  expect(refusedParam({ code: "unknown_parameter", message: "No such thing.", param: "input[3].phase" })).toBe(
    "input[3].phase",
  );
  expect(refusedParam({ code: "invalid_value", message: "Too large.", param: "temperature" })).toBeUndefined();
});

const meant =
  "model messages input max_tokens stream tools tool_choice response_format text text.format system instructions n output_config.format prompt stop functions previous_response_id compaction";
const required =
  "messages.0.content.0.tool_use.text messages[1].content messages.1.content.0.tool_result.name messages.0.role tools.0.custom.input_schema tools[0].function.parameters tools[0].name input[0].id input[2].type messages.0.content.0.tool_use.input messages.0.content.0.text.text";
const others =
  "messages.0.content.0.tool_use.input.path tools.0.custom.input_schema.properties.x tools[0].function.parameters.strict messages.3 input[0] a..b";
test.each(`${meant} ${required} ${others}`.split(" "))("what no request may lose: %s", (param) => {
  expect(patternOf(param)).toBeUndefined();
});

test("every other byte is as it was: digits, escapes, spaces, duplicate members", () => {
  const text =
    '{ "seed":9007199254740993, "messages" : [ { "role":"user","content":[{"type":"text", "text":"\\u0041 , }","mark":{"a":[1,2]}} , {"type":"text","text":"b","big":1e400}] } ],\n "extra":-0 }';
  const { text: lighter, removed } = withoutParams(text, ["messages.*.content.*.text.mark", "extra", "other"]);
  expect(lighter).toBe(
    '{ "seed":9007199254740993, "messages" : [ { "role":"user","content":[{"type":"text", "text":"\\u0041 , }"} , {"type":"text","text":"b","big":1e400}] } ] }',
  );
  expect(removed).toEqual(["messages.*.content.*.text.mark", "extra"]);
});

test("a request without it stays the very same text", () => {
  const text = '{ "a": {"type":"b","x":"c"}, "d": "c" }';
  expect(withoutParams(text, ["b", "a.b.c", "a.*.x", "toString", "a.x.c"])).toEqual({ text, removed: [] });
});

test("what is learnt holds for an hour, for that model", () => {
  let now = 0;
  const params = new UnsupportedParams(() => now);
  params.learn("m", "x");
  params.learn("other", "x");
  now = 1;
  params.learn("m", "y");
  expect([params.known("m"), params.known("other"), params.known("none")]).toEqual([["x", "y"], ["x"], []]);
  now = 3600_000;
  expect([params.known("m"), params.known("other")]).toEqual([["y"], []]);
  now = 3600_001;
  expect([params.known("m"), params.all()]).toEqual([[], []]);
});

test("a client that invents names does not fill the memory", () => {
  const params = new UnsupportedParams(() => 0);
  for (let at = 0; at < 2000; at++) params.learn("m", `x${at}`);
  expect(params.all().length).toBeLessThanOrEqual(500);
  expect(params.known("m")).toContain("x1999");
});

/** An upstream that refuses a request for as long as `objection` has words for its body. */
function refuse(proxy: RunningProxy, path: string, objection: (body: never) => string | undefined): string[] {
  const sent: string[] = [];
  proxy.demo.intercept(
    path,
    (seen) => {
      sent.push(Buffer.from(seen.bytes).toString());
      const message = objection(seen.body as never);
      if (message === undefined) return undefined;
      const error = { type: "invalid_request_error", message };
      return Response.json({ type: "error", error }, { status: 400 });
    },
    Number.POSITIVE_INFINITY,
  );
  return sent;
}

const hello = [{ role: "user", content: "Hello" }];

test("a refused parameter costs one more try the first time, none for an hour after that, and then one again", async () => {
  let ahead = 0;
  await using proxy = await startProxy({ clock: { now: () => Date.now() + ahead } });
  const sent = refuse(proxy, "/chat/completions", (body: { new_field?: unknown }) =>
    body.new_field === undefined ? undefined : "Unrecognized request argument supplied: new_field",
  );
  const ask = { model: "gpt-5-mini", new_field: 1, messages: hello };
  for (let turn = 0; turn < 3; turn++) expect((await proxy.post("/v1/chat/completions", ask)).status).toBe(200);
  expect(sent.length).toBe(4);
  expect(proxy.rows().map(({ fixups }) => JSON.parse(fixups).includes("refused:new_field"))).toEqual([
    true,
    true,
    true,
  ]);
  expect(proxy.rows().map(({ attempts }) => JSON.parse(attempts).length)).toEqual([1, 1, 2]);

  ahead = 3600_000;
  for (let turn = 0; turn < 2; turn++) expect((await proxy.post("/v1/chat/completions", ask)).status).toBe(200);
  expect(sent.map((body) => body.includes("new_field"))).toEqual([true, false, false, false, true, false, false]);
});

test("a remedy that did not help is not remembered, and other requests are not changed", async () => {
  await using proxy = await startProxy();
  const sent = refuse(proxy, "/v1/messages", (body: { messages: { content: { odd?: 1 }[] }[]; bad?: 1 }) => {
    if (body.messages.some(({ content }) => content[0]?.odd))
      return "messages.0.content.0.text.odd: Extra inputs are not permitted";
    return body.bad ? "The request is bad in another way." : undefined;
  });
  const ask = (block: object, more: object = {}) =>
    proxy.post("/v1/messages", {
      model: "claude-sonnet-4.6",
      max_tokens: 100,
      messages: [{ role: "user", content: [{ type: "text", text: "Hello", ...block }] }],
      ...more,
    });
  expect((await ask({ odd: 1 }, { bad: 1 })).status).toBe(400);
  expect([sent.length, proxy.app.unsupportedParams.all()]).toEqual([2, []]);
  expect((await ask({ odd: 1 })).status).toBe(200);
  expect(proxy.app.unsupportedParams.known("claude-sonnet-4.6")).toEqual(["messages.*.content.*.text.odd"]);
  const before = sent.length;
  expect((await ask({ odd: 1, fine: 2 })).status).toBe(200);
  expect(sent.slice(before).map((body) => JSON.parse(body).messages[0].content)).toEqual([
    [{ type: "text", text: "Hello", fine: 2 }],
  ]);
});

test("an answer that is an error with status 200 proves nothing either", async () => {
  await using proxy = await startProxy();
  proxy.demo.intercept(
    "/chat/completions",
    ({ body }) =>
      (body as { odd?: 1 }).odd
        ? Response.json({ error: { message: "Unknown parameter: 'odd'." } }, { status: 400 })
        : Response.json({ error: { code: "invalid_request_error", message: "Something else." } }),
    4,
  );
  const response = await proxy.post("/v1/chat/completions", { model: "gpt-5-mini", odd: 1, messages: hello });
  expect([response.status, proxy.app.unsupportedParams.all()]).toEqual([400, []]);
});

test.each([
  ["/v1/chat/completions", { model: "gpt-5-mini", messages: hello, tools: [] }, "Unsupported parameter: 'messages'"],
  [
    "/v1/chat/completions",
    { model: "gpt-5-mini", messages: hello, response_format: { type: "json_object" } },
    "Unsupported parameter: 'response_format' is not supported with this model.",
  ],
  [
    "/v1/chat/completions",
    {
      model: "gpt-5-mini",
      messages: hello,
      tools: [{ type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } }],
      tool_choice: "required",
    },
    "Unsupported parameter: 'tools' is not supported with this model.",
  ],
])("%s: what the question is made of is not removed: the client is told", async (path, ask, message) => {
  await using proxy = await startProxy();
  proxy.demo.intercept("/chat/completions", () => Response.json({ error: { message } }, { status: 400 }), 5);
  const response = await proxy.post(path, ask);
  expect([response.status, ((await response.json()) as { error: { message: string } }).error.message]).toEqual([
    400,
    message,
  ]);
  expect(JSON.parse(proxy.rows()[0]!.attempts)).toHaveLength(1);
});

test("OpenAI's spelling with an index is healed on /v1/responses", async () => {
  await using proxy = await startProxy();
  const sent = refuse(proxy, "/responses", (body: { input: { phase?: string }[] }) => {
    const at = body.input.findIndex(({ phase }) => phase !== undefined);
    return at === -1 ? undefined : `Unknown parameter: 'input[${at}].phase'.`;
  });
  const response = await proxy.post("/v1/responses", {
    model: "gpt-5.3-codex",
    input: [
      { role: "user", content: "Hi", phase: "x" },
      { role: "user", content: "Hello", phase: "y" },
    ],
  });
  expect([response.status, sent.length]).toEqual([200, 2]);
  expect(proxy.app.unsupportedParams.known("gpt-5.3-codex")).toEqual(["input.*.phase"]);
});
