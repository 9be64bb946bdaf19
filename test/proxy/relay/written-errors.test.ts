/**
 * Scenario: what is told and what is written down of an error: the client gets the upstream's words whole, and no file,
 * log, metric, page or API has a word of them or of the request.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { examples } from "../../../src/deploy/documents/failure-examples";
import { rows } from "../../../src/proxy/upstream/copilot/failure-rows";
import { offerOnly } from "../../support/catalogue";
import { eventStream } from "../../support/event-stream";
import { startProxy } from "../../support/proxy";
import { drawn } from "../../support/random";
import { fixtures } from "../../support/streams";
import { type TimedProxy, timed } from "./bench";

/** A string that no sentence of ours or an upstream's holds; the number tells the fields apart. */
let plants = 0;
const plant = () => `planted${++plants}word secret${plants}thing`;

/** By the path: what a client sends, in which another string stands for each `$`. */
const requests = new Map(
  readFileSync(join(fixtures, "planted/requests.txt"), "utf8")
    .trim()
    .split("\n")
    .map((line) => [line.split(" ", 1)[0]!, line.slice(line.indexOf(" "))]),
);
const planted = (path: string) => JSON.parse(requests.get(path)!.replaceAll("$", plant));
const bodyOf = (path: string) => (model: string, stream: boolean) => ({ model, stream, ...planted(path) });
const chatBody = bodyOf("/v1/chat/completions");
const messagesBody = bodyOf("/v1/messages");

const clients = [
  ["/v1/chat/completions", chatBody],
  ["/v1/responses", bodyOf("/v1/responses")],
  ["/v1/messages", messagesBody],
] as const;
const models = [
  ["gemini-3.1-pro-preview", "/chat/completions"],
  ["gpt-5.3-codex", "/responses"],
  ["claude-sonnet-4.6", "/v1/messages"],
] as const;

const json = (body: object, status: number) => Response.json(body, { status });

/** Every way in which an upstream may repeat what it was sent. */
const failures: Record<string, (said: string, path: string) => Response> = {
  "400 in OpenAI's form": (said) =>
    json({ error: { code: "invalid_prompt", message: `Bad prompt: ${said}`, param: "x" } }, 400),
  "400 in Anthropic's form": (said) =>
    json({ type: "error", error: { type: "invalid_request_error", message: `messages: ${said} is not allowed` } }, 400),
  "400 in plain text": (said) => new Response(`Bad Request: ${said}`, { status: 400 }),
  "400 with the words as its code": (said) => json({ error: { code: said.slice(0, 200), message: "Bad." } }, 400),
  "401": (said) => new Response(`unauthorized: ${said}`, { status: 401 }),
  "402": (said) => json({ error: { code: "quota_exceeded", message: `No quota for ${said}` } }, 402),
  "403": (said) => new Response(`forbidden: ${said}`, { status: 403 }),
  "404": (said) => new Response(said, { status: 404 }),
  "422": (said) => new Response(`The filter refuses "${said}".`, { status: 422 }),
  "429 of the model": (said) => json({ error: { code: "user_model_rate_limited", message: `Slow: ${said}` } }, 429),
  "429 of the account": (said) => json({ error: { code: "user_global_rate_limited", message: `Slow: ${said}` } }, 429),
  "500": (said) => json({ error: { message: `Crashed at ${said}` } }, 500),
  "529": (said) => json({ type: "error", error: { type: "overloaded_error", message: said } }, 529),
  "200, the error as JSON": (said) => json({ error: { code: "server_error", message: said } }, 200),
  "200, the error as the first event": (said) =>
    eventStream(
      `event: error\ndata: ${JSON.stringify({ type: "error", error: { code: "server_error", message: said } })}\n\n`,
    ),
  "200, the error in the middle": (said, path) =>
    eventStream(
      `${opening[path]}event: error\ndata: ${JSON.stringify({ type: "error", error: { type: "api_error", code: "api_error", message: said } })}\n\n`,
    ),
  "200, no event": (said) => eventStream(`data: {"${said.replace(/\W/g, " ")}\n\n`),
};

/** Those whose words are in no message. */
const wordless: ReadonlySet<string> = new Set(["400 with the words as its code", "200, no event"]);
const isEvents = (name: string) => /event|middle/.test(name);

/** Recorded errors without a row. */
const others: typeof examples = [
  [401, "", "unauthorized: unauthorized: AuthenticateToken authentication failed"],
  [400, "", "Bad Request"],
  [404, "", "404 page not found"],
  [408, "user_request_timeout", "Timed out reading request body. Try again, or use a smaller request size."],
  [503, "", "upstream provider rate limit"],
];

const opening: Record<string, string> = {
  "/chat/completions": `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"g","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}\n\n`,
  "/responses": `event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","status":"in_progress","model":"g","output":[]}}\n\n`,
  "/v1/messages": `event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}\n\n`,
};

/** Each string value within, by a copy of the whole that has something else in its place. */
function* replaced(value: unknown, put: () => unknown): Generator<unknown> {
  if (typeof value !== "object" || value === null) {
    yield put();
    return;
  }
  yield put();
  for (const [key, member] of Object.entries(value))
    for (const other of replaced(member, put))
      yield Array.isArray(value)
        ? value.map((each, at) => (String(at) === key ? other : each))
        : { ...value, [key]: other };
}

/** A request of each dialect. */
const asks = [
  ...clients,
  [
    (model: string, stream: boolean) =>
      `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    () => planted("gemini"),
  ],
] as const;

/** A text as it stands within JSON. */
const inJson = (text: string) => JSON.stringify(text).slice(1, -1);

/** Everything that is written down or shown, by its place. */
async function written(proxy: TimedProxy): Promise<[string, string][]> {
  proxy.app.history.flush();
  const pages = [
    ...[
      "accounts",
      "requests?limit=200",
      "models",
      "statistics",
      "export?format=csv",
      "export?format=json",
      "drift",
    ].map((page) => `/api/admin/${page}`),
    ...[
      "/admin",
      "/admin/requests",
      "/admin/accounts",
      "/admin/models",
      "/admin/health",
      "/metrics",
      "/health",
      "/usage",
    ],
  ];
  return [
    ...readdirSync(proxy.home, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name, parentPath }): [string, string] => [name, readFileSync(join(parentPath, name)).toString("latin1")]),
    ["the log", proxy.lines.join("")],
    ...(await Promise.all(
      pages.map(async (page): Promise<[string, string]> => [page, await (await fetch(proxy.url + page)).text()]),
    )),
  ];
}

async function expectNothing(proxy: TimedProxy): Promise<void> {
  for (const [place, text] of await written(proxy)) {
    const at = text.search(/planted\d+word|secret\d+thing/i);
    expect([place, at < 0 ? "" : text.slice(Math.max(0, at - 80), at + 60)]).toEqual([place, ""]);
  }
  expect(proxy.rows(1)).toHaveLength(1);
}

/** A proxy with so many accounts, whose upstream and whose provider `own` answer as they are told. */
async function planting(count: number) {
  let answer: (body: string) => Response = () => json({}, 500);
  const provider = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => answer(await request.text()),
  });
  const [first, ...further] = demoAccounts();
  const accounts = [first!, ...further.filter(({ host }) => host === first!.host)].slice(0, count);
  expect(accounts).toHaveLength(count);
  const proxy = await timed({
    demo: { accounts: accounts.map((account) => ({ ...account, quota: quotas.unlimited() })) },
    config: {
      logLevel: "debug",
      toolSearch: "off",
      providers: {
        own: { type: "anthropic", baseUrl: `http://127.0.0.1:${provider.port}`, apiKey: "sk-own-key-of-a-test" },
      },
    },
  });
  offerOnly(proxy.demo, Object.fromEntries(models.map(([model, path]) => [model, [path]])));
  for (const [, path] of models)
    proxy.demo.intercept(path, ({ bytes }) => answer(Buffer.from(bytes).toString()), Number.POSITIVE_INFINITY);
  return {
    proxy,
    answers(next: (body: string) => Response) {
      answer = next;
    },
    /** Limits and failures end with time. */
    wake() {
      const isAwake = proxy.app.accounts.every(
        ({ state, limitedModels }) => state.name === "ready" && limitedModels.length === 0,
      );
      if (!isAwake) proxy.pass(32 * 86_400_000);
    },
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await provider.stop(true);
    },
  };
}

describe.each([1, 2])("the words of an upstream reach the client alone, with %i accounts", (count) => {
  let at: Awaited<ReturnType<typeof planting>>;
  beforeAll(async () => {
    at = await planting(count);
  });
  afterAll(() => at[Symbol.asyncDispose]());

  /** Asks in each dialect for each model, streamed and whole, and looks for what the client must get. */
  async function ask(
    fail: (said: string, endpoint: string) => Response,
    { wanted = inJson, modes = [true, false], turns = [0, 1, 2] } = {},
  ): Promise<void> {
    for (const [place, [path, bodyOf]] of asks.entries())
      for (const turn of turns)
        for (const stream of modes) {
          const [model, endpoint] = models[(place + turn) % models.length]!;
          const told: string[] = [];
          at.answers((sent) => {
            // A different piece each time: whole, cut, and a single value; and a word of the upstream's own.
            const values = sent.match(/planted\d+word secret\d+thing/g) ?? [];
            const said = `${plant()}: ${values.slice(0, 3).join(", ")} in ${sent.slice(0, 700).trim()}`;
            told.push(said);
            return fail(said, endpoint);
          });
          at.wake();
          const response = await at.proxy.post(
            typeof path === "string" ? path : path(model, stream),
            bodyOf(model, stream),
          );
          const text = await response.text();
          expect(told.length).toBeGreaterThan(0);
          const isTold = text.includes(wanted(told.at(-1)!));
          expect([path, model, stream, isTold ? "" : text]).toEqual([path, model, stream, ""]);
        }
  }

  test.each(drawn(`failures of ${count}`, Object.entries(failures), 6))("%s", async (name, fail) => {
    await ask(fail, { wanted: wordless.has(name) ? () => "" : inJson, modes: isEvents(name) ? [true] : [true, false] });
    for (const stream of [true, false]) {
      at.answers((sent) => fail(sent.slice(0, 900), "/v1/messages"));
      await (await at.proxy.post("/own/v1/messages", messagesBody("m", stream))).text();
    }
    await expectNothing(at.proxy);
  });

  test("each recorded error", async () => {
    const recorded = [...examples.filter((_, row) => !rows[row]!.suspended), ...others];
    for (const [turn, [status, code, message, param]] of drawn(`recorded of ${count}`, [...recorded.entries()], 6))
      await ask(
        (said) =>
          code === ""
            ? new Response(`${message} ${said}`, { status })
            : json({ error: { code, message: `${message} ${said}`, param } }, status),
        { turns: [turn] },
      );
    await expectNothing(at.proxy);
  }, 60_000);
});

describe("nothing that was planted in a request is written down of its failure", () => {
  let proxy: TimedProxy;
  let at: Awaited<ReturnType<typeof planting>>;
  beforeAll(async () => {
    at = await planting(1);
    proxy = at.proxy;
  });
  afterAll(() => at[Symbol.asyncDispose]());
  const wake = () => at.wake();

  test("our own sentences about a value that is not what it must be", async () => {
    at.answers(() => json({ error: { message: "No." } }, 500));
    let refused = 0;
    for (const [path, bodyOf] of clients)
      for (const [model] of models)
        for (const value of drawn(`${path} ${model}`, [...replaced(bodyOf(model, false), plant)], 6)) {
          const { model: _, ...body } = value as { model?: unknown };
          const response = await proxy.post(path, { ...body, model });
          if (response.status === 400) refused++;
          await response.text();
          wake();
        }
    expect(refused).toBeGreaterThan(15);
    await expectNothing(proxy);
  });

  test("our own sentences that quote the client: tools, files, items and roles", async () => {
    at.answers(() => json({ error: { message: "No." } }, 500));
    const tool = () => ({ type: "function", function: { name: plant().replace(" ", "_"), parameters: {} } });
    const pdf = {
      type: "document",
      title: plant(),
      source: { type: "base64", media_type: "application/pdf", data: "AA==" },
    };
    const type = plant().split(" ")[0];
    const said = [
      ["/v1/chat/completions", { ...chatBody("gpt-5.3-codex", false), tools: Array.from({ length: 200 }, tool) }],
      ["/v1/chat/completions", { ...chatBody("gpt-5.3-codex", false), messages: [{ role: type, content: "Hi" }] }],
      [
        "/v1/messages",
        { model: "gemini-3.1-pro-preview", max_tokens: 9, messages: [{ role: "user", content: [pdf] }] },
      ],
      ["/v1/responses", { model: "gpt-5.3-codex", input: [{ type: "item_reference", id: plant() }] }],
      [
        "/v1beta/models/gpt-5.3-codex:generateContent",
        { contents: [{ parts: [{ text: "Hi" }] }], generationConfig: { responseMimeType: plant() } },
      ],
    ] as const;
    const statuses: number[] = [];
    for (const [path, body] of said) {
      wake();
      const response = await proxy.post(path, body);
      statuses.push(response.status);
      expect(await response.text()).toContain("planted");
    }
    expect(statuses).toEqual([400, 400, 400, 400, 400]);
    await expectNothing(proxy);
  });

  test("our own sentences that quote a header", async () => {
    const statuses: number[] = [];
    for (const [path, bodyOf] of clients)
      for (const headers of [
        { "content-type": `application/json; charset=${plant()}` },
        { "content-encoding": plant() },
        { "content-encoding": `gzip, ${plant()}` },
      ] as Record<string, string>[]) {
        const response = await proxy.post(path, bodyOf("gpt-5.3-codex", false), { headers });
        statuses.push(response.status);
        expect(await response.text()).toContain("planted");
      }
    expect(statuses).toEqual(statuses.map(() => 415));
    await expectNothing(proxy);
  });

  test("the names of fields that nobody knows, which are named where they are dropped", async () => {
    at.answers(() => json({ error: { message: "No." } }, 500));
    /** Each object within, by a copy of the whole that has one member more. */
    function* extended(value: unknown): Generator<unknown> {
      if (typeof value !== "object" || value === null) return;
      if (!Array.isArray(value)) yield { ...value, [plant()]: 1 };
      for (const [key, member] of Object.entries(value))
        for (const other of extended(member))
          yield Array.isArray(value)
            ? value.map((each, at) => (String(at) === key ? other : each))
            : { ...value, [key]: other };
    }
    const google = {
      contents: [
        { role: "user", parts: [{ text: "Hi" }, { inlineData: { mimeType: "image/png", data: "AA==" } }] },
        { role: "model", parts: [{ functionCall: { name: "f", args: {} } }] },
      ],
      generationConfig: { temperature: 1, thinkingConfig: { thinkingBudget: 5 } },
      tools: [{ functionDeclarations: [{ name: "f", parameters: { type: "OBJECT" } }] }],
      toolConfig: { functionCallingConfig: { mode: "AUTO" } },
    };
    const file = { type: "file", file: { filename: "a", file_data: `data:${plant()};base64,AA==` } };
    const asked: [path: string, body: unknown][] = [
      ...clients.flatMap(([path, bodyOf]) =>
        models.flatMap(([model]) =>
          [...extended(bodyOf(model, false))].map((body) => [path, body] as [string, unknown]),
        ),
      ),
      ...models.flatMap(([model]) =>
        [...extended(google)].map((body) => [`/v1beta/models/${model}:generateContent`, body] as [string, unknown]),
      ),
      ["/v1/chat/completions", { model: "claude-sonnet-4.6", messages: [{ role: "user", content: [file] }] }],
    ];
    expect(asked.length).toBeGreaterThan(200);
    for (const [path, body] of drawn("unknown fields", asked, 6)) {
      await (await proxy.post(path, body)).text();
      wake();
    }
    await expectNothing(proxy);
  });

  test("the headers of an upstream's answer", async () => {
    for (const [model] of models)
      for (const status of [200, 400, 403, 429, 500])
        for (const name of ["content-type", "retry-after", "x-ratelimit-exceeded", "x-quota-snapshot-chat", "date"]) {
          at.answers(() => new Response("{}", { status, headers: { [name]: plant(), "x-request-id": plant() } }));
          wake();
          await (await proxy.post("/v1/chat/completions", chatBody(model, true))).text();
        }
    await expectNothing(proxy);
  });

  test("embeddings and counted tokens", async () => {
    for (const input of [plant(), [plant(), { text: plant() }], { text: plant() }])
      await (
        await proxy.post("/v1/embeddings", { model: "text-embedding-3-small", input, encoding_format: plant() })
      ).text();
    await (
      await proxy.post("/v1/messages/count_tokens", {
        ...messagesBody("claude-sonnet-4.6", false),
        system: { a: plant() },
      })
    ).text();
    await expectNothing(proxy);
  });
});

test("a fault of dragoman's own is told without its words, and the log has its class and where it came from", async () => {
  await using proxy = await startProxy();
  const secret = plant();
  Object.assign(proxy.app.accounts[0]!, {
    presentCopilotToken() {
      throw Object.assign(new RangeError(`Broken\n    at ${secret} (a.ts:1:1)`), { code: "E_ODD" });
    },
  });
  const answer = await proxy.post("/v1/chat/completions", chatBody("gpt-5-mini", false));
  const message = "Something went wrong inside dragoman; its log on stderr says what.";
  expect(await answer.json()).toEqual({ error: { message, type: "server_error", param: null, code: null } });
  expect(proxy.rows()[0]).toMatchObject({ http_status: 500, error_type: "internal", error_message: message });
  const log = proxy.lines.join("");
  expect(log.match(/ error /g)).toHaveLength(1);
  expect(log).toContain(
    " error POST failed unexpectedly; please report this. (RangeError E_ODD at presentCopilotToken (",
  );
  expect(log).not.toContain(secret);
});

test("an account of another person is not used, however it was chosen", async () => {
  await using proxy = await startProxy();
  Object.defineProperty(proxy.app.accounts[0], "member", { value: "somebody" });
  for (const model of ["gpt-5-mini", "auto"]) {
    const answer = await proxy.post("/v1/chat/completions", chatBody(model, false));
    expect([answer.status, await answer.text()]).toEqual([500, expect.stringContaining("belongs to another person")]);
  }
  expect(proxy.lines.join("")).toContain("octo-demo of member somebody was chosen for a request of member null");
  expect(proxy.demo.journal.filter(({ path }) => /completions|auto/.test(path))).toEqual([]);
});
