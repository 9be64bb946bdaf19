/**
 * Scenario: budgets while a stream runs, and with a ledger that others write to or that is damaged;
 * `fixtures/scenes/budgets.txt` has which requests they count, hold and move on.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";
import { until } from "../../support/until";

testScenes("budgets");

const chat = { model: "gpt-4.1", messages: [{ role: "user", content: "Hi" }] };
const long = { ...chat, stream: true, messages: [{ role: "user", content: "[demo: long 60]" }] };

const used = async (proxy: RunningProxy) => {
  const response = await fetch(`${proxy.url}/api/admin/budgets`);
  const { items } = (await response.json()) as { items: { name: string; used: number; reserved: number }[] };
  return items.map(({ name, used, reserved }) => [name, used, reserved] as const);
};

const budget = (given: object) => ({ name: "All", unit: "requests", limit: 1, per: "day", ...given });

test.each([
  ["/v1/messages", { model: "claude-sonnet-4.6", max_tokens: 50_000, messages: [{ role: "user", content: "" }] }],
  ["/v1/chat/completions", { model: "claude-sonnet-4.6", messages: [{ role: "user", content: "" }] }],
  ["/v1/responses", { model: exampleModels.gpt, input: "" }],
] as const)(
  "%s: who hangs up before the end pays for what was read, whatever was learnt of the model",
  async (path, body) => {
    const ask = (content: string) => ({
      ...body,
      ...("input" in body ? { input: content } : { messages: [{ role: "user", content }] }),
      stream: true,
    });
    const settings = {
      demo: { generation: "C", pace: 1 },
      config: { budgets: [budget({ unit: "credits", limit: 1e6 })] },
    } as const;
    await using proxy = await startProxy(settings);
    // Small answers make the model look cheap.
    for (let small = 0; small < 15; small += 1) await (await proxy.post(path, ask("Hi"))).text();
    const amount = async () => (await used(proxy))[0]![1];
    await until(async () => (await used(proxy))[0]![2] === 0, "nothing is reserved any more");
    const before = await amount();
    await using front = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    expect(front.port).toBeGreaterThan(0);
    const leaving = new AbortController();
    const answer = await fetch(proxy.url + path, {
      method: "POST",
      body: JSON.stringify(ask("[demo: long 3000] Hello")),
      headers: { "content-type": "application/json" },
      signal: leaving.signal,
    });
    let read = 0;
    const reader = answer.body!.getReader();
    while (read < 100_000) read += (await reader.read()).value!.length;
    leaving.abort();
    await until(() => proxy.rows()[0]?.http_status === 499, "the row says that the client left");
    await until(
      async () => (await used(proxy))[0]![2] === 0 && (await amount()) > before,
      "what was reserved is settled",
    );
    const { cost, output_tokens } = proxy.rows()[1]!;
    const perToken = cost! / 1e9 / output_tokens!;
    expect((await amount()) - before).toBeGreaterThan((read / 400) * perToken);
  },
);

test.each([true, false])(
  "cut: %p: whether a stream that runs ends when another request uses up the budget",
  async (cut) => {
    await using proxy = await startProxy({ demo: { pace: 10 }, config: { budgets: [budget({ then: "warn", cut })] } });
    const running = await proxy.post("/v1/chat/completions", long);
    await (await proxy.post("/v1/chat/completions", chat)).text();
    const text = await running.text();
    expect(text.includes("[DONE]")).toBe(!cut);
    expect(text.includes("is used up")).toBe(cut);
  },
);

test("cut ends only the streams whose own amount is used up", async () => {
  const keys = ["anna", "bert"].map((name) => ({ name, key: `k-${name}-0123456789` }));
  await using proxy = await startProxy({
    demo: { pace: 10 },
    config: { auth: { apiKeys: keys }, budgets: [budget({ each: "key", then: "warn", cut: true, limit: 2 })] },
  });
  const post = (name: string, body: object) =>
    proxy.post("/v1/chat/completions", body, { headers: { "x-api-key": `k-${name}-0123456789` } });
  const running = await Promise.all([post("anna", long), post("bert", long)]);
  for (let count = 0; count < 2; count += 1) await (await post("anna", chat)).text();
  const [annas, berts] = await Promise.all(running.map((response) => response.text()));
  expect([annas!.includes("[DONE]"), annas!.includes("of the key anna is used up")]).toEqual([false, true]);
  expect([berts!.includes("[DONE]"), berts!.includes("is used up")]).toEqual([true, false]);
});

/** Another process that writes to the ledger: nobody else can until it is told to let go. */
function lockOf(path: string) {
  const database = new Database(path);
  database.run("BEGIN IMMEDIATE");
  return {
    release() {
      database.run("ROLLBACK");
      database.close();
    },
  };
}

test("requests wait while another process writes to the ledger, and each is counted", async () => {
  await using proxy = await startProxy({ config: { budgets: [budget({ limit: 100 })] } });
  const ask = () => proxy.post("/v1/chat/completions", chat);
  const counted = async () => (await used(proxy))[0];
  await (await ask()).text();
  const path = join(proxy.home, "budgets.sqlite");
  const beforeItBegins = lockOf(path);
  const waiting = ask();
  await Bun.sleep(300);
  expect(proxy.demo.journal.filter((seen) => seen.path === "/chat/completions")).toHaveLength(1);
  beforeItBegins.release();
  expect((await waiting).status).toBe(200);
  expect(await counted()).toEqual(["All", 2, 0]);
  // The third reserves, and its end cannot be written at once.
  proxy.demo.intercept("/chat/completions", async () => {
    const beforeItEnds = lockOf(path);
    setTimeout(() => beforeItEnds.release(), 300);
    return undefined;
  });
  expect((await ask()).status).toBe(200);
  await until(async () => (await counted())?.[1] === 3, "the third is counted");
  expect(await counted()).toEqual(["All", 3, 0]);
});

test("a ledger that stays locked refuses, and the client may try again", async () => {
  await using proxy = await startProxy({ config: { budgets: [budget({ limit: 100 })] } });
  await (await proxy.post("/v1/chat/completions", chat)).text();
  const lock = lockOf(join(proxy.home, "budgets.sqlite"));
  const refused = await proxy.post("/v1/chat/completions", chat);
  lock.release();
  const { status, headers } = refused;
  expect(await refused.text()).toContain("another process writes to the ledger");
  expect({ status, again: headers.get("x-should-retry"), after: headers.get("retry-after") }).toEqual({
    status: 503,
    again: null,
    after: "1",
  });
  expect((await proxy.post("/v1/chat/completions", chat)).status).toBe(200);
});

test("a request that the ledger does not take at its end is served, and counted as missing", async () => {
  await using proxy = await startProxy({ config: { budgets: [budget({ limit: 100 })] } });
  proxy.demo.intercept("/chat/completions", () => {
    using file = new Database(join(proxy.home, "budgets.sqlite"));
    file.run("DROP TABLE used");
    return undefined;
  });
  expect((await proxy.post("/v1/chat/completions", chat)).status).toBe(200);
  await until(() => proxy.app.budgets.lost === 1, "one request is missing in the ledger");
});

test("a ledger that cannot be written refuses, and says why", async () => {
  await using proxy = await startProxy({ config: { budgets: [budget({ limit: 100 })] } });
  await Bun.write(`${proxy.home}/budgets.sqlite/x`, "");
  const response = await proxy.post("/v1/chat/completions", chat);
  expect([response.status, await response.text()]).toEqual([
    424,
    expect.stringContaining("The budgets cannot be checked"),
  ]);
  await proxy.app.config.change({ budgets: null });
  expect((await proxy.post("/v1/chat/completions", chat)).status).toBe(200);
});
