/** Scenario: traces for a collector: what arrives there, and what an exchange has to do with it. */
import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { readOtelSettings } from "../../../src/books/observe/otel-settings";
import { startTraces } from "../../../src/books/observe/trace-export";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { type Collector, startCollector } from "../../support/collector";
import { type Command, run } from "../../support/command";
import { postJson } from "../../support/post-json";
import { startProvider } from "../../support/provider";
import { startProxy } from "../../support/proxy";
import { temporaryFolder } from "../../support/temporary-folder";
import { until } from "../../support/until";
import { usedDemo } from "../../support/used-demo";

const folder = temporaryFolder(afterAll);
const start = (env: Record<string, string>, ...options: string[]) =>
  run(["start", "--demo", "--json", "--port", "0", ...options], {
    env: { DRAGOMAN_HOME: usedDemo(join(folder, crypto.randomUUID())), ...env },
  });

const canary = "zebra-crossing";
const chat = (content: string, stream = true) => ({
  model: exampleModels.flash,
  stream,
  messages: [{ role: "user", content: `${content} ${canary}` }],
});

const ask = (url: string, path: string, body: object, headers?: Record<string, string>) =>
  postJson(url + path, body, headers);

/** Ends the program, which exports what is left. */
async function end(command: Command): Promise<void> {
  command.process.kill("SIGTERM");
  expect(await command.exited).toBe(0);
}

const parentOf = (trace: string, span: string, flags = "01") => ({ traceparent: `00-${trace}-${span}-${flags}` });
const [traceId, spanId] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];

const spansOf = ({ spans }: Collector, kind: "SERVER" | "CLIENT") => spans.filter((span) => span.kind === kind);

test.concurrent("a span for each exchange, and one for each attempt, which end with the stream", async () => {
  await using collector = startCollector();
  await using command = start({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: "x-collector-key=key-of-the-collector",
    OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
    OTEL_SERVICE_NAME: "our proxy",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
  });
  const { url } = await command.ready();
  const stream = await ask(url, "/v1/chat/completions", chat("[demo: long 60] Hello"), {
    ...parentOf(traceId, spanId),
    "user-agent": "codex/1.2 (test)",
  });
  const headersAt = Date.now();
  const text = await stream.text();
  expect(text).toContain("[DONE]");
  // The log is written beside the line that says that it is ready.
  expect(command.stderr()).toContain(`Traces: to ${collector.url}`);
  await (await ask(url, "/v1/messages", { ...chat("[demo: cut 3] Hello"), max_tokens: 99 })).text();
  await (await ask(url, "/v1/chat/completions", chat("[demo: 429 1 once] Hello", false))).text();
  await (await ask(url, "/v1/chat/completions", { ...chat("Hello"), model: "no-such" })).text();
  await (await ask(url, "/v1/embeddings", { model: "text-embedding-3-small", input: canary })).text();
  await end(command);

  expect(collector.requests.every(({ headers }) => headers["x-collector-key"] === "key-of-the-collector")).toBe(true);
  expect(command.stderr()).not.toContain("key-of-the-collector");
  const servers = spansOf(collector, "SERVER");
  expect(servers).toHaveLength(5);
  const [streamed, cut, limited, unknown, embedded] = servers;

  // The stream: in the client's trace, and as long as the stream.
  expect(streamed).toMatchObject({ name: "POST /v1/chat/completions", traceId, parentId: spanId, isError: false });
  expect(streamed!.resource).toMatchObject({ "service.name": "our proxy", "deployment.environment.name": "test" });
  expect(streamed!.attributes).toMatchObject({
    "http.request.method": "POST",
    "http.route": "/v1/chat/completions",
    "http.response.status_code": 200,
    "dragoman.request_id": stream.headers.get("x-request-id")!,
    "dragoman.client": "codex/1.2",
    "dragoman.initiator": "user",
    "dragoman.account": "github.com/octo-demo",
  });
  expect(streamed!.endedAt).toBeGreaterThan(headersAt + 50);
  const [client] = spansOf(collector, "CLIENT").filter(({ parentId }) => parentId === streamed!.spanId);
  expect(client).toMatchObject({ name: `chat ${exampleModels.flash}`, traceId, isError: false });
  expect(client!.endedAt).toBeGreaterThan(headersAt + 50);
  expect(client!.attributes).toMatchObject({
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "github.copilot",
    "gen_ai.request.model": exampleModels.flash,
    "gen_ai.request.stream": true,
    "gen_ai.response.finish_reasons": ["stop"],
    "server.address": "127.0.0.1",
    "http.response.status_code": 200,
  });
  expect(client!.attributes["gen_ai.usage.input_tokens"]).toBeGreaterThan(1);
  expect(client!.attributes["gen_ai.usage.output_tokens"]).toBeGreaterThan(50);

  // Other ends.
  expect(cut).toMatchObject({ name: "POST /v1/messages", isError: true });
  expect(cut!.attributes["error.type"]).toBe("upstream_disconnected");
  const tries = spansOf(collector, "CLIENT").filter(({ parentId }) => parentId === limited!.spanId);
  expect(tries.map(({ attributes }) => attributes["http.response.status_code"])).toEqual([429, 200]);
  expect(tries.map(({ isError }) => isError)).toEqual([true, false]);
  expect(tries[1]!.attributes["http.request.resend_count"]).toBe(1);
  expect(limited!.isError).toBe(false);
  expect(unknown).toMatchObject({ isError: false });
  expect(unknown!.attributes).toMatchObject({ "http.response.status_code": 404, "error.type": "model_not_found" });
  expect(spansOf(collector, "CLIENT").filter(({ parentId }) => parentId === unknown!.spanId)).toEqual([]);
  expect(embedded!.name).toBe("POST /v1/embeddings");
  expect(new Set(servers.map((span) => span.traceId)).size).toBe(5);

  // Never content.
  const answer = /"content":"([^"]{8,})"/.exec(text)?.[1] ?? "";
  for (const body of collector.bodies) {
    expect(body).not.toContain(canary);
    expect(body).not.toContain("no-such");
    if (answer) expect(body).not.toContain(answer);
  }
});

test.concurrent("no span of 300 streams at once is lost, and each trace is a pair", async () => {
  await using collector = startCollector();
  await using command = start({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces` });
  const { url } = await command.ready();
  const texts = await Promise.all(
    Array.from({ length: 300 }, async () => (await ask(url, "/v1/chat/completions", chat("Hello"))).text()),
  );
  expect(texts.filter((text) => text.endsWith("data: [DONE]\n\n"))).toHaveLength(300);
  await end(command);
  const [servers, clients] = [spansOf(collector, "SERVER"), spansOf(collector, "CLIENT")];
  expect([servers.length, clients.length]).toEqual([300, 300]);
  expect(new Set(clients.map((span) => `${span.traceId} ${span.parentId}`))).toEqual(
    new Set(servers.map((span) => `${span.traceId} ${span.spanId}`)),
  );
});

test.concurrent("a client that does not want its trace recorded, and one that names none that can be", async () => {
  await using collector = startCollector();
  await using command = start({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces` });
  const { url } = await command.ready();
  const later = `01-${traceId}-${spanId}-01-more`;
  const wrong = [
    `00-${traceId}-${spanId}-01-more`,
    `ff-${traceId}-${spanId}-01`,
    `00-${"0".repeat(32)}-${spanId}-01`,
    `00-${traceId}-${"0".repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${traceId}-${spanId}`,
  ];
  await (await ask(url, "/v1/chat/completions", chat("Hello"), parentOf(traceId, spanId, "00"))).text();
  for (const traceparent of [later, ...wrong])
    await (await ask(url, "/v1/chat/completions", chat("Hello"), { traceparent })).text();
  await end(command);
  const servers = spansOf(collector, "SERVER");
  expect(servers.map((span) => span.parentId)).toEqual([spanId, ...wrong.map(() => "")]);
  expect(servers.map((span) => span.traceId === traceId)).toEqual([true, ...wrong.map(() => false)]);
  expect(new Set(collector.requests.map(({ path }) => path))).toEqual(new Set(["/v1/traces"]));
});

test.each([
  [{}, false],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c" }, true],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://c" }, true],
  [{ OTEL_TRACES_EXPORTER: "otlp" }, true],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c", OTEL_TRACES_EXPORTER: "none" }, false],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c", OTEL_SDK_DISABLED: "True" }, false],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: " " }, false],
])("whether %j asks for traces: %p", (env, traces) => expect(readOtelSettings(env)).toEqual({ traces }));

test.each([
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, "only http/protobuf"],
  [{ OTEL_TRACES_EXPORTER: "otlp", OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/json" }, "only http/protobuf"],
  [{ OTEL_TRACES_EXPORTER: "zipkin" }, "OTEL_TRACES_EXPORTER is zipkin"],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "localhost:4318" }, "must begin with http://"],
])("%j cannot be done, and a sentence says so", (env, sentence) => {
  const { traces, fault } = readOtelSettings(env);
  expect(traces).toBe(false);
  expect(fault).toContain(sentence);
});

test.concurrent("what cannot be done is in the log, nothing is sent, and requests are served", async () => {
  await using collector = startCollector();
  await using command = start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" });
  const { url } = await command.ready();
  expect((await ask(url, "/v1/chat/completions", chat("Hello", false))).status).toBe(200);
  await end(command);
  expect(collector.requests).toEqual([]);
  expect(command.stderr()).toContain("No traces are exported");
  expect(command.stderr()).not.toContain("Traces to");
});

test.concurrent.each<[string, () => Response | Promise<Response>, string[]]>([
  ["refuses", () => new Response("no", { status: 400 }), ["Bad Request"]],
  ["does not answer", () => new Promise<Response>(() => {}), []],
])("a collector that %s: requests are served, the log says it once, and the program ends", async (_, answer, why) => {
  await using collector = startCollector(answer);
  await using command = start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  const { url } = await command.ready();
  // Enough spans for a batch before the end, and one at the end.
  const statuses = Array.from({ length: 260 }, async () => {
    const response = await ask(url, "/v1/chat/completions", chat("Hello", false));
    await response.text();
    return response.status;
  });
  expect(new Set(await Promise.all(statuses))).toEqual(new Set([200]));
  await until(() => collector.requests.length > 0, "a batch was sent");
  await end(command);
  const told = Array.from(command.stderr().matchAll(/could not be exported.*/g), ([words]) => words);
  expect(told).toEqual(
    why.map((each) => `could not be exported, and some are lost; requests are not affected. (${each})`),
  );
  expect(command.stderr()).not.toContain(canary);
});

test.concurrent("a provider gets the trace of the attempt, with the client's trace id; what stands before dragoman gets its own", async () => {
  await using collector = startCollector();
  await using provider = startProvider({ key: "key-of-the-provider", auth: "x-api-key" });
  await using command = run(["start", "--json", "--port", "0"], {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, DRAGOMAN_GITHUB_URL: provider.url },
  });
  const { url } = await command.ready();
  const config = { providers: { own: { type: "messages", baseUrl: provider.url, apiKey: "key-of-the-provider" } } };
  expect((await ask(url, "/api/admin/config", config)).status).toBe(200);
  const body = { ...chat("Hello"), model: "m", max_tokens: 9 };
  await (await ask(url, "/own/v1/messages", body, { ...parentOf(traceId, spanId), tracestate: "us=1" })).text();
  await (await ask(url, "/v1/messages", { ...body, model: "own/m" })).text();
  await end(command);
  const sent = provider.seen.filter(({ path }) => path === "/v1/messages");
  const clients = spansOf(collector, "CLIENT");
  expect(clients).toHaveLength(2);
  expect(sent.map(({ headers }) => headers.traceparent)).toEqual(
    clients.map((span) => `00-${span.traceId}-${span.spanId}-01`),
  );
  expect(clients[0]!.traceId).toBe(traceId);
  expect(sent[0]!.headers.tracestate).toBe("us=1");
  expect(clients[0]!.attributes).toMatchObject({ "gen_ai.provider.name": "own", "gen_ai.request.model": "m" });
  expect(spansOf(collector, "SERVER").map(({ name }) => name)).toEqual([
    "POST /{provider}/v1/messages",
    "POST /v1/messages",
  ]);
});

test("Copilot gets no header of a trace: neither a client's nor ours", async () => {
  await using collector = startCollector();
  await using proxy = await startProxy({ demo: { generation: "C" } });
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = collector.url;
  const traces = startTraces(proxy.app, {});
  delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT;
  const foreign = { ...parentOf(traceId, spanId), tracestate: "us=1", baggage: "a=b" };
  await (await ask(proxy.url, "/v1/chat/completions", chat("Hello"), foreign)).text();
  await traces.close();
  expect(spansOf(collector, "CLIENT")).toHaveLength(1);
  expect(proxy.demo.journal.length).toBeGreaterThan(0);
  for (const { headers } of proxy.demo.journal)
    expect(Object.keys(headers).filter((name) => /trace|baggage|b3/.test(name))).toEqual([]);
});
