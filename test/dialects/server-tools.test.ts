/** Rows: tools that run while the model answers, in the hub: what the model sees of them, and what its text cites. */
import { expect, test } from "bun:test";
import { codecs } from "../../src/dialects/codecs";
import type { Part, Turn } from "../../src/dialects/hub/conversation";
import { continueConversation, offerFunctions } from "../../src/dialects/hub/server-offers";
import { asFunctionCalls } from "../../src/dialects/hub/server-turns";
import { citationsIn } from "../../src/proxy/server-tools/citations";
import { adapt } from "../support/adapt";
import { ableModel } from "../support/facts";
import type { Json } from "../support/json";

const page = (url: string, title = "A") => ({ url, title, text: "Words." });
const call = (id: string): Part => ({ kind: "server-call", id, tool: "web-search", input: { query: id } });
const found = (id: string, ...urls: string[]): Part => ({
  kind: "server-result",
  id,
  tool: "web-search",
  output: { kind: "pages", pages: urls.map((url) => page(url)) },
});
const text = (words: string): Part => ({ kind: "text", text: words });

const one = "https://a.example/x";
const cited = (words: string, ...urls: string[]) =>
  citationsIn(
    words,
    urls.map((url) => page(url)),
  ).map(({ start, end }) => words.slice(start, end));

test.each([
  [`See ${one}.`, [one]],
  [`See [the page](${one}), and more.`, [`[the page](${one})`]],
  [`See ([a.example](${one})).`, [`[a.example](${one})`]],
  [`[1] [the [page](${one})`, [`[the [page](${one})`]],
  [`[the\npage](${one})`, [one]],
  [`[the] page](${one})`, [one]],
  [`(${one})`, [one]],
  [`${one} and ${one}?`, [one, one]],
  [`${one}/y and ${one}?z=1 are others.`, []],
  [`${one}\n`, [one]],
  ["Nothing.", []],
])("the links to an address are found in the text %s", (words, expected) => {
  expect(cited(words, one)).toEqual(expected);
});

test("citations come in the order of the text, each once", () => {
  const other = "https://b.example/";
  expect(cited(`[b](${other}) then ${one}`, one, other, one)).toEqual([`[b](${other})`, one]);
  expect(citationsIn(`${one} ${other}`, [{ url: other, title: "B" }, page(one)])).toEqual([
    { url: one, title: "A", start: 0, end: 19, quote: "Words." },
    { url: other, title: "B", start: 20, end: 38, quote: "" },
  ]);
});

test("a result ends the assistant's turn, and what follows begins another", () => {
  const turn: Turn = {
    role: "assistant",
    parts: [
      text("I look."),
      call("1"),
      { ...call("2"), cache: true },
      found("1", "https://a"),
      { ...found("2"), cache: true },
      text("It is red."),
    ],
  };
  const turns = asFunctionCalls([{ role: "user", parts: [text("Hi")] }, turn]);
  expect(turns.map(({ role, parts }) => [role, parts.map(({ kind }) => kind)])).toEqual([
    ["user", ["text"]],
    ["assistant", ["text", "tool-call", "tool-call"]],
    ["user", ["tool-result", "tool-result"]],
    ["assistant", ["text"]],
  ]);
  expect(turns[2]!.parts[1]).toMatchObject({ id: "2", parts: [text("No page was found.")] });
  const marks = turns.map(({ parts }) => parts.map((part) => "cache" in part && part.cache));
  expect(marks).toEqual([[false], [false, false, true], [false, true], [false]]);
});

test("the model sees the client's tools unchanged when no server tool is offered", () => {
  const turns: Turn[] = [{ role: "user", parts: [text("Hi")] }];
  expect(asFunctionCalls(turns)).toBe(turns);
});

test("an error says what to do, and is marked as one", () => {
  const failed: Part = {
    kind: "server-result",
    id: "1",
    tool: "web-search",
    output: { kind: "error", code: "max_uses_exceeded" },
  };
  const [, { parts } = { parts: [] }] = asFunctionCalls([{ role: "assistant", parts: [call("1"), failed] }]);
  expect(parts).toMatchObject([{ kind: "tool-result", failed: true, parts: [{ kind: "text" }] }]);
  expect(JSON.stringify(parts)).toContain("Answer with what is known");
});

test("pages that another service has sealed have their titles and addresses only", () => {
  const { turns } = codecs.messages.decodeRequest({
    model: "m",
    max_tokens: 1,
    messages: [
      { role: "user", content: "Hi" },
      {
        role: "assistant",
        content: [
          { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } },
          {
            type: "web_search_tool_result",
            tool_use_id: "srvtoolu_1",
            content: [
              { type: "web_search_result", url: "https://a", title: "A", encrypted_content: "Eqg…", page_age: null },
            ],
          },
          { type: "text", text: "Done.", citations: [{ type: "web_search_result_location", url: "https://a" }] },
        ],
      },
    ],
  });
  const shown = JSON.stringify(asFunctionCalls(turns));
  expect(shown).toContain("1. A\\nhttps://a");
  expect(shown).not.toContain("Eqg");
});

test("a search of the upstream's own stays for its dialect, and is a call for others", () => {
  const item = { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "x" } };
  const input = [{ role: "user", content: "Hi" }, item, { role: "assistant", content: "It is red." }];
  const conversation = codecs.responses.decodeRequest({ model: "m", input });
  const kindsFor = (target: "responses" | "messages") =>
    adapt(conversation, target).conversation.turns.flatMap(({ parts }) => parts.map(({ kind }) => kind));
  expect(kindsFor("responses")).toEqual(["text", "foreign", "text"]);
  expect(kindsFor("messages")).toEqual(["text", "tool-call", "tool-result", "text"]);
});

const form = () => ({ description: "Searches.", schema: { type: "object" } });
const offered = (body: Json) =>
  offerFunctions(codecs.responses.decodeRequest({ model: "m", input: "Hi", ...body }), form)!;
const f = { type: "function", name: "f", parameters: { type: "object" } };
const search = { type: "web_search" };

test("a choice of the tool is a choice of the function", () => {
  expect(offered({ tools: [search], tool_choice: search }).conversation).toMatchObject({
    toolChoice: { name: "web_search" },
    tools: [{ kind: "function", name: "web_search" }],
  });
  const allowed = { type: "allowed_tools", mode: "auto", tools: [search, { type: "function", name: "f" }] };
  const { conversation } = offered({ tools: [search, f], tool_choice: allowed });
  expect(conversation.allowedTools).toEqual(["web_search", "f"]);
  expect(codecs.messages.encodeRequest(conversation, ableModel("claude-sonnet-4.6", "Anthropic")).tools).toHaveLength(
    2,
  );
});

test("a client's function of the same name stays, and the tool is left alone", () => {
  const own = { type: "function", name: "web_search", parameters: { type: "object" } };
  expect(offered({ tools: [search, own] })).toBeUndefined();
});

test("two versions of a tool are one function", () => {
  const { conversation } = offered({ tools: [search, { type: "web_search_preview" }, f] });
  expect(conversation.tools.map((tool) => tool.kind === "function" && tool.name)).toEqual(["web_search", "f"]);
});

test("the next answer is not forced, and ends without the function when it may not be called", () => {
  const forced = offered({ tools: [search, f], tool_choice: search });
  const said: Turn[] = [{ role: "assistant", parts: [call("1"), found("1")] }];
  expect(continueConversation(forced, said, () => true)).toMatchObject({
    tools: [{ name: "web_search" }, { name: "f" }],
  });
  expect(continueConversation(forced, said, () => true)).not.toHaveProperty("toolChoice");
  expect(continueConversation(forced, said, () => false).tools).toMatchObject([{ name: "f" }]);
  expect(continueConversation(offered({ tools: [search] }), said, () => false)).toMatchObject({ toolChoice: "none" });
  expect(
    continueConversation(
      offered({ tools: [search, f], tool_choice: { type: "function", name: "f" } }),
      said,
      () => true,
    ),
  ).toMatchObject({
    toolChoice: { name: "f" },
  });
});
