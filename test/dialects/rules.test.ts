/**
 * Rows: what an upstream refuses, and what is sent instead: the edges of the rules of each dialect, one request for
 * each.
 */
import { expect, test } from "bun:test";
import { applyRules as applyChat } from "../../src/dialects/chat/rules";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";
import { applyRules as applyMessages } from "../../src/dialects/messages/rules";
import { applyRules as applyResponses, refuseStored } from "../../src/dialects/responses/rules";
import { ableModel } from "../support/facts";

const modelOf = (vendor: string): ModelFacts => {
  const able = ableModel("m", vendor);
  const supports = { ...able.supports, adaptiveThinking: false, thinkingBudget: undefined };
  return { ...able, limits: { output: 1000, fullOutput: 800 }, supports };
};
const openAi = modelOf("Azure OpenAI");
const claude = modelOf("Anthropic");
const hi = [{ role: "user", content: "Hi" }];
const schema = { type: "object", properties: { a: { type: "string" } } };

test("chat: two answers of a model that gives one are refused, and of OpenAI they are not", () => {
  expect(() => applyChat({ n: 2 }, claude)).toThrow("`n` must be 1");
  expect(() => applyChat({ n: 2 }, openAi)).not.toThrow();
});

const called = { type: "function", name: "f", strict: true, parameters: schema };

test("responses: a tool that must be called and is not available is refused, unless another one may be called", () => {
  const apply = (body: JsonObject) => () => applyResponses(body, openAi, { webSearch: false });
  const image = { type: "image_generation" };
  const required = { model: "m", tool_choice: "required" };
  expect(apply({ ...required, input: "Hi", tools: [image] })).toThrow("not available here: the only one");
  expect(apply({ ...required, input: "Hi", tools: [image, called] })).not.toThrow();
  const further = { type: "additional_tools", tools: [called] };
  expect(apply({ ...required, input: [...hi, further], tools: [image] })).not.toThrow();
  expect(apply({ ...required, input: hi, tools: [image] })).toThrow("not available here");
  expect(apply({ model: "m", tool_choice: image, input: "Hi", tools: [image] })).toThrow("image_generation");
});

test("responses: what needs stored replies is refused by its name, and nothing else", () => {
  for (const name of ["previous_response_id", "conversation", "prompt"]) {
    expect(() => refuseStored({ [name]: "x" })).toThrow(`\`${name}\` names is not known`);
    expect(() => refuseStored({ [name]: null })).not.toThrow();
  }
  expect(() => refuseStored({ background: true })).toThrow("`background` cannot be true");
  expect(() => refuseStored({ background: false })).not.toThrow();
});

const marked = (control: JsonObject) => [
  { role: "user", content: [{ type: "text", text: "Hi", cache_control: control }] },
];
const client = { name: "f", input_schema: { type: "object", properties: {} } };

test("messages: an hour's cache is asked for where the owner wants it, unless it was refused", () => {
  const body = { model: "m", max_tokens: 100, messages: marked({ type: "ephemeral", ttl: "1h" }) };
  expect(applyMessages(body, claude, { webSearch: false, hourCache: true }).messages).toEqual(body.messages);
  const minutes = { ...body, messages: marked({ type: "ephemeral", ttl: "5m" }) };
  expect(applyMessages(minutes, claude, { webSearch: false, hourCache: true }).messages).toEqual(
    marked({ type: "ephemeral" }),
  );
});

test("messages: a server's tool is refused if nothing is left without it, or if it must be called", () => {
  const server = { type: "web_fetch_20250910", name: "web_fetch" };
  const apply = (body: JsonObject) => () =>
    applyMessages({ model: "m", max_tokens: 9, messages: hi, ...body }, claude, { webSearch: false });
  expect(apply({ tools: [server] })).toThrow("The tool `web_fetch_20250910` is built into Anthropic's own API");
  expect(apply({ tools: [server, client], tool_choice: { type: "tool", name: "web_fetch" } })).toThrow(
    "web_fetch_20250910",
  );
  expect(apply({ tools: [server, client], tool_choice: { type: "tool", name: "f" } })).not.toThrow();
});
