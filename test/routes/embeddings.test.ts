/** Scenario: embeddings, as OpenAI's package asks for them; `fixtures/scenes/budgets.txt` has what their batches count for. */
import { afterAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { startProxy } from "../support/proxy";

const model = "text-embedding-3-small";

const proxy = await startProxy();
const client = new OpenAI({ baseURL: `${proxy.url}/v1`, apiKey: "unused", maxRetries: 0 });
afterAll(() => proxy[Symbol.asyncDispose]());

describe("embeddings", () => {
  test("one text is embedded with the package's defaults, which ask for base64", async () => {
    const { data, usage, model: told } = await client.embeddings.create({ model, input: "hello" });
    expect(data).toHaveLength(1);
    expect(data[0]!.embedding).toHaveLength(1536);
    expect(data[0]!.embedding.every(Number.isFinite)).toBe(true);
    expect(usage.prompt_tokens).toBeGreaterThan(0);
    expect(told).toBe(model);
    expect(proxy.demo.journal.at(-1)!.body).toEqual({ model, input: ["hello"] });
  });

  test("embeddings as base64 and as floats are the same numbers", async () => {
    const floats = await client.embeddings.create({
      model,
      input: ["a", "b"],
      encoding_format: "float",
      dimensions: 8,
    });
    const packed = await client.embeddings.create({ model, input: ["a", "b"], dimensions: 8 });
    expect(floats.data.map(({ index }) => index)).toEqual([0, 1]);
    for (const [index, { embedding }] of floats.data.entries())
      for (const [position, value] of embedding.entries())
        expect(packed.data[index]!.embedding[position]!).toBeCloseTo(value, 5);
  });

  test("embeddings of more texts than one call takes keep their order and add up their usage", async () => {
    const input = Array.from({ length: 1100 }, (_, index) => `text ${index}`);
    const before = proxy.demo.journal.length;
    const many = await client.embeddings.create({ model, input, encoding_format: "float", dimensions: 4 });
    expect(proxy.demo.journal.length - before).toBe(3);
    const [, alone] = (
      await client.embeddings.create({ model, input: ["x", input[1090]!], encoding_format: "float", dimensions: 4 })
    ).data;
    expect(many.data[1090]!.embedding).toEqual(alone!.embedding);
    expect(many.usage.prompt_tokens).toBeGreaterThan(1100);
    expect(proxy.rows()[1]!.input_tokens).toBe(many.usage.prompt_tokens);
  });
});
