/**
 * Scenario: counts that are learnt from the upstream's usage, and the estimate at the beginning of a stream;
 * `fixtures/scenes/limits.txt` has limits for long prompts.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { chinese, pieces } from "../../support/corpus";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { drawn } from "../../support/random";
import { testScenes } from "../../support/scenes";
import { temporaryFolder } from "../../support/temporary-folder";
import { until } from "../../support/until";

testScenes("limits");

const code = pieces.join("").slice(0, 75_000);
const reading = (at: number, length: number) => code.slice((at * 977) % 50_000).slice(0, length);

const tools = ["read", "write", "search"].map((name) => ({
  name,
  description: `The tool ${name}. ${code.slice(0, 1500)}`,
  input_schema: { type: "object", properties: { path: { type: "string", description: "The path of the file." } } },
}));
const ask = (model: string, at: number, more: object = {}) => ({
  model,
  max_tokens: 100,
  system: code.slice(0, 9_000),
  messages: [{ role: "user", content: reading(at, 3_000 + 1_200 * (at % 17)) }],
  tools,
  ...more,
});

/** The upstream has no counter of its own. */
const countNothing = ({ demo }: RunningProxy) =>
  demo.intercept(
    "/v1/messages/count_tokens",
    () => new Response("404 page not found\n", { status: 404 }),
    Number.POSITIVE_INFINITY,
  );

/** A proxy whose clock the test moves, so that each request may teach. */
async function startTaught(home: string) {
  let shift = 0;
  const proxy = await startProxy({
    env: { DRAGOMAN_HOME: home },
    demo: { generation: "C" },
    clock: { monotonic: () => performance.now() + shift },
  });
  countNothing(proxy);
  return { proxy, later: () => (shift += 600_000) };
}

async function teach({ proxy, later }: Awaited<ReturnType<typeof startTaught>>, model: string, requests: number) {
  for (let at = 0; at < requests; at++) {
    const before = proxy.app.tokenCounts.ratioOf(model)?.requests ?? 0;
    later();
    expect((await proxy.post("/v1/messages", ask(model, at))).status).toBe(200);
    await until(() => (proxy.app.tokenCounts.ratioOf(model)?.requests ?? 0) > before, "the count was compared");
  }
}

async function count(proxy: RunningProxy, body: object) {
  const response = await proxy.post("/v1/messages/count_tokens", body);
  const { input_tokens } = (await response.json()) as { input_tokens: number };
  return { how: response.headers.get("x-token-count"), tokens: input_tokens };
}

async function used(proxy: RunningProxy, body: object): Promise<number> {
  await (await proxy.post("/v1/messages", body)).text();
  return proxy.rows()[0]!.input_tokens!;
}

describe("a ratio that was learnt", () => {
  const home = temporaryFolder(afterAll);
  const families = [
    "claude-sonnet-4.6",
    "claude-sonnet-5",
    ...drawn("families", [exampleModels.small, exampleModels.gpt, exampleModels.flash]),
  ];

  test("brings an estimate within -5 % and +10 % of the model's own number after 12 requests, and a restart keeps it", async () => {
    const taught = await startTaught(home);
    await using proxy = taught.proxy;
    for (const model of families) {
      // Nothing is learnt of a model whose estimates nobody asked for.
      taught.later();
      await used(proxy, ask(model, 0));
      expect(proxy.app.tokenCounts.ratioOf(model)).toBeUndefined();
      await count(proxy, ask(model, 1));
      await teach(taught, model, 12);
      for (const at of [3, 30, 50]) {
        const { how, tokens } = await count(proxy, ask(model, at));
        expect([model, how]).toEqual([model, "estimate"]);
        const off = tokens / (await used(proxy, ask(model, at))) - 1;
        expect([model, off > -0.05 && off < 0.1, off]).toEqual([model, true, off]);
      }
    }

    // Anthropic's own spelling is the same model.
    const { tokens } = await count(proxy, ask("claude-sonnet-4.6", 3));
    expect((await count(proxy, ask("claude-sonnet-4-6", 3))).tokens).toBe(tokens);

    const { items } = (await (await fetch(`${proxy.url}/api/admin/models`)).json()) as {
      items: { id: string; token_count: { ratio: number; requests: number } }[];
    };
    const shown = (id: string) => items.find((item) => item.id === id)!.token_count;
    expect(shown("claude-sonnet-5").ratio).toBeWithin(1.3, 1.8);
    expect(shown("claude-sonnet-5").requests).toBeGreaterThanOrEqual(12);
    expect(shown("claude-haiku-4.5")).toEqual({ ratio: 1.15, requests: 0 });
    expect(await (await fetch(`${proxy.url}/admin/models`)).text()).toContain("learnt from");
  }, 120_000);

  test("is in the history's file, as numbers alone", async () => {
    const database = new Database(join(home, "admin.sqlite"), { readonly: true });
    const rows = database.query<Record<string, unknown>, []>("SELECT * FROM token_ratios ORDER BY model").all();
    database.close();
    expect(rows.map(({ model }) => model)).toEqual([...families].sort());
    for (const row of rows) expect(Object.keys(row)).toEqual(["model", "ratio", "requests", "learnt_at_ms"]);
    await using proxy = await startProxy({ env: { DRAGOMAN_HOME: home }, demo: { generation: "C" } });
    countNothing(proxy);
    const { tokens } = await count(proxy, ask("claude-sonnet-5", 3));
    expect(tokens / (await used(proxy, ask("claude-sonnet-5", 3)))).toBeWithin(0.95, 1.1);
  });

  test("is used also where the history can neither read nor keep it", async () => {
    const own = temporaryFolder();
    await (await startProxy({ env: { DRAGOMAN_HOME: own } }))[Symbol.asyncDispose]();
    const database = new Database(join(own, "admin.sqlite"));
    writeFileSync(join(own, "config.json"), JSON.stringify({ logLevel: "debug" }));
    database.run("DROP TABLE token_ratios");
    database.run("CREATE VIEW token_ratios AS SELECT 1 AS model");
    database.close();
    const taught = await startTaught(own);
    await using proxy = taught.proxy;
    await count(proxy, ask("claude-sonnet-5", 1));
    await teach(taught, "claude-sonnet-5", 1);
    expect(proxy.app.tokenCounts.ratioOf("claude-sonnet-5")).toMatchObject({ requests: 1 });
    expect(proxy.lines.join("")).toMatch(/learnt anew: it could not be read.*could not be kept/s);
  });

  test("no number of the file is believed beyond what a tokenizer can be", async () => {
    const own = temporaryFolder();
    await using before = await startProxy({ env: { DRAGOMAN_HOME: own } });
    await before.app.history.keepTokenRatio({ model: exampleModels.gpt, ratio: 1e9, requests: 30 });
    await using proxy = await startProxy({ env: { DRAGOMAN_HOME: own } });
    expect(proxy.app.tokenCounts.ratioOf(exampleModels.gpt)).toEqual({ ratio: 2.5, requests: 30 });
  });

  test("of more than 300 models those that were learnt last are kept", async () => {
    await using proxy = await startProxy();
    const { history } = proxy.app;
    for (let at = 0; at < 310; at++) {
      await Bun.sleep(at === 10 ? 2 : 0); // The ten are older.
      await history.keepTokenRatio({ model: `made-up-${at}`, ratio: 1, requests: 1 });
    }
    const kept = await history.tokenRatios();
    expect(kept).toHaveLength(300);
    expect(kept.some(({ model }) => model === "made-up-9")).toBe(false);
    expect(kept.some(({ model }) => model === "made-up-309")).toBe(true);
  });
});

test("the vocabulary is not loaded by prompts of agents that asked for no count, streamed, translated and long ones", async () => {
  await using proxy = await startProxy({ demo: { generation: "C" } });
  const counting = spyOn(proxy.app.tokenizer, "count");
  const messages = [{ role: "user", content: code.repeat(2) }];
  for (const model of ["claude-sonnet-4.6", exampleModels.gpt, "gemini-3.8-flash"])
    for (const stream of [true, false])
      for (const path of ["/v1/messages", "/v1/chat/completions"])
        await (await proxy.post(path, { model, max_tokens: 100, stream, messages })).text();
  expect(proxy.rows()).toHaveLength(12);
  expect(counting).not.toHaveBeenCalled();
});

test("the vocabulary is not used to learn where GitHub Copilot counts", async () => {
  await using proxy = await startProxy({ demo: { generation: "C" } });
  expect((await count(proxy, ask("claude-sonnet-4.6", 1))).how).toBe("exact");
  await used(proxy, ask("claude-sonnet-4.6", 1));
  expect(proxy.app.tokenCounts.ratioOf("claude-sonnet-4.6")).toBeUndefined();
  const counting = spyOn(proxy.app.tokenizer, "count");
  await used(proxy, ask("claude-sonnet-4.6", 2));
  expect(counting).not.toHaveBeenCalled();
});

describe("what teaches nothing", () => {
  let taught: Awaited<ReturnType<typeof startTaught>>;
  afterAll(() => taught.proxy[Symbol.asyncDispose]());
  const home = temporaryFolder(afterAll);
  beforeAll(async () => {
    taught = await startTaught(home);
  });
  const model = "gpt-5-mini";
  const known = () => taught.proxy.app.tokenCounts.ratioOf(model);

  test("a usage that cannot be true, a small prompt, a picture, a second request within a moment", async () => {
    const { tokenCounts } = taught.proxy.app;
    const { codecs } = await import("../../../src/dialects/codecs");
    const conversation = codecs.messages.decodeRequest(ask(model, 1));
    const learn = (asked: typeof conversation, input: number | undefined) =>
      tokenCounts.beginLesson(model, { conversation: () => asked }, 100_000)?.({ input });
    tokenCounts.want(model);
    for (const reported of [undefined, 0, -4_000, Number.NaN, Number.POSITIVE_INFINITY, 1_999, 200_000]) {
      taught.later();
      expect([reported, await learn(conversation, reported)]).toEqual([reported, false]);
    }
    const picture = { type: "image", source: { type: "url", url: "https://images.example/a.png" } };
    const pictures = codecs.messages.decodeRequest(
      ask(model, 1, { messages: [{ role: "user", content: [picture, picture, picture, picture] }] }),
    );
    taught.later();
    expect(await learn(pictures, 9_000)).toBe(false);
    expect(known()).toBeUndefined();
    taught.later();
    expect(await learn(conversation, 6_000)).toBe(true);
    expect(await learn(conversation, 6_000)).toBeUndefined();
  });

  test("an answer that fails", async () => {
    const before = known()?.requests;
    taught.later();
    await taught.proxy.post("/v1/messages", ask(model, 1, { messages: [{ role: "user", content: "[demo: 500] Hi" }] }));
    expect(taught.proxy.rows()).toHaveLength(1);
    expect(known()?.requests).toBe(before);
  });
});

interface Started {
  message_start: { message: { usage: { input_tokens: number; output_tokens: number } } };
  message_delta: {
    usage: { input_tokens: number; cache_read_input_tokens?: number; cache_creation_input_tokens?: number };
  };
}

/** The first and the last usage of a stream. */
async function metersOf(proxy: RunningProxy, body: object) {
  const text = await (await proxy.post("/v1/messages", { ...body, stream: true })).text();
  const event = <Type extends keyof Started>(type: Type): Started[Type] =>
    JSON.parse(
      text
        .split("\n")
        .find((line) => line.startsWith(`data: {"type":"${type}"`))!
        .slice(6),
    );
  return { first: event("message_start").message.usage, last: event("message_delta").usage };
}

describe("a translated stream to a Messages client", () => {
  let proxy: RunningProxy;
  beforeAll(async () => {
    proxy = await startProxy({ demo: { generation: "C" } });
  });
  afterAll(() => proxy[Symbol.asyncDispose]());

  test.each([
    ["chat", exampleModels.gemini, 0],
    ["responses", exampleModels.gpt, 0],
    ["chat", exampleModels.gemini, 1],
    ["responses", exampleModels.gpt, 1],
  ])("from %s (%s) begins with an estimate and ends with the upstream's count", async (_, model, large) => {
    const content = large ? `[demo: slow-headers 0.5] ${code.repeat(5)}` : "Hello there, how are you?";
    const body = {
      ...ask(model, 0),
      ...(large ? {} : { system: "Be brief.", tools: [] }),
      messages: [{ role: "user", content }],
    };
    const { first, last } = await metersOf(proxy, body);
    const { cache_read_input_tokens: read = 0, cache_creation_input_tokens: written = 0 } = last;
    const counted = last.input_tokens + read + written;
    expect(first.input_tokens / counted).toBeWithin(0.5, 1.6);
    expect(first.output_tokens).toBe(0);
    expect(proxy.rows()[0]).toMatchObject({ input_tokens: counted, tokens_estimated: 0 });
  });

  test("a translated stream to a Messages client begins with what a prompt in Chinese has, not with a third of it", async () => {
    const { first, last } = await metersOf(proxy, {
      model: exampleModels.gpt,
      max_tokens: 100,
      messages: [{ role: "user", content: chinese.slice(0, 4_000) }],
    });
    expect(last.input_tokens).toBeGreaterThan(0);
    const { tokens } = await count(proxy, {
      model: exampleModels.gpt,
      messages: [{ role: "user", content: chinese.slice(0, 4_000) }],
    });
    expect(first.input_tokens / tokens).toBeWithin(0.7, 1.5);
  });
});
