/** Rows: a promise in time: a search of tools holds the thread that serves everybody for less than 50 ms. */
import { expect, test } from "bun:test";
import { searchTools } from "../../../src/proxy/server-tools/tool-search";
import { hostileTexts, longestHeld, mostHeldMs } from "../../support/held";
import { leastOf } from "../../support/least";

const mebibyte = 1024 * 1024;
const texts = Object.entries(hostileTexts);
const heldBy = (work: () => Promise<unknown>) => leastOf(mostHeldMs, () => longestHeld(work));

const among = Array.from({ length: 300 }, (_, at) => ({ name: `tool_${at}`, description: "é".repeat(1_000) }));
const find = (query: string, how: "words" | "regex", tools = among) =>
  searchTools(
    { signal: new AbortController().signal },
    { id: "1", tool: "tool-search", input: { query } },
    { tool: "tool-search", candidates: tools },
    how,
  );

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
