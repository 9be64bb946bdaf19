/**
 * Scenario: bodies no client should send: each is answered in words or forwarded as it is, and never harms the next
 * request.
 */
import { afterAll, expect, test } from "bun:test";
import { startProxy } from "../support/proxy";

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

const hello = { role: "user", content: "Hello" };
const chat = { model: "gpt-5-mini", messages: [hello] };
const native = { model: "claude-sonnet-4.6", max_tokens: 100, messages: [hello] };

test("an integer beyond double precision goes up digit for digit", async () => {
  const text = JSON.stringify({ ...native, metadata: { user_id: 7 } }).replace(
    /"user_id":7/,
    '"user_id":9007199254740993',
  );
  await (await proxy.post("/v1/messages", text)).arrayBuffer();
  expect(Buffer.from(proxy.demo.journal.at(-1)!.bytes).toString()).toContain("9007199254740993");
});

test.each([
  ["/v1/chat/completions", chat],
  ["/v1/messages", native],
  ["/v1/messages", { ...native, model: "gpt-5-mini" }],
])("halves of characters are replaced, in a short and a long text: %s", async (path, good) => {
  for (const content of ["\\ud83d \\uDE00 \\uD83D\\ude00 \\\\ud83d", `${"x".repeat(20_000)}\\ud83d`]) {
    const messages = [{ role: "user", content: "?" }];
    await (await proxy.post(path, JSON.stringify({ ...good, messages }).replace("?", content))).arrayBuffer();
    expect(JSON.stringify(proxy.demo.journal.at(-1)!.body)).toContain(
      JSON.stringify(JSON.parse(`"${content}"`).toWellFormed()).slice(-20),
    );
    expect(proxy.rows(1)[0]!.fixups).toContain("half-characters");
  }
});

test("half of a character in the input of a call is replaced where the input is no longer a text", async () => {
  const call = { type: "function_call", call_id: "c", name: "look", arguments: '{"at":"\\ud83d"}' };
  const input = [hello, call, { type: "function_call_output", call_id: "c", output: "Seen." }];
  await (await proxy.post("/v1/responses", { model: native.model, input })).arrayBuffer();
  expect(JSON.stringify(proxy.demo.journal.at(-1)!.body)).toContain('"input":{"at":"\ufffd"}');
});
