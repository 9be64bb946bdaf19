/** Scenario: requests of today's clients to an upstream that is as strict as it became in 2026. */
import { afterAll, describe, expect, test } from "bun:test";
import { startProxy } from "../../support/proxy";

const proxy = await startProxy({ demo: { generation: "C" } });

test("instructions go to Claude as a list, whichever other API they come from", async () => {
  const model = "claude-sonnet-4.6";
  const parts = (text: string) => ({ parts: [{ text }] });
  const asked = { systemInstruction: parts("Be brief."), contents: [{ role: "user", ...parts("Hello") }] };
  const calls: [string, object][] = [
    ["/v1/responses", { model, instructions: "Be brief.", input: "Hello" }],
    [`/v1beta/models/${model}:generateContent`, asked],
  ];
  for (const [path, body] of calls) {
    expect((await proxy.post(path, body)).status).toBe(200);
    const { system } = proxy.demo.journal.findLast((seen) => seen.path === "/v1/messages")!.body as { system: unknown };
    expect([path, system]).toMatchObject([path, [{ type: "text", text: "Be brief." }]]);
  }
});
afterAll(() => proxy[Symbol.asyncDispose]());

const path = "/v1/messages";
type Json = Record<string, unknown>;

/** What Claude Code 2.1.294 sends. */
const betas =
  "claude-code-20250219,interleaved-thinking-2025-05-14,thinking-token-count-2026-05-13,context-management-2025-06-27,prompt-caching-scope-2026-01-05,mid-conversation-system-2026-04-07,effort-2025-11-24,dangerous-tool-use-2026-09-03,thinking-display-updates-2026-08-18,afk-mode-2026-01-31,extended-cache-ttl-2025-04-11";
const headers = { "anthropic-beta": betas };
const ephemeral = { type: "ephemeral", ttl: "1h", scope: "global" };
const request = (model: string, more: Json = {}): Json => ({
  model,
  max_tokens: 32_000,
  system: [
    { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.294.abc; cc_entrypoint=cli; cch=1238c;" },
    { type: "text", text: "You are Claude Code.", cache_control: ephemeral },
  ],
  messages: [{ role: "user", content: [{ type: "text", text: "Think about it.", cache_control: ephemeral }] }],
  thinking: {
    type: "adaptive",
    display: "updates",
    block_binding: { prefix_mismatch_behavior: "drop_block" },
  },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }, { type: "compact_20260112" }] },
  output_config: { effort: "high", task_budget: { type: "tokens", total: 64_000 } },
  safeguards: [{ type: "dangerous_tool_use", classifier_context: { cwd: "/home/ada/secret-project" } }],
  diagnostics: { previous_message_id: "msg_1" },
  fallbacks: "default",
  thread: { type: "create" },
  metadata: { user_id: '{"device_id":"d","session_id":"s"}' },
  ...more,
});

/** One answer, and what the upstream was sent for it. */
async function ask(body: Json, sentHeaders: Record<string, string> = headers) {
  const before = proxy.demo.journal.length;
  const response = await proxy.post(path, body, { headers: sentHeaders });
  const json = (await response.json()) as Json & { content: Json[] };
  const calls = proxy.demo.journal.slice(before).filter(({ method }) => method === "POST");
  return { status: response.status, json, calls, sent: calls.at(-1)?.body as Json, row: proxy.rows()[0]! };
}
const thinkingIn = ({ content }: { content: Json[] }) =>
  content.flatMap(({ thinking }) => (typeof thinking === "string" ? [thinking] : [])).join("");

describe("a request of Claude Code with the fields of all its betas", () => {
  test.each(["claude-opus-5.5", "claude-sonnet-5", "claude-sonnet-4.6", "claude-haiku-4.5"])(
    "is answered by %s at once, and its thinking is shown",
    async (model) => {
      // It makes no summaries, and the upstream says so at the first request.
      const older = { context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] } };
      const { status, json, calls, sent } = await ask(request(model, model === "claude-haiku-4.5" ? older : {}));
      expect([status, calls.map((call) => call.status)]).toEqual([200, [200]]);
      expect(thinkingIn(json)).not.toBe("");
      expect(JSON.stringify(sent)).not.toMatch(/secret-project|billing-header|updates|block_binding|task_budget|1h/);
      expect(Object.keys(sent)).not.toContain("thread");
      const sentBetas = (calls[0]!.headers["anthropic-beta"] ?? "").split(",");
      expect(sentBetas).toContain("context-management-2025-06-27");
      expect(sentBetas.join()).not.toMatch(/updates|safeguard|dangerous|ttl/);
    },
  );

  test("has its thinking shown by GPT, too", async () => {
    const { status, json, sent } = await ask(request("gpt-6-sol"));
    expect(status).toBe(200);
    expect(sent.reasoning).toEqual({ effort: "high", summary: "auto" });
    expect(thinkingIn(json)).not.toBe("");
    expect(JSON.stringify(sent)).not.toMatch(/secret-project|billing-header/);
  });

  test("has its changes named in the history", async () => {
    const { row } = await ask(request("claude-opus-5.5"));
    const names = [
      "billing-header",
      "unsupported-fields",
      "beta-fields",
      "cache-scope",
      "cache-ttl",
      "thinking-display",
    ];
    expect(JSON.parse(row.fixups ?? "[]")).toEqual(expect.arrayContaining(names));
    expect(JSON.parse(row.dropped ?? "[]")).toEqual(["safeguards", "diagnostics", "fallbacks", "thread"]);
  });
});

describe("thinking", () => {
  test("thinking is shown without a wish to see it; with the wish not to, it is not", async () => {
    const shown = await ask(request("claude-sonnet-5", { thinking: { type: "adaptive" } }));
    expect(thinkingIn(shown.json)).not.toBe("");
    expect(JSON.parse(shown.row.fixups ?? "[]")).toContain("thinking-shown");
    const unseen = await ask(request("claude-sonnet-5", { thinking: { type: "adaptive", display: "omitted" } }));
    expect([unseen.status, thinkingIn(unseen.json)]).toEqual([200, ""]);
    expect(unseen.sent.thinking).toEqual({ type: "adaptive", display: "omitted" });
  });

  test("thinking of a kind that the upstream does not know is adaptive", async () => {
    const { status, calls, sent } = await ask(request("claude-sonnet-5", { thinking: { type: "between_tools" } }));
    expect([status, calls.length]).toEqual([200, 1]);
    expect(sent.thinking).toEqual({ type: "adaptive", display: "summarized" });
  });
});

describe("a model that always thinks", () => {
  const model = "claude-opus-5.5";
  const shown = { type: "adaptive", display: "summarized" };
  const plain = { model, max_tokens: 1000, messages: [{ role: "user", content: "Say hello." }] };

  test.each<[string, Json, Json, unknown]>([
    ["without a word of thinking", {}, shown, undefined],
    ["with thinking turned off", { thinking: { type: "disabled" } }, shown, "low"],
    [
      "with thinking turned off and an effort",
      { thinking: { type: "disabled" }, output_config: { effort: "high" } },
      shown,
      "high",
    ],
    ["with an effort alone", { output_config: { effort: "medium" } }, shown, "medium"],
    [
      "with thinking unseen",
      { thinking: { type: "adaptive", display: "omitted" } },
      { type: "adaptive", display: "omitted" },
      undefined,
    ],
  ])("is asked to think by Anthropic's client %s, at once", async (_, more, thinking, effort) => {
    const { status, calls, sent } = await ask({ ...plain, ...more });
    expect([status, calls.length]).toEqual([200, 1]);
    expect([sent.thinking, (sent.output_config as Json | undefined)?.effort]).toEqual([thinking, effort]);
  });

  test.each<[string, Json, unknown]>([
    ["/v1/chat/completions", { model, messages: plain.messages }, undefined],
    ["/v1/chat/completions", { model, messages: plain.messages, reasoning_effort: "none" }, "low"],
    ["/v1/responses", { model, store: false, input: "Hi" }, undefined],
    ["/v1/responses", { model, store: false, input: "Hi", reasoning: { effort: "none" } }, "low"],
    [`/v1beta/models/${model}:generateContent`, { contents: [{ role: "user", parts: [{ text: "Hi" }] }] }, undefined],
  ])("is asked to think by a client of %s: %j", async (path, body, effort) => {
    const before = proxy.demo.journal.length;
    const response = await proxy.post(path, body);
    expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
    const [sent, ...others] = proxy.demo.journal.slice(before).map((call) => call.body as Json);
    expect(others).toEqual([]);
    expect([sent!.thinking, (sent!.output_config as Json | undefined)?.effort]).toEqual([shown, effort]);
  });
});

describe("a call that is forced", () => {
  const schema = { type: "object", properties: { city: { type: "string" } } };
  const words = "Answer with a call of the tool `look`, and with nothing else.";
  const askForced = async (model: string, choice: Json, more: Json = {}) => {
    const tools = [{ name: "look", description: "Looks.", input_schema: schema }];
    const messages = [{ role: "user", content: "Hello." }];
    return ask({ model, max_tokens: 2000, tools, tool_choice: choice, messages, ...more });
  };

  test("is asked for in words where the model takes no such choice, and the row says so", async () => {
    const forced = await askForced("claude-opus-5.5", { type: "tool", name: "look" }, { system: "Be brief." });
    expect([forced.status, forced.calls.length]).toEqual([200, 1]);
    expect([forced.sent.tool_choice, forced.sent.thinking]).toEqual([
      { type: "auto" },
      { type: "adaptive", display: "summarized" },
    ]);
    expect(JSON.stringify((forced.sent.messages as Json[]).at(-1))).toContain(words);
    expect(JSON.stringify(forced.sent.system)).not.toContain(words);
    expect(JSON.parse(forced.row.fixups ?? "[]")).toContain("forced-choice");
    const any = await askForced("claude-opus-5.5", { type: "any", disable_parallel_tool_use: true });
    expect(any.sent.tool_choice).toEqual({ type: "auto", disable_parallel_tool_use: true });
    expect(JSON.stringify((any.sent.messages as Json[]).at(-1))).toContain("one of the tools");
  });

  test.each<[string, Json]>([
    [
      "/v1/chat/completions",
      {
        messages: [{ role: "user", content: "Hi" }],
        tools: [{ type: "function", function: { name: "look", parameters: schema } }],
        tool_choice: { type: "function", function: { name: "look" } },
      },
    ],
    [
      "/v1/responses",
      {
        input: "Hi",
        store: false,
        tools: [{ type: "function", name: "look", parameters: schema, strict: false }],
        tool_choice: { type: "function", name: "look" },
      },
    ],
  ])("is asked for in words of a client of %s", async (path, body) => {
    const before = proxy.demo.journal.length;
    const response = await proxy.post(path, { model: "claude-opus-5.5", ...body });
    expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
    const [sent, ...others] = proxy.demo.journal.slice(before).map((call) => call.body as Json);
    expect([others, sent!.tool_choice, JSON.stringify((sent!.messages as Json[]).at(-1)).includes(words)]).toEqual([
      [],
      { type: "auto" },
      true,
    ]);
    expect(JSON.parse(proxy.rows()[0]!.dropped ?? "[]")).toContain("forced-choice");
  });

  test("stays beside adaptive thinking where the model takes both", async () => {
    const thinking = { type: "adaptive", display: "summarized" };
    const choice = { type: "tool", name: "look" };
    const { status, calls, sent, json } = await askForced("claude-sonnet-5", choice, { thinking });
    expect([status, calls.length, sent.thinking, sent.tool_choice]).toEqual([200, 1, thinking, choice]);
    expect(json.content.at(-1)).toMatchObject({ type: "tool_use", name: "look" });
  });

  test("is asked for in words once the model has refused it", async () => {
    const { status, calls, sent, row } = await askForced("claude-haiku-5.5", { type: "tool", name: "look" });
    expect([status, calls.map((call) => call.status), sent.tool_choice]).toEqual([200, [400, 200], { type: "auto" }]);
    expect(JSON.stringify((sent.messages as Json[]).at(-1))).toContain(words);
    expect(JSON.parse(row.fixups ?? "[]")).toContain("forced-choice");
  });

  test("takes precedence over thinking everywhere else", async () => {
    const thinking = { type: "enabled", budget_tokens: 1024 };
    const choice = { type: "tool", name: "look" };
    const { status, sent } = await askForced("claude-haiku-4.5", choice, { thinking });
    expect([status, sent.thinking, sent.tool_choice]).toEqual([200, undefined, choice]);
  });
});

describe("tools of Anthropic's API that the client runs", () => {
  const own = [
    { type: "bash_20250124", name: "bash" },
    { type: "text_editor_20250728", name: "str_replace_based_edit_tool" },
    { type: "memory_20250818", name: "memory" },
  ];
  const plain = { model: "claude-sonnet-4.6", max_tokens: 1000, messages: [{ role: "user", content: "Say hello." }] };

  test("go up as they are, alone and chosen", async () => {
    const { status, calls, sent } = await ask({ ...plain, tools: own, tool_choice: { type: "tool", name: "bash" } });
    expect([status, calls.length]).toEqual([200, 1]);
    expect([sent.tools, sent.tool_choice]).toEqual([own, { type: "tool", name: "bash" }]);
  });

  test.each([{}, { "anthropic-beta": "computer-use-2025-11-24" }])(
    "as does a computer, with its beta: %j",
    async (sentHeaders) => {
      const tools = [{ type: "computer_20251124", name: "computer", display_width_px: 800, display_height_px: 600 }];
      const { status, calls, sent } = await ask({ ...plain, tools }, sentHeaders as Record<string, string>);
      expect([status, calls.length, sent.tools]).toEqual([200, 1, tools]);
      expect(calls[0]!.headers["anthropic-beta"]).toContain("computer-use-2025-11-24");
    },
  );

  test("and those that Anthropic runs are refused", async () => {
    const { status, json } = await ask({ ...plain, tools: [{ type: "web_fetch_20250910", name: "web_fetch" }] });
    expect([status, JSON.stringify(json)]).toEqual([400, expect.stringContaining("GitHub Copilot does not offer it")]);
  });
});

describe("members of a tool", () => {
  const closed = {
    type: "object",
    properties: { at: { type: "string" } },
    required: ["at"],
    additionalProperties: false,
  };
  const open = { type: "object", properties: { at: { type: "string", minLength: 1 } } };
  const tools = (more: Json) => [
    { name: "look", input_schema: closed, ...more },
    { name: "dig", input_schema: open, ...more },
  ];
  const plain = { max_tokens: 1000, messages: [{ role: "user", content: "Say hello." }] };

  test("`strict` goes to Claude where the schema qualifies for it", async () => {
    const { status, calls, sent } = await ask({ ...plain, model: "claude-sonnet-4.6", tools: tools({ strict: true }) });
    expect([status, calls.length]).toEqual([200, 1]);
    expect((sent.tools as Json[]).map(({ strict }) => strict)).toEqual([true, undefined]);
  });

  test.each([
    ["claude-sonnet-5", true],
    ["claude-haiku-4.5", undefined],
  ])("`eager_input_streaming` goes to %s: %p", async (model, expected) => {
    const { status, calls, sent } = await ask({ ...plain, model, tools: tools({ eager_input_streaming: true }) });
    expect([status, calls.length]).toEqual([200, 1]);
    expect((sent.tools as Json[]).map((tool) => tool.eager_input_streaming)).toEqual([expected, expected]);
  });
});

describe("a conversation that the upstream is to shorten", () => {
  const asked = (model: string): Json => ({
    ...{ model, max_tokens: 1000 },
    context_management: { edits: [{ type: "compact_20260112" }] },
    messages: [
      { role: "user", content: "Hello." },
      { role: "assistant", content: [{ type: "compaction", content: "We said hello." }] },
      { role: "user", content: "And?" },
    ],
  });
  const editsOf = (sent: Json) => (sent.context_management as { edits: Json[] } | undefined)?.edits;

  test.each([{}, { "anthropic-beta": "compact-2026-01-12" }])(
    "is sent with the edit that does it, its beta, and earlier summaries as they are: %j",
    async (sentHeaders) => {
      const body = asked("claude-sonnet-4.6");
      const { status, calls, sent } = await ask(body, sentHeaders as Record<string, string>);
      expect([status, calls.length]).toEqual([200, 1]);
      expect(calls[0]!.headers["anthropic-beta"]).toContain("compact-2026-01-12");
      expect([editsOf(sent), sent.messages]).toEqual([[{ type: "compact_20260112" }], body.messages]);
    },
  );

  test("is sent without it, and summaries in words, once the model has refused it", async () => {
    for (const statuses of [[400, 200], [200]]) {
      const { status, calls, sent } = await ask(asked("claude-haiku-4.5"), {});
      expect([status, calls.map((call) => call.status)]).toEqual([200, statuses]);
      expect([editsOf(sent), JSON.stringify(sent.messages)]).toEqual([
        undefined,
        expect.stringContaining('{"type":"text","text":"We said hello."}'),
      ]);
      expect(calls.at(-1)!.headers["anthropic-beta"] ?? "").not.toContain("compact");
    }
  });
});

describe("a thread", () => {
  test("that is continued is refused with the code after which Claude Code sends the whole conversation", async () => {
    for (const model of ["claude-opus-5.5", "gpt-6-sol"]) {
      const thread = { type: "continue", previous_message_id: "msg_1" };
      const { status, json, calls } = await ask(request(model, { thread }));
      expect(status).toBe(400);
      expect(json).toMatchObject({
        type: "error",
        error: { type: "invalid_request_error", details: { error_code: "thread_unsupported_request" } },
      });
      expect(calls).toEqual([]);
    }
  });
});
