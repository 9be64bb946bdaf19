/** Rows: an account's quota, from its endpoint and from the answers of models. What either says: pairs.test.ts. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { quotas } from "../../../src/demo/accounts";
import { type Demo, startDemo } from "../../../src/demo/demo";
import type { CopilotToken } from "../../../src/people/accounts/copilot-token";
import { callsTo, minute, openDemoAccount, second } from "./bench";

const quotaPath = "/copilot_internal/user";
const reset = Date.parse("2026-12-01T00:00:00Z");

let demo: Demo;
beforeEach(() => {
  demo = startDemo({ pace: 0, now: () => Date.parse("2026-11-21T10:00:00Z") });
});
afterEach(() => demo.stop());

const complete = ({ baseUrl, bearer }: CopilotToken, model: string) =>
  fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${bearer}`,
      "content-type": "application/json",
      "editor-version": "dragoman/1.2.3",
      "copilot-integration-id": "vscode-chat",
      "x-initiator": "user",
    },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Say hello." }] }),
  });

describe("what the quota endpoint says", () => {
  test("the free plan without premium requests is measured by its chat messages, and stops with them", async () => {
    const quota = { ...quotas.free(), premium: quotas.freeLegacy().premium };
    Object.assign(demo.accounts[0]!, { quota, plan: "free" });
    const { account, clock } = openDemoAccount(demo);
    expect(await account.quota()).toMatchObject({ unit: "chat", entitlement: 200, remaining: 180 });
    quota.chat.remaining = 0;
    clock.pass(minute);
    await account.quota();
    expect(account.state).toMatchObject({
      name: "exhausted",
      alsoFree: true,
      reason: "Its chat messages are used up.",
    });
  });

  test("50 who ask at once, and all who ask within 45 s, cost one question", async () => {
    const { account, clock } = openDemoAccount(demo);
    await Promise.all(Array.from({ length: 50 }, () => account.quota()));
    clock.pass(44 * second);
    await account.quota();
    expect(callsTo(demo, quotaPath)).toBe(1);
    clock.pass(2 * second);
    await account.quota();
    expect(callsTo(demo, quotaPath)).toBe(2);
  });
});

describe("what answers of models say beside", () => {
  test("each premium request is taken off at once, without asking GitHub", async () => {
    const { account } = openDemoAccount(demo);
    await account.quota();
    const response = await complete(await account.copilotToken(), "claude-sonnet-4.5");
    expect(response.status).toBe(200);
    account.learnQuota(response.headers);
    expect(account.knownQuota).toMatchObject({ unit: "premium", plan: "individual", resetAt: reset });
    expect(account.knownQuota!.remaining!).toBeCloseTo(216.3, 0);
    expect(callsTo(demo, quotaPath)).toBe(1);
  });

  test("a header under token billing does not turn placeholders into an empty quota", async () => {
    Object.assign(demo.accounts[0]!, { quota: quotas.tokenBilling(), plan: "business" });
    const { account } = openDemoAccount(demo);
    await account.quota();
    account.learnQuota(new Headers({ "x-quota-snapshot-premium_interactions": "ent=0&ov=0.0&ovPerm=false&rem=0.0" }));
    expect(account.knownQuota).toMatchObject({ unit: "credits", remaining: 0, exhausted: false });
    expect(account.state.name).toBe("ready");
  });
});

test("more quota, bought in between, is noticed from the next answer", async () => {
  demo.accounts[0]!.quota = quotas.exhausted();
  const { account } = openDemoAccount(demo);
  await account.quota();
  expect(account.state.name).toBe("exhausted");
  account.learnQuota(new Headers({ "x-quota-snapshot-premium_models": "ent=1500&rem=80.0&ovPerm=false" }));
  expect(account.state).toEqual({ name: "ready" });
});
