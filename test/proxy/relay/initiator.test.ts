/** Scenario: who asked, as the upstream is told and the history shows: a person, or the client by itself. */
import { afterAll, describe, expect, test } from "bun:test";
import { startProxy } from "../../support/proxy";

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

/** Who asked by the row and by the header, and why by the row. */
async function told(path: string, body: object, headers: Record<string, string> = {}) {
  const before = proxy.demo.journal.length;
  await (await proxy.post(path, body, { headers })).arrayBuffer();
  const { initiator, initiator_reason: reason } = proxy.rows()[0]!;
  const sent = proxy.demo.journal.slice(before).filter((call) => call.headers["x-initiator"] !== undefined);
  expect(sent.map((call) => call.headers["x-initiator"])).toEqual(sent.map(() => initiator!));
  expect(sent.length).toBeGreaterThan(0);
  return { initiator, reason };
}

const byMessages = (content: unknown, headers?: Record<string, string>) =>
  told(
    "/v1/messages",
    {
      model: "claude-sonnet-4.6",
      max_tokens: 9,
      messages: [
        { role: "user", content: "a" },
        { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "f", input: {} }] },
        { role: "user", content },
      ],
    },
    headers,
  );
const byChat = (...more: object[]) =>
  told("/v1/chat/completions", {
    model: "gpt-5-mini",
    messages: [{ role: "user", content: "a" }, { role: "assistant", content: null, tool_calls: [call] }, ...more],
  });
const byResponses = (...more: object[]) =>
  told("/v1/responses", { model: "gpt-5.4", input: [{ role: "user", content: "a" }, ...more] });

const call = { type: "function", id: "c1", function: { name: "f", arguments: "{}" } };
const text = (words: string) => ({ type: "text", text: words });
const result = { type: "tool_result", tool_use_id: "toolu_1", content: "done" };
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } };
const reminder = "<system-reminder>\nCareful.\n</system-reminder>";
const notification =
  "<system-reminder>\n[SYSTEM NOTIFICATION - NOT USER INPUT]\nAn agent has finished.\n</system-reminder>";

describe("the output of a tool of any kind is no person's turn", () => {
  const outputs: [string, object][] = [
    ["function_call_output", { call_id: "c1", output: "done" }],
    ["custom_tool_call_output", { call_id: "c1", output: "done" }],
    ["tool_search_output", { call_id: "c1", execution: "client", status: "completed", tools: [] }],
    ["shell_call_output", { call_id: "c1", output: [] }],
    ["local_shell_call_output", { id: "c1", output: "done" }],
    ["apply_patch_call_output", { call_id: "c1", status: "completed", output: "done" }],
    ["computer_call_output", { call_id: "c1", output: { type: "computer_screenshot", image_url: "data:,x" } }],
    ["mcp_approval_response", { approval_request_id: "c1", approve: true }],
  ];
  test.each(outputs)("the output of a tool is no person's turn: %s", async (type, item) => {
    const before = { type: "function_call", call_id: "c1", name: "f", arguments: "{}" };
    expect(await byResponses(before, { type, ...item })).toEqual({ initiator: "agent", reason: "tool results" });
    // Also where somebody adds settings behind it.
    const settings = { type: "message", role: "developer", content: [{ type: "input_text", text: "Be brief." }] };
    expect((await byResponses(before, { type, ...item }, settings)).initiator).toBe("agent");
  });

  test("the output of a tool with a person's words before or behind it is a person's turn", async () => {
    const before = { type: "function_call", call_id: "c1", name: "f", arguments: "{}" };
    const output = { type: "shell_call_output", call_id: "c1", output: [] };
    const words = { type: "message", role: "user", content: [{ type: "input_text", text: "Stop!" }] };
    const expected = { initiator: "user", reason: "a person's words beside tool results" };
    expect(await byResponses(before, output, words)).toEqual(expected);
    expect(await byResponses(before, words, output)).toEqual(expected);
  });

  test("a message in the role of a tool or function is no person's turn", async () => {
    const results = [
      { role: "tool", tool_call_id: "c1", content: "done" },
      { role: "function", name: "f", content: "done" },
    ];
    for (const each of results) {
      expect(await byChat(each)).toEqual({ initiator: "agent", reason: "tool results" });
      expect((await byChat(each, { role: "user", content: "Thanks." })).initiator).toBe("user");
    }
  });

  test("a result of the messages dialect, also of a tool with a type of its own", async () => {
    for (const type of ["tool_result", "mcp_tool_result"])
      expect(await byMessages([{ ...result, type }])).toEqual({ initiator: "agent", reason: "tool results" });
    expect((await byMessages([result, text("Stop!")])).initiator).toBe("user");
    expect((await byMessages([result, image])).initiator).toBe("user");
    expect((await byMessages([{ ...result, content: [image] }])).initiator).toBe("agent");
    // What is searched for is a client's, not a tool's.
    expect((await byMessages([{ type: "search_result", source: "x", title: "x", content: [] }])).initiator).toBe(
      "user",
    );
  });
});

describe("what a client writes in the user's name is no person's turn", () => {
  const own = [
    reminder,
    `${reminder}\n${notification}\n`,
    notification,
    "[SYSTEM NOTIFICATION - NOT USER INPUT]\nAn agent has finished.",
    "[MESSAGE FROM NON-USER SOURCE - NOT USER INPUT]\nHello.",
    "Tool loaded.",
    "Tool loaded.\n[id:abc]\n",
    "<subagent_notification>{}</subagent_notification>",
  ];
  test.each(own)("what a client writes in the user's name is no person's turn: %j", async (words) => {
    const beside = { initiator: "agent", reason: "tool results, and the client's own texts beside them" };
    expect(await byMessages([result, text(words)])).toEqual(beside);
    expect(
      await byChat({ role: "tool", tool_call_id: "c1", content: "done" }, { role: "user", content: words }),
    ).toEqual(beside);
    const alone = { initiator: "agent", reason: "the client's own texts alone" };
    expect(await byMessages(words)).toEqual(alone);
    expect(await byMessages([text(words), text(reminder)])).toEqual(alone);
    expect(await byResponses({ type: "message", role: "user", content: words })).toMatchObject({ initiator: "user" });
  });

  const persons = [
    `${reminder}\nHello`,
    "<system-reminder>\nnever closed",
    "Tool loaded. And now?",
    "What does [SYSTEM NOTIFICATION - NOT USER INPUT] mean?",
    "Generate a title for this conversation:\n",
    "Attached image(s) from tool result:",
    "",
  ];
  test.each(persons)("a text that only resembles what clients write may be a person's turn: %j", async (words) => {
    expect((await byMessages([text("Hello"), text(words)])).initiator).toBe("user");
    if (words !== "") expect((await byMessages(words)).initiator).toBe("user");
  });

  test("a long text of the client's own is read to its end, where a person may have written", async () => {
    const long = `<system-reminder>\n${"Careful. ".repeat(3000)}\n</system-reminder>\n`;
    expect((await byMessages([result, text(long), text(`\n${long}${reminder}`)])).initiator).toBe("agent");
    expect((await byMessages([result, text(`${long}Hello`)])).initiator).toBe("user");
    expect((await byMessages([result, text(`Tool loaded.${"\n[id:abc]".repeat(900)}`)])).initiator).toBe("agent");
    expect((await byMessages([result, text("Hello ".repeat(3000))])).initiator).toBe("user");
    expect((await byMessages([result, text(`${"\n".repeat(9000)}Hello`)])).initiator).toBe("user");
    expect((await byMessages(`${" ".repeat(9000)}${reminder}`)).initiator).toBe("agent");
  });

  test("an image beside them is a person's, unless it is said to be a tool's", async () => {
    expect((await byMessages([text(reminder), image])).initiator).toBe("user");
    for (const words of ["Attached media from tool result:", "Attached image(s) from tool result:"]) {
      const shown = {
        role: "user",
        content: [text(words), { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } }],
      };
      expect((await byChat({ role: "tool", tool_call_id: "c1", content: "See below." }, shown)).initiator).toBe(
        "agent",
      );
      expect((await byChat({ role: "assistant", content: "Well." }, shown)).initiator).toBe("user");
    }
  });
});

test("one prompt with two subagents is one person's turn", async () => {
  const question = { type: "text", text: "Look at both." };
  const asked = async (content: unknown, headers?: Record<string, string>) =>
    (await byMessages(content, headers)).initiator;
  const turns = [
    await asked([text(reminder), question]),
    await asked([text(reminder), text("You look at the first.")], { "x-claude-code-agent-id": "agent-1" }),
    await asked([text(reminder), text("You look at the second.")], { "x-claude-code-agent-id": "agent-2" }),
    await asked([text(notification)]),
    await asked([text(notification)]),
  ];
  expect(turns).toEqual(["user", "agent", "agent", "agent", "agent"]);
});

test.each(["x-claude-code-agent-id", "x-codex-parent-thread-id", "x-parent-session-id"])(
  "%s says that a subagent asks",
  async (name) => {
    const expected = { initiator: "agent", reason: "a subagent's request" };
    expect(await byMessages([text("Do it.")], { [name]: "x1" })).toEqual(expected);
  },
);

test("a request that cannot be translated has its facts: `functions`, and a result by `role: function`", async () => {
  const functions = [{ name: "f", parameters: { type: "object", properties: {} } }];
  const picture = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
  const messages: object[] = [{ role: "user", content: [{ type: "text", text: "What is this?" }, picture] }];
  const ask = { model: "gpt-5-mini", functions };
  expect(await told("/v1/chat/completions", { ...ask, messages })).toEqual({
    initiator: "user",
    reason: "a person's turn",
  });
  expect(proxy.demo.journal.at(-1)?.headers["copilot-vision-request"]).toBe("true");
  messages.push(
    { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
    { role: "function", name: "f", content: "done" },
  );
  expect(await told("/v1/chat/completions", { ...ask, messages })).toEqual({
    initiator: "agent",
    reason: "tool results",
  });
});

test("a picture within a document of blocks is announced", async () => {
  const document = { type: "document", source: { type: "content", content: [image] } };
  await told("/v1/messages", { model: "gpt-5-mini", max_tokens: 9, messages: [{ role: "user", content: [document] }] });
  expect(proxy.demo.journal.at(-1)?.headers["copilot-vision-request"]).toBe("true");
});

describe("Claude Code's request for a web search", () => {
  const search = { type: "web_search_20250305", name: "web_search", max_uses: 8 };
  const words = "Perform a web search for the query: red pandas";
  const ask = (content: string, more: object = {}) =>
    told("/v1/messages", {
      model: "claude-sonnet-4.6",
      max_tokens: 1000,
      messages: [{ role: "user", content }],
      tools: [search],
      tool_choice: { type: "tool", name: "web_search" },
      ...more,
    });

  test("Claude Code's request for a web search is no person's turn", async () => {
    expect(await ask(words)).toEqual({ initiator: "agent", reason: "a tool of the client's own" });
  });

  test("is one in other words, and where the model may choose", async () => {
    for (const [content, more] of [
      ["Search for red pandas", {}],
      [words, { tool_choice: { type: "auto" } }],
    ] as const) {
      await (
        await proxy.post("/v1/messages", {
          model: "claude-sonnet-4.6",
          max_tokens: 1000,
          messages: [{ role: "user", content }],
          tools: [search],
          tool_choice: { type: "tool", name: "web_search" },
          ...more,
        })
      ).text();
      const row = proxy.rows().find(({ path }) => path === "/v1/messages");
      expect(row!.initiator).toBe("user");
    }
  });
});
