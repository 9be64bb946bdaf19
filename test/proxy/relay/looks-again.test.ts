/**
 * Rows: a state that one answer has set for long ends when GitHub says so: it is asked before a request is refused
 * because of it.
 */
import { describe, expect, test } from "bun:test";
import { autoAccounts } from "../../support/auto-accounts";
import type { RunningProxy } from "../../support/proxy";
import { until } from "../../support/until";
import { type TimedProxy, timed } from "./bench";

const minute = 60_000;
const chat = "/chat/completions";
const quotaPath = "/copilot_internal/user";

const ask = (model = "claude-sonnet-4.6") => ({ model, messages: [{ role: "user", content: "Hello" }] });
const post = (proxy: RunningProxy, model?: string) => proxy.post("/v1/chat/completions", ask(model));
const statusOf = async (proxy: RunningProxy, model?: string) => {
  const response = await post(proxy, model);
  await response.text();
  return response.status;
};
const asked = ({ demo }: RunningProxy, path: string) => demo.journal.filter((seen) => seen.path === path).length;
const refuse = (status: number, code: string, retryAfter: number) =>
  Response.json(
    { error: { code, message: "Told by GitHub." } },
    { status, headers: { "retry-after": `${retryAfter}` } },
  );

/** A proxy whose one account has just used up its quota. */
async function usedUp(): Promise<TimedProxy> {
  const proxy = await timed({ accounts: ["octo-demo"] });
  proxy.demo.accounts[0]!.quota.premium.remaining = 0;
  expect(await statusOf(proxy)).toBe(429);
  return proxy;
}

describe("a quota that is used up", () => {
  test("and more of it bought since: the next request is served, long before the reset", async () => {
    await using proxy = await usedUp();
    proxy.demo.accounts[0]!.quota.premium.remaining = 100;
    proxy.pass(5 * minute);
    expect(await statusOf(proxy)).toBe(200);
  });

  test("is asked for once in three minutes, however many requests are refused", async () => {
    await using proxy = await usedUp();
    const many = () => Promise.all(Array.from({ length: 50 }, () => statusOf(proxy)));
    expect(await statusOf(proxy)).toBe(429);
    expect(asked(proxy, quotaPath)).toBe(0);
    for (let look = 1; look <= 3; look++) {
      proxy.pass(3 * minute);
      expect(new Set(await many())).toEqual(new Set([429]));
      expect(await statusOf(proxy)).toBe(429);
      expect(asked(proxy, quotaPath)).toBe(look);
    }
    expect(asked(proxy, chat)).toBe(1);
  });

  test("GitHub cannot be asked: the refusal is the same, and it is not asked at once again", async () => {
    await using proxy = await usedUp();
    proxy.demo.intercept(quotaPath, () => new Response("", { status: 502 }), Number.POSITIVE_INFINITY);
    proxy.pass(3 * minute);
    for (let turn = 0; turn < 3; turn++) {
      const response = await post(proxy);
      expect([response.status, await response.text()]).toEqual([429, expect.stringContaining("quota is used up")]);
    }
    expect(asked(proxy, quotaPath)).toBe(1);
  });

  test("a slow GitHub holds a request for two seconds, and a client that leaves not even that", async () => {
    await using proxy = await usedUp();
    const held = Promise.withResolvers<undefined>();
    proxy.demo.intercept(quotaPath, () => held.promise);
    proxy.pass(3 * minute);
    const client = new AbortController();
    const leaving = proxy.post("/v1/chat/completions", ask(), { signal: client.signal }).catch(() => undefined);
    await until(() => asked(proxy, quotaPath) === 1, "GitHub is asked");
    client.abort();
    await leaving;
    await until(() => proxy.rows().length === 2, "the request has its row");
    expect(proxy.rows()[0]).toMatchObject({ http_status: 499 });

    const began = performance.now();
    expect(await statusOf(proxy)).toBe(429);
    expect(performance.now() - began).toBeWithin(1500, 6000);
    proxy.demo.accounts[0]!.quota.premium.remaining = 100;
    held.resolve(undefined);
    await until(() => proxy.app.accounts[0]!.state.name === "ready", "the answer is there");
    expect(await statusOf(proxy)).toBe(200);
    expect(asked(proxy, quotaPath)).toBe(1);
  });

  test("nobody looks while another account serves, or where no account is short of quota", async () => {
    await using proxy = await timed({ accounts: ["octo-demo", "plus-demo"] });
    proxy.demo.accounts[0]!.quota.premium.remaining = 0;
    expect(await statusOf(proxy)).toBe(200);
    const before = asked(proxy, quotaPath); // the second account was asked for its host
    proxy.pass(5 * minute);
    expect(await statusOf(proxy)).toBe(200);
    expect(await statusOf(proxy, "gpt-5-mini")).toBe(200);
    expect(asked(proxy, quotaPath)).toBe(before);
  });

  test("Auto looks again too", async () => {
    const { pro } = autoAccounts();
    await using proxy = await timed({ demo: { accounts: [pro] } });
    await proxy.app.accounts[0]!.quota();
    proxy.app.accounts[0]!.setState({ name: "exhausted", alsoFree: true });
    expect(await statusOf(proxy, "auto")).toBe(429);
    proxy.pass(5 * minute);
    expect(await statusOf(proxy, "auto")).toBe(200);
  });

  test("overage that the config forbids: what was bought since is found", async () => {
    await using proxy = await timed({ accounts: ["octo-demo"], config: { neverOverage: true } });
    const { premium } = proxy.demo.accounts[0]!.quota;
    Object.assign(premium, { remaining: 1, overagePermitted: true });
    expect([await statusOf(proxy), await statusOf(proxy)]).toEqual([200, 429]);
    premium.remaining = 100;
    proxy.pass(5 * minute);
    expect(await statusOf(proxy)).toBe(200);
  });
});

test.each(["user_global_rate_limited", "user_model_rate_limited"])(
  "a limit: %s with an absurd end ends",
  async (code) => {
    await using proxy = await timed({ accounts: ["octo-demo"] });
    proxy.demo.intercept(chat, () => refuse(429, code, 99_999_999));
    expect(await statusOf(proxy)).toBe(429);
    proxy.pass(minute);
    expect(await statusOf(proxy)).toBe(429);
    proxy.pass(5 * minute);
    expect(await statusOf(proxy)).toBe(200);
  },
);

test("a limit of the week lasts as long as GitHub says", async () => {
  await using proxy = await timed({ accounts: ["octo-demo"] });
  proxy.demo.intercept(chat, () => refuse(429, "user_weekly_rate_limited", 2 * 86_400));
  expect(await statusOf(proxy)).toBe(429);
  proxy.pass(60 * minute);
  expect(await statusOf(proxy)).toBe(429);
  expect(asked(proxy, chat)).toBe(1);
});

test("a sign-in without a right is tried again after minutes, whatever the refusal says: its person may have given it", async () => {
  await using proxy = await timed({ accounts: ["octo-demo"] });
  const words = "Personal Access Token does not have Copilot Requests permission";
  const headers = { "retry-after": "86400" };
  proxy.demo.intercept(chat, () => Response.json({ error: { message: words } }, { status: 401, headers }));
  expect(await statusOf(proxy)).not.toBe(200);
  expect(proxy.app.accounts[0]!.state.name).toBe("failed");
  proxy.pass(6 * minute);
  expect(await statusOf(proxy)).toBe(200);
});
