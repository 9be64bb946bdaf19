/** Scenario: budgets whose limit moves a request to the next model of its chain. */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { startOpenAiServer } from "../../support/openai-server";
import { type RunningProxy, startProxy } from "../../support/proxy";

const [claude, mini, local] = ["claude-sonnet-4.6", "gpt-5-mini", "ollama/gpt-small"] as const;
const priced = { id: "priced", price: { input: 1_000, output: 1_000 } };

const mock = await startOpenAiServer();
afterAll(() => mock[Symbol.asyncDispose]());
afterEach(() => mock.clear());

const start = (budget: object, fallbacks: object, more: object = {}) =>
  startProxy({
    config: {
      providers: { ollama: { baseUrl: mock.url, models: ["gpt-small", priced] } },
      budgets: [{ name: "All", unit: "premium", limit: 1, per: "day", then: "fallback", ...budget }],
      fallbacks,
      ...more,
    },
  });

const ask = (proxy: RunningProxy, model: string = claude) =>
  proxy.post("/v1/messages", { model, max_tokens: 50, messages: [{ role: "user", content: "Say hello." }] });
const asked = ({ demo }: RunningProxy) =>
  demo.journal.flatMap(({ path, body }) =>
    /completions|responses|messages/.test(path) ? [(body as { model: string }).model] : [],
  );

describe("at the limit", () => {
  test.each([
    ["premium requests", { unit: "premium" }],
    ["credits", { unit: "credits", limit: 0.001 }],
  ])(
    "a request at the limit of %s is served by the next model that costs none: a provider's, or one of GitHub's",
    async (name, budget) => {
      await using proxy = await startProxy({
        demo: { generation: name === "credits" ? "C" : "A" },
        config: {
          providers: { ollama: { baseUrl: mock.url } },
          budgets: [{ name: "All", limit: 1, per: "day", then: "fallback", ...budget }],
          fallbacks: { [claude]: ["claude-haiku-4.5", local] },
        },
      });
      if (name !== "credits") expect((await ask(proxy)).headers.get("x-dragoman-model")).toBe(claude);
      const before = asked(proxy).length;
      const moved = await ask(proxy);
      expect([moved.status, moved.headers.get("x-dragoman-model")]).toEqual([200, local]);
      expect(asked(proxy)).toHaveLength(before);
      expect(mock.calls()).toHaveLength(1);
      const [row] = proxy.rows();
      expect(row).toMatchObject({ client_model: claude, upstream_model: local, http_status: 200, cost: null });
      expect(JSON.parse(row!.fallbacks!)).toMatchObject([
        {
          model: claude,
          status: null,
          why: expect.stringContaining(
            name === "credits" ? "The budget `All` has too little left" : "The budget `All` is used up",
          ),
        },
        { model: "claude-haiku-4.5", status: null },
      ]);
      expect(moved.headers.get("x-dragoman-budget-remaining")).toStartWith("All=");
    },
  );

  test("a free model of GitHub's serves as well", async () => {
    await using proxy = await start({}, { [claude]: [mini] });
    await ask(proxy);
    expect((await ask(proxy)).headers.get("x-dragoman-model")).toBe(mini);
    expect(asked(proxy)).toEqual([claude, mini]);
  });

  test("a budget of some models lets the others serve", async () => {
    await using proxy = await start(
      { unit: "requests", scope: { model: "claude-*" } },
      { [claude]: ["gpt-5.3-codex"] },
    );
    await ask(proxy);
    expect((await ask(proxy)).headers.get("x-dragoman-model")).toBe("gpt-5.3-codex");
    expect(asked(proxy)).toEqual([claude, "gpt-5.3-codex"]);
  });

  test("a budget of one account lets a provider serve", async () => {
    await using proxy = await start({ unit: "requests", scope: { account: "octo-demo" } }, { [claude]: [local] });
    await ask(proxy);
    expect((await ask(proxy)).headers.get("x-dragoman-model")).toBe(local);
  });

  test("it stops without a chain, and where no model of it is below a limit", async () => {
    for (const [fallbacks, words] of [
      [{}, "The budget `All` is used up"],
      [{ [claude]: ["claude-haiku-4.5"] }, "None of its fallbacks could serve: claude-haiku-4.5: The budget `All`"],
    ] as const) {
      await using proxy = await start({}, fallbacks);
      await ask(proxy);
      const stopped = await ask(proxy);
      expect([stopped.status, stopped.headers.get("x-should-retry")]).toEqual([429, "false"]);
      expect(await stopped.text()).toContain(words);
      expect(asked(proxy)).toEqual([claude]);
      expect(proxy.rows()[0]).toMatchObject({ error_type: "budget_exceeded", upstream_model: claude });
    }
  });

  test("`stop` stops, whatever the chain, also where it is another budget's", async () => {
    await using proxy = await start({ then: "stop" }, { [claude]: [mini, local] });
    await ask(proxy);
    expect((await ask(proxy)).status).toBe(429);
    expect(asked(proxy)).toEqual([claude]);
    expect(mock.calls()).toEqual([]);
    await proxy.app.config.change({
      budgets: [
        { name: "Claude", unit: "requests", limit: 1, per: "day", then: "fallback", scope: { model: "claude-*" } },
        { name: "Rest", unit: "requests", limit: 1, per: "day", then: "stop", scope: { model: "ollama/*" } },
      ],
    });
    const models: (string | null)[] = [];
    for (let at = 0; at < 3; at++) models.push((await ask(proxy)).headers.get("x-dragoman-model"));
    expect(models).toEqual([claude, mini, mini]);
    await proxy.app.config.change({ fallbacks: { [claude]: [local] } });
    expect((await ask(proxy)).headers.get("x-dragoman-model")).toBe(local);
    expect(await (await ask(proxy)).text()).toContain("The budget `Rest` is used up");
    expect(mock.calls()).toHaveLength(1);
  });
});

test("a provider's own price counts in credits, and its budget stops it", async () => {
  await using proxy = await start({ unit: "credits", limit: 100, then: "stop" }, {});
  // 40 tokens in and 8 out at 1,000 dollars a million: 4.8 cents; 500 tokens are expected to come back.
  await proxy.app.config.change({ budgets: [{ name: "All", unit: "credits", limit: 60, per: "day", then: "stop" }] });
  const first = await ask(proxy, "ollama/priced");
  expect(first.status).toBe(200);
  expect(proxy.rows()[0]!.cost).toBe(4.8e9);
  const { items } = (await (await fetch(`${proxy.url}/api/admin/budgets`)).json()) as { items: { used: number }[] };
  expect(items[0]!.used).toBeCloseTo(4.8);
});
