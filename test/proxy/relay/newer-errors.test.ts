/** Scenario: errors in the forms that GitHub has used since 2026, beside the older ones. */
import { expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { eventStream, namedEvent } from "../../support/event-stream";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { type ExchangeFault, refuseExchange } from "../../support/refused-exchange";
import { timed } from "./bench";

const premium = "claude-sonnet-4.6";
const ask = (content: string, model = premium) => ({ model, messages: [{ role: "user", content }] });

const errorOf = async (response: Response) =>
  ((await response.json()) as { error: { message: string; code: string; type: string } }).error;

async function post(proxy: RunningProxy, content: string, model?: string) {
  const response = await proxy.post("/v1/chat/completions", ask(content, model));
  const error = await errorOf(response);
  return { status: response.status, headers: response.headers, error };
}

const start = () => {
  const [octo] = demoAccounts();
  return timed({ demo: { accounts: [{ ...octo!, quota: quotas.overage() }] } });
};

test("the client reads where it is raised, with a status that it shows at once, and no time to wait for", async () => {
  await using proxy = await start();
  for (const content of ["[demo: 402-spend] Hello", "Hello"]) {
    const { status, headers, error } = await post(proxy, content);
    expect([status, error.code]).toEqual([424, "additional_spend_limit_reached"]);
    expect([headers.get("x-should-retry"), headers.get("retry-after")]).toEqual(["false", null]);
    expect(error.message).toContain("only raising it ends that: at https://github.com/settings/billing/budgets, or by");
    expect(error.message).toContain("the organization's admin for a seat");
    expect(error.message).toContain("Models that cost no quota may still work.");
    expect(error.message).not.toMatch(/until|before \d/);
  }
  expect((await post(proxy, "Hello", "gpt-5-mini")).status).toBe(200);
  expect(proxy.app.accounts[0]!.state).toMatchObject({ name: "exhausted", untilRaised: true });
});

test("the budget for use beyond the plan is spent: it ends when it is raised, long before the quota's reset, and not because overage is permitted", async () => {
  await using proxy = await start();
  await post(proxy, "[demo: 402-spend] Hello");
  proxy.pass(60_000);
  await proxy.app.accounts[0]!.quota();
  expect(proxy.app.accounts[0]!.state.name).toBe("exhausted");
  proxy.pass(600_000);
  expect((await post(proxy, "Hello")).status).toBe(200);
  expect(proxy.app.accounts[0]!.state.name).toBe("ready");
});

test("a limit of five hours, whose wait is in the text only, ends when the text says", async () => {
  await using proxy = await timed();
  const { status, headers, error } = await post(proxy, "[demo: 429-session] Hello");
  expect([status, headers.get("retry-after"), error.code]).toEqual([429, "2733", "user_global_rate_limited:pro"]);
  proxy.pass(2_700_000);
  expect((await post(proxy, "Hello")).status).toBe(429);
  proxy.pass(40_000);
  expect((await post(proxy, "Hello")).status).toBe(200);
});

test("a limit of a session is one of hours, whose wait is short, and not the month's quota", async () => {
  await using proxy = await timed();
  const { status, headers, error } = await post(proxy, "[demo: 402-session] Hello");
  expect([status, error.code]).toEqual([429, "session_quota_exceeded"]);
  expect(error.message).toContain("its limit for a session of a few hours");
  expect(error.message).not.toContain("used up");
  expect(Number(headers.get("retry-after"))).toBeLessThanOrEqual(120);
  expect(proxy.app.accounts[0]!.state.name).toBe("cooling");
  proxy.pass(130_000);
  expect((await post(proxy, "Hello")).status).toBe(200);
});

test("a limit of a session is one in a stream, too", async () => {
  await using proxy = await timed();
  const error = { error: { code: "session_quota_exceeded", message: "You have reached your session limit" } };
  proxy.demo.intercept("/chat/completions", () => eventStream(`data: ${JSON.stringify(error)}\n\n`), 3);
  const answer = await proxy.post("/v1/chat/completions", { ...ask("Hello"), stream: true });
  expect([answer.status, (await errorOf(answer)).code]).toEqual([429, "session_quota_exceeded"]);
  expect(proxy.app.accounts[0]!.state.name).toBe("cooling");
});

test("a limit in plain text is what the header beside it says: a used-up quota, or a model's own limit", async () => {
  await using proxy = await startProxy();
  expect(await post(proxy, "[demo: 429-quota] Hello")).toMatchObject({
    status: 429,
    error: { code: "quota_exceeded" },
  });
  expect(proxy.app.accounts[0]!.state.name).toBe("exhausted");

  await using other = await startProxy();
  const headers = { "x-ratelimit-exceeded": "user_model_rate_limited", "retry-after": "60" };
  other.demo.intercept("/chat/completions", () => new Response("quota exceeded\n", { status: 429, headers }));
  expect((await post(other, "Hello")).error.message).toContain("This limit holds for this model only");
  expect((await post(other, "Hello", "claude-sonnet-4.5")).status).toBe(200);
});

test("a limit of 402, whose answer has no headers at all, lasts until the quota's reset and costs nothing", async () => {
  await using proxy = await startProxy();
  const body = '{"error":{"message":"You have no quota","code":"quota_exceeded"}}';
  proxy.demo.intercept("/chat/completions", () => new Response(body, { status: 402 }));
  const { status, error } = await post(proxy, "Hello");
  expect([status, error.code]).toEqual([429, "quota_exceeded"]);
  expect(error.message).toContain("You have no quota. This account's quota is used up");
  expect(proxy.rows()[0]).toMatchObject({ cost: 0 });
});

const models = ["gemini-3.1-pro-preview", "gpt-5.3-codex", premium];
test.each(["400-long", "400-window", "400-bad", "413-prompt"])(
  "a prompt that is too long, in the words of any of GitHub's backends, (%s) makes each client compact",
  async (directive) => {
    await using proxy = await startProxy();
    const content = `[demo: ${directive}] Hello`;
    for (const model of models) {
      const messages = await proxy.post("/v1/messages", { max_tokens: 9, ...ask(content, model) });
      expect<unknown[]>([messages.status, await errorOf(messages)]).toEqual([
        400,
        { type: "invalid_request_error", message: expect.stringMatching(/^prompt is too long: /) },
      ]);
      const responses = await proxy.post("/v1/responses", { model, input: content });
      expect([responses.status, (await errorOf(responses)).code]).toEqual([400, "context_length_exceeded"]);
      expect((await post(proxy, content, model)).error.code).toBe("context_length_exceeded");
    }
  },
);

test("a prompt that turns out too long after a stream has begun makes each client compact too", async () => {
  await using proxy = await startProxy();
  const error = { code: "context_length_exceeded", message: "Your input exceeds the context window of this model." };
  const response = { id: "resp_1", object: "response", status: "in_progress", model: "gpt-5.3-codex", output: [] };
  const events = [
    { type: "response.created", sequence_number: 0, response },
    { type: "response.failed", sequence_number: 1, response: { ...response, status: "failed", error } },
  ];
  proxy.demo.intercept("/responses", () => eventStream(events.map(namedEvent).join("")), 2);
  const body = { stream: true, max_tokens: 9, ...ask("Hello", "gpt-5.3-codex") };
  const messages = await (await proxy.post("/v1/messages", body)).text();
  expect(messages).toContain(
    `"error":{"type":"invalid_request_error","message":"prompt is too long: ${error.message}"}`,
  );
  const asked = { model: "gpt-5.3-codex", input: "Hello", stream: true };
  const responses = await (await proxy.post("/v1/responses", asked)).text();
  expect(responses).toMatch(/^event: response\.failed\ndata: .*"code":"context_length_exceeded"/m);
});

test("a model's endpoint that GitHub does not serve is told by the text, whichever code stands beside it", async () => {
  await using proxy = await startProxy({ accounts: ["octo-demo", "work-demo"] });
  for (const directive of ["400-endpoint", "400-endpoint-model"]) {
    const { status, error } = await post(proxy, `[demo: ${directive}] Hello`);
    expect([status, error.code]).toEqual([400, "unsupported_api_for_model"]);
    expect(error.message).toContain("is not accessible via the /chat/completions endpoint. GitHub's model list names");
  }
  // It says nothing about the account's right to the model.
  expect((await post(proxy, "Hello")).status).toBe(200);
  expect(proxy.rows()[0]!.account_id).toBe("octo-demo");
});

test("a token that GitHub does not take because it is a personal one fails the account at the model host, and the next one serves", async () => {
  await using proxy = await startProxy({ accounts: ["octo-demo", "work-demo"] });
  expect((await post(proxy, "[demo: 400-pat @octo-demo] Hello")).status).toBe(200);
  expect(proxy.app.accounts[0]!.state).toMatchObject({
    name: "failed",
    reason: expect.stringContaining("GitHub takes no personal access token here: sign in again"),
  });
});

test.each<[ExchangeFault, string]>([
  ["personal-token", "not supported for this endpoint. GitHub takes no personal access token here: sign in again"],
  ["own-app", "Resource not accessible by integration. GitHub exchanges tokens of its own GitHub Apps only"],
  ["no_copilot_access", "GitHub does not let this account use Copilot: Signup for GitHub Copilot."],
])("a token that GitHub does not take at the exchange (%s) fails the account with what to do", async (fault, words) => {
  await using proxy = await startProxy();
  refuseExchange(proxy.demo, fault);
  const { status, error } = await post(proxy, "Hello");
  expect([status, error.message]).toEqual([424, expect.stringContaining(words)]);
  expect(proxy.app.accounts[0]!.state.name).toBe("failed");
});
