/** Rows: parameters that an upstream refuses: named and left out. `fixtures/scenes/refusals.txt` has what follows. */
import { expect, test } from "bun:test";
import {
  patternOf,
  refusedParam,
  UnsupportedParams,
  withoutParams,
} from "../../../src/proxy/upstream/copilot/unsupported-params";

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
