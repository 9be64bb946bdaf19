/** Counts that are learnt from the upstream's usage, the estimate at the beginning of a stream, and limits for long prompts. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { enoughExchanges } from "../../src/tokens/token-factor";
import { saveFactors, saveFactorsNow, type TokenFactors } from "../../src/tokens/token-factor-file";
import { pieces } from "../support/corpus";
import { lists } from "../support/drifted";
import { eventStream } from "../support/event-stream";
import { type RunningProxy, startProxy } from "../support/proxy";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

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

/** A proxy whose clock the test moves, so that each exchange may teach. */
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

async function teach({ proxy, later }: Awaited<ReturnType<typeof startTaught>>, model: string, exchanges: number) {
  for (let at = 0; at < exchanges; at++) {
    const before = proxy.app.tokenCounts.factorOf(model)?.exchanges ?? 0;
    later();
    expect((await proxy.post("/v1/messages", ask(model, at))).status).toBe(200);
    await until(() => (proxy.app.tokenCounts.factorOf(model)?.exchanges ?? 0) > before, "the count was compared");
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

describe("a count after 20 exchanges", () => {
  const home = temporaryFolder(afterAll);
  const families = ["claude-sonnet-4.6", "claude-sonnet-5", "gpt-5-mini", "gpt-5.4", "gemini-3.8-flash"];

  test("says the model's own number within -2 % and +8 %, which the estimate does not, and a restart keeps it", async () => {
    const taught = await startTaught(home);
    await using proxy = taught.proxy;
    const offs: number[] = [];
    for (const model of families) {
      await teach(taught, model, enoughExchanges - 1);
      expect((await count(proxy, ask(model, 1))).how).toBe("estimate");
      await teach(taught, model, 1);
      for (const at of [3, 30, 50]) {
        const { how, tokens } = await count(proxy, ask(model, at));
        expect([model, how]).toEqual([model, "calibrated"]);
        const off = tokens / (await used(proxy, ask(model, at))) - 1;
        expect([model, off > -0.02 && off < 0.08, off]).toEqual([model, true, off]);
        offs.push(off);
      }
    }
    expect(offs).toHaveLength(15);

    // An alias and Anthropic's own spelling are the same model.
    expect((await count(proxy, ask("claude-sonnet-4-6", 3))).how).toBe("calibrated");
    expect((await count(proxy, ask("claude-opus-4.5", 3))).how).toBe("estimate");

    const { items } = (await (await fetch(`${proxy.url}/api/admin/models`)).json()) as {
      items: { id: string; token_count: { how: string; factor: number; exchanges: number; error: number } }[];
    };
    const shown = items.find(({ id }) => id === "claude-sonnet-5")!.token_count;
    expect(shown).toMatchObject({ how: "calibrated", exchanges: enoughExchanges });
    expect(shown.factor).toBeWithin(1.3, 1.8);
    expect(shown.error).toBeWithin(0, 0.1);
    const page = await (await fetch(`${proxy.url}/admin/models`)).text();
    expect(page).toContain("from 20 exchanges");
    expect(page).toContain("learnt");

    await proxy.app.config.change({ tokenCalibration: false });
    expect((await count(proxy, ask("claude-sonnet-5", 3))).how).toBe("estimate");
  }, 120_000);

  test("which the file holds as numbers alone, readable by its owner only", async () => {
    const path = join(home, "token-factors.json");
    const text = readFileSync(path, "utf8");
    expect(Object.keys(JSON.parse(text).models).sort()).toEqual([...families].sort());
    expect(text).not.toContain("relay");
    if (process.platform !== "win32") expect(statSync(path).mode & 0o777).toBe(0o600);
    writeFileSync(join(home, "config.json"), "{}");
    await using proxy = await startProxy({ env: { DRAGOMAN_HOME: home }, demo: { generation: "C" } });
    countNothing(proxy);
    expect((await count(proxy, ask("claude-sonnet-5", 3))).how).toBe("calibrated");
  });

  test.each(["", "{", '{"models":{"gpt-5.4":{"texts":1e9}}}', '{"models":[]}'])(
    "a file of %j is as none",
    async (text) => {
      const own = temporaryFolder();
      writeFileSync(join(own, "token-factors.json"), text);
      await using proxy = await startProxy({ env: { DRAGOMAN_HOME: own } });
      expect((await count(proxy, ask("claude-sonnet-4.6", 3))).how).toBe("estimate");
    },
  );
});

describe("what teaches nothing", () => {
  let taught: Awaited<ReturnType<typeof startTaught>>;
  afterAll(() => taught.proxy[Symbol.asyncDispose]());
  const home = temporaryFolder(afterAll);
  beforeAll(async () => {
    taught = await startTaught(home);
  });
  const model = "gpt-5-mini";
  const known = () => taught.proxy.app.tokenCounts.factorOf(model);

  test("a usage that cannot be true, a small prompt, a picture, a second exchange within a second", async () => {
    const { tokenCounts } = taught.proxy.app;
    const { codecs } = await import("../../src/dialects/codecs");
    const conversation = codecs.messages.decodeRequest(ask(model, 1));
    const learn = (asked: typeof conversation, input: number | undefined) =>
      tokenCounts.beginLesson(model, { conversation: () => asked }, 100_000)?.({ input });
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

  test("an answer that fails, or that the config forbids to learn from", async () => {
    const before = known()?.exchanges;
    taught.later();
    await taught.proxy.post("/v1/messages", ask(model, 1, { messages: [{ role: "user", content: "[demo: 500] Hi" }] }));
    await taught.proxy.app.config.change({ tokenCalibration: false });
    taught.later();
    await (await taught.proxy.post("/v1/messages", ask(model, 1))).text();
    expect(taught.proxy.rows()).toHaveLength(2);
    await taught.proxy.app.config.change({ tokenCalibration: true });
    expect(known()?.exchanges).toBe(before);
  });
});

test("two processes that write the same file leave it whole, with what each has learnt", async () => {
  const home = temporaryFolder();
  const path = join(home, "token-factors.json");
  const module = join(import.meta.dir, "../../src/tokens/token-factor-file.ts");
  const script = (model: string) => `
    const { saveFactors } = await import(${JSON.stringify(module)});
    const factors = new Map();
    for (let exchanges = 1; exchanges <= 60; exchanges++) {
      factors.set(${JSON.stringify(model)}, { texts: 1.2, tools: 1, variance: [0, 0, 0], exchanges, error: 0.01, updatedAtMs: 1 });
      await saveFactors(${JSON.stringify(path)}, factors);
      // In use, a minute lies between two saves.
      await Bun.sleep(10 * Math.random());
    }`;
  const runs = ["one", "two"].map((model) => Bun.spawn([process.execPath, "-e", script(model)], { stderr: "pipe" }));
  let readings = 0;
  const done = Promise.all(runs.map(({ exited }) => exited));
  let running = true;
  void done.then(() => (running = false));
  while (running) {
    const text = await Bun.file(path)
      .text()
      .catch(() => undefined);
    if (text !== undefined && ++readings) JSON.parse(text);
    await Bun.sleep(1);
  }
  expect(await done).toEqual([0, 0]);
  expect(readings).toBeGreaterThan(3);
  const { models } = JSON.parse(readFileSync(path, "utf8"));
  expect(Object.keys(models).sort()).toEqual(["one", "two"]);
  expect(Math.max(models.one.exchanges, models.two.exchanges)).toBe(60);
  expect(readdirSync(home)).toEqual(["token-factors.json"]);
});

const savedFactors = (...models: string[]) =>
  new Map(
    models.map((model) => [
      model,
      { texts: 1.2, tools: 1, variance: [0, 0, 0], exchanges: 9, error: 0.01, updatedAtMs: 1 },
    ]),
  ) as TokenFactors;
const savedModels = (path: string) => Object.keys(JSON.parse(readFileSync(path, "utf8")).models).sort();

test("what was saved last stays in the file when an older save ends after it", async () => {
  const path = join(temporaryFolder(), "token-factors.json");
  let isOld = false;
  const older = saveFactors(path, savedFactors("one"), () => isOld);
  saveFactorsNow(path, savedFactors("one", "two"));
  isOld = true;
  await older;
  expect(savedModels(path)).toEqual(["one", "two"]);
  expect(readdirSync(dirname(path))).toEqual(["token-factors.json"]);
});

test("what another process saves while a save is under way stays too", async () => {
  const path = join(temporaryFolder(), "token-factors.json");
  let others = ["two", "three"];
  // Asked when only the name of the file is left to change.
  await saveFactors(path, savedFactors("one"), () => {
    for (const model of others.splice(0, 1)) saveFactorsNow(path, savedFactors(model));
    return false;
  });
  expect(savedModels(path)).toEqual(["one", "three", "two"]);
  others = ["four"];
  const late = savedFactors("five");
  // The last save of a process does not wait: the other one comes when it has read the file.
  const saveOther = () => {
    for (const model of others.splice(0)) saveFactorsNow(path, savedFactors(model));
  };
  Object.assign(late.get("five")!, {
    toJSON() {
      saveOther();
      return savedFactors("five").get("five");
    },
  });
  saveFactorsNow(path, late);
  expect(savedModels(path)).toEqual(["five", "four", "one", "three", "two"]);
  expect(readdirSync(dirname(path))).toEqual(["token-factors.json"]);
});

/** Requests wait for a count for a few seconds at most: on a busy machine, the first one would be sent without it. */
async function loadVocabulary(proxy: RunningProxy): Promise<void> {
  for (const model of ["gpt-5.4", "claude-sonnet-4.6"]) await count(proxy, ask(model, 0));
}

interface Started {
  message_start: { message: { usage: { input_tokens: number; output_tokens: number } } };
  message_delta: { usage: { input_tokens: number; cache_read_input_tokens?: number } };
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
    proxy = await startProxy();
    await loadVocabulary(proxy);
  });
  afterAll(() => proxy[Symbol.asyncDispose]());

  test.each([
    ["chat", "gemini-3.1-pro-preview", 0],
    ["responses", "gpt-5.4", 0],
    ["chat", "gemini-3.1-pro-preview", 1],
    ["responses", "gpt-5.4", 1],
  ])("from %s (%s) begins with an estimate and ends with the upstream's count", async (_, model, large) => {
    const content = large ? `[demo: slow-headers 0.5] ${code.repeat(5)}` : "Hello there, how are you?";
    const body = {
      ...ask(model, 0),
      ...(large ? {} : { system: "Be brief.", tools: [] }),
      messages: [{ role: "user", content }],
    };
    const { first, last } = await metersOf(proxy, body);
    const counted = last.input_tokens + (last.cache_read_input_tokens ?? 0);
    expect(first.input_tokens / counted).toBeWithin(0.5, 1.6);
    expect(first.output_tokens).toBe(0);
    expect(proxy.rows()[0]).toMatchObject({ input_tokens: counted, tokens_estimated: 0 });
  });

  test("a translated stream to a Messages client keeps the estimate where the upstream reports nothing, and the row says so", async () => {
    const chunk = (choice: object) => `data: ${JSON.stringify({ id: "x", choices: [{ index: 0, ...choice }] })}\n\n`;
    proxy.demo.intercept(
      "/chat/completions",
      async () => {
        // The worker counts in order: the estimate is there by now.
        await proxy.app.tokenizer.count(["Hello"]);
        return eventStream(
          `${chunk({ delta: { content: "Hi" } })}${chunk({ delta: {}, finish_reason: "stop" })}data: [DONE]\n\n`,
        );
      },
      2,
    );
    const body = { ...ask("gemini-3.1-pro-preview", 0), messages: [{ role: "user", content: "Hello" }], tools: [] };
    const { first, last } = await metersOf(proxy, body);
    expect(first.input_tokens).toBeGreaterThan(1_000);
    expect(last.input_tokens).toBe(first.input_tokens);
    expect(proxy.rows()[0]).toMatchObject({
      input_tokens: first.input_tokens,
      tokens_estimated: 1,
      output_tokens: 1,
    });
    // A long prompt is counted: by its length it would have twice as many.
    const words = 2_000;
    const content = "internationalization ".repeat(words);
    const long = await metersOf(proxy, { ...body, messages: [{ role: "user", content }] });
    expect(long.first.input_tokens - first.input_tokens).toBeWithin(words, 4 * words);
  });

  test("a translated stream to a Messages client does not wait for the worker: the prompt's length is an estimate, too", async () => {
    // The worker is busy for half a second.
    const busy = Array.from({ length: 2 }, () =>
      proxy.post("/v1/messages/count_tokens", ask("gpt-5.4", 0, { system: code.repeat(40) })),
    );
    await until(() => proxy.app.tokenizer.backlog > 2_000_000, "much text waits to be counted");
    const { first, last } = await metersOf(proxy, ask("gpt-5.4", 1));
    expect(first.input_tokens).toBeGreaterThan(1_000);
    expect(last.input_tokens).toBeGreaterThan(1_000);
    await Promise.all(busy);
  });
});

/** Beyond 400,000 characters a part is read where a rough count will do. */
const long = code.repeat(6);

describe("a prompt beyond maxPromptTokens", () => {
  let proxy: RunningProxy;
  beforeAll(async () => {
    proxy = await startProxy({
      config: { maxPromptTokens: { "claude-sonnet-4.6": 20_000, "gpt-5.4": 20_000 } },
      demo: { generation: "C" },
    });
    await loadVocabulary(proxy);
  });
  afterAll(() => proxy[Symbol.asyncDispose]());
  const asks = {
    "/v1/messages": { model: "claude-sonnet-4.6", max_tokens: 100, messages: [{ role: "user", content: long }] },
    "/v1/chat/completions": { model: "gpt-5.4", messages: [{ role: "user", content: long }] },
    "/v1/responses": { model: "gpt-5.4", input: long, stream: true },
  };
  const sent = () => proxy.demo.journal.filter(({ method, path }) => method === "POST" && path !== "/login").length;

  test("a prompt beyond maxPromptTokens is refused in the words of Claude's own clients, and nothing is sent", async () => {
    const before = sent();
    const response = await proxy.post("/v1/messages", asks["/v1/messages"]);
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { type: string; message: string } };
    expect(error.type).toBe("invalid_request_error");
    expect(error.message).toMatch(/^prompt is too long: \d+ tokens > 20000 maximum$/);
    expect(Number(/\d+/.exec(error.message)![0])).toBeGreaterThan(20_000);
    expect(sent()).toBe(before);
    expect(proxy.rows()[0]).toMatchObject({ http_status: 400, error_type: "context_length_exceeded" });
  });

  test.each(["/v1/chat/completions", "/v1/responses"] as const)(
    "a prompt beyond maxPromptTokens is refused with OpenAI's code on %s",
    async (path) => {
      const response = await proxy.post(path, asks[path]);
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({
        error: { code: "context_length_exceeded", message: expect.stringContaining("maximum context length is 20000") },
      });
    },
  );

  test("a prompt beyond maxPromptTokens is let through where only a count that errs high says so", async () => {
    const { tokens } = await count(proxy, { model: "gpt-5.4", messages: [{ role: "user", content: long }] });
    // The estimate is 1.15 times the vocabulary's count: what the model counts may be below the limit.
    await proxy.app.config.change({ maxPromptTokens: { "gpt-5.4": Math.floor(tokens * 0.85) } });
    const response = await proxy.post("/v1/chat/completions", asks["/v1/chat/completions"]);
    expect(response.status).toBe(200);
    await proxy.app.config.change({ maxPromptTokens: { "claude-sonnet-4.6": 20_000, "gpt-5.4": 20_000 } });
  });

  test("a picture's base64 is no long prompt", async () => {
    const data = Buffer.alloc(90_000, 7).toString("base64");
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data } };
    const body = {
      ...asks["/v1/messages"],
      messages: [{ role: "user", content: [image, { type: "text", text: "Hi" }] }],
    };
    expect((await proxy.post("/v1/messages", body)).status).toBe(200);
  });

  test("clients are told the same limit by the model list", async () => {
    const model = (await (await fetch(`${proxy.url}/v1/models/claude-sonnet-4.6`)).json()) as object;
    expect(model).toMatchObject({ max_prompt_tokens: 20_000, max_context_window_tokens: 20_000 + 64_000 });
    const { items } = (await (await fetch(`${proxy.url}/api/admin/models`)).json()) as { items: { id: string }[] };
    expect(items.find(({ id }) => id === "claude-sonnet-4.6")).toMatchObject({
      limits: { prompt: 20_000, context: 84_000, upstream_prompt: 936_000 },
    });
    expect((await (await fetch(`${proxy.url}/admin/models`)).text()).replaceAll("<wbr>", "")).toContain(
      "maxPromptTokens",
    );
    const other = (await (await fetch(`${proxy.url}/v1/models/claude-haiku-4.5`)).json()) as object;
    expect(other).toMatchObject({ max_prompt_tokens: 136_000, max_context_window_tokens: 200_000 });
  });
});

describe.each(["B", "mixed", "C"] as const)("without maxPromptTokens, with the names of list %s", (list) => {
  let proxy: RunningProxy;
  beforeAll(async () => {
    proxy = await startProxy({ demo: lists[list] });
    await loadVocabulary(proxy);
  });
  afterAll(() => proxy[Symbol.asyncDispose]());
  const beyond = { model: "gpt-5.4", input: code.repeat(28) };

  test("the limit is where a dearer price begins, and not where two tiers cost the same", async () => {
    const limitOf = async (id: string) =>
      ((await (await fetch(`${proxy.url}/v1/models/${id}`)).json()) as { max_prompt_tokens: number }).max_prompt_tokens;
    expect(await limitOf("gpt-5.4")).toBe(272_000);
    expect(await limitOf("claude-sonnet-4.6")).toBe(936_000);
    const response = await proxy.post("/v1/responses", beyond);
    expect(await response.json()).toMatchObject({ error: { code: "context_length_exceeded" } });
  });

  test("a limit of the owner's own opens the long tier, and the page says what it cost", async () => {
    await proxy.app.config.change({ maxPromptTokens: { "gpt-5.4": 900_000 } });
    expect((await proxy.post("/v1/responses", beyond)).status).toBe(200);
    const [row] = proxy.rows();
    expect(row!.input_tokens!).toBeGreaterThan(272_000);
    const page = await (await fetch(`${proxy.url}/admin/requests/${row!.request_id}`)).text();
    expect(page).toContain("Billed at the long-context rate");
    expect(page).toMatch(/At the base rate it would have cost .{1,60} credits less/);
    expect(page).not.toContain("At today’s list price");
  });
});
