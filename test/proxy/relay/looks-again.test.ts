/**
 * Scenario: GitHub is asked before a request is refused because of a quota that an earlier answer said is used up: by
 * many at once, and when it is slow. `fixtures/scenes/errors.txt` has the rest.
 */
import { expect, test } from "bun:test";
import type { RunningProxy } from "../../support/proxy";
import { until } from "../../support/until";
import { type TimedProxy, timed } from "./bench";

const minute = 60_000;
const chat = "/chat/completions";
const quotaPath = "/copilot_internal/user";

const ask = { model: "claude-sonnet-4.6", messages: [{ role: "user", content: "Hello" }] };
const statusOf = async (proxy: RunningProxy) => {
  const response = await proxy.post("/v1/chat/completions", ask);
  await response.text();
  return response.status;
};
const asked = ({ demo }: RunningProxy, path: string) => demo.journal.filter((seen) => seen.path === path).length;
/** A proxy whose one account has just used up its quota. */
async function usedUp(): Promise<TimedProxy> {
  const proxy = await timed({ accounts: ["octo-demo"] });
  proxy.demo.accounts[0]!.quota.premium.remaining = 0;
  expect(await statusOf(proxy)).toBe(429);
  return proxy;
}

test("a quota that is used up is asked for once in three minutes, however many requests are refused", async () => {
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

test("a slow GitHub holds a request for two seconds", async () => {
  await using proxy = await usedUp();
  const held = Promise.withResolvers<undefined>();
  proxy.demo.intercept(quotaPath, () => held.promise);
  proxy.pass(3 * minute);
  const began = performance.now();
  expect(await statusOf(proxy)).toBe(429);
  expect(performance.now() - began).toBeWithin(1500, 6000);
  proxy.demo.accounts[0]!.quota.premium.remaining = 100;
  held.resolve(undefined);
  await until(() => proxy.app.accounts[0]!.state.name === "ready", "the answer is there");
  expect(await statusOf(proxy)).toBe(200);
  expect(asked(proxy, quotaPath)).toBe(1);
});
