import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { type RunningProxy, startProxy } from "../support/proxy";

let proxy: RunningProxy;
let client: OpenAI;

beforeAll(async () => {
  proxy = await startProxy();
  client = new OpenAI({ baseURL: `${proxy.url}/v1`, apiKey: "unused", maxRetries: 0 });
});
afterAll(() => proxy[Symbol.asyncDispose]());

interface List {
  data: { id: string; display_name: string; created_at: string }[];
  has_more: boolean;
  last_id: string;
}

const get = async (path: string) => (await (await fetch(proxy.url + path)).json()) as List;

describe("the list", () => {
  test("satisfies the OpenAI package, each id once, hidden terms left out", async () => {
    const ids = (await client.models.list()).data.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toContain("gpt-4");
    expect(ids).toContain("text-embedding-3-small");
    expect(ids).not.toContain("gpt-41-copilot");
  });

  test("satisfies the Anthropic package: types, display names, dates, pages", async () => {
    const all = await get("/v1/models");
    for (const model of all.data) {
      expect(model).toMatchObject({ type: "model", object: "model" });
      expect(model.display_name).toBeString();
      expect(Number.isNaN(Date.parse(model.created_at))).toBe(false);
    }
    const ids: string[] = [];
    for (
      let page = await get("/v1/models?limit=7");
      ;
      page = await get(`/v1/models?limit=7&after_id=${page.last_id}`)
    ) {
      expect(page.data.length).toBeLessThanOrEqual(7);
      ids.push(...page.data.map(({ id }) => id));
      if (!page.has_more) break;
    }
    expect(ids).toEqual(all.data.map(({ id }) => id));
  });

  test("tells limits, endpoints and what a model can do", async () => {
    expect(await client.models.retrieve("claude-sonnet-4.6")).toMatchObject({
      id: "claude-sonnet-4.6",
      owned_by: "Anthropic",
      max_prompt_tokens: 168000,
      max_output_tokens: 32000,
      upstream_endpoints: ["/chat/completions", "/v1/messages"],
      premium: true,
    } as object);
  });

  test("one model in another spelling, and 404 for none", async () => {
    expect((await client.models.retrieve("claude-sonnet-4-5-20250929")).id).toBe("claude-sonnet-4.5");
    const refusal = await client.models.retrieve("nothing-like-it").catch((thrown) => thrown);
    expect(refusal).toBeInstanceOf(OpenAI.NotFoundError);
  });

  test("in both generations of billing", async () => {
    await using tokens = await startProxy({ demo: { generation: "B" } });
    const { data } = (await (await fetch(`${tokens.url}/v1/models`)).json()) as {
      data: { id: string; premium: boolean }[];
    };
    const premium = Object.fromEntries(data.map((model) => [model.id, model.premium]));
    expect(premium).toMatchObject({
      "gpt-5-mini": true,
      "gpt-4o-mini-2024-07-18": false,
      "text-embedding-3-small": false,
    });
    expect(data.map(({ id }) => id)).not.toContain("claude-opus-4.7");
  });
});

describe("the list is cached", () => {
  test("asked once for many requests", async () => {
    await using fresh = await startProxy();
    await Promise.all(Array.from({ length: 20 }, () => fetch(`${fresh.url}/v1/models`)));
    expect(fresh.demo.journal.filter(({ path }) => path === "/models")).toHaveLength(1);
  });

  test("a failing refresh keeps the old one", async () => {
    await using fresh = await startProxy();
    const before = await (await fetch(`${fresh.url}/v1/models`)).json();
    fresh.app.catalogue.expire();
    fresh.demo.intercept("/models", () => new Response("outage", { status: 500 }), 5);
    for (let turn = 0; turn < 3; turn++) expect(await (await fetch(`${fresh.url}/v1/models`)).json()).toEqual(before);
    await Bun.sleep(20);
    expect(fresh.lines.join("")).toContain("model list of octo-demo could not be fetched");
  });

  test("a first fetch that fails is an error in words", async () => {
    await using fresh = await startProxy();
    fresh.demo.intercept(
      "/models",
      () => new Response("<html>portal</html>", { headers: { "content-type": "text/html" } }),
    );
    const response = await fetch(`${fresh.url}/v1/models`);
    expect(response.status).toBe(502);
    expect(((await response.json()) as { error: { message: string } }).error.message).toContain("not JSON");
  });
});
