/** Pairs: Messages, from the folders `fixtures/messages-*`, and rows of what is read, written and passed on. */

import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ReplyContext } from "../../src/dialects/codec";
import { cutReply } from "../../src/dialects/hub/block-lifecycle";
import type { Conversation, JsonObject } from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { messages } from "../../src/dialects/messages/codec";
import { rules } from "../../src/dialects/messages/rules";
import { kinds, ProxyError } from "../../src/lib/errors";
import { jsonOf, readSse, type SseFrame } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import { chunkSizes } from "../support/differential";
import { ableModel } from "../support/facts";
import { checkMessagesStream } from "../support/grammar-messages";
import fc, { triesOf } from "../support/random";
import { refusalOf } from "../support/refusal";
import {
  bytesAt,
  chunksOf,
  decodeFrames,
  fixtures,
  hasFixture as holds,
  jsonAt,
  overWire,
  passes,
  passesFull,
  wire,
  written,
} from "../support/streams";

const facts: ModelFacts = {
  ...ableModel("claude", "Anthropic"),
  dialects: ["messages", "chat"],
  limits: { output: 32_000 },
};

const quirks = readdirSync(fixtures).filter((name) => name.startsWith("messages-"));
const textAt = (quirk: string, file: string) => readFileSync(join(fixtures, quirk, file), "utf8");

const factsOf = (quirk: string): ModelFacts => {
  if (!holds(quirk, "facts.json")) return facts;
  const { limits, supports } = jsonAt(quirk, "facts.json");
  const other = { ...facts.supports, ...supports };
  return {
    ...facts,
    limits: { ...facts.limits, ...limits },
    supports: { ...other, thinkingBudget: other.thinkingBudget ?? undefined },
  };
};

/** The fixups a folder shows: the one it is named after, unless it says otherwise. */
const mendsOf = (quirk: string): string[] =>
  holds(quirk, "fixups.json") ? jsonAt(quirk, "fixups.json") : [quirk.slice("messages-".length)];

function fixed(body: JsonObject, model: ModelFacts): { body: JsonObject; fixups: string[] } {
  const { dropped: _, ...others } = messages.fixRequest(body, model);
  return others;
}

const throughHub = (body: JsonObject, model: ModelFacts) =>
  messages.encodeRequest(messages.decodeRequest(body), model).body;

/** The request without its choices of spelling: strings for blocks, neighbours of one voice, members that say the default. */
function meaning(body: JsonObject): JsonObject {
  const serialized: JsonObject = { ...body, model: "" };
  const spoken: JsonObject[] = [];
  for (const { role, content, ...rest } of body.messages as JsonObject[]) {
    const last = spoken.at(-1);
    const blocks = blocksOf(content);
    const alone = Object.keys(rest).length > 0;
    if (!alone && last?.role === role && !last?.alone) last!.content = [...blocksOf(last!.content), ...blocks];
    else spoken.push({ role, content: blocks, ...rest, ...(alone ? { alone } : {}) });
  }
  serialized.messages = spoken.map((each) => ({ ...each, content: resultsInOrder(each.content as JsonObject[]) }));
  serialized.system = blocksOf(body.system);
  if (body.stream === false) delete serialized.stream;
  if (Array.isArray(body.tools) && body.tools.length === 0) delete serialized.tools;
  for (const key of Object.keys(serialized)) if (serialized[key] === undefined) delete serialized[key];
  return serialized;
}

/** Results of parallel calls may come in any order. */
function resultsInOrder(content: JsonObject[]): JsonObject[] {
  const isResult = ({ type }: JsonObject) => type === "tool_result";
  const results = content.filter(isResult).sort((a, b) => (String(a.tool_use_id) < String(b.tool_use_id) ? -1 : 1));
  return [...results, ...content.filter((each) => !isResult(each))];
}

function blocksOf(content: unknown): unknown[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return ((content ?? []) as JsonObject[]).map((block) =>
    block.type === "tool_result" ? { ...block, content: blocksOf(block.content) } : block,
  );
}

describe("what the upstream refuses of a request", () => {
  const requests = quirks.filter((quirk) => holds(quirk, "request.json"));

  test.each(requests.filter((quirk) => holds(quirk, "fixed.json")))("is fixed: %s", (quirk) => {
    const request = jsonAt(quirk, "request.json");
    const before = structuredClone(request);
    const result = fixed(request, factsOf(quirk));
    expect(meaning(result.body)).toEqual(meaning(jsonAt(quirk, "fixed.json")));
    expect(result.fixups).toEqual(mendsOf(quirk));
    expect(request).toEqual(before);
    expect(fixed(result.body, factsOf(quirk)).fixups).toEqual([]);
  });

  test.each(requests.filter((quirk) => holds(quirk, "fixed.json")))(
    "is fixed the same through the hub: %s",
    (quirk) => {
      const body = throughHub(jsonAt(quirk, "request.json"), factsOf(quirk));
      expect(meaning(body)).toEqual(meaning(jsonAt(quirk, "fixed.json")));
    },
  );

  test.each(requests.filter((quirk) => holds(quirk, "refused.json")))("is refused: %s", (quirk) => {
    const { param, names } = jsonAt(quirk, "refused.json");
    const body = jsonAt(quirk, "request.json");
    for (const send of [fixed, throughHub]) {
      const error = refusalOf(() => send(body, factsOf(quirk)));
      expect([error.kind, error.details.param]).toEqual(["invalid_request", param]);
      expect(error.message).toContain(names);
    }
  });

  test("every rule has a folder of examples", () => {
    const shown = new Set(requests.flatMap((quirk) => (holds(quirk, "fixed.json") ? mendsOf(quirk) : [])));
    expect(Object.keys(rules).filter((name) => !shown.has(name))).toEqual([]);
  });
});

describe("a client's own request", () => {
  test("a client's own request goes up as it is when nothing is wrong with it", () => {
    const body = jsonAt("messages-accepted", "request.json");
    const fixed = messages.fixRequest(body, facts);
    expect(fixed).toEqual({ body, fixups: [], dropped: [] });
    expect(fixed.body).toBe(body);
  });

  test("a client's own request is left to the upstream to refuse when it is malformed", () => {
    const odd = [5, null, "x", [null], [1], [{}], [{ role: 1, content: 5 }], [{ role: "user", content: [null] }]];
    for (const value of odd)
      for (const key of ["messages", "system", "tools", "tool_choice", "thinking", "output_config", "max_tokens"])
        expect(() => messages.fixRequest({ model: "m", messages: [], [key]: value }, facts)).not.toThrow();
  });

  test("a client's own request with calls of one id in several turns has each result stay with its call", () => {
    const use = { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "look", input: {} }] };
    const result = (content: string, tool_use_id = "t1") => ({
      role: "user",
      content: [{ type: "tool_result", tool_use_id, content }],
    });
    const wait = { role: "user", content: "Wait." };
    const { body, fixups } = fixed(
      { model: "claude", max_tokens: 5, messages: [wait, use, wait, use, result("mine")] },
      facts,
    );
    expect(fixups).toEqual(["repeated-call-ids", "missing-tool-result"]);
    expect((body.messages as JsonObject[]).at(-1)).toEqual(result("mine", "t1_2"));
  });

  test("a client's own request means through the hub what it means when it is passed through", () => {
    fc.assert(
      fc.property(request, models, (body, model) => {
        expect(meaning(throughHub(body, model))).toEqual(meaning(fixed(body, model).body));
      }),
      { numRuns: triesOf(300) },
    );
  });

  test("a client's own request is sound after its fixups, so that they find nothing more to do", () => {
    fc.assert(
      fc.property(request, models, (body, model) => {
        expect(fixed(fixed(body, model).body, model).fixups).toEqual([]);
      }),
      { numRuns: triesOf(300) },
    );
  });
});

describe("the beta header", () => {
  const betasFor = (header: string | null, body: JsonObject, model: ModelFacts) => {
    const client = header === null ? null : new Headers({ "anthropic-beta": header });
    const { headers, fixups } = messages.requestHeaders!(client, body, model);
    return { betas: headers["anthropic-beta"]?.split(",") ?? [], added: fixups.map((name) => name.slice(5)) };
  };
  const [interleaved, advanced, context] = [
    "interleaved-thinking-2025-05-14",
    "advanced-tool-use-2025-11-20",
    "context-management-2025-06-27",
  ];
  const budget = { thinking: { type: "enabled", budget_tokens: 2000 } };
  const counting = { ...facts, supports: { ...facts.supports, adaptiveThinking: false } };

  test.each([
    [
      "keeps what the upstream knows, once and in order",
      `${context}, x-1 ,${advanced},${context}`,
      {},
      [context, advanced],
      [],
    ],
    ["is none when nothing is left of it", "claude-code-20250219,context-1m-2025-08-07", {}, [], []],
    ["is none when there was none and nothing needs it", null, {}, [], []],
    ["asks for thinking between calls when only a budget came", null, budget, [interleaved], [interleaved]],
    ["does not when the client sent any header", "x-1", budget, [], []],
    [
      "loses thinking between calls when thinking is adaptive",
      `${interleaved},${context}`,
      { thinking: { type: "adaptive" } },
      [context],
      [],
    ],
    [
      "gets what context_management needs",
      advanced,
      { context_management: { edits: [] } },
      [advanced, context],
      [context],
    ],
    ["gets what deferred tools need", null, { tools: [{ name: "a", defer_loading: true }] }, [advanced], [advanced]],
  ])("%s", (_, header, body, betas, added) => {
    expect(betasFor(header, body, counting)).toEqual({ betas, added });
  });

  test("the beta header asks nothing of a model that thinks adaptively", () => {
    expect(betasFor(null, budget, facts)).toEqual({ betas: [], added: [] });
  });

  test.each(quirks.filter((quirk) => holds(quirk, "betas.json")))("fits the body: %s", (quirk) => {
    const { header, ...wanted } = jsonAt(quirk, "betas.json");
    expect(betasFor(header, fixed(jsonAt(quirk, "request.json"), facts).body, facts)).toEqual(wanted);
  });

  test("the beta header is read under both its names, and left out when empty", () => {
    const read = (headers: Record<string, string>) =>
      messages.requestHeaders?.(new Headers(headers), {}, facts).headers;
    expect(read({ "anthropic-beta": context })).toEqual({ "anthropic-beta": context });
    expect(read({ "vendorx-beta": context })).toEqual({ "anthropic-beta": context });
    expect(read({ "anthropic-beta": "x-1" })).toEqual({});
  });
});

describe("what a client asks, in the hub", () => {
  const base = { model: "m", max_tokens: 10 };
  const ask = (body: JsonObject) => messages.decodeRequest({ ...base, messages: [], ...body });
  const parts = (...content: JsonObject[]) => ask({ messages: [{ role: "user", content }] }).turns[0]?.parts;

  test("keeps the system's place and cache marks", () => {
    const { turns, reasoning } = ask({
      system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral", ttl: "1h" } }],
      messages: [
        { role: "user", content: "Hi." },
        { role: "system", content: "Be kind.", output_config: { effort: "low" } },
      ],
    });
    expect(turns).toEqual([
      {
        role: "system",
        parts: [{ kind: "text", text: "Be brief.", cache: true, extras: { anthropic: { "cache_control.ttl": "1h" } } }],
      },
      { role: "user", parts: [{ kind: "text", text: "Hi." }] },
      { role: "system", parts: [{ kind: "text", text: "Be kind." }] },
    ]);
    expect(reasoning).toEqual({ effort: "low", adaptive: false });
  });

  test("reads thinking, and unpacks the proofs of other makers", () => {
    expect(
      parts(
        { type: "thinking", thinking: "Hm.", signature: "c2ln" },
        { type: "redacted_thinking", data: "ZGF0YQ==" },
        { type: "thinking", thinking: "Ho.", signature: "dragoman.chat..b3A=" },
        { type: "redacted_thinking", data: "dragoman.responses.cnNfMQ.ZW5j" },
        { type: "thinking", thinking: "Bare.", signature: "" },
      ),
    ).toEqual([
      { kind: "thinking", text: "Hm.", signature: { dialect: "messages", value: "c2ln" } },
      { kind: "thinking", text: "", signature: { dialect: "messages", value: "ZGF0YQ==", redacted: true } },
      { kind: "thinking", text: "Ho.", signature: { dialect: "chat", value: "b3A=" } },
      { kind: "thinking", text: "", signature: { dialect: "responses", value: "ZW5j", id: "rs_1" } },
      { kind: "thinking", text: "Bare." },
    ]);
  });

  test("reads documents: a PDF as a file, plain text as text, an address as a link, others as they are, with what they say", () => {
    const pdf = { type: "base64", media_type: "application/pdf", data: "JVBERi0=" };
    const elsewhere = { type: "document", source: { type: "url", url: "https://example.com/a.pdf" } };
    const titled = { type: "document", source: { type: "text", media_type: "text/plain", data: "Words." }, title: "B" };
    expect(
      parts(
        { type: "document", source: pdf, title: "A", context: "c" },
        { type: "document", source: { type: "text", media_type: "text/plain", data: "Words." } },
        titled,
        elsewhere,
      ),
    ).toEqual([
      {
        kind: "file",
        name: "A",
        mediaType: "application/pdf",
        base64: "JVBERi0=",
        extras: { anthropic: { context: "c" } },
      },
      { kind: "text", text: "Words.", extras: { anthropic: { type: "document" } } },
      {
        kind: "foreign",
        dialect: "messages",
        value: titled,
        instead: [
          { kind: "text", text: "Document: B" },
          { kind: "text", text: "Words." },
        ],
      },
      { kind: "file-link", url: "https://example.com/a.pdf" },
    ]);
  });

  test("reads a failed result, with pictures and what only this dialect has", () => {
    const reference = { type: "tool_reference", tool_name: "look" };
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBO" } };
    expect(parts({ type: "tool_result", tool_use_id: "t1", is_error: true, content: [image, reference] })).toEqual([
      {
        kind: "tool-result",
        id: "t1",
        failed: true,
        parts: [
          { kind: "image", source: { mediaType: "image/png", base64: "iVBO" } },
          {
            kind: "foreign",
            dialect: "messages",
            value: reference,
            instead: [{ kind: "text", text: "The tool `look` was found: it can be called now." }],
            toolSearch: { found: ["look"] },
          },
        ],
      },
    ]);
  });

  test.each<[string, JsonObject, Conversation["reasoning"]]>([
    ["a budget", { thinking: { type: "enabled", budget_tokens: 5000 } }, { budget: 5000, summary: "auto" }],
    ["a budget unseen", { thinking: { type: "enabled", budget_tokens: 5000, display: "omitted" } }, { budget: 5000 }],
    ["adaptive thinking", { thinking: { type: "adaptive" } }, { adaptive: true, summary: "auto" }],
    ["adaptive thinking unseen", { thinking: { type: "adaptive", display: "omitted" } }, { adaptive: true }],
    [
      "adaptive thinking, told as it goes on",
      { thinking: { type: "adaptive", display: "updates" } },
      { adaptive: true, summary: "auto" },
    ],
    ["a kind of thinking that is new", { thinking: { type: "between_tools" } }, { adaptive: true, summary: "auto" }],
    [
      "adaptive thinking, shown",
      { thinking: { type: "adaptive", display: "summarized" } },
      { adaptive: true, summary: "auto" },
    ],
    [
      "adaptive thinking with an effort",
      { thinking: { type: "adaptive" }, output_config: { effort: "low" } },
      { effort: "low", summary: "auto" },
    ],
    ["no thinking, but an effort", { output_config: { effort: "low" } }, { effort: "low", adaptive: false }],
    ["thinking switched off", { thinking: { type: "disabled" } }, { disabled: true }],
    ["nothing", {}, undefined],
  ])("reads how hard to think: %s", (_, body, reasoning) => {
    expect(ask(body).reasoning).toEqual(reasoning as never);
  });

  test.each<[string, JsonObject, Partial<Conversation>]>([
    ["auto", { type: "auto" }, { toolChoice: "auto" }],
    [
      "any, one at a time",
      { type: "any", disable_parallel_tool_use: true },
      { toolChoice: "required", parallelTools: false },
    ],
    ["a tool", { type: "tool", name: "look" }, { toolChoice: { name: "look" } }],
    ["none", { type: "none" }, { toolChoice: "none" }],
  ])("reads the choice of tools: %s", (_, tool_choice, wanted) => {
    expect(ask({ tool_choice })).toMatchObject(wanted as JsonObject);
  });

  test.each<[string, JsonObject]>([
    ["messages", { messages: undefined }],
    ["messages", { messages: "Hi." }],
    ["messages[0]", { messages: [null] }],
    ["messages[0].role", { messages: [{ role: "tool", content: "" }] }],
    ["messages[0].role", { messages: [{ role: 1, content: "" }] }],
    ["messages[0].content", { messages: [{ role: "user", content: 5 }] }],
    ["messages[0].content[1]", { messages: [{ role: "user", content: [{ type: "text", text: "" }, "x"] }] }],
    ["messages[0].content[0].type", { messages: [{ role: "user", content: [{}] }] }],
    ["messages[0].content[0].source", { messages: [{ role: "user", content: [{ type: "image" }] }] }],
    ["model", { model: 1 }],
    ["max_tokens", { max_tokens: -1 }],
    ["max_tokens", { max_tokens: "10" }],
    ["stream", { stream: "true" }],
    ["tools[0].name", { tools: [{}] }],
    ["thinking.budget_tokens", { thinking: { type: "enabled", budget_tokens: 0.5 } }],
    ["stop_sequences[0]", { stop_sequences: [1] }],
  ])("names the field that cannot be read: %s", (param, body) => {
    const error = refusalOf(() => ask(body));
    expect([error.kind, error.details.param]).toEqual(["invalid_request", param]);
  });

  test("takes a tool of type custom for what it is, and keeps what it does not know of tools", () => {
    const tool = { type: "custom", name: "look", description: "Looks.", defer_loading: true };
    expect(ask({ tools: [tool] }).tools).toEqual([
      {
        kind: "function",
        name: "look",
        description: "Looks.",
        isDeferred: true,
        extras: { anthropic: { defer_loading: true } },
      },
    ]);
    expect(
      fixed({ model: "m", max_tokens: 5, messages: [], tools: [{ type: "custom", name: "look" }] }, facts).body.tools,
    ).toEqual([{ type: "custom", name: "look", input_schema: { type: "object", properties: {} } }]);
  });

  test("takes types that are names of Object's own members for what they are", () => {
    expect(parts({ type: "constructor" })).toEqual([
      { kind: "foreign", dialect: "messages", value: { type: "constructor" } },
    ]);
  });
});

describe("what another dialect's client asks, for this upstream", () => {
  const asks = (conversation: Partial<Conversation>, model = facts) => {
    const user: Conversation["turns"] = [{ role: "user", parts: [{ kind: "text", text: "Hi." }] }];
    return messages.encodeRequest(
      { model: "x", turns: user, tools: [], stream: false, maxTokens: 100, ...conversation },
      model,
    );
  };
  const spoken = (...turns: Conversation["turns"]) => asks({ turns }).body;

  test("the system gathers in front, later words of it become reminders, results of parallel calls one message", () => {
    const body = spoken(
      { role: "system", parts: [{ kind: "text", text: "One." }] },
      { role: "system", parts: [{ kind: "text", text: "Two." }] },
      { role: "user", parts: [{ kind: "text", text: "Look." }] },
      { role: "assistant", parts: [{ kind: "tool-call", id: "a", name: "look", input: '{"at":1}' }] },
      { role: "assistant", parts: [{ kind: "tool-call", id: "b", name: "look", input: "" }] },
      { role: "system", parts: [{ kind: "text", text: "Quick." }] },
      { role: "user", parts: [{ kind: "tool-result", id: "a", parts: [{ kind: "text", text: "A" }] }] },
      { role: "user", parts: [{ kind: "tool-result", id: "b", parts: [], failed: true }] },
    );
    expect(body).toEqual({
      model: "claude",
      max_tokens: 100,
      system: [
        { type: "text", text: "One." },
        { type: "text", text: "Two." },
      ],
      messages: [
        { role: "user", content: "Look." },
        {
          role: "assistant",
          content: [
            { type: "tool_use", id: "a", name: "look", input: { at: 1 } },
            { type: "tool_use", id: "b", name: "look", input: {} },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "a", content: "A" },
            { type: "tool_result", tool_use_id: "b", content: "The tool failed, and did not say why.", is_error: true },
            { type: "text", text: "<system-reminder>\nQuick.\n</system-reminder>" },
          ],
        },
      ],
    });
  });

  test("only its own thinking goes back to it", () => {
    const { body, dropped } = asks({
      turns: [
        { role: "user", parts: [{ kind: "text", text: "Hi." }] },
        {
          role: "assistant",
          parts: [
            { kind: "thinking", text: "Mine.", signature: { dialect: "messages", value: "c2ln" } },
            { kind: "thinking", text: "Yours.", signature: { dialect: "chat", value: "b3A=" } },
            { kind: "thinking", text: "Nobody's." },
            { kind: "text", text: "Yes." },
          ],
        },
        { role: "user", parts: [{ kind: "text", text: "And?" }] },
      ],
    });
    expect(body.messages).toMatchObject([
      {},
      {
        content: [
          { type: "thinking", thinking: "Mine.", signature: "c2ln" },
          { type: "text", text: "Yes." },
        ],
      },
      {},
    ]);
    expect(dropped).toEqual(["thinking"]);
  });

  test("a call whose input is no JSON object still goes", () => {
    const body = spoken(
      { role: "user", parts: [{ kind: "text", text: "Hi." }] },
      { role: "assistant", parts: [{ kind: "tool-call", id: "a", name: "look", input: '{"cut":' }] },
      { role: "assistant", parts: [{ kind: "tool-call", id: "b", name: "patch", input: "*** Begin", freeform: true }] },
    );
    expect(body.messages).toMatchObject([
      {},
      { content: [{ input: { raw_arguments: '{"cut":' } }, { input: { input: "*** Begin" } }] },
      {
        content: [
          { tool_use_id: "a", is_error: true },
          { tool_use_id: "b", is_error: true },
        ],
      },
    ]);
  });

  test("images in data URLs, PDFs and text files are sent; other files are replaced by a note", () => {
    const { body, dropped } = asks({
      turns: [
        {
          role: "user",
          parts: [
            { kind: "image", source: { url: "data:image/png;base64,iVBO" } },
            { kind: "file", mediaType: "application/pdf", base64: "JVBE", name: "a.pdf" },
            { kind: "file", mediaType: "text/csv", base64: btoa("a,b") },
            { kind: "file", mediaType: "application/zip", base64: "UEs=", name: "a.zip" },
          ],
        },
      ],
    });
    expect(body.messages).toMatchObject([
      {
        content: [
          { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBO" } },
          { type: "document", title: "a.pdf", source: { type: "base64", data: "JVBE" } },
          { type: "document", source: { type: "text", data: "a,b" } },
          { type: "text", text: expect.stringContaining("a.zip") },
        ],
      },
    ]);
    expect(dropped).toEqual(["file of type application/zip"]);
  });

  test("what has no word here is named, what never matters is not", () => {
    const { dropped } = asks({
      turns: [
        {
          role: "user",
          parts: [
            { kind: "text", text: "Hi.", extras: { openai: { id: "msg_1", detail: "auto", phase: "x", name: "Ann" } } },
            { kind: "foreign", dialect: "responses", value: { type: "item_reference" } },
          ],
        },
      ],
      extras: { openai: { seed: 1, user: null, store: false, stream_options: {}, n: 1, background: false } },
      tools: [
        { kind: "function", name: "look" },
        { kind: "foreign", dialect: "responses", value: { type: "web_search" } },
      ],
    });
    expect(dropped.sort()).toEqual(["item_reference", "name", "seed", "web_search"]);
  });

  test.each<[string, Partial<Conversation>]>([
    ["n", { extras: { openai: { n: 2 } } }],
    ["background", { extras: { openai: { background: true } } }],
    ["previous_response_id", { extras: { openai: { previous_response_id: "r" } } }],
    [
      "tool_choice",
      {
        toolChoice: { name: "web_search" },
        tools: [{ kind: "foreign", dialect: "responses", value: { type: "web_search" } }],
      },
    ],
    [
      "tool_choice",
      { toolChoice: "required", tools: [{ kind: "foreign", dialect: "chat", value: { type: "custom" } }] },
    ],
  ])("what would make it another question is refused: %s", (param, conversation) => {
    expect(refusalOf(() => asks(conversation)).details.param).toBe(param);
  });

  test.each<[string, Conversation["reasoning"], JsonObject]>([
    [
      "an effort, as adaptive thinking",
      { effort: "high", summary: "auto" },
      { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "high" } },
    ],
    ["no effort at all", { effort: "none" }, { thinking: { type: "disabled" } }],
    ["a budget", { budget: 2000 }, { thinking: { type: "enabled", budget_tokens: 2000 } }],
  ])("it thinks as hard as asked: %s", (_, reasoning, wanted) => {
    const { body, dropped } = asks({ reasoning, maxTokens: 8000 });
    expect({ thinking: body.thinking, output_config: body.output_config }).toEqual({
      output_config: undefined,
      ...wanted,
    } as never);
    expect(dropped).toEqual([]);
  });

  test("an effort becomes a number of tokens for a model that counts them", () => {
    const counting = { ...facts, supports: { ...facts.supports, adaptiveThinking: false, efforts: [] } };
    const { body, dropped } = asks({ reasoning: { effort: "low" }, maxTokens: 8000 }, counting);
    expect(body).toMatchObject({ thinking: { type: "enabled", budget_tokens: 4000 } });
    expect(body).not.toHaveProperty("output_config");
    expect(dropped).toEqual([]);
  });

  test("limits are kept, and lowered values are named", () => {
    const { body, dropped } = asks({ maxTokens: 128_000, reasoning: { effort: "max" }, temperature: 2 });
    expect(body).toMatchObject({ max_tokens: 32_000, output_config: { effort: "high" } });
    expect(dropped).toEqual(["max_tokens lowered to 32000", "effort lowered to high", "sampling"]);
    expect(asks({ maxTokens: undefined }).body.max_tokens).toBe(32_000);
  });

  test("JSON without a schema is requested by an instruction", () => {
    const { body } = asks({ format: {} });
    expect(body.system).toMatchObject([{ text: expect.stringContaining("one JSON object") }]);
    expect(body).not.toHaveProperty("output_config");
  });

  test("a text tool goes as a function of one text", () => {
    const { body } = asks({ tools: [{ kind: "freeform", name: "apply_patch" }], toolChoice: { name: "apply_patch" } });
    const [tool] = body.tools as JsonObject[];
    expect(tool).toMatchObject({ name: "apply_patch", input_schema: { required: ["input"] } });
    expect(body.tool_choice).toEqual({ type: "tool", name: "apply_patch" });
  });

  test("a retry forgets all thinking, and asks for no more where that would be refused", () => {
    const body = {
      thinking: { type: "enabled", budget_tokens: 2000 },
      messages: [
        { role: "user", content: "Look." },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Hm.", signature: "c2ln" },
            { type: "tool_use", id: "a" },
          ],
        },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "a" }] },
      ],
    };
    expect(messages.remedies.repair(body, () => true)).toEqual({
      messages: [body.messages[0], { role: "assistant", content: [{ type: "tool_use", id: "a" }] }, body.messages[2]],
    });
  });
});

const asked: ReplyContext = { model: "asked-model", usage: true, replies: 1 };
const conversation: Conversation = { model: "asked-model", turns: [], tools: [], stream: true };
const decode = (frames: SseFrame[]) => decodeFrames(messages, frames);
const frame = (json: JsonObject): SseFrame => ({ event: String(json.type), data: JSON.stringify(json) });

function passed(frames: SseFrame[]): { out: SseFrame[]; fixups: string[] } {
  const fixups = new Set<string>();
  const out = written(
    passes(messages, asked, (name) => fixups.add(name)),
    frames,
  );
  return { out, fixups: [...fixups] };
}

describe("a reply that is passed through", () => {
  test.each(quirks.filter((quirk) => holds(quirk, "stream.txt")))("is fixed as it streams: %s", (quirk) => {
    const stream = bytesAt(quirk, "stream.txt");
    for (const size of chunkSizes) {
      const { out, fixups } = passed(run(readSse, chunksOf(stream, size)));
      expect(Buffer.from(wire(out)).toString()).toBe(textAt(quirk, "mended.txt"));
      expect(fixups.sort()).toEqual(mendsOf(quirk).sort());
    }
  });

  test("a reply that is passed through leaves every sound frame the very object it was", () => {
    const frames = run(readSse, [bytesAt("messages-model-name", "mended.txt")]);
    expect(passed(frames).out.every((each, index) => each === frames[index])).toBe(true);
  });

  test("a reply that is passed through leaves a large frame the object it was, too", () => {
    const frames = run(readSse, [bytesAt("messages-model-name", "mended.txt")]);
    const text = 'größe "x"\n'.repeat(10_000);
    const large = frame({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } });
    expect(passed(frames.toSpliced(3, 0, large))).toMatchObject({ fixups: [] });
    expect(passed(frames.toSpliced(3, 0, large)).out[3]).toBe(large);
  });

  test.each([
    ["no JSON at all", "oops"],
    ["a delta that is cut", '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a'],
    [
      "a delta with a bare quote in it",
      '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"b"}}',
    ],
    [
      "a delta with a control character",
      '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\u0001"}}',
    ],
    [
      "a delta with a false escape",
      '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\x"}}',
    ],
    ["an array", "[1]"],
  ])("a reply that is passed through ends in an error at an event that is %s, and tells nothing of it", (_, data) => {
    const good = run(readSse, [bytesAt("messages-model-name", "mended.txt")]);
    const bad = { event: "content_block_delta", data };
    const { out } = passed([...good.slice(0, 3), bad, ...good.slice(3)]);
    expect(out.slice(0, 3)).toEqual(good.slice(0, 3));
    expect(out.slice(3).map(({ event }) => event)).toEqual(["content_block_stop", "error"]);
    expect(Buffer.from(wire(out)).toString()).not.toContain(data);
  });

  test.each([
    { type: "error", error: { message: "Gone." } },
    { type: "error", error: "Gone." },
    { error: { message: "Gone." } },
  ])("brings an error into Anthropic's form: %j", (error) => {
    const { out, fixups } = passed([{ event: "error", data: JSON.stringify(error) }]);
    expect(jsonOf(out[0]!)).toEqual({ type: "error", error: { type: "api_error", message: "Gone." } });
    expect(fixups).toEqual(["error-event"]);
  });

  test("a reply that is passed through keeps an error of the upstream, as it is", () => {
    const error = frame({
      type: "error",
      error: { type: "overloaded_error", message: "Overloaded" },
      request_id: "req_1",
    });
    expect(passed([error])).toEqual({ out: [error], fixups: [] });
  });

  test("a full reply that is passed through has the asked model's name, its usage, and nothing of Copilot's", () => {
    const content = [{ type: "text", text: "Hi." }];
    const body = { type: "message", model: "claude-sonnet-4-20250514", content, copilot_usage: {} };
    const fixups: string[] = [];
    const onFixup = (name: string) => fixups.push(name);
    const usage = { input_tokens: 0, output_tokens: 0 };
    expect(passesFull(messages, body, asked, onFixup)).toEqual({
      type: "message",
      model: "asked-model",
      content,
      usage,
    });
    expect(fixups).toEqual(["copilot-fields", "usage-field", "model-name"]);
    const sound = { model: "asked-model", usage: {}, content };
    expect(passesFull(messages, sound, asked, onFixup)).toBe(sound);
  });
});

describe("what the upstream answers, in the hub", () => {
  const start = frame({
    type: "message_start",
    message: { id: "msg_1", model: "m", usage: { input_tokens: 5, output_tokens: 1 } },
  });
  const stop = [
    frame({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 7 } }),
    frame({ type: "message_stop" }),
  ];
  const blockOf = (content_block: JsonObject, ...deltas: JsonObject[]) => [
    frame({ type: "content_block_start", index: 0, content_block }),
    ...deltas.map((delta) => frame({ type: "content_block_delta", index: 0, delta })),
    frame({ type: "content_block_stop", index: 0 }),
  ];
  const between = (events: ReplyEvent[]) => events.filter(({ type }) => type.startsWith("block"));

  test("the usage at the end corrects the usage at the start, and includes cached tokens", () => {
    const usage = { input_tokens: 10, cache_read_input_tokens: 100, cache_creation_input_tokens: 20, output_tokens: 7 };
    const delta = frame({
      type: "message_delta",
      delta: { stop_reason: "end_turn" },
      usage,
      copilot_usage: { total_nano_aiu: 9 },
    });
    const told = decode([start, delta, stop[1]!]).filter(({ type }) => type === "usage");
    expect(told).toEqual([
      { type: "usage", usage: { input: 5 } },
      { type: "usage", usage: { input: 130, cachedInput: 100, cacheWrite: 20, output: 7, nanoCredits: 9 } },
    ]);
  });

  test("numbers that are none stay unknown", () => {
    const usage = { input_tokens: -5, output_tokens: "7", cache_read_input_tokens: null };
    const events = messages.decodeReply({ content: [], stop_reason: "end_turn", usage });
    expect(events).toContainEqual({ type: "usage", usage: {} });
  });

  test.each([
    ["end_turn", "stop"],
    ["pause_turn", "pause"],
    ["refusal", "refusal"],
    ["model_context_window_exceeded", "length"],
    ["quite_new", "stop"],
  ] as const)("%s is read as %s and its own word kept", (raw, reason) => {
    expect(messages.decodeReply({ content: [], stop_reason: raw }).at(-1)).toEqual({ type: "finish", reason, raw });
  });

  test("input that stands in the start of a call is not lost", () => {
    const call = { type: "tool_use", id: "a", name: "look", input: { at: 1 } };
    const expected = [
      { type: "block-start", block: { kind: "tool-call", id: "a", name: "look" } },
      { type: "block-delta", text: '{"at":1}' },
      { type: "block-end" },
    ];
    expect(between(decode([start, ...blockOf(call), ...stop]))).toEqual(expected as ReplyEvent[]);
    const delta = { type: "input_json_delta", partial_json: '{"at":2}' };
    expect(between(decode([start, ...blockOf(call, delta), ...stop]))[1]).toEqual({
      type: "block-delta",
      text: '{"at":2}',
    });
  });

  test("thinking without a proof has none", () => {
    const block = { type: "thinking", thinking: "", signature: "" };
    const events = decode([start, ...blockOf(block, { type: "thinking_delta", thinking: "Hm." }), ...stop]);
    expect(events).toContainEqual({ type: "block-end" });
    expect(messages.decodeReply({ content: [{ ...block, thinking: "Hm." }] })).toContainEqual({ type: "block-end" });
  });

  test("citations, redacted thinking and blocks of its own come through whole, full and streamed", () => {
    const citation = { type: "char_location", cited_text: "x" };
    const search = { type: "server_tool_use", id: "s", name: "tool_search", input: { query: "q" } };
    const content = [
      { type: "redacted_thinking", data: "ZGF0YQ==" },
      { type: "text", text: "Yes.", citations: [citation] },
      search,
    ];
    const body = {
      id: "msg_1",
      model: "m",
      content,
      stop_reason: "end_turn",
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    const expected = [
      { type: "block-start", block: { kind: "thinking" } },
      { type: "block-end", signature: { dialect: "messages", value: "ZGF0YQ==", redacted: true } },
      { type: "block-start", block: { kind: "text" } },
      { type: "block-delta", text: "Yes." },
      { type: "block-end", extras: { anthropic: { citations: [citation] } } },
      { type: "block-start", block: { kind: "foreign", dialect: "messages", value: search } },
      { type: "block-end" },
    ];
    const events = messages.decodeReply(body);
    expect(between(events)).toEqual(expected as ReplyEvent[]);
    expect(messages.encodeReply(events, conversation).content).toEqual(content);
    const frames = overWire(written(messages.encodeStream(conversation), events));
    checkMessagesStream(frames);
    expect(between(decode(frames))).toEqual(expected as ReplyEvent[]);
  });

  test.each<[string, SseFrame[], string]>([
    [
      "a piece of a call that was never begun",
      [start, frame({ type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: "{" } })],
      "upstream_bad_event",
    ],
    [
      "a piece of another block than the open one",
      [
        start,
        blockOf({ type: "text", text: "" })[0]!,
        frame({ type: "content_block_delta", index: 3, delta: { type: "text_delta", text: "x" } }),
      ],
      "upstream_bad_event",
    ],
    [
      "words inside a call",
      [
        start,
        blockOf({ type: "tool_use", id: "a", name: "b", input: {} })[0]!,
        frame({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "x" } }),
      ],
      "upstream_bad_event",
    ],
    ["an event that is no JSON", [start, { event: "ping", data: "{" }], "upstream_bad_event"],
    [
      "an error of Anthropic's",
      [start, frame({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } })],
      "overloaded_error",
    ],
    [
      "an error of Copilot's",
      [start, { data: '{"error":{"code":"rate_limited","message":"Slow down."}}' }],
      "rate_limited",
    ],
    ["an error without words", [{ data: '{"error":"x"}' }], "upstream_error"],
    ["an error without anything", [frame({ type: "error" })], "upstream_error"],
    ["an end without message_stop", [start, stop[0]!, { data: "[DONE]" }], "upstream_disconnected"],
    ["nothing at all", [], "upstream_disconnected"],
  ])("%s is an error", (_, frames, code) => {
    const events = decode(frames);
    expect(events.at(-1)).toMatchObject({ type: "error", code });
    expect(events.filter(({ type }) => type === "error" || type === "finish")).toHaveLength(1);
  });

  test("text without a start, indexes that are missing and names that stand in the data only are understood", () => {
    const bare = [
      { data: '{"type":"message_start","message":{"id":"msg_1","model":"m"}}' },
      { data: '{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi."}}' },
      { event: "message_stop", data: "{}" },
    ];
    expect(decode(bare).map(({ type }) => type)).toEqual([
      "start",
      "block-start",
      "block-delta",
      "block-end",
      "finish",
    ]);
  });

  test.each([[null], [5], ["<html>"], [[]], [{}], [{ content: 5 }]])(
    "a full reply that is none is an error: %p",
    (body) => {
      expect(messages.decodeReply(body)).toMatchObject([{ type: "error", code: "upstream_bad_reply" }]);
    },
  );
});

describe("what a client receives", () => {
  const told = (...events: ReplyEvent[]) => overWire(written(messages.encodeStream(conversation), events));
  const types = (frames: SseFrame[]) => frames.map(({ event }) => event);
  const start: ReplyEvent = { type: "start", id: "", model: "gpt" };
  const finish: ReplyEvent = { type: "finish", reason: "stop" };
  const call: ReplyEvent = { type: "block-start", block: { kind: "tool-call", id: "call_1", name: "look" } };
  const thinking: ReplyEvent = { type: "block-start", block: { kind: "thinking" } };
  const end: ReplyEvent = { type: "block-end" };

  test("another maker's proof is packed, and unpacked when it comes back", () => {
    const proof = { dialect: "responses", value: "ZW5j", id: "rs_1" } as const;
    const events: ReplyEvent[] = [
      start,
      thinking,
      { type: "block-delta", text: "Hm." },
      { type: "block-end", signature: proof },
      finish,
    ];
    const { content } = messages.encodeReply(events, conversation);
    expect(content).toEqual([{ type: "thinking", thinking: "Hm.", signature: "dragoman.responses.cnNfMQ.ZW5j" }]);
    const back = messages.decodeRequest({ model: "m", messages: [{ role: "assistant", content }] });
    expect(back.turns[0]?.parts).toEqual([{ kind: "thinking", text: "Hm.", signature: proof }]);
  });

  test("a proof without words survives as redacted thinking", () => {
    const proof = { dialect: "chat", value: "b3A=" } as const;
    const events: ReplyEvent[] = [start, thinking, { type: "block-end", signature: proof }, finish];
    const { content } = messages.encodeReply(events, conversation);
    expect(content).toEqual([{ type: "redacted_thinking", data: "dragoman.chat..b3A=" }]);
    const back = messages.decodeRequest({ model: "m", messages: [{ role: "assistant", content }] });
    expect(back.turns[0]?.parts).toEqual([{ kind: "thinking", text: "", signature: proof }]);
    const frames = told(...events);
    checkMessagesStream(frames);
    expect(jsonOf(frames[1]!)).toEqual({
      type: "content_block_start",
      index: 0,
      content_block: (content as JsonObject[])[0],
    });
  });

  test("thinking that is its own and unseen is thinking still", () => {
    const proof = { dialect: "messages", value: "c2ln" } as const;
    const frames = told(start, thinking, { type: "block-end", signature: proof }, finish);
    checkMessagesStream(frames);
    expect(decode(frames)).toContainEqual({ type: "block-end", signature: proof });
    expect(frames.map((each) => jsonOf(each))).toContainEqual({
      type: "content_block_start",
      index: 0,
      content_block: { type: "thinking", thinking: "", signature: "" },
    });
  });

  test("parts that only another dialect has are not sent", () => {
    const foreign: ReplyEvent = {
      type: "block-start",
      block: { kind: "foreign", dialect: "responses", value: { type: "web_search_call" } },
    };
    const frames = told(start, foreign, { type: "block-delta", text: "x" }, end, finish);
    expect(types(frames)).toEqual(["message_start", "message_delta", "message_stop"]);
    expect(messages.encodeReply([start, foreign, end, finish], conversation).content).toEqual([]);
  });

  test("empty blocks are not sent, and leave no gap in the indexes", () => {
    const text: ReplyEvent = { type: "block-start", block: { kind: "text" } };
    const frames = told(start, text, end, thinking, end, text, { type: "block-delta", text: "Hi." }, end, finish);
    checkMessagesStream(frames);
    expect(types(frames).filter((type) => type === "content_block_start")).toHaveLength(1);
  });

  test("a call without arguments has an empty object for them, and stops the reply for tools", () => {
    const frames = told(start, call, end, finish);
    checkMessagesStream(frames);
    expect(decode(frames)).toContainEqual({ type: "block-delta", text: "{}" });
    expect(decode(frames).at(-1)).toMatchObject({ reason: "tool-call" });
    expect(messages.encodeReply([start, call, end, finish], conversation)).toMatchObject({
      content: [{ type: "tool_use", id: "call_1", input: {} }],
      stop_reason: "tool_use",
    });
  });

  test("a freeform call that was not brought to function form is one text", () => {
    const freeform: ReplyEvent = {
      type: "block-start",
      block: { kind: "tool-call", id: "c", name: "patch", freeform: true },
    };
    const events: ReplyEvent[] = [
      start,
      freeform,
      { type: "block-delta", text: '*** "a"\n' },
      { type: "block-delta", text: "\ud83c" },
      { type: "block-delta", text: "\udf88" },
      end,
      finish,
    ];
    const frames = told(...events);
    checkMessagesStream(frames);
    const input = decode(frames)
      .flatMap((event) => (event.type === "block-delta" ? event.text : []))
      .join("");
    expect(JSON.parse(input)).toEqual({ input: '*** "a"\n🎈' });
  });

  test("a call that broke off has no end, words that broke off have one", () => {
    const error: ReplyEvent = { type: "error", ...cutReply };
    const half: ReplyEvent = { type: "block-delta", text: '{"a' };
    expect(types(told(start, call, half, end, error)).slice(-2)).toEqual(["content_block_delta", "error"]);
    const text: ReplyEvent = { type: "block-start", block: { kind: "text" } };
    const failed = written(messages.encodeStream(conversation), [start, text, half], (client, at) => {
      if (at === 2) client.fail({ type: "error", ...cutReply });
    });
    expect(types(failed).slice(-2)).toEqual(["content_block_stop", "error"]);
  });

  test("silence is filled with a ping, and nothing follows the end", () => {
    const frames = written(messages.encodeStream(conversation), [start, finish], (client) => client.keepAlive());
    expect(types(frames)).toEqual(["message_start", "ping", "message_delta", "message_stop"]);
  });

  test("numbers are Anthropic's: what the cache took stands beside the input, never below 0", () => {
    const usage: ReplyEvent = { type: "usage", usage: { input: 100, cachedInput: 90, cacheWrite: 20, output: 3 } };
    expect(messages.encodeReply([start, usage, finish], conversation).usage).toMatchObject({
      input_tokens: 0,
      cache_creation_input_tokens: 20,
      cache_read_input_tokens: 90,
      output_tokens: 3,
    });
  });

  test("its own word for the reason is kept", () => {
    const ended = (raw: string) =>
      messages.encodeReply([start, { type: "finish", reason: "length", raw }], conversation).stop_reason;
    expect(ended("model_context_window_exceeded")).toBe("model_context_window_exceeded");
    expect(ended("max_output_tokens")).toBe("max_tokens");
  });

  test.each([
    ["upstream_disconnected", "api_error"],
    ["upstream_timeout", "timeout_error"],
    ["model_overloaded", "overloaded_error"],
    ["user_model_rate_limited", "rate_limit_error"],
    ["invalid_request_error", "invalid_request_error"],
  ])("a broken stream of code %s ends in %s", (code, type) => {
    const frames = told(start, { type: "error", code, message: "No." });
    expect(jsonOf(frames.at(-1)!)).toEqual({ type: "error", error: { type, message: "No." } });
    expect(types(frames)).not.toContain("message_stop");
  });

  test("an error has Anthropic's form, whatever its kind", () => {
    for (const kind of Object.keys(kinds) as (keyof typeof kinds)[])
      expect(messages.encodeError(new ProxyError(kind, "No."), "req_1")).toEqual({
        type: "error",
        error: { type: kinds[kind].anthropic, message: "No." },
        request_id: "req_1",
      });
    expect(messages.encodeError(new ProxyError("upstream", "No.", { status: 529 }), "r")).toMatchObject({
      error: { type: "overloaded_error" },
    });
  });

  test("the error for a long prompt has the form that makes clients compact it", () => {
    const error = new ProxyError("invalid_request", "prompt token count of 130000 exceeds the limit of 128000");
    expect(messages.encodeError(error, "r")).toMatchObject({
      error: { message: "prompt is too long: 130000 tokens > 128000 maximum" },
    });
  });
});

const cacheControl = fc.constantFrom(
  undefined,
  undefined,
  { type: "ephemeral" },
  { type: "ephemeral", ttl: "1h" },
  { type: "ephemeral", scope: "global" },
);
const key = fc.constantFrom("x", "y.z", "__proto__", "constructor", "größe", "citations", "n");
const unknowns = fc.dictionary(key, fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2, noNullPrototype: true });
const words = fc.constantFrom("", " ", "one", "two\n", "größe 字 🎈", "\ud800");
const ids = fc.constantFrom("t1", "t2", "t3", "functions.x:0");
const input = fc.dictionary(fc.constantFrom("a", "b", "__proto__"), fc.jsonValue({ maxDepth: 1 }), {
  maxKeys: 2,
  noNullPrototype: true,
});

const block = (fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<JsonObject> =>
  fc.tuple(fc.record(fields), cacheControl, unknowns).map(([known, cache_control, unknown]) => {
    const all: JsonObject = { ...unknown, ...known };
    if (cache_control) all.cache_control = cache_control;
    for (const name of Object.keys(all)) if (all[name] === undefined) delete all[name];
    return all;
  });
const is = <T>(value: T) => fc.constant(value);

const text = block({ type: is("text"), text: words }).map((each) => {
  // Where the mark of a blank text goes depends on how turns are cut; it has a folder of its own.
  if (!String(each.text).trim()) delete each.cache_control;
  return each;
});
const image = block({
  type: is("image"),
  source: fc.constantFrom<JsonObject>(
    { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" },
    { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=", detail: 1 },
    { type: "url", url: "https://example.com/a.png" },
    { type: "file", file_id: "f" },
  ),
});
const document = block({
  type: is("document"),
  title: fc.constantFrom(undefined, "A title"),
  source: fc.constantFrom<JsonObject>(
    { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
    { type: "text", media_type: "text/plain", data: "plain" },
    { type: "url", url: "https://example.com/a.pdf" },
    { type: "content", content: [] },
  ),
});
const thinking = fc.oneof(
  block({
    type: is("thinking"),
    thinking: words,
    signature: fc.constantFrom("", "c2ln", "a@b", "dragoman.chat..b3A", undefined),
  }),
  block({ type: is("redacted_thinking"), data: fc.constantFrom("ZGF0YQ==", "dragoman.responses.cnM.ZW5j") }),
);
const toolUse = block({ type: is("tool_use"), id: ids, name: fc.constantFrom("look", "seek"), input });
const strange = block({ type: fc.constantFrom("search_result", "constructor", "container_upload"), text: words });
const reference = block({ type: is("tool_reference"), tool_name: fc.constantFrom("look", "gone") });
const toolResult = block({
  type: is("tool_result"),
  tool_use_id: ids,
  content: fc.oneof(words, fc.array(fc.oneof(text, image, strange, reference), { maxLength: 3 }), is(undefined)),
  is_error: fc.constantFrom(undefined, true),
});

const content = (...kinds: fc.Arbitrary<JsonObject>[]) =>
  fc.oneof(words, fc.array(fc.oneof(...kinds), { maxLength: 4 }) as fc.Arbitrary<unknown>);
const message = fc.oneof(
  fc.record({ role: is("user"), content: content(text, image, document, toolResult, toolResult, strange) }),
  fc.record({ role: is("assistant"), content: content(text, thinking, toolUse, toolUse, strange) }),
  fc.record({ role: is("system"), content: content(text), output_config: is({ effort: "low" }) }),
);
const tool = fc.oneof(
  block({
    name: fc.constantFrom("look", "seek"),
    description: fc.constantFrom(undefined, "Looks."),
    input_schema: fc.constantFrom<unknown>({ type: "object" }, { $schema: "x", properties: {} }, undefined),
    eager_input_streaming: fc.constantFrom(undefined, true),
    defer_loading: fc.constantFrom(undefined, true),
    strict: fc.constantFrom(undefined, true),
  }),
  is<JsonObject>({ type: "tool_search_tool_regex_20251119", name: "tool_search_tool_regex" }),
);

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const request: fc.Arbitrary<JsonObject> = fc
  .tuple(
    fc.record({
      model: is("claude"),
      messages: fc.array(message, { minLength: 1, maxLength: 6 }),
      system: maybe(content(text)),
      max_tokens: maybe(fc.constantFrom(1, 1500, 4096, 64_000)),
      tools: maybe(fc.array(tool, { maxLength: 3 })),
      tool_choice: maybe(
        fc.constantFrom<JsonObject>(
          { type: "auto" },
          { type: "any", disable_parallel_tool_use: true },
          { type: "tool", name: "look" },
          { type: "none" },
          { type: "auto", later: 1 },
          { type: "quite new" },
        ),
      ),
      thinking: maybe(
        fc.constantFrom<JsonObject>(
          { type: "enabled", budget_tokens: 2000 },
          { type: "enabled", budget_tokens: 31_999, display: "omitted" },
          { type: "adaptive" },
          { type: "adaptive", display: "summarized" },
          { type: "disabled" },
          { type: "quite new", much: true },
        ),
      ),
      output_config: maybe(
        fc.constantFrom<JsonObject>(
          { effort: "high" },
          { effort: "max", task_budget: { type: "tokens", total: 1 } },
          { format: { type: "json_schema", schema: { type: "object" } } },
          { format: { type: "json_schema", schema: {}, later: 1 } },
          { format: { type: "quite new" }, effort: "low" },
        ),
      ),
      temperature: maybe(fc.constantFrom(0, 0.2, 1)),
      top_p: maybe(fc.constantFrom(0.5, 0.99)),
      top_k: maybe(is(5)),
      stop_sequences: maybe(is(["END"])),
      stream: maybe(fc.boolean()),
      metadata: maybe(is({ user_id: "me" })),
      context_management: maybe(is({ edits: [] })),
      cache_control: maybe(is({ type: "ephemeral" })),
      service_tier: maybe(is("auto")),
    }),
    unknowns,
  )
  .map(([known, unknown]) => {
    const all: JsonObject = { ...unknown, ...known };
    for (const name of Object.keys(all)) if (all[name] === undefined) delete all[name];
    return all;
  });

const models = fc.constantFrom(
  facts,
  { ...facts, supports: { ...facts.supports, adaptiveThinking: false, efforts: [] } },
  { ...facts, supports: { ...facts.supports, thinkingBudget: undefined } },
  { ...facts, supports: { ...facts.supports, thinkingBudget: undefined, systemTurns: true, eagerInput: true } },
  { ...facts, supports: { ...facts.supports, thinkingBudget: undefined, alwaysThinks: true, noForcedCalls: true } },
  {
    ...facts,
    limits: {},
    supports: { ...facts.supports, adaptiveThinking: false, thinkingBudget: undefined, structuredOutputs: false },
  },
);
