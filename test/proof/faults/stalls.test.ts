/** Rows: the stall walk: an upstream that stalls at any point of any endpoint costs the one request, and no other. */
import { expect, test } from "bun:test";
import { fetchLogin } from "../../../src/people/accounts/github";
import { hostsFor, signInApp } from "../../../src/people/accounts/hosts";
import { signIn } from "../../../src/people/accounts/sign-in";
import { type StallPoint, startFront } from "../../support/front";
import { startProvider } from "../../support/provider";
import { type RunningProxy, startProxy } from "../../support/proxy";

/** Milliseconds: what an upstream may be silent here, and what a client waits at most for being told so. */
const limit = 3000;
const timeoutMs = 10_000;

const points: StallPoint[] = ["before the headers", "after the headers", "in the middle of the body"];
const words = [{ role: "user", content: "Hello" }];
const key = "key-of-the-provider";

const chat = (model: string, stream: boolean) => ["/v1/chat/completions", { model, stream, messages: words }] as const;
const responses = (model: string, stream: boolean) => ["/v1/responses", { model, stream, input: "Hello" }] as const;
const messages = (model: string, stream: boolean, max_tokens = 999, path = "/v1/messages") =>
  [path, { model, stream, max_tokens, messages: words }] as const;

interface Walk {
  /** The upstream's path that stalls. */
  path: string;
  /** What the client asks: a path, and a body where it posts one. */
  asks: readonly [path: string, body?: object];
  /** What its answer is, where it is not 504. */
  instead?: { status: number; says: RegExp; header?: readonly [name: string, value: string] };
  /** What stalls is a stream: once it has begun, its own error event says so. */
  streamed?: boolean;
  /** Nothing is known before the request that meets it: the model list is not asked for first. */
  afresh?: boolean;
}

const walks: Record<string, Walk> = {
  "chat, full": { path: "/chat/completions", asks: chat("gpt-5-mini", false) },
  "chat, streamed": { path: "/chat/completions", asks: chat("gpt-5-mini", true), streamed: true },
  "responses, full": { path: "/responses", asks: responses("gpt-5.3-codex", false) },
  "responses, streamed": { path: "/responses", asks: responses("gpt-5.3-codex", true), streamed: true },
  "messages, full": { path: "/v1/messages", asks: messages("claude-sonnet-4.6", false) },
  "messages, streamed": { path: "/v1/messages", asks: messages("claude-sonnet-4.6", true), streamed: true },
  "messages, collected": { path: "/v1/messages", asks: messages("claude-sonnet-4.6", false, 30_000) },
  "chat of responses, full": { path: "/responses", asks: chat("gpt-5.3-codex", false) },
  "messages of responses, streamed": { path: "/responses", asks: messages("gpt-5.3-codex", true), streamed: true },
  embeddings: { path: "/embeddings", asks: ["/v1/embeddings", { model: "text-embedding-3-small", input: "Hello" }] },
  "a provider, full": { path: "/v1/messages", asks: messages("claude-sonnet-4.6", false, 99, "/odd/v1/messages") },
  "a provider, streamed": {
    path: "/v1/messages",
    asks: messages("claude-sonnet-4.6", true, 99, "/odd/v1/messages"),
    streamed: true,
  },
  "a provider's models": { path: "/v1/models", asks: ["/odd/v1/models"] },
  // The provider's models can be used meanwhile; `x-model-list` says that the list is not whole.
  "the models": {
    path: "/models",
    asks: ["/v1/models"],
    afresh: true,
    instead: { status: 200, says: /"id":"odd\//, header: ["x-model-list", "stale"] },
  },
  "the models, for a request": { path: "/models", asks: chat("gpt-5-mini", true), afresh: true },
  // A client's count must never fail for that.
  "the token counter": {
    path: "/v1/messages/count_tokens",
    asks: messages("claude-sonnet-4.6", false, 9, "/v1/messages/count_tokens"),
    instead: { status: 200, says: /^\{"input_tokens":\d+\}$/ },
  },
  // No account could serve; that is what is said, and why.
  "GitHub's token": {
    path: "/copilot_internal/v2/token",
    asks: chat("gpt-5-mini", false),
    afresh: true,
    instead: {
      status: 503,
      says: /octo-demo cannot serve: GitHub('s answer was not complete after| did not answer within) 3 s/,
    },
  },
  "GitHub's quota": {
    path: "/copilot_internal/user",
    asks: ["/usage"],
    instead: { status: 200, says: /"quota_error":"octo-demo: GitHub/ },
  },
};

test.concurrent.each(points)("an error whose body stalls %s is told by its status", async (point) => {
  await using proxy = await startProxy({
    fronted: true,
    env: { DRAGOMAN_UPSTREAM_TIMEOUT_MS: String(limit) },
  });
  const asks = [
    "/v1/chat/completions",
    { model: "gpt-5-mini", messages: [{ role: "user", content: "[demo: 500] x" }] },
  ] as const;
  const whole = await ask(proxy, asks);
  proxy.front!.stall("/chat/completions", point);
  const cut = await ask(proxy, asks);
  expect([whole.status, cut.status]).toEqual([500, point === "before the headers" ? 504 : 500]);
});

test.concurrent.each(points)(
  "GitHub that stalls %s ends a sign-in by code, and the naming of a token's owner",
  async (point) => {
    await using github = await startFront("http://127.0.0.1:9");
    github.answers = () => "{}";
    const caller = {
      hosts: hostsFor("github.com", { githubUrl: github.url, githubApiUrl: github.url }),
      version: "0",
      timeoutMs: limit,
    };
    const said =
      point === "before the headers"
        ? "GitHub did not answer within 3 s."
        : "GitHub's answer was not complete after 3 s; it was given up.";
    github.stall("/user", point);
    expect(await fetchLogin(caller, "gho_x", "direct").catch((thrown) => thrown)).toMatchObject({
      kind: "timeout",
      message: said,
    });
    github.stall("/login/device/code", point);
    expect(await signIn({ ...caller, app: signInApp(), show() {} }).catch((thrown) => thrown)).toMatchObject({
      kind: "timeout",
      message: said,
    });
  },
);

/** `GET` without a body. */
const ask = (proxy: RunningProxy, [path, body]: Walk["asks"]) =>
  body ? proxy.post(path, body) : fetch(proxy.url + path);

const all = Object.entries(walks).flatMap(([name, walk]) => points.map((point) => [name, point, walk] as const));

// Most of the time is waiting, so they wait at the same time.
test.concurrent.each(all)(
  "%s stalls %s: the client is told in time, and the next is served",
  async (_name, point, { path, asks, instead, streamed, afresh = false }) => {
    await using provider = startProvider({ key, auth: "x-api-key" });
    await using beside = await startFront(provider.url);
    await using proxy = await startProxy({
      fronted: true,
      env: {
        DRAGOMAN_UPSTREAM_TIMEOUT_MS: String(limit),
        DRAGOMAN_ANTHROPIC_API_URL: beside.url,
        ANTHROPIC_API_KEY: key,
      },
      config: { providers: { odd: { type: "anthropic", baseUrl: beside.url, apiKey: key } } },
    });
    beside.answers = (path) => (path.endsWith("count_tokens") ? '{"input_tokens":7}' : undefined);
    const front = /^\/odd\/|count_tokens$/.test(asks[0]) ? beside : proxy.front!;
    if (!afresh) expect((await ask(proxy, ["/v1/models"])).status).toBe(200);
    front.stall(path, point);

    const startedAt = performance.now();
    const response = await ask(proxy, asks);
    const text = await response.text();
    expect(performance.now() - startedAt).toBeLessThan(timeoutMs);
    const begun = streamed && point === "in the middle of the body";
    const { status, says } = instead ?? { status: begun ? 200 : 504, says: /timeout/ };
    expect([response.status, text]).toEqual([status, expect.stringMatching(says)]);
    if (instead?.header) expect(response.headers.get(instead.header[0])).toBe(instead.header[1]);
    if (!instead) {
      expect(text).toMatch(/sent nothing for 3 s before its answer was complete|did not answer within 3 s/);
      expect(text).not.toMatch(/\[DONE\]|message_stop|response\.completed/);
    }

    // Where the answer says when to come again, that is when.
    await Bun.sleep(Number(response.headers.get("retry-after") ?? 0) * 1000);
    const next = await ask(proxy, asks);
    expect([next.status, await next.text()]).toEqual([200, expect.not.stringMatching(/"error":|quota_error":"/)]);
  },
);
