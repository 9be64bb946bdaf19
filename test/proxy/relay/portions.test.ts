/**
 * Scenario: what a row says its prompt was made of, what a project and its bill have, and what routes saved; from
 * `fixtures/scenes/portions.txt`. Tokens add up to the upstream's count.
 */
import { expect, test } from "bun:test";
import { endedPrompt } from "../../../src/proxy/relay/portions";
import { measurePrompt } from "../../../src/proxy/tokens/measured-prompt";
import { CacheWatch } from "../../../src/proxy/upstream/cache-watch";
import { testScenes } from "../../support/scenes";

testScenes("portions");

test("what the dearer rate of a long prompt added is a part of its cost, with the discount of the whole", () => {
  const usual = { input: 3, output: 15, cachedInput: 0.3, cacheWrite: undefined, cacheWriteHour: undefined };
  const price = {
    premium: true,
    tokens: { ...usual, per: 1 },
    long: { ...usual, input: 6, output: 30, cachedInput: 0.6, above: 1_000 },
  };
  const measured = measurePrompt(
    { tools: undefined, messages: [{ by: "user", content: "Hello." }] },
    new Uint8Array(),
    undefined,
  );
  const surchargeOf = (input: number, charged: number) => {
    const cost = { unit: "credits", amount: charged } as const;
    const prompt = { address: "prompt", measured } as const;
    const usage = { input, output: 10, cachedInput: 0, nanoCredits: charged };
    const { portions } = endedPrompt(new CacheWatch(() => 0), { prompt, usage, price, cost, turn: undefined });
    return portions!.find(({ kind }) => kind === "surcharge")?.cost;
  };
  // At the dearer rate 2,000 × 6 + 10 × 30, at the usual one half of that; here 10 % less was charged.
  expect(surchargeOf(2_000, 0.9 * 12_300e9)).toBe((0.9 * 12_300e9) / 2);
  expect(surchargeOf(1_000, 3_150e9)).toBeUndefined();
});

test("a call's input counts by the length of its JSON", () => {
  const input = {
    ...Object.fromEntries([..."abcdefgh ".repeat(5)].map((_, at) => [`key${at}`, ""])),
    edits: [{ old: "a", new: null }],
  };
  const content = [{ type: "tool_use", id: "t", name: "Edit", input }];
  const { groups, runs } = measurePrompt(
    { tools: undefined, messages: [{ by: "model", content, item: { role: "assistant", content } }] },
    new Uint8Array(),
    undefined,
  );
  expect(groups).toMatchObject([{ kind: "calls", count: 1 }]);
  const [, bytes] = runs;
  expect(bytes! / JSON.stringify(input).length).toBeWithin(0.95, 1.05);
});

test.each([
  ["messages", (data: string) => ({ type: "image", source: { type: "base64", media_type: "image/png", data } })],
  ["messages, by its address", (url: string) => ({ type: "image", source: { type: "url", url } })],
  ["messages, a file", (data: string) => ({ type: "document", source: { type: "base64", data } })],
  ["chat", (url: string) => ({ type: "image_url", image_url: { url } })],
  ["chat, a file", (file_data: string) => ({ type: "file", file: { filename: "a.pdf", file_data } })],
  ["chat, a sound", (data: string) => ({ type: "input_audio", input_audio: { format: "wav", data } })],
  ["responses", (image_url: string) => ({ type: "input_image", image_url })],
  ["responses, a file", (file_data: string) => ({ type: "input_file", filename: "a.pdf", file_data })],
  ["responses, a file by its address", (file_url: string) => ({ type: "input_file", file_url })],
  ["responses, a picture by its id", (file_id: string) => ({ type: "input_image", file_id })],
  ["gemini, a file by its address", (fileUri: string) => ({ fileData: { mimeType: "application/pdf", fileUri } })],
  ["gemini", (data: string) => ({ inlineData: { mimeType: "image/png", data } })],
  ["gemini, in the names of its other SDKs", (data: string) => ({ inline_data: { mime_type: "image/png", data } })],
])("a picture or file counts as what it is, and is told from another one: %s", (_, part) => {
  const measured = (data: string) => {
    const content = [part(data)];
    const message = { by: "user", content, item: { role: "user", content } } as const;
    return measurePrompt({ tools: undefined, messages: [message] }, new Uint8Array(), undefined);
  };
  const [one, same, other] = [measured("iVBORw0KGgo="), measured("iVBORw0KGgo="), measured("JVBERi0xLjQK")];
  expect(one.groups).toMatchObject([{ kind: expect.stringMatching(/^(?:images|files)$/), count: 1 }]);
  expect(same).toEqual(one);
  expect(other).not.toEqual(one);
});
