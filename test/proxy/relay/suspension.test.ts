/**
 * Scenario: GitHub says that it has blocked an account: whichever endpoint says so, nothing is sent any more until a
 * person acts.
 */
import { describe, expect, test } from "bun:test";
import { eventStream } from "../../support/event-stream";
import type { RunningProxy } from "../../support/proxy";
import { until } from "../../support/until";
import { type TimedProxy, timed } from "./bench";

const all = ["octo-demo", "work-demo"];
const words = "Sorry. Your account was suspended";
const chat = "/chat/completions";
const exchange = "/copilot_internal/v2/token";
const quota = "/copilot_internal/user";
const always = Number.POSITIVE_INFINITY;

const blocked = (status: number, body: object = { message: words }) => Response.json(body, { status });
const ask = (proxy: RunningProxy, model = "claude-sonnet-4.6") =>
  proxy.post("/v1/chat/completions", { model, messages: [{ role: "user", content: "Hello" }] });
/** Calls to the model host since then. */
const served = ({ demo }: RunningProxy) => demo.journal.filter(({ path }) => path === chat).length;

/** Tells the block of octo-demo's at one endpoint, from then on. */
function block({ demo }: RunningProxy, path: string, status: number, body?: object): void {
  const octo = demo.accounts[0]!.githubToken;
  demo.intercept(
    path,
    (seen) =>
      seen.account === "octo-demo" || seen.headers.authorization?.endsWith(octo) ? blocked(status, body) : undefined,
    always,
  );
}

/** @param said What later requests and the log have of GitHub's answer. */
async function expectStopped(proxy: TimedProxy, said = words): Promise<void> {
  proxy.pass(3600_000);
  const before = served(proxy);
  for (const model of ["claude-sonnet-4.6", "gpt-5-mini"]) {
    const response = await ask(proxy, model);
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    expect([response.status, error.code, response.headers.get("x-should-retry")]).toEqual([
      403,
      "account_suspended",
      "false",
    ]);
    expect(error.message).toContain("octo-demo");
    expect(error.message).toContain(said);
    // GitHub's words may not be kept: none are pointed to.
    expect(error.message).toContain("Sign in to GitHub with this account in a browser");
  }
  expect(served(proxy)).toBe(before);
  const usage = (await (await fetch(`${proxy.url}/usage`)).json()) as { accounts: Record<string, unknown>[] };
  expect(usage.accounts[0]).toMatchObject({ id: "octo-demo", state: "failed", failed: true });
  expect(proxy.lines.filter((line) => line.includes("EVERYTHING HAS STOPPED"))).toHaveLength(1);
  // Beside the lines of the requests.
  expect(proxy.lines.filter((line) => line.includes(said) && !line.includes("POST"))).toHaveLength(1);
}

describe("told at", () => {
  test.each([
    ["the quota endpoint, 403", quota, 403, undefined],
    ["the quota endpoint, 401 with a code", quota, 401, { code: "access_revoked", message: words }],
  ])("%s: no account serves", async (_, path, status, body) => {
    await using proxy = await timed({ accounts: all });
    expect((await ask(proxy)).status).toBe(200);
    block(proxy, path, status, body);
    await fetch(`${proxy.url}/usage`);
    await expectStopped(proxy);
  });

  test("the model list: no account serves, and the log says it once", async () => {
    await using proxy = await timed({ accounts: all });
    block(proxy, "/models", 403);
    await fetch(`${proxy.url}/v1/models`);
    // It was not asked for once more.
    const lists = proxy.demo.journal.filter(({ path, account }) => path === "/models" && account === "octo-demo");
    expect(lists).toHaveLength(1);
    await expectStopped(proxy, "GitHub Copilot answered with status 403.");
  });

  test("a renewal of the model list beside a request: the next one is not served", async () => {
    await using proxy = await timed({ accounts: all });
    expect((await ask(proxy)).status).toBe(200);
    block(proxy, "/models", 403);
    proxy.pass(11 * 60_000);
    await ask(proxy);
    await until(() => proxy.app.pool.suspensionError() !== undefined, "the pool has stopped");
    await expectStopped(proxy, "GitHub Copilot answered with status 403.");
  });

  test.each([401, 403, 451])("the exchange, as %d: no account serves", async (status) => {
    await using proxy = await timed({ accounts: all });
    block(proxy, exchange, status);
    await ask(proxy);
    await expectStopped(proxy);
  });

  test("the quota endpoint in direct mode, when the model host has moved", async () => {
    await using proxy = await timed({ accounts: ["plus-demo"] });
    expect((await ask(proxy)).status).toBe(200);
    proxy.demo.intercept(chat, () => new Response("", { status: 421 }));
    proxy.demo.intercept(quota, () => blocked(403));
    expect((await ask(proxy)).status).toBe(403);
    expect(proxy.app.pool.suspensionError()?.message).toContain("plus-demo");
    expect((await ask(proxy)).status).toBe(403);
    expect(served(proxy)).toBe(2);
  });
});

const stream = (code: string, message: string) => () =>
  eventStream(
    `data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\ndata: ${JSON.stringify({ error: { code, message } })}\n\n`,
  );
const streamed = (proxy: RunningProxy) =>
  proxy.post("/v1/chat/completions", {
    model: "claude-sonnet-4.6",
    stream: true,
    messages: [{ role: "user", content: "Suspend the job" }],
  });

test.each([
  ["spammy_user", words],
  ["permission_error", words],
])("told in the middle of an answer by %s: no account serves", async (code, message) => {
  await using proxy = await timed({ accounts: all });
  proxy.demo.intercept(chat, stream(code, message));
  expect(await (await streamed(proxy)).text()).toContain(message);
  await expectStopped(proxy, `GitHub Copilot reported an error (${code}).`);
});

test("told in the middle of an answer, a fault that only quotes such a word stops nobody", async () => {
  await using proxy = await timed({ accounts: all });
  proxy.demo.intercept(chat, stream("invalid_request_error", "There is no tool `suspend`."));
  await (await streamed(proxy)).text();
  expect((await ask(proxy)).status).toBe(200);
});

test("what comes later does not end it: an exchange that fails or succeeds meanwhile", async () => {
  for (const late of [() => new Response("", { status: 500 }), () => undefined]) {
    await using proxy = await timed({ accounts: all });
    const answered = Promise.withResolvers<void>();
    proxy.demo.intercept(exchange, async () => {
      await answered.promise;
      return late();
    });
    block(proxy, quota, 403);
    const asked = ask(proxy);
    await until(() => proxy.demo.journal.some(({ path }) => path === exchange), "a token is asked for");
    await fetch(`${proxy.url}/usage`);
    answered.resolve();
    expect((await asked).status).toBe(403);
    expect(served(proxy)).toBe(0);
    await expectStopped(proxy);
  }
});

test("what comes later does not end it: a sign-in that is revoked as well", async () => {
  await using proxy = await timed({ accounts: all });
  block(proxy, quota, 403);
  await fetch(`${proxy.url}/usage`);
  proxy.app.accounts[0]!.setState({ name: "failed", reason: "Revoked." });
  await expectStopped(proxy);
});

test("the other accounts hand out no token either, and the pages say why", async () => {
  await using proxy = await timed({ accounts: all });
  block(proxy, quota, 403);
  await fetch(`${proxy.url}/usage`);
  expect((await fetch(`${proxy.url}/token?account=1`)).status).toBe(403);
  expect(proxy.demo.journal.some(({ path }) => path === exchange)).toBe(false);
  for (const page of ["/admin", "/admin/accounts"]) {
    const text = await (await fetch(proxy.url + page)).text();
    expect(text).toContain("All requests are stopped");
    expect(text).toContain("dragoman auth rm octo-demo");
  }
});
