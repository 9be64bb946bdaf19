/** A promise in time: a page of the web, and a search of tools, hold the thread that serves everybody for less than 50 ms. */
import { afterAll, expect, test } from "bun:test";
import type { Turn } from "../../../src/dialects/hub/conversation";
import { searchTools } from "../../../src/server-tools/tool-search";
import { runWebFetch } from "../../../src/server-tools/web-fetch";
import { hostileTexts, longestHeld, mostHeldMs } from "../../support/held";
import { leastOf } from "../../support/least";

const mebibyte = 1024 * 1024;
const texts = Object.entries(hostileTexts);
const heldBy = (work: () => Promise<unknown>) => leastOf(mostHeldMs, () => longestHeld(work));

let page: { body: Uint8Array | string; type: string };
const web = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: () => new Response(page.body as Uint8Array<ArrayBuffer>, { headers: { "content-type": page.type } }),
});
afterAll(() => web.stop(true));
const address = `http://site.example:${web.port}`;

function fetched(text: string) {
  const turn: Turn = { role: "user", parts: [{ kind: "text", text }] };
  return runWebFetch(
    { parts: { now: Date.now }, signal: new AbortController().signal, turns: () => [turn] },
    { id: "1", tool: "web-fetch", input: { url: `${address}/a` } },
    { tool: "web-fetch" },
    { resolve: async () => ["127.0.0.1"], permits: () => true },
  );
}

test.each(texts)(
  "the search for an address among 1 MB of %s holds the thread for less than 50 ms",
  async (_name, make) => {
    page = { body: "Words.", type: "text/plain" };
    await fetched(`${address}/a`);
    const said = `${make(mebibyte)} ${make(5_000).replaceAll("http://x", `${address}/`)} ${address}/a`;
    expect(
      await heldBy(async () => expect(await fetched(said)).toMatchObject({ document: { text: "Words." } })),
    ).toBeLessThan(mostHeldMs);
  },
);

test.each(texts)("a fetched page of 1 MB of %s holds the thread for less than 50 ms", async (_name, make) => {
  page = { body: Buffer.from(make(mebibyte)).subarray(0, mebibyte), type: "text/html" };
  expect(await heldBy(() => fetched(`${address}/a`))).toBeLessThan(mostHeldMs);
});

const among = Array.from({ length: 300 }, (_, at) => ({ name: `tool_${at}`, description: "é".repeat(1_000) }));
const find = (query: string, how: "words" | "regex", tools = among) =>
  searchTools({ id: "1", tool: "tool-search", input: { query } }, { tool: "tool-search", candidates: tools }, how);

test("a search of tools by a pattern that would take half a minute, and is given up", async () => {
  await find("warm", "regex");
  const search = async () => {
    for (const result of await Promise.all(Array.from({ length: 3 }, () => find("[\\p{L}]{1000}é", "regex"))))
      expect(result).toEqual({ kind: "error", code: "unavailable" });
  };
  expect(await heldBy(search)).toBeLessThan(mostHeldMs);
});

test.each(texts)("a search of a tool with a description of 1 MB of %s", async (_name, make) => {
  const tools = [{ name: "a", description: make(mebibyte) }];
  for (const how of ["words", "regex"] as const)
    expect(await heldBy(() => find(make(200), how, tools))).toBeLessThan(mostHeldMs);
});
