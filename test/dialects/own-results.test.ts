/** Rows: a provider that searches by itself reads its own results and citations, and none that dragoman has sealed. */
import { expect, test } from "bun:test";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import { seal } from "../../src/dialects/hub/seal";
import { messages } from "../../src/dialects/messages/codec";
import { ableModel } from "../support/facts";
import { fixRequest } from "../support/noted";

const provided = { ...ableModel("claude", "Anthropic"), provider: { assumed: [] } };
const conversation = (sealed: string): JsonObject => ({
  model: "claude",
  messages: [
    { role: "user", content: "Search." },
    {
      role: "assistant",
      content: [
        { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } },
        {
          type: "web_search_tool_result",
          tool_use_id: "srvtoolu_1",
          content: [{ type: "web_search_result", url: "https://a.example/", title: "A", encrypted_content: sealed }],
        },
        {
          type: "text",
          text: "It is red.",
          citations: [{ type: "web_search_result_location", url: "https://a.example/", encrypted_index: sealed }],
        },
      ],
    },
    { role: "user", content: "Thank you." },
  ],
});

test("what dragoman has sealed makes a request one to translate, and its citations are left out", () => {
  const body = conversation(seal("Red."));
  expect(messages.outline(body).hasOwnResults?.()).toBeTrue();
  const { body: fixed, fixups } = fixRequest(messages, body, provided);
  expect(fixups).toEqual(["lost-citations"]);
  expect(JSON.stringify(fixed)).not.toContain("encrypted_index");
});

test("what the provider has sealed passes through", () => {
  const body = conversation("EpIBCioIARgB");
  expect(messages.outline(body).hasOwnResults?.()).toBeFalse();
  expect(fixRequest(messages, body, provided).fixups).toEqual([]);
});
