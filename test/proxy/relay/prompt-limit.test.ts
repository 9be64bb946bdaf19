/**
 * Rows: a long prompt that cannot be counted in time is sent, and its row says that nobody compared it with the limit.
 */
import { expect, test } from "bun:test";
import type { Scope } from "../../../src/parts/app";
import { countIfLong } from "../../../src/proxy/relay/prompt-limit";
import type { Prompt } from "../../../src/proxy/tokens/token-counts";
import type { Model } from "../../../src/proxy/upstream/models/model";

const model = { id: "gpt-5.4" } as Model;
const prompt: Prompt = { conversation: () => ({ model: model.id, stream: false, turns: [], tools: [] }) } as never;
const logger = { debug: () => {} } as unknown as Scope["logger"];

async function fixupsOf(count: () => Promise<unknown>, bytes: number): Promise<string[]> {
  const fixups: string[] = [];
  const book = { addFixup: (name: string) => void fixups.push(name) };
  const tokenCounts = { want: () => {}, count } as unknown as Scope["tokenCounts"];
  await countIfLong({ tokenCounts, logger }, { prompt, book }, model, bytes, 1000);
  return fixups;
}

test("a count that takes too long or fails is noted, one that comes is not, and a short prompt needs none", async () => {
  const long = 1_000_000;
  expect(await fixupsOf(() => new Promise(() => {}), long)).toEqual(["prompt-uncounted"]);
  expect(await fixupsOf(() => Promise.reject(new Error("broken")), long)).toEqual(["prompt-uncounted"]);
  expect(await fixupsOf(async () => ({ tokens: 9, atLeast: 9 }), long)).toEqual([]);
  expect(await fixupsOf(() => new Promise(() => {}), 10)).toEqual([]);
});
