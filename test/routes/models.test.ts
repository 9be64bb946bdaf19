/** Scenario: the lists of models in each dialect. */
import { afterAll, describe, expect, test } from "bun:test";
import type { ModelInfo } from "@anthropic-ai/sdk/resources/models";
import OpenAI from "openai";
import { type RunningProxy, startProxy } from "../support/proxy";
import { testScenes } from "../support/scenes";
import { until } from "../support/until";

testScenes("model-lists");

const proxy = await startProxy();
const client = new OpenAI({ baseURL: `${proxy.url}/v1`, apiKey: "unused", maxRetries: 0 });
afterAll(() => proxy[Symbol.asyncDispose]());

interface List {
  data: (ModelInfo & { max_prompt_tokens: number | null; max_output_tokens: number | null })[];
  has_more: boolean;
  last_id: string;
}

const read = async (path: string): Promise<unknown> => (await fetch(proxy.url + path)).json();
const get = async (path: string) => (await read(path)) as List;

/** What Anthropic's package declares of a model: a newer one with another member does not compile here. */
const declared: Record<keyof ModelInfo, true> = {
  ...{ id: true, type: true, display_name: true, created_at: true, capabilities: true, lifecycle: true, line: true },
  ...{ max_input_tokens: true, max_tokens: true, deprecated_at: true, retires_at: true },
};

describe("the list", () => {
  test("satisfies the OpenAI package, each id once, hidden terms left out", async () => {
    const ids = (await client.models.list()).data.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toContain("gpt-4");
    expect(ids).toContain("text-embedding-3-small");
    expect(ids).not.toContain("gpt-41-copilot");
  });

  test("leaves out what the account has not enabled, in every form", async () => {
    const { items } = (await read("/api/admin/models")) as { items: { id: string; enabled: boolean }[] };
    const off = items.flatMap(({ id, enabled }) => (enabled ? [] : [id]));
    expect(off.length).toBeGreaterThan(0);
    const { models } = (await read("/v1beta/models?pageSize=1000")) as { models: { name: string }[] };
    const listed = [...(await get("/v1/models")).data.map(({ id }) => id), ...models.map(({ name }) => name.slice(7))];
    expect(listed.filter((id) => off.includes(id))).toEqual([]);
  });

  test("satisfies the Anthropic package: types, display names, dates, pages", async () => {
    const all = await get("/v1/models");
    for (const model of all.data) {
      expect(model).toMatchObject({ type: "model", object: "model" });
      expect(model.display_name).toBeString();
      expect(Number.isNaN(Date.parse(model.created_at))).toBe(false);
      expect(Object.keys(model)).toContainValues(Object.keys(declared));
      expect(model.max_input_tokens).toBe(model.max_prompt_tokens);
      expect(model.max_tokens).toBe(model.max_output_tokens);
    }
    const lines = Object.fromEntries(all.data.map(({ id, line }) => [id, line]));
    expect(lines).toMatchObject({ "claude-sonnet-4.6": "sonnet", "claude-haiku-4.5": "haiku", "gpt-5-mini": null });
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
});

describe("the list is the upstream's own, now", () => {
  const asked = ({ demo }: RunningProxy) => demo.journal.filter(({ path }) => path === "/models").length;
  const listOf = async ({ url }: RunningProxy) => {
    const response = await fetch(`${url}/v1/models`);
    const { data } = (await response.json()) as List;
    return { count: data.length, told: response.headers.get("x-model-list"), age: Number(response.headers.get("age")) };
  };

  test("asked once for many callers at a time, and once in 10 s", async () => {
    let now = Date.now();
    await using fresh = await startProxy({ clock: { monotonic: () => now } });
    await Promise.all(Array.from({ length: 20 }, () => listOf(fresh)));
    now += 9_000;
    expect(await listOf(fresh)).toMatchObject({ told: "current", age: 9 });
    expect(asked(fresh)).toBe(1);
    now += 2_000;
    await Promise.all(Array.from({ length: 20 }, () => listOf(fresh)));
    expect(asked(fresh)).toBe(2);
  });

  test("a list that could not be fetched is asked for again after 30 s, though the clock was set back an hour", async () => {
    let [now, monotonic] = [Date.now(), 0];
    await using fresh = await startProxy({ clock: { now: () => now, monotonic: () => monotonic } });
    const ask = () =>
      fresh.post("/v1/chat/completions", { model: "gpt-5-mini", messages: [{ role: "user", content: "Hi" }] });
    expect((await ask()).status).toBe(200);
    now += 11 * 60_000;
    monotonic += 11 * 60_000;
    fresh.demo.intercept("/models", () => new Response("outage", { status: 500 }));
    expect((await ask()).status).toBe(200);
    await until(() => fresh.lines.join("").includes("could not be fetched"), "the failure is in the log");
    monotonic += 31_000;
    now += 31_000 - 3_600_000;
    expect((await ask()).status).toBe(200);
    await until(() => asked(fresh) === 3, "the list is asked for three times");
  });

  test("an upstream that stalls leaves the last list, which says so and how old it is, until it answers", async () => {
    let now = Date.now();
    const env = { DRAGOMAN_UPSTREAM_TIMEOUT_MS: "1000" };
    await using fresh = await startProxy({ fronted: true, env, clock: { monotonic: () => now } });
    const { count } = await listOf(fresh);
    now += 60_000;
    fresh.front!.stall("/models", "in the middle of the body");
    expect(await listOf(fresh)).toEqual({ count, told: "stale", age: 60 });
    expect(await listOf(fresh)).toEqual({ count, told: "current", age: 0 });
  });

  test("requests do not wait for it: a remembered list serves them at once", async () => {
    let now = Date.now();
    await using fresh = await startProxy({ fronted: true, clock: { monotonic: () => now } });
    await listOf(fresh);
    now += 11 * 60_000;
    // For ever: the request below would wait as long.
    fresh.front!.stall("/models", "before the headers", Number.POSITIVE_INFINITY);
    const asks = { model: "gpt-5-mini", messages: [{ role: "user", content: "Hello" }] };
    expect((await fresh.post("/v1/chat/completions", asks)).status).toBe(200);
  });
});
