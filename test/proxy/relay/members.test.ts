/**
 * Scenario: members that only a chat message knows stay in chat: the items of the Responses API refuse what is not
 * their own.
 */
import { afterAll, expect, test } from "bun:test";
import { offerOnly } from "../../support/catalogue";
import { startProxy } from "../../support/proxy";

const proxy = await startProxy();
offerOnly(proxy.demo, { "gpt-5.3-codex": ["/responses"], "gpt-4.1": ["/chat/completions"] });
afterAll(() => proxy[Symbol.asyncDispose]());

/** The members of each item and tool, as the SDK's `ResponseInputItem` and `Tool` (openai 7) have them. */
const itemMembers: Record<string, string[]> = {
  message: ["type", "role", "content", "id", "status", "phase"],
  function_call: ["type", "call_id", "name", "arguments", "id", "status", "namespace"],
  function_call_output: ["type", "call_id", "output", "id", "status"],
  function: ["type", "name", "parameters", "strict", "description", "defer_loading"],
  input_text: ["type", "text"],
  output_text: ["type", "text", "annotations", "logprobs"],
  input_image: ["type", "image_url", "detail", "file_id"],
};

const replied = {
  role: "assistant",
  content: "Let me look.",
  annotations: [],
  refusal: null,
  audio: null,
  reasoning_content: "I thought.",
  reasoning: "I thought.",
  reasoning_details: [{ type: "reasoning.text", text: "I thought." }],
  provider_specific_fields: { a: 1 },
  tool_calls: [
    {
      id: "call_1",
      type: "function",
      index: 0,
      extra_content: { google: { thought_signature: "x" } },
      function: { name: "look", arguments: "{}", parsed_arguments: {} },
    },
  ],
};
const messages = [
  { role: "user", content: [{ type: "text", text: "Hi", citations: [] }], timestamp: 12 },
  replied,
  { role: "tool", tool_call_id: "call_1", content: "found", name: "look", is_error: false },
  { role: "assistant", content: "Done.", annotations: [{ type: "url_citation" }] },
  { role: "user", content: [{ type: "text", text: "And now?" }] },
];
const tools = [
  { type: "function", extra: 1, function: { name: "look", parameters: { type: "object" }, brand_new: 2 } },
];

test("from a chat client to a Responses model", async () => {
  const response = await proxy.post("/v1/chat/completions", { model: "gpt-5.3-codex", messages, tools });
  expect(response.status).toBe(200);
  const sent = proxy.demo.journal.findLast(({ path }) => path === "/responses")!;
  const body = JSON.parse(Buffer.from(sent.bytes).toString());
  const all: Record<string, unknown>[] = [
    ...body.input,
    ...body.tools,
    ...body.input.flatMap(({ content }: { content?: unknown }) => (Array.isArray(content) ? content : [])),
  ];
  for (const item of all)
    expect(Object.keys(item).filter((key) => !itemMembers[String(item.type)]?.includes(key))).toEqual([]);
  expect(JSON.parse(proxy.rows()[0]!.dropped)).toEqual(
    expect.arrayContaining(["reasoning_details", "extra_content", "thinking"]),
  );
});

test("all members of a request go to a chat model", async () => {
  await proxy.post("/v1/chat/completions", { model: "gpt-4.1", messages, tools });
  const sent = proxy.demo.journal.findLast(({ path }) => path === "/chat/completions")!;
  expect(JSON.parse(Buffer.from(sent.bytes).toString()).messages).toEqual(messages);
});
