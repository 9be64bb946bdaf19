/** Rows: what a reader of a request has read is no extra, and what it has not read is one. */
import { expect, test } from "bun:test";
import { Fields } from "../../src/dialects/hub/fields";

test("A field that was read is not among the rest, and errors name a field by where it stands.", () => {
  const message = Fields.at({ role: "user", content: [{ type: "text" }], x_new: 1 }, "messages[2]");
  expect(message.text("role")).toBe("user");
  const [[part, path] = []] = message.list("content");
  expect(message.rest()).toEqual({ x_new: 1 });
  expect(() => Fields.at(part, path!).text("text")).toThrow("`messages[2].content[0].text` must be a string");
  expect(() => message.fields("x_new")).toThrow("`messages[2].x_new` must be an object; it is a number.");
  expect(message.rest()).toBeUndefined();
});
