/**
 * Scenario: items that a client of the Responses API names by their ids: known again for an hour, to the key that was
 * given them.
 */

import { heapStats } from "bun:jsc";
import { afterAll, describe, expect, test } from "bun:test";
import { RecentItems } from "../../../src/proxy/recent-items";
import type { Json } from "../../support/json";
import { startProxy } from "../../support/proxy";

const keys = ["a-key-of-laptop-0123", "a-key-of-desktop-0123"];
let at = Date.now();
const now = () => at;
const proxy = await startProxy({
  clock: { now },
  config: {
    auth: {
      apiKeys: [
        { name: "laptop", key: keys[0] },
        { name: "desktop", key: keys[1] },
      ],
    },
  },
});
afterAll(() => proxy[Symbol.asyncDispose]());

async function post(body: object, key = keys[0]!): Promise<{ status: number; items: Json[]; error?: Json }> {
  const response = await proxy.post("/v1/responses", body, { headers: { "x-api-key": key } });
  const text = await response.text();
  if (!/event-stream/.test(response.headers.get("content-type") ?? "")) {
    const { output = [], error } = JSON.parse(text);
    return { status: response.status, items: output, error };
  }
  const events = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => JSON.parse(json!));
  const items = events.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item);
  return { status: response.status, items };
}

const user = (text: string) => ({ role: "user", content: [{ type: "input_text", text }] });
const tools = [{ type: "function", name: "get_weather", parameters: { type: "object", properties: {} } }];
const references = (items: Json[]) => items.map(({ id }) => ({ type: "item_reference", id }));
const sent = () => JSON.stringify(proxy.demo.journal.at(-1)!.body);

describe.each(["gpt-5.3-codex", "claude-sonnet-4.6", "gemini-3.1-pro-preview"])("%s", (model) => {
  test.each([true, false])("a call and its words are sent in place of their ids, streamed: %p", async (stream) => {
    const asked = user("Please call get_weather.");
    const first = await post({ model, input: [asked], tools, stream });
    const call = first.items.find(({ type }) => type === "function_call");
    const result = { type: "function_call_output", call_id: call.call_id, output: "18 degrees" };
    const second = await post({ model, input: [asked, ...references(first.items), result], tools, stream });
    expect([second.status, second.error ?? null]).toEqual([200, null]);
    expect(sent()).toContain("get_weather");
    expect(sent()).toContain("18 degrees");
    expect(JSON.stringify(second.items)).toContain("18 degrees");
    expect(proxy.rows(1)[0]).toMatchObject({ http_status: 200, fixups: expect.stringContaining("items-restored") });

    // As if the client had sent them itself.
    await post({ model, input: [asked, ...first.items, result], tools, stream, store: false });
    const whole = sent();
    await post({ model, input: [asked, ...references(first.items), result], tools, stream, store: false });
    expect(sent()).toBe(whole);
  });

  test("reasoning comes back where it can be read again", async () => {
    const input = [user("Think, then say hello.")];
    const first = await post({ model, input, reasoning: { effort: "medium", summary: "auto" } });
    const reasoning = first.items.find(({ type }) => type === "reasoning");
    const more = [...input, ...references(first.items), user("Again.")];
    expect((await post({ model, input: more })).status).toBe(200);
    const signed = reasoning.encrypted_content as string;
    const place = { gpt: signed, claude: '"signature":"', gemini: '"reasoning_opaque":"' }[model.split("-")[0]!]!;
    expect(sent()).toContain(place);
  });
});

const model = "gpt-5.3-codex";
const hello = { model, input: [user("Say hello.")] };
const again = (items: Json[]) => ({ model, input: [user("Hi."), ...references(items), user("Again.")] });

test("another key, a client that sends its items itself, and an hour later: the reference is refused", async () => {
  const { items } = await post(hello);
  expect((await post(again(items))).status).toBe(200);
  const own = await post({ ...hello, store: false });
  const before = proxy.demo.journal.length;
  const refused = [400, { param: "input[1]", code: "item_not_found" }];
  for (const [body, key] of [
    [again(items), keys[1]],
    [again(own.items), keys[0]],
  ] as const) {
    const { status, error } = await post(body, key);
    expect([status, error]).toMatchObject(refused);
    expect(error.message).toContain("`store: false`");
  }
  at += 60 * 60_000 - 1_000;
  expect((await post(again(items))).status).toBe(200);
  at += 2_000;
  const late = await post(again(items));
  expect([late.status, late.error]).toMatchObject(refused);
  expect(proxy.demo.journal.length).toBe(before + 1);
});

test("nothing of an item is in a file", async () => {
  const { items } = await post({ model, input: [user("Say hello to xylophone-canary.")] });
  expect(items.length).toBeGreaterThan(0);
  proxy.rows();
  const files = [...new Bun.Glob("**/*").scanSync({ cwd: proxy.home, dot: true })];
  expect(files.length).toBeGreaterThan(1);
  for (const file of files) {
    const bytes = await Bun.file(`${proxy.home}/${file}`).text();
    for (const secret of ["xylophone-canary", items[0].id]) expect(bytes.includes(secret)).toBe(false);
  }
});

test("items take so many bytes at most: the oldest go first, and a huge one is not kept", () => {
  const recent = new RecentItems(() => 0);
  const item = (id: string, bytes: number) => ({ id, text: "x".repeat(bytes) });
  for (let count = 0; count < 40; count++) recent.keep("me", item(`${count}`, 1_000_000));
  const known = Array.from({ length: 40 }, (_, count) => recent.find("me", `${count}`) !== undefined);
  expect([known.indexOf(true), known.lastIndexOf(false)]).toEqual([7, 6]);
  recent.keep("me", item("huge", 5_000_000));
  expect(recent.find("me", "huge")).toBeUndefined();
  expect(recent.find("me", "39")).toEqual(item("39", 1_000_000));
  expect(recent.find("you", "39")).toBeUndefined();
});

test("items that are small take what is beside them, too, and letters of several bytes no more than those", () => {
  const sizeOf = (text: string, count: number) => {
    const recent = new RecentItems(() => 0);
    Bun.gc(true);
    const before = heapStats();
    for (let at = 0; at < count; at++) recent.keep("me", { id: `msg_${at}`, text });
    Bun.gc(true);
    const after = heapStats();
    expect(recent.find("me", `msg_${count - 1}`)).toBeDefined();
    return after.heapSize + after.extraMemorySize - before.heapSize - before.extraMemorySize;
  };
  for (const [text, count] of [["", 200_000] as const, ["Hello 👋 ".repeat(100), 60_000] as const])
    expect(sizeOf(text, count) / 2 ** 20).toBeLessThan(64);
});
