/** Scenario: of a client's headers few go up, of an upstream's few come down. */
import { afterAll, describe, expect, test } from "bun:test";
import { startProxy } from "../support/proxy";
import { startRaw } from "../support/raw-socket";

const proxy = await startProxy({ config: { auth: { apiKeys: ["k-alpha-0123456789"] } } });
afterAll(() => proxy[Symbol.asyncDispose]());

const messages = [{ role: "user", content: "Hello" }];
const calls = [
  ["/v1/chat/completions", "/chat/completions", { model: "gpt-5-mini", messages }],
  ["/v1/responses", "/responses", { model: "gpt-5.3-codex", input: "Hello" }],
  ["/v1/messages", "/v1/messages", { model: "claude-sonnet-4.6", max_tokens: 50, messages }],
  ["/v1/embeddings", "/embeddings", { model: "text-embedding-3-small", input: "Hello" }],
] as const;
const key = { authorization: "Bearer k-alpha-0123456789" };

/** All that the upstream may ever be told. */
const up = new Set(
  `accept accept-encoding anthropic-beta anthropic-version authorization connection content-length content-type copilot-integration-id
   copilot-vision-request editor-plugin-version editor-version host openai-intent user-agent x-github-api-version
   x-initiator x-request-id`.split(/\s+/),
);

describe.each(calls)("%s", (path, endpoint, body) => {
  test("nothing a client says of itself goes up", async () => {
    const canaries = {
      cookie: "c=canary-1",
      "x-api-key": "canary-2",
      "x-forwarded-for": "198.51.100.7",
      "user-agent": "canary-4",
      "x-stainless-lang": "canary-5",
      "x-request-id": "canary-6",
      "openai-organization": "canary-7",
      "x-initiator": "canary-8",
      "copilot-integration-id": "canary-9",
      "editor-version": "canary-10",
      "proxy-authorization": "canary-11",
      referer: "http://canary-12/",
      "x-dragoman-other": "canary-13",
      "accept-language": "canary-14",
      origin: "http://canary.example",
      forwarded: "for=canary-15",
      x_initiator: "canary-16",
      "transfer-foo": "canary-17",
      "keep-alive": "canary-18",
      te: "canary-19",
      "upgrade-insecure-requests": "canary-20",
    };
    expect((await proxy.post(path, body, { headers: { ...key, ...canaries } })).status).toBe(200);
    const seen = proxy.demo.journal.findLast((each) => each.path === endpoint)!;
    expect(Object.keys(seen.headers).filter((name) => !up.has(name))).toEqual([]);
    const told = JSON.stringify(seen.headers);
    for (const word of ["canary", "198.51.100.7", "k-alpha"]) expect(told).not.toContain(word);
  });

  const modes = [{}, { stream: true }, { status: 400 }];
  test.each(path === "/v1/embeddings" ? modes.filter(({ stream }) => !stream) : modes)(
    "of the upstream's headers nothing unknown comes down (%j)",
    async ({ status = 200, stream }: { status?: number; stream?: boolean }) => {
      const odd = {
        "set-cookie": "s=canary",
        "access-control-allow-origin": "*",
        "x-goog-api-key": "canary",
        authorization: "Bearer canary",
        "x-huge": "a".repeat(8_000),
        server: "canary",
        "x-request-id": "canary",
        link: "<http://canary/>",
        "alt-svc": "canary",
      };
      const ask = () => proxy.post(path, { ...body, stream }, { headers: key });
      const good = await (await ask()).arrayBuffer();
      const answer = status === 200 ? good : JSON.stringify({ error: { message: "no", code: "bad" } });
      const type = stream ? "text/event-stream" : "application/json";
      proxy.demo.intercept(endpoint, () => new Response(answer, { status, headers: { "content-type": type, ...odd } }));
      const response = await ask();
      expect(response.status).toBe(status);
      await response.arrayBuffer();
      const own = /^(?:content-(?:type|length)|cache-control|date|transfer-encoding|x-request-id)$/;
      const names = [...response.headers.keys()].filter((name) => !own.test(name));
      expect(names).toEqual(status === 200 ? [] : ["x-should-retry"]);
      expect(JSON.stringify([...response.headers])).not.toContain("canary");
    },
  );
});

test.each(["vendorx-beta", "anthropic-beta"])("the upstream sees of the betas in %s those it knows", async (name) => {
  const send = (value: string) =>
    proxy.post(
      "/v1/messages",
      { model: "claude-sonnet-4.6", max_tokens: 50, messages },
      { headers: { ...key, [name]: value } },
    );
  const told = () =>
    proxy.demo.journal.findLast((each) => each.path === "/v1/messages")!.headers["anthropic-beta"] ?? "";
  expect((await send("interleaved-thinking-2025-05-14,evil")).status).toBe(200);
  expect(told()).toBe("interleaved-thinking-2025-05-14");
  expect((await send(Array.from({ length: 400 }, (_, index) => `evil-2025-01-${index}`).join(","))).status).toBe(200);
  expect(told()).not.toContain("evil");
});

test("200 KB of headers are no answer, or none of ours", async () => {
  const reply =
    '{"type":"message","id":"1","role":"assistant","model":"m","content":[],"stop_reason":"end_turn","usage":{}}';
  await using huge = await startRaw(
    (socket) =>
      void socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${reply.length}\r\nx-huge: ${"a".repeat(200_000)}\r\n\r\n${reply}`,
      ),
  );
  await using own = await startProxy({
    config: { providers: { huge: { type: "anthropic", baseUrl: huge.url, apiKey: "key-of-the-provider" } } },
  });
  const response = await own.post("/huge/v1/messages", { model: "m", max_tokens: 5, messages });
  expect([200, 502]).toContain(response.status);
  expect(response.headers.get("x-huge")).toBeNull();
  expect((await own.post("/v1/chat/completions", { model: "gpt-5-mini", messages })).status).toBe(200);
});
