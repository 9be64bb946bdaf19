/**
 * Scenario: what goes wrong upstream, as each client's own kind of failure: every client dialect with every upstream
 * dialect.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { type ClientDialect, clientDialects, type Dialect, dialects } from "../../../src/dialects/hub/conversation";
import { readSse } from "../../../src/lib/net/stream/sse";
import { run } from "../../../src/lib/net/stream/stream";
import { offerOnly } from "../../support/catalogue";
import { checkChatStream } from "../../support/grammar-chat";
import { checkGeminiStream } from "../../support/grammar-gemini";
import { checkMessagesStream } from "../../support/grammar-messages";
import { checkResponsesStream } from "../../support/grammar-responses";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { drawn } from "../../support/random";

const models = {
  chat: ["gemini-3.1-pro-preview", "/chat/completions"],
  responses: ["gpt-5.3-codex", "/responses"],
  messages: ["claude-sonnet-4.6", "/v1/messages"],
} as const;
const offers = Object.fromEntries(Object.values(models).map(([model, endpoint]) => [model, [endpoint]]));
const combinations = clientDialects.flatMap((client) => dialects.map((upstream) => [client, upstream] as const));

async function start(): Promise<RunningProxy> {
  const [account] = demoAccounts();
  const proxy = await startProxy({ demo: { accounts: [{ ...account!, quota: quotas.unlimited() }] } });
  offerOnly(proxy.demo, offers);
  return proxy;
}

const proxy = await start();
afterAll(() => proxy[Symbol.asyncDispose]());

function pathOf(client: ClientDialect, upstream: Dialect, stream: boolean): string {
  const [model] = models[upstream];
  return {
    chat: "/v1/chat/completions",
    responses: "/v1/responses",
    messages: "/v1/messages",
    gemini: `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  }[client];
}

/** The same prompt with the same tool, as a client of the dialect spells it. */
function request(client: ClientDialect, upstream: Dialect, prompt: string, stream: boolean): object {
  const [model] = models[upstream];
  const name = "get_weather";
  const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
  return {
    chat: {
      model,
      stream,
      messages: [{ role: "user", content: prompt }],
      tools: [{ type: "function", function: { name, parameters: schema } }],
    },
    responses: { model, stream, input: prompt, tools: [{ type: "function", name, parameters: schema, strict: false }] },
    messages: {
      model,
      stream,
      max_tokens: 1000,
      messages: [{ role: "user", content: prompt }],
      tools: [{ name, input_schema: schema }],
    },
    gemini: {
      contents: [{ role: "user", parts: [{ text: prompt }] }],
      tools: [{ functionDeclarations: [{ name, parametersJsonSchema: schema }] }],
    },
  }[client];
}

const post = (client: ClientDialect, upstream: Dialect, prompt: string, stream: boolean, at = proxy) =>
  at.post(pathOf(client, upstream, stream), request(client, upstream, prompt, stream));

interface Frame {
  event?: string;
  // biome-ignore lint/suspicious/noExplicitAny: three wires
  data: any;
}

const frames = (text: string): Frame[] =>
  run(readSse, [new TextEncoder().encode(text)]).flatMap(({ event, data }) =>
    data === undefined ? [] : [{ ...(event && { event }), data: data === "[DONE]" ? data : JSON.parse(data) }],
  );

/** What a client must see last in a stream that broke; and nothing in it may look complete. */
const tellsOfFailure: Record<ClientDialect, (seen: Frame[]) => void> = {
  chat(seen) {
    const { error } = seen.at(-1)!.data;
    expect(error).toMatchObject({ message: expect.any(String), code: expect.any(String) });
    expect(seen.some(({ data }) => data === "[DONE]")).toBe(false);
    // A call that was cut must not be told as one to be run.
    const reasons = seen.flatMap(({ data }) => data.choices ?? []).map((choice) => choice.finish_reason ?? null);
    expect(reasons.every((reason) => reason === null)).toBe(true);
  },
  responses(seen) {
    const { event, data } = seen.at(-1)!;
    expect(event).toBe("response.failed");
    expect(data.response).toMatchObject({
      id: seen[0]!.data.response.id,
      status: "failed",
      error: { code: expect.any(String), message: expect.any(String) },
    });
    const numbers: number[] = seen.map((frame) => frame.data.sequence_number);
    expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other));
    const done = seen.filter((frame) => frame.event === "response.output_item.done").map((frame) => frame.data.item);
    expect(done.filter(({ type }) => type === "function_call")).toEqual([]);
    expect(data.response.output.filter(({ type }: { type: string }) => type === "function_call")).toEqual([]);
  },
  messages(seen) {
    const { event, data } = seen.at(-1)!;
    expect(event).toBe("error");
    expect(data).toMatchObject({ type: "error", error: { type: expect.any(String), message: expect.any(String) } });
    const types = seen.map((frame) => frame.data.type);
    expect(types).not.toContain("message_stop");
    expect(types).not.toContain("message_delta");
    const call = seen.find((frame) => frame.data.content_block?.type === "tool_use")?.data.index;
    const ended = seen.some((frame) => frame.data.type === "content_block_stop" && frame.data.index === call);
    expect(call !== undefined && ended).toBe(false);
  },
  gemini(seen) {
    const { code, message, status } = seen.at(-1)!.data.error;
    expect([code >= 400, typeof message]).toEqual([true, "string"]);
    expect(status).toMatch(/^[A-Z_]+$/);
    const candidates = seen.flatMap(({ data }) => data.candidates ?? []);
    expect(candidates.filter((candidate) => candidate.finishReason)).toEqual([]);
    expect(candidates.flatMap(({ content }) => content.parts).filter((part) => part.functionCall)).toEqual([]);
  },
};

const openaiShape = { error: { message: expect.any(String), type: expect.any(String) } };
const errorShapes: Record<ClientDialect, { error: object }> = {
  chat: openaiShape,
  responses: openaiShape,
  messages: {
    type: "error",
    error: { type: expect.any(String), message: expect.any(String) },
    request_id: expect.any(String),
  } as { error: object },
  gemini: { error: { code: expect.any(Number), message: expect.any(String), status: expect.any(String) } },
};
const errorShape = (client: ClientDialect) => errorShapes[client];

/** A detail of an error in Google's shape. */
const detail = (type: string, members: object) =>
  expect.objectContaining({ "@type": `type.googleapis.com/google.rpc.${type}`, ...members });

describe.each(drawn("failures", combinations, 2))("a client of %s and an upstream of %s", (client, upstream) => {
  const faults = ["cut 4", "end 4", "error-event", "failed", "bad-json"];
  test.each(faults)("a stream that breaks (%s) ends in the client's own error", async (fault) => {
    const response = await post(client, upstream, `[demo: ${fault}] Tell me of [demo: long 20]`, true);
    // A reset may overtake what was sent before it: then nothing has begun, and the failure is an answer.
    if (fault.startsWith("cut") && response.status === 502)
      expect(await response.json()).toMatchObject(errorShape(client));
    else {
      expect(response.status).toBe(200);
      tellsOfFailure[client](frames(await response.text()));
    }
    expect(proxy.rows()[0]).toMatchObject({
      client_dialect: client,
      upstream_dialect: upstream,
      error_type: expect.any(String),
      error_message: expect.any(String),
    });
  });

  test("a call that is cut in its arguments is never told as one to be run", async () => {
    // Before the call some upstreams say a few words, in events of their own.
    for (const after of [1, 2, 3, 5, 7, 8, 9]) {
      const response = await post(client, upstream, `[demo: end ${after}] What is the weather in Paris?`, true);
      tellsOfFailure[client](frames(await response.text()));
    }
  });

  test("a full answer that breaks is 502 in the client's shape", async () => {
    for (const fault of ["cut", "bad-json", "html", "empty"]) {
      const response = await post(client, upstream, `[demo: ${fault}] Say hello.`, false);
      expect([fault, response.status]).toEqual([fault, 502]);
      expect(await response.json()).toMatchObject(errorShape(client));
    }
  });

  test("an error as the first event of a 200 is the answer it should have been, in the upstream's words", async () => {
    const response = await post(client, upstream, "[demo: first-error] Say hello.", true);
    expect(response.status).toBe(upstream === "messages" ? 529 : 500);
    const message = upstream === "messages" ? "Overloaded" : "DEMO: the model stopped working";
    expect(await response.json()).toMatchObject({ ...errorShape(client), error: { message } });
  });

  test("a 200 without a single event too", async () => {
    const response = await post(client, upstream, "[demo: empty] Say hello.", true);
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject(errorShape(client));
  });

  test("a prompt over the limit is refused in the words this client heals from", async () => {
    for (const stream of [false, true]) {
      const response = await post(client, upstream, "a ".repeat(600_000), stream);
      expect(response.status).toBe(400);
      const { error } = (await response.json()) as { error: { type: string; message: string; code?: string } };
      if (client === "gemini") {
        const details = expect.arrayContaining([detail("ErrorInfo", { reason: "CONTEXT_LENGTH_EXCEEDED" })]);
        expect(error).toMatchObject({ code: 400, status: "INVALID_ARGUMENT", details });
        continue;
      }
      expect(error.type).toBe("invalid_request_error");
      if (client === "messages") expect(error.message).toMatch(/^prompt is too long: \d+ tokens > \d+ maximum$/);
      else expect(error.code).toBe("context_length_exceeded");
    }
  });

  test("`retry-after` reaches the client, and the words too", async () => {
    await using fresh = await start();
    const response = await post(client, upstream, "[demo: 429 7] Say hello.", true, fresh);
    expect(response.status).toBe(429);
    expect(response.headers.get("retry-after")).toBe("7");
    const { error } = (await response.json()) as { error: object };
    expect(error).toMatchObject({ message: expect.stringContaining("Too many requests. Please wait.") });
    if (client !== "gemini") expect(error).toMatchObject({ type: "rate_limit_error" });
    else {
      const details = expect.arrayContaining([detail("RetryInfo", { retryDelay: "7s" })]);
      expect(error).toMatchObject({ code: 429, status: "RESOURCE_EXHAUSTED", details });
    }
  });

  test("an upstream's own refusal keeps its status and words", async () => {
    for (const [directive, status, words] of [
      ["400-off-topic", 400, "off_topic: the question is not about programming"],
      ["404", 404, "404 page not found"],
      ["500", 500, "Internal server error"],
      ["529", 529, "Overloaded"],
    ] as const) {
      const response = await post(client, upstream, `[demo: ${directive}] Say hello.`, true);
      expect(response.status).toBe(status);
      const { error } = (await response.json()) as { error: { type: string; message: string } };
      expect(error.message).toBe(words);
      if (client === "messages" && status === 529) expect(error.type).toBe("overloaded_error");
    }
  });
});

test("an upstream that compresses its answers is read, and the client is told of no compression", async () => {
  for (const [client, upstream] of combinations) {
    const [, endpoint] = models[upstream];
    proxy.demo.intercept(endpoint, async ({ headers, bytes }) => {
      const plain = await fetch(proxy.demo.url + endpoint, { method: "POST", headers, body: new Uint8Array(bytes) });
      return new Response(Bun.gzipSync(new Uint8Array(await plain.arrayBuffer())), {
        headers: { "content-type": plain.headers.get("content-type")!, "content-encoding": "gzip" },
      });
    });
    const response = await post(client, upstream, "Say hello.", false);
    expect(response.headers.get("content-encoding")).toBeNull();
    expect(await response.text()).toContain("DEMO: Hello!");
  }
});

describe("silence of the upstream", () => {
  const isSign: Record<ClientDialect, (text: string) => number> = {
    chat: (text) => text.match(/^: /gm)?.length ?? 0,
    responses: (text) => (text.match(/^event: response\.in_progress$/gm)?.length ?? 0) - 1,
    messages: (text) => text.match(/^event: ping$/gm)?.length ?? 0,
    // White space before the next JSON, which the first sign begins.
    gemini: (text) => Math.max(...[...text.matchAll(/^data:( +)\{/gm)].map(([, space]) => space!.length)),
  };
  const grammars = {
    chat: checkChatStream,
    responses: checkResponsesStream,
    messages: checkMessagesStream,
    gemini: checkGeminiStream,
  };

  test("is filled with what each client counts as life, and disturbs the strictest reader of none", async () => {
    await using quiet = await start();
    quiet.app.limits.keepAlive = 60;
    await Promise.all(
      combinations.map(async ([client, upstream]) => {
        const response = await post(client, upstream, "[demo: silence 1] Say hello.", true, quiet);
        const text = await response.text();
        const asked = { model: models[upstream][0], turns: [], tools: [], stream: true };
        grammars[client](run(readSse, [new TextEncoder().encode(text)]), asked);
        // Chat's own upstream, and Anthropic's, say `ping` besides.
        expect([client, upstream, isSign[client](text) >= 2]).toEqual([client, upstream, true]);
      }),
    );
  });

  test("beyond the limit ends in a timeout of the client's own", async () => {
    await using quiet = await start();
    quiet.app.limits.stream.idle = 150;
    await Promise.all(
      combinations.map(async ([client, upstream]) => {
        const response = await post(client, upstream, "[demo: silence 20] Say hello.", true, quiet);
        const seen = frames(await response.text());
        if (client === "messages") expect(seen.at(-1)!.data.error.type).toBe("timeout_error");
        tellsOfFailure[client](seen);
      }),
    );
  });
});
