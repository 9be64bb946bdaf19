/** Rows: what a reader of a request has read is no extra, and what it has not read is one. */
import { expect, test } from "bun:test";
import { codecs } from "../../src/dialects/codecs";
import { Fields } from "../../src/dialects/hub/fields";
import { ableModel } from "../support/facts";
import { encodeRequest } from "../support/noted";

test("A field that was read is not among the rest, and errors name a field by where it stands.", () => {
  const message = Fields.at({ role: "user", content: [{ type: "text" }], x_new: 1 }, "messages[2]");
  expect(message.text("role")).toBe("user");
  const [[part, path] = []] = message.list("content");
  expect(message.rest()).toEqual({ x_new: 1 });
  expect(() => Fields.at(part, path!).text("text")).toThrow("`messages[2].content[0].text` must be a string");
  expect(() => message.fields("x_new")).toThrow("`messages[2].x_new` must be an object; it is a number.");
  expect(message.rest()).toBeUndefined();
});

test.each([
  [0, "`max_tokens` must be a whole number above 0."],
  [1.5, "`max_tokens` must be a whole number above 0."],
  ["10", "`max_tokens` must be a whole number above 0; it is a string."],
])("A count of tokens that is %p is refused, and told its type only where that is wrong.", (max_tokens, sentence) => {
  const body = { model: "m", max_tokens, messages: [{ role: "user", content: "Hi" }] };
  expect(() => codecs.chat.decodeRequest(body)).toThrow(expect.objectContaining({ message: sentence }));
});

test("Copilot's cache mark of a chat part, tool or refusal is carried and not named as dropped.", () => {
  const mark = { copilot_cache_control: { type: "ephemeral" } };
  const conversation = codecs.chat.decodeRequest({
    model: "m",
    messages: [
      { role: "user", content: [{ type: "text", text: "Hi", ...mark }] },
      { role: "assistant", content: [{ type: "refusal", refusal: "No.", ...mark }] },
      { role: "user", content: "Please." },
    ],
    tools: [{ type: "function", function: { name: "look", parameters: { type: "object" } }, ...mark }],
  });
  const { body, dropped } = encodeRequest(codecs.messages, conversation, ableModel("claude", "Anthropic"));
  expect(dropped).not.toContain("copilot_cache_control");
  const cached = { cache_control: { type: "ephemeral" } };
  expect(body).toMatchObject({
    messages: [{ content: [cached] }, { content: [cached] }, {}],
    tools: [cached],
  });
});
