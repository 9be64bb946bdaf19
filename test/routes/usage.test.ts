/**
 * Scenario: `GET /usage`, `GET /usage/:accountIndex` and `GET /token`: what a script or a dashboard reads of the
 * accounts.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { adminEndpoints } from "../../src/admin/api/plugin";
import { quotas } from "../../src/demo/accounts";
import type { Demo } from "../../src/demo/demo";
import { exampleModels } from "../../src/proxy/upstream/models/known-models";
import { clientEndpoints } from "../../src/routes/clients";
import type { UsageItem } from "../../src/routes/usage";
import { startProxy } from "../support/proxy";

const quotaPath = "/copilot_internal/user";
const all = ["octo-demo", "work-demo", "plus-demo"];

type Body = UsageItem & {
  accounts: UsageItem[];
  token: string;
  quota_snapshots: { premium_interactions: object };
  error: { message: string };
};

async function get(url: string, headers: Record<string, string> = {}): Promise<{ status: number; body: Body }> {
  const response = await fetch(url, { headers });
  return { status: response.status, body: (await response.json()) as Body };
}
const usages = async (url: string): Promise<UsageItem[]> => (await get(`${url}/usage`)).body.accounts;

const three = await startProxy({ accounts: all });
afterAll(() => three[Symbol.asyncDispose]());

describe("what is left", () => {
  test("the specification's fields, and how the account is", async () => {
    const [octo, work, plus] = await usages(three.url);
    expect(octo).toEqual({
      id: "octo-demo",
      entitlement: 300,
      remaining: 217.34,
      unlimited: false,
      failed: false,
      state: "ready",
      until: null,
      reason: null,
      limited_models: [],
      plan: "individual",
      unit: "premium",
      reset_at: expect.stringMatching(/^\d{4}-\d\d-01T00:00:00.000Z$/),
      overage: false,
      overage_count: 0,
      stale: false,
      updated_at: expect.stringMatching(/Z$/),
      quota_error: null,
    });
    expect(work).toMatchObject({ id: "work-demo", unlimited: true, entitlement: 0, remaining: 0, failed: false });
    expect(plus).toMatchObject({ id: "plus-demo", entitlement: 1500, remaining: 1204 });
  });

  test("an exhausted pooled seat stays exhausted while free models answer with headers that say unlimited", async () => {
    await using proxy = await startProxy({ demo: { generation: "C" } });
    Object.assign(proxy.demo.accounts[0]!, { quota: quotas.pooledOut(), plan: "business" });
    const ask = async () => (await proxy.post("/v1/responses", { model: exampleModels.small, input: "Hi" })).status;
    const free = { model: "text-embedding-3-small", input: "Hi" };
    expect((await usages(proxy.url))[0]).toMatchObject({ state: "exhausted", unlimited: false });
    const sent = proxy.demo.journal.length;
    expect([await ask(), (await proxy.post("/v1/embeddings", free)).status]).toEqual([429, 200]);
    expect(proxy.demo.journal.slice(sent).filter(({ status }) => status === 402)).toEqual([]);
    expect((await usages(proxy.url))[0]).toMatchObject({ state: "exhausted", unlimited: false });
    expect(await ask()).toBe(429);
  });

  test("an exact number is not replaced by a percentage or an amount that is rounded or cut", async () => {
    for (const generation of ["A", "C"] as const)
      for (const remaining of [100, 217.34, 216.97]) {
        await using proxy = await startProxy({ demo: { generation } });
        proxy.demo.accounts[0]!.quota.premium.remaining = remaining;
        await proxy.app.accounts[0]!.quota();
        await proxy.post("/v1/embeddings", { model: "text-embedding-3-small", input: "Hi" });
        expect(proxy.app.accounts[0]!.knownQuota).toMatchObject({ entitlement: 300, remaining });
      }
  });

  test("a free model that cools down is named with its end and the words of the error, while the account is ready", async () => {
    await using proxy = await startProxy();
    const messages = [{ role: "user", content: "[demo: 429 90]" }];
    const answer = await proxy.post("/v1/chat/completions", { model: "gpt-5-mini", messages });
    const { error } = (await answer.json()) as { error: { message: string } };
    const [octo] = await usages(proxy.url);
    expect(octo).toMatchObject({ state: "ready", reason: null, until: null });
    const [limited] = octo!.limited_models;
    expect(limited).toMatchObject({ model: "gpt-5-mini", until: expect.stringMatching(/Z$/) });
    expect(limited!.reason).toBe(
      "GitHub Copilot answered with status 429 (rate_limited). GitHub limits this account's requests, and does not say which.",
    );
    expect(error.message).toContain("GitHub limits this account's requests until");
    // The next request hears the same.
    const next = await proxy.post("/v1/chat/completions", {
      model: "gpt-5-mini",
      messages: [{ role: "user", content: "Hi" }],
    });
    const refusal = (await next.json()) as { error: { message: string } };
    expect(refusal.error.message).toContain(limited!.reason.replace(/\.$/, ""));
    const page = await (await fetch(`${proxy.url}/admin/accounts`)).text();
    expect(page).toContain("cools down until");
  });

  test("what GitHub said as a number stays a number when an answer spells unlimited as -1", async () => {
    await using proxy = await startProxy();
    proxy.demo.accounts[0]!.quota = quotas.unlimited();
    const ask = () =>
      proxy.post("/v1/chat/completions", { model: "gpt-5-mini", messages: [{ role: "user", content: "Hi" }] });
    await ask();
    expect(proxy.app.accounts[0]!.knownQuota).toMatchObject({ entitlement: 0, remaining: 0, unlimited: true });
    proxy.demo.accounts[0]!.quota.premium.entitlement = 1000;
    expect((await usages(proxy.url))[0]).toMatchObject({ entitlement: 1000, remaining: 0, unlimited: true });
    await ask();
    expect((await usages(proxy.url))[0]).toMatchObject({ entitlement: 1000, remaining: 0, state: "ready" });
  });

  test("with the quota endpoint down the last known numbers are stale, nothing known is null, and routing works", async () => {
    let now = Date.now();
    await using proxy = await startProxy({ clock: { now: () => now } });
    await usages(proxy.url);
    now += 60_000;
    proxy.demo.intercept(quotaPath, () => new Response("", { status: 500 }), Number.POSITIVE_INFINITY);
    expect((await usages(proxy.url))[0]).toMatchObject({ remaining: 217.34, stale: true, failed: false });
    const answer = await proxy.post("/v1/chat/completions", {
      model: "gpt-5-mini",
      messages: [{ role: "user", content: "Hi" }],
    });
    expect(answer.status).toBe(200);

    await using fresh = await startProxy();
    fresh.demo.intercept(quotaPath, () => new Response("", { status: 500 }));
    expect((await usages(fresh.url))[0]).toMatchObject({
      remaining: null,
      unit: "unknown",
      stale: true,
      quota_error: "octo-demo: GitHub did not state the Copilot quota of this account (status 500).",
    });
  });

  test("a revoked sign-in is failed, with what to do, and the others are shown as ever", async () => {
    await using proxy = await startProxy({ accounts: all });
    proxy.demo.accounts.shift();
    const [octo, work] = await usages(proxy.url);
    expect(octo).toMatchObject({
      id: "octo-demo",
      failed: true,
      state: "failed",
      reason: expect.stringContaining("Sign in again, on the page Accounts or with `dragoman auth`."),
    });
    expect(work).toMatchObject({ id: "work-demo", failed: false });
  });
});

describe("one account", () => {
  test("counted from 0, with GitHub's own numbers as they came", async () => {
    const { status, body } = await get(`${three.url}/usage/0`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: "octo-demo", host: "github.com", temporary: false, remaining: 217.34 });
    expect(body.quota_snapshots.premium_interactions).toMatchObject({
      quota_id: "premium_interactions",
      percent_remaining: 72.447,
    });
    expect((await get(`${three.url}/usage/2`)).body.id).toBe("plus-demo");
  });

  test.each([
    ["/usage/3", 404, "GET /usage lists 3, counted from 0"],
    ["/usage/99999999999999999999", 404, "There is no account"],
    ["/usage/-1", 400, "must be a whole number"],
    ["/usage/1.5", 400, "must be a whole number"],
    ["/usage/octo-demo", 400, "must be a whole number"],
    ["/token?account=3", 404, "There is no account 3"],
    ["/token?account=", 400, "must be a whole number"],
    ["/token?account=x", 400, "must be a whole number"],
  ])("%s is %d", async (path, status, words) => {
    const answer = await get(three.url + path);
    expect([answer.status, answer.body.error.message]).toEqual([status, expect.stringContaining(words)]);
  });

  test("its token, where that is asked for", async () => {
    const first = (await get(`${three.url}/token`)).body;
    expect<unknown>(first).toEqual({ token: expect.stringMatching(/^tid=/), expires_at: expect.any(Number) });
    expect((await get(`${three.url}/token?account=0`)).body).toEqual(first);
    expect((await get(`${three.url}/token?account=1`)).body.token).toContain("sku=copilot_for_business_seat_quota");
    expect((await get(`${three.url}/token?account=2`)).status).toBe(409);
  });
});

describe("a GitHub token that is used directly", () => {
  /** Every path that answers a GET, with what stands for its parameters. */
  const everyPath = [...clientEndpoints(), ...adminEndpoints()]
    .filter(({ method, path }) => method === "GET" && path !== "/api/admin/live")
    .map(({ path }) => path.replace(":accountIndex", "0").replace(":id", "gpt-5-mini").replace(/:\w+/, "x"));
  const pages = [
    "",
    "/accounts",
    "/requests",
    "/requests/export?format=json",
    "/models",
    "/connect",
    "/config",
    "/health",
  ];

  test.each([
    ["by the app it was signed in with", { accounts: ["plus-demo"] }],
    [
      "since GitHub does not exchange it",
      { accounts: [], temporaryToken: (demo: Demo) => demo.accounts[2]!.githubToken },
    ],
  ] as const)("%s is in no answer, no page and no line; /token says so with 409", async (_name, parts) => {
    await using proxy = await startProxy({ config: { logLevel: "debug" }, ...parts });
    const { demo, lines, url } = proxy;
    const secret = demo.accounts[2]!.githubToken;
    const said: string[] = [];
    const ask = async (path: string, init?: RequestInit) => {
      const response = await fetch(url + path, init);
      said.push(`${path}: ${await response.text()} ${JSON.stringify([...response.headers])}`);
      return response.status;
    };
    const chat = (content: string) =>
      ask("/v1/chat/completions", {
        method: "POST",
        body: JSON.stringify({ model: "gpt-5-mini", messages: [{ role: "user", content }] }),
      });
    const paths = [...everyPath, ...pages.map((page) => `/admin${page}`)];
    expect(await chat("Hello")).toBe(200);
    const sent = demo.journal.filter(({ path }) => path === "/chat/completions");
    expect(sent[0]!.headers.authorization).toBe(`Bearer ${secret}`);
    for (const path of ["/token", "/token?account=0"]) expect(await ask(path)).toBe(409);
    for (const path of paths) await ask(path);
    const refused = said.find((text) => text.startsWith("/token"));
    expect(refused).toContain('"type":"invalid_request_error","param":null,"code":"direct_account"');
    expect(refused).toContain("plus-demo has no Copilot token");
    // Whose token is refused fails, and everything is said once more.
    expect(await chat("[demo: 400-body] Hello")).toBe(400);
    expect(await chat("[demo: 401-pat] Hello")).toBeGreaterThan(399);
    for (const path of paths) await ask(path);
    expect([...said, ...lines].filter((text) => text.includes(secret))).toEqual([]);
  });
});

test("a temporary account is /usage/0, the saved ones follow, its token is shown nowhere and never saved", async () => {
  await using proxy = await startProxy({ temporaryToken: (demo) => demo.accounts[1]!.githubToken });
  const { demo, home, lines, url } = proxy;
  const secret = demo.accounts[1]!.githubToken;
  const { body } = await get(`${url}/usage`);
  expect(body.accounts.map(({ id }: UsageItem) => id)).toEqual(["work-demo", "octo-demo"]);
  const zero = (await get(`${url}/usage/0`)).body;
  expect(zero).toMatchObject({ id: "work-demo", temporary: true });
  expect((await get(`${url}/usage/1`)).body).toMatchObject({ id: "octo-demo", temporary: false });
  expect((await get(`${url}/usage/2`)).status).toBe(404);
  expect(JSON.stringify([body, zero, lines])).not.toContain(secret);
  expect([...new Bun.Glob("**/*").scanSync(home)].filter((name) => name.startsWith("accounts"))).toEqual([]);
});
