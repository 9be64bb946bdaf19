/** Rows: what a client is told of a failure: to come again where that helps, and otherwise at once what is to be done. */
import { describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { againOf, errorKinds, ProxyError } from "../../../src/lib/errors";
import { errorForClient } from "../../../src/proxy/relay/client-error";
import { type ProxyOptions, type RunningProxy, startProxy } from "../../support/proxy";
import { drawn } from "../../support/random";

const claude = "claude-sonnet-4.6";
const asks = {
  "/v1/messages": { max_tokens: 9, messages: [{ role: "user", content: "Hello" }] },
  "/v1/responses": { input: "Hello" },
  "/v1/chat/completions": { messages: [{ role: "user", content: "Hello" }] },
};
type Path = keyof typeof asks;
const paths = Object.keys(asks) as Path[];

interface Told {
  status: number;
  retry: string | null;
  after: string | null;
  message: string;
  type: string;
}

async function ask(proxy: RunningProxy, path: Path, model = claude, headers = {}, url = path as string): Promise<Told> {
  const response = await proxy.post(url, { model, ...asks[path] }, { headers });
  const { error } = (await response.json()) as { error: { message: string; type: string } };
  return {
    status: response.status,
    retry: response.headers.get("x-should-retry"),
    after: response.headers.get("retry-after"),
    ...error,
  };
}

/** What clients repeat by themselves, or are silent about. */
const repeats = (status: number) => status === 408 || status === 409 || status === 429 || status >= 500;
const atOnce: Record<Path, number> = { "/v1/messages": 424, "/v1/responses": 400, "/v1/chat/completions": 424 };

/** Nothing that a client could wait for. */
const hopeless: [string, ProxyOptions, (proxy: RunningProxy) => void, RegExp][] = [
  ["nobody is signed in", { accounts: [] }, () => {}, /dragoman auth/],
  [
    "the sign-in is refused",
    {},
    ({ demo }) => {
      for (const path of ["/v1/messages", "/responses", "/chat/completions"])
        demo.intercept(path, () => new Response("unauthorized", { status: 401 }), Number.POSITIVE_INFINITY);
    },
    /unauthorized/,
  ],
  [
    "GitHub knows the token no longer",
    {},
    ({ demo }) => {
      demo.intercept("/copilot_internal/v2/token", () => Response.json({}, { status: 401 }), Number.POSITIVE_INFINITY);
    },
    /sign in|signed/i,
  ],
];

describe.each(hopeless)("%s", (name, options, spoil, words) => {
  test.each(drawn(name, paths, 2))("is told at once by %s, once", async (path) => {
    await using proxy = await startProxy(options);
    spoil(proxy);
    const told = await ask(proxy, path);
    expect(told).toMatchObject({ status: atOnce[path], retry: "false", after: null });
    expect(told.message).toMatch(words);
    expect(proxy.rows()[0]?.http_status ?? told.status).toBe(told.status);
  });
});

test("official SDKs ask once, and show the sentence", async () => {
  await using proxy = await startProxy({ accounts: [] });
  let requests = 0;
  const counting = (input: string | URL | Request, init?: RequestInit) => {
    requests++;
    return fetch(input, init);
  };
  const options = { apiKey: "unused", maxRetries: 5, fetch: counting as typeof fetch };
  const openai = new OpenAI({ baseURL: `${proxy.url}/v1`, ...options });
  const anthropic = new Anthropic({ baseURL: proxy.url, ...options });
  const hello = [{ role: "user" as const, content: "Hello" }];
  const calls = [
    () => openai.chat.completions.create({ model: "gpt-5-mini", messages: hello }),
    () => openai.responses.create({ model: "gpt-5-mini", input: "Hello" }),
    () => anthropic.messages.create({ model: claude, max_tokens: 9, messages: hello }),
    () => openai.models.list(),
  ];
  for (const call of calls) {
    requests = 0;
    expect(await Promise.resolve(call()).catch((thrown: Error) => thrown.message)).toContain("dragoman auth");
    expect(requests).toBe(1);
  }
});

test.each(paths)("%s: what the caller did wrong keeps its status, and is not repeated", async (path) => {
  await using proxy = await startProxy({ config: { auth: { apiKeys: ["k-owner-0123456789"] } } });
  const key = { "x-api-key": "k-owner-0123456789" };
  const told = [
    await ask(proxy, path, claude, { "x-api-key": "wrong" }),
    await ask(proxy, path, "no-such-model", key),
    await ask(proxy, path, `${claude}[1m]`, key),
    await ask(proxy, path, claude, key, `${path}/nowhere`),
  ];
  expect(told.map(({ status, retry }) => [status, retry])).toEqual([
    [401, "false"],
    [404, "false"],
    [400, "false"],
    [404, "false"],
  ]);
});

test.each(paths)("%s: a model that is not enabled is told so by its own sentence", async (path) => {
  await using proxy = await startProxy();
  proxy.demo.intercept("/models", () => {
    const model = (id: string, state: string) => ({
      id,
      name: id,
      vendor: "Anthropic",
      object: "model",
      version: "1",
      model_picker_enabled: true,
      preview: false,
      policy: { state, terms: "" },
      supported_endpoints: ["/v1/messages", "/chat/completions", "/responses"],
      capabilities: { type: "chat", family: id, limits: {}, supports: { streaming: true, tool_calls: true } },
    });
    return Response.json({ object: "list", data: [model(claude, "disabled"), model("gpt-5-mini", "enabled")] });
  });
  const told = await ask(proxy, path);
  // Claude Code puts words of its own in the place of any 404, and Codex repeats it.
  expect(told.status).toBe(path === "/v1/chat/completions" ? 404 : atOnce[path]);
  expect([told.retry, told.message]).toEqual([
    "false",
    expect.stringContaining("https://github.com/settings/copilot/features"),
  ]);
});

const codex = { "user-agent": "codex_exec/0.169.0 (Linux; x86_64)" };
const opencode = { "user-agent": "opencode/1.18.33 ai-sdk/provider-utils/4 runtime/bun/1.3" };
const qwenCode = { "user-agent": "QwenCode/0.24.4 (linux; x64)" };
const limited = (status: number, code: string, message: string, seconds: string) => () =>
  Response.json({ error: { code, message } }, { status, headers: { "retry-after": seconds } });

test.each(paths)(
  "a rest: %s: of an hour is 429 with its end, but at once to who would sleep through it",
  async (path) => {
    await using proxy = await startProxy();
    for (const upstream of ["/v1/messages", "/responses", "/chat/completions"])
      proxy.demo.intercept(
        upstream,
        limited(402, "quota_exceeded", "You have no quota.", "3600"),
        Number.POSITIVE_INFINITY,
      );
    for (let turn = 0; turn < 2; turn++) {
      const patient = await ask(proxy, path);
      expect([patient.status, patient.retry]).toEqual([429, "false"]);
      expect(Number(patient.after)).toBeWithin(3590, 3601);
      for (const sleeper of [codex, opencode, qwenCode]) {
        const told = await ask(proxy, path, claude, sleeper);
        expect(told).toMatchObject({ status: atOnce[path], retry: "false", after: null });
        expect(told.message).toContain("This account's quota is used up");
        // opencode repeats whatever speaks of these, with any status.
        expect(told.type).not.toMatch(/rate_limit|server_error/);
        expect(proxy.rows()[0]!.http_status).toBe(told.status);
      }
    }
  },
);

test.each(paths)("a rest: %s: of seconds is 429 to all, and they come again", async (path) => {
  await using proxy = await startProxy();
  for (const upstream of ["/v1/messages", "/responses", "/chat/completions"])
    proxy.demo.intercept(upstream, limited(429, "rate_limited", "Slow.", "9"), Number.POSITIVE_INFINITY);
  for (const client of [{}, codex, opencode, qwenCode])
    expect(await ask(proxy, path, claude, client)).toMatchObject({
      status: 429,
      retry: null,
      after: expect.any(String),
    });
});

test.each([500, 502, 503, 504, 529])("the upstream's own %i may be repeated", async (status) => {
  await using proxy = await startProxy();
  for (const upstream of ["/v1/messages", "/responses", "/chat/completions"])
    proxy.demo.intercept(
      upstream,
      () => Response.json({ error: { message: "No." } }, { status }),
      Number.POSITIVE_INFINITY,
    );
  for (const path of paths)
    for (const client of [{}, { "user-agent": "codex_exec/0.169.0" }])
      expect(await ask(proxy, path, claude, client)).toMatchObject({ status, retry: null });
});

test("no kind of failure that waiting cannot mend has a status that clients repeat, once it is told", () => {
  for (const kind of Object.keys(errorKinds) as (keyof typeof errorKinds)[])
    for (const dialect of ["messages", "responses", "chat"] as const) {
      const error = new ProxyError(kind, "It failed.");
      const told = errorForClient(error, dialect, "opencode/1.18.33");
      const again = againOf(error);
      expect([kind, told.details.headers?.["x-should-retry"]]).toEqual([kind, again === "soon" ? undefined : "false"]);
      if (again !== "soon" && kind !== "conflict") expect([kind, repeats(told.status)]).toEqual([kind, false]);
      if (again === "soon") expect(told).toBe(error);
      const twice = errorForClient(told, dialect, "opencode/1.18.33");
      expect([twice.kind, twice.status, twice.details]).toEqual([told.kind, told.status, told.details]);
    }
});
