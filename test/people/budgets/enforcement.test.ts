/** Scenario: requests are held to budgets: on every endpoint, before anything is sent, and by what they really cost. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { startProvider } from "../../support/provider";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { readSamples, valueIn } from "../../support/samples";
import { until } from "../../support/until";

const hello = [{ role: "user", content: "Hi" }];
const bodies = {
  "/v1/messages": { model: "claude-sonnet-4.6", max_tokens: 50, messages: hello },
  "/v1/chat/completions": { model: "gpt-4.1", messages: hello },
  "/v1/responses": { model: "gpt-5-mini", input: "Hi" },
  "/v1/embeddings": { model: "text-embedding-3-small", input: "Hi" },
} as const;

const sentTo = (proxy: RunningProxy) =>
  proxy.demo.journal.filter(({ path }) => /\/(chat\/completions|responses|messages|embeddings)$/.test(path)).length;

const used = async (proxy: RunningProxy) => {
  const response = await fetch(`${proxy.url}/api/admin/budgets`);
  const { items } = (await response.json()) as { items: { name: string; used: number; reserved: number }[] };
  return items.map(({ name, used, reserved }) => [name, used, reserved] as const);
};

const budget = (given: object) => ({ name: "All", unit: "requests", limit: 1, per: "day", ...given });

describe("a stop", () => {
  test.each(Object.keys(bodies) as (keyof typeof bodies)[])(
    "%s: the client's own error, and nothing is sent",
    async (path) => {
      await using proxy = await startProxy({ config: { budgets: [budget({})] } });
      const first = await proxy.post(path, bodies[path]);
      expect([first.status, first.headers.get("x-dragoman-budget-remaining")]).toEqual([200, "All=0 requests"]);
      await first.text();
      const sent = sentTo(proxy);
      const refused = await proxy.post(path, bodies[path]);
      const body = (await refused.json()) as { error: { type: string; message: string; code?: string } };
      expect(sentTo(proxy)).toBe(sent);
      expect([refused.status, refused.headers.get("x-should-retry")]).toEqual([429, "false"]);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(body.error.message).toContain("The budget `All` is used up: 1 of 1 request used, free again at");
      expect(body.error.type).toBe(path === "/v1/messages" ? "rate_limit_error" : "insufficient_quota");
      expect(proxy.rows()[0]).toMatchObject({ http_status: 429, error_type: "budget_exceeded", account_id: null });
    },
  );

  test("count_tokens and the model list are not limited", async () => {
    await using proxy = await startProxy({ config: { budgets: [budget({})] } });
    await (await proxy.post("/v1/messages", bodies["/v1/messages"])).text();
    const counted = await proxy.post("/v1/messages/count_tokens", bodies["/v1/messages"]);
    expect([counted.status, (await fetch(`${proxy.url}/v1/models`)).status]).toEqual([200, 200]);
  });

  test("a provider's requests count too", async () => {
    await using provider = startProvider({ key: "p-0123456789", auth: "x-api-key" });
    await using proxy = await startProxy({
      config: {
        budgets: [budget({})],
        providers: { other: { type: "anthropic", baseUrl: provider.url, apiKey: "p-0123456789" } },
      },
    });
    const body = { ...bodies["/v1/messages"], model: "some-model" };
    expect((await proxy.post("/other/v1/messages", body)).status).toBe(200);
    expect((await proxy.post("/other/v1/messages", body)).status).toBe(429);
    expect(provider.seen).toHaveLength(1);
  });
});

test("where requests of unknown price are among what was used, it is said to be at least so much", async () => {
  await using provider = startProvider({ key: "p-0123456789", auth: "x-api-key" });
  await using proxy = await startProxy({
    config: {
      budgets: [
        budget({ unit: "credits", limit: 9, then: "warn" }),
        budget({ name: "Each", unit: "credits", each: "account" }),
      ],
      providers: { other: { type: "anthropic", baseUrl: provider.url, apiKey: "p-0123456789" } },
    },
  });
  const page = async () => (await fetch(`${proxy.url}/admin/budgets`)).text();
  expect(await page()).not.toContain("≥");
  const answer = await proxy.post("/other/v1/messages", { ...bodies["/v1/messages"], model: "some-model" });
  expect(answer.status).toBe(200);
  await answer.text();
  const isKnown = async () => (await page()).includes('<strong class="num">≥ 0</strong> of 9 credits used');
  await until(isKnown, "the card says at least");
  const metrics = readSamples(await (await fetch(`${proxy.url}/metrics`)).text());
  expect(valueIn(metrics, "dragoman_cost_unknown_total", { model: "some-model" })).toBe(1);
});

describe("amounts", () => {
  test("what a request really cost is counted, full and streamed", async () => {
    await using proxy = await startProxy({
      demo: { generation: "C" },
      config: { budgets: [budget({ unit: "credits", limit: 1_000 })] },
    });
    for (const stream of [false, true])
      await (await proxy.post("/v1/messages", { ...bodies["/v1/messages"], stream })).text();
    const cost = proxy.rows().reduce((sum, { cost }) => sum + cost!, 0) / 1e9;
    expect(cost).toBeGreaterThan(0);
    const [[, amount, reserved]] = (await used(proxy)) as [[string, number, number]];
    expect([amount, reserved]).toEqual([expect.closeTo(cost, 6), 0]);
  });

  test("a request counts in what the plan of the account that served it bills in, and in nothing else", async () => {
    const [octo, work] = demoAccounts();
    await using proxy = await startProxy({
      accounts: ["octo-demo", "work-demo"],
      demo: { accounts: [{ ...octo!, quota: quotas.credits() }, work!] },
      config: { budgets: ["credits", "premium"].map((unit) => budget({ name: unit, unit, limit: 1_000 })) },
    });
    for (const account of proxy.app.accounts) await account.quota();
    const ask = async () => (await proxy.post("/v1/messages", bodies["/v1/messages"])).text();
    await ask();
    const { cost } = proxy.rows()[0]!;
    expect(cost).toBeGreaterThan(0);
    expect(await used(proxy)).toEqual([
      ["credits", expect.closeTo(cost! / 1e9, 9), 0],
      ["premium", 0, 0],
    ]);
    proxy.demo.intercept("/v1/messages", () => new Response("{}", { status: 402 }), 1);
    await ask();
    expect(proxy.rows().map((row) => [row.account_id, row.cost_unit, row.cost])).toEqual([
      ["work-demo", "premium", 1e9],
      ["octo-demo", "credits", cost],
    ]);
    const { items } = (await (await fetch(`${proxy.url}/api/admin/budgets`)).json()) as { items: object[] };
    expect(items).toMatchObject([
      { used: expect.closeTo(cost! / 1e9, 9), unknown_price_count: 0 },
      { used: 1, unknown_price_count: 0 },
    ]);
    const totals = await (await fetch(`${proxy.url}/api/admin/totals`)).json();
    expect(totals).toMatchObject({ cost: { credits: cost, premium: 1e9 }, cost_at_least: false });
  });

  test("a request that fails is not counted; one that breaks off is", async () => {
    await using proxy = await startProxy({ config: { budgets: [budget({ limit: 10 })] } });
    const say = (content: string) => ({
      ...bodies["/v1/chat/completions"],
      stream: true,
      messages: [{ role: "user", content }],
    });
    await (await proxy.post("/v1/chat/completions", say("[demo: 500]"))).text();
    await (await proxy.post("/v1/chat/completions", say("[demo: 400-body]"))).text();
    await (await proxy.post("/v1/chat/completions", say("[demo: first-error]"))).text();
    expect(await used(proxy)).toEqual([["All", 0, 0]]);
    await (await proxy.post("/v1/chat/completions", say("[demo: cut 3]"))).text();
    expect(await used(proxy)).toEqual([["All", 1, 0]]);
  });

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

  test("a free model is not limited by a budget in credits or premium requests", async () => {
    await using proxy = await startProxy({ config: { budgets: [budget({ unit: "premium", limit: 1 })] } });
    const premium = { ...bodies["/v1/messages"], model: "claude-sonnet-4.6" };
    expect((await proxy.post("/v1/messages", premium)).status).toBe(200);
    expect((await proxy.post("/v1/messages", premium)).status).toBe(429);
    expect((await proxy.post("/v1/messages", { ...premium, model: "gpt-5-mini" })).status).toBe(200);
  });
});

describe("a reply of several answers", () => {
  const search = { type: "web_search_20250305", name: "web_search", max_uses: 5 };
  const searching = {
    model: "claude-sonnet-4.6",
    max_tokens: 4000,
    messages: [{ role: "user", content: "Please search the web for red pandas." }],
    tools: [search],
  };

  test("is charged to each account for what that account has answered", async () => {
    await using proxy = await startProxy({
      accounts: ["octo-demo", "work-demo"],
      demo: { generation: "C" },
      config: {
        budgets: [
          budget({ unit: "credits", limit: 1_000, each: "account" }),
          budget({ name: "Count", limit: 100 }),
          budget({ name: "Count of each", limit: 100, each: "account" }),
        ],
      },
    });
    // The account that gave the first answer is at its limit when the second one is asked for.
    let answers = 0;
    const isFirst = ({ body }: { body: unknown }) => JSON.stringify(body).includes("red pandas");
    proxy.demo.intercept(
      "/v1/messages",
      (call) => {
        if (!isFirst(call)) return undefined;
        answers++;
        return answers === 2 ? new Response("{}", { status: 429, headers: { "retry-after": "600" } }) : undefined;
      },
      3,
    );
    const response = await proxy.post("/v1/messages", searching);
    expect([response.status, answers]).toEqual([200, 3]);
    await response.text();
    const rows = proxy.rows();
    const whole = rows.reduce((sum, { cost }) => sum + cost!, 0) / 1e9;
    type Holder = { name: string; used: number; reserved: number };
    const holders = async (at = 0) => {
      const { items } = (await (await fetch(`${proxy.url}/api/admin/budgets`)).json()) as {
        items: { holders: { items: Holder[] } }[];
      };
      return items[at]!.holders.items;
    };
    await until(async () => (await holders()).every(({ reserved }) => reserved === 0), "nothing is reserved");
    const items = await holders();
    // The search has a row of its own.
    const ofSearch = rows.find(({ path }) => path === "web_search")!;
    const charged = Object.fromEntries(items.map(({ name, used }) => [name, used]));
    charged[ofSearch.account_id!]! -= ofSearch.cost! / 1e9;
    expect(charged["octo-demo"]).toBeGreaterThan(0.001);
    expect(charged["work-demo"]).toBeGreaterThan(0.001);
    expect(items.reduce((sum, { used }) => sum + used, 0)).toBeCloseTo(whole, 6);
    // The request and its search are two, whoever served them; each account has served a part.
    expect((await used(proxy)).find(([name]) => name === "Count")).toEqual(["Count", 2, 0]);
    expect((await holders(2)).map((each) => each.used).sort()).toEqual([1, 2]);
  });
});

describe("scopes", () => {
  test.each<[string, object[], number[], string[]]>([
    [
      "an account's budget",
      [
        budget({ name: "Octo", scope: { account: "octo-demo" } }),
        budget({ name: "Work", scope: { account: "work-*" } }),
      ],
      [200, 200, 429],
      ["octo-demo", "work-demo"],
    ],
    [
      "an amount for each account",
      [budget({ each: "account", limits: { "work-demo": 2 } })],
      [200, 200, 200, 429],
      ["octo-demo", "work-demo", "work-demo"],
    ],
  ])("%s moves requests to the next account, until each is used up", async (_, budgets, expected, served) => {
    await using proxy = await startProxy({ accounts: ["octo-demo", "work-demo"], config: { budgets } });
    const statuses: number[] = [];
    for (let at = 0; at < expected.length; at += 1) {
      const response = await proxy.post("/v1/messages", bodies["/v1/messages"]);
      statuses.push(response.status);
      expect(await response.text()).toContain(expected[at] === 429 ? "The budget `" : "");
    }
    expect(statuses).toEqual(expected);
    expect(
      proxy
        .rows()
        .flatMap(({ account_id }) => account_id ?? [])
        .sort(),
    ).toEqual(served);
  });

  test("a key's budget is its own, its rows have its name, and it cannot read the token", async () => {
    const keys = [
      { name: "anna", key: "k-anna-0123456789", budgets: [{ unit: "requests", limit: 1, per: "day" }] },
      { name: "bert", key: "k-bert-0123456789" },
    ];
    await using proxy = await startProxy({ config: { auth: { apiKeys: keys } } });
    const call = (key: string, path: string, body?: object) =>
      fetch(proxy.url + path, {
        method: body ? "POST" : "GET",
        headers: { "x-api-key": key, "content-type": "application/json" },
        ...(body && { body: JSON.stringify(body) }),
      });
    const body = bodies["/v1/chat/completions"];
    expect((await call("k-anna-0123456789", "/v1/chat/completions", body)).status).toBe(200);
    const refused = await call("k-anna-0123456789", "/v1/chat/completions", body);
    expect([refused.status, await refused.text()]).toEqual([429, expect.stringContaining("`anna/day`")]);
    expect((await call("k-bert-0123456789", "/v1/chat/completions", body)).status).toBe(200);
    expect(proxy.rows().map(({ key_name }) => key_name)).toEqual(["bert", "anna", "anna"]);
    expect((await call("k-anna-0123456789", "/token")).status).toBe(403);
    const statistics = await (await fetch(`${proxy.url}/api/admin/statistics?by=key`)).json();
    expect((statistics as { groups: { key: object; request_count: number }[] }).groups).toMatchObject([
      { key: { key_name: "anna" }, request_count: 2 },
      { key: { key_name: "bert" }, request_count: 1 },
    ]);
    const { items } = (await (await fetch(`${proxy.url}/api/admin/keys`)).json()) as {
      items: { last_used_at_ms: number | null }[];
    };
    expect(items.map(({ last_used_at_ms }) => typeof last_used_at_ms)).toEqual(["number", "number"]);
    const file = await (await fetch(`${proxy.url}/api/admin/export?key_name=bert`)).text();
    expect(file.split("\n")[0]).toContain("key_name");
    expect(file.trim().split("\n")).toHaveLength(2);
  });
});

test.each([true, false])(
  "cut: %p: whether a stream that runs ends when another request uses up the budget",
  async (cut) => {
    await using proxy = await startProxy({ demo: { pace: 10 }, config: { budgets: [budget({ then: "warn", cut })] } });
    const chat = bodies["/v1/chat/completions"];
    const long = { ...chat, stream: true, messages: [{ role: "user", content: "[demo: long 60]" }] };
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
  const chat = bodies["/v1/chat/completions"];
  const long = { ...chat, stream: true, messages: [{ role: "user", content: "[demo: long 60]" }] };
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
  const ask = () => proxy.post("/v1/chat/completions", bodies["/v1/chat/completions"]);
  const counted = async () => (await used(proxy))[0];
  await (await ask()).text();
  const path = join(proxy.home, "budgets.sqlite");
  const beforeItBegins = lockOf(path);
  const waiting = ask();
  await Bun.sleep(300);
  expect(sentTo(proxy)).toBe(1);
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
  const chat = bodies["/v1/chat/completions"];
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
  expect((await proxy.post("/v1/chat/completions", bodies["/v1/chat/completions"])).status).toBe(200);
  await until(() => proxy.app.budgets.lost === 1, "one request is missing in the ledger");
});

test("a ledger that cannot be written refuses, and says why", async () => {
  await using proxy = await startProxy({ config: { budgets: [budget({ limit: 100 })] } });
  await Bun.write(`${proxy.home}/budgets.sqlite/x`, "");
  const response = await proxy.post("/v1/chat/completions", bodies["/v1/chat/completions"]);
  expect([response.status, await response.text()]).toEqual([
    424,
    expect.stringContaining("The budgets cannot be checked"),
  ]);
  await proxy.app.config.change({ budgets: null });
  expect((await proxy.post("/v1/chat/completions", bodies["/v1/chat/completions"])).status).toBe(200);
});
