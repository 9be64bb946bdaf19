/** Scenario: embeddings, as OpenAI's package asks for them. */
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

  test("whose second batch failed count as far as they were served, in the row and in the budgets", async () => {
    const budgets = [{ name: "All", unit: "requests", limit: 9, per: "day" }];
    await using limited = await startProxy({ config: { budgets } });
    let batches = 0;
    limited.demo.intercept("/embeddings", () => (++batches === 2 ? new Response("{}", { status: 429 }) : undefined), 2);
    const input = Array.from({ length: 600 }, (_, index) => `text ${index}`);
    expect((await limited.post("/v1/embeddings", { model, input })).status).toBe(429);
    expect(limited.rows()).toMatchObject([{ http_status: 429, input_tokens: expect.any(Number) }]);
    expect(await limited.app.budgets.overview()).toMatchObject([{ used: 1, reserved: 0 }]);
  });

  test("over two accounts are one request, for each account that served and for all together", async () => {
    const all = { name: "All", unit: "requests", limit: 9, per: "day" };
    const budgets = [{ ...all, name: "Each", each: "account" }, all];
    await using shared = await startProxy({ accounts: ["octo-demo", "plus-demo"], config: { budgets } });
    // A free model takes them in turn, call by call.
    const input = Array.from({ length: 1100 }, (_, index) => `text ${index}`);
    expect((await shared.post("/v1/embeddings", { model, input })).status).toBe(200);
    const served = shared.demo.journal.filter(({ path }) => path === "/embeddings");
    expect(served.map(({ account }) => account)).toEqual(["octo-demo", "plus-demo", "octo-demo"]);
    const { items } = (await (await fetch(`${shared.url}/api/admin/budgets`)).json()) as {
      items: {
        used: number;
        reserved: number;
        holders: { items: { name: string; used: number; reserved: number }[] };
      }[];
    };
    expect(items[0]!.holders.items.map(({ name, used, reserved }) => [name, used, reserved]).sort()).toEqual([
      ["octo-demo", 1, 0],
      ["plus-demo", 1, 0],
    ]);
    expect(items[1]).toMatchObject({ used: 1, reserved: 0 });
  });
});
