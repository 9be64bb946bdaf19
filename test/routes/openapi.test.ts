/** Scenario: the OpenAPI document: every endpoint is in it, and its schemas accept what the server takes and answers. */
import { afterAll, describe, expect, test } from "bun:test";
import { z } from "zod";
import { adminEndpoints } from "../../src/admin/api/plugin";
import { clientEndpoints } from "../../src/routes/clients";
import { acme, installApp } from "../support/github-app";
import { entry } from "../support/history-rows";
import { startProxy } from "../support/proxy";

type JsonSchema = Record<string, unknown>;
type Content = Record<string, { schema: JsonSchema }>;
interface Operation {
  operationId: string;
  parameters: { name: string; in: string; required: boolean; schema: JsonSchema }[];
  requestBody?: { content: Content };
  responses: Record<string, { description: string; content: Content }>;
}
interface Document {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, JsonSchema> };
}

const all = [...clientEndpoints(), ...adminEndpoints()];
const inDocument = (path: string) => path.replace(/\/:(\w+)/g, "/{$1}");

const proxy = await startProxy({
  accounts: ["octo-demo", "work-demo"],
  config: { modelAliases: { small: "gpt-5-mini" }, upstreamHeaders: { "x-team-key": "secret-of-a-team-1234" } },
});
installApp(proxy.demo);
const started_at_ms = Date.now();
for (const http_status of [200, 429])
  proxy.app.history.add(entry({ request_id: `r-${http_status}`, http_status, started_at_ms }));
proxy.app.history.flush();
const document = (await (await fetch(`${proxy.url}/api/admin/openapi.json`)).json()) as Document;
afterAll(() => proxy[Symbol.asyncDispose]());

const operation = (method: string, path: string): Operation => document.paths[inDocument(path)]![method.toLowerCase()]!;

const compiled = new Map<JsonSchema, z.ZodType>();
/** What a schema of the document finds wrong with a value. */
const faults = (schema: JsonSchema, value: unknown) =>
  compiled.getOrInsertComputed(schema, compile).safeParse(value).error?.issues ?? [];

function compile(schema: JsonSchema): z.ZodType {
  const self = JSON.stringify({ ...schema, $defs: document.components.schemas });
  // zod compiles a pattern without the `u` flag, which JSON Schema implies.
  const plain = self.replaceAll("#/components/schemas/", "#/$defs/").replaceAll("\\\\p{L}\\\\p{N}", "A-Za-z0-9");
  const whole = JSON.parse(plain) as JsonSchema;
  return z.fromJSONSchema(whole);
}

/** The body as its schema means it: JSON, or a text. */
const bodyOf = (response: Response, type: string): Promise<unknown> =>
  type === "application/json" ? response.json() : response.text();

async function conforms(method: string, path: string, response: Response): Promise<void> {
  const { responses } = operation(method, path);
  const { content } = responses[response.status]!;
  const type = response.headers.get("content-type")!.split(";")[0]!;
  expect(Object.keys(content)).toContain(type);
  expect(faults(content[type]!.schema, await bodyOf(response, type))).toEqual([]);
}

test("the OpenAPI document holds every route with every parameter, and nothing else", () => {
  expect(document.openapi).toStartWith("3.1.");
  const held = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(held.sort()).toEqual(all.map(({ method, path }) => `${method} ${inDocument(path)}`).sort());
  for (const { method, path, query, body, reads } of all) {
    const { parameters, requestBody } = operation(method, path);
    const named = (place: string) => parameters.filter((item) => item.in === place).map(({ name }) => name);
    expect(named("path")).toEqual([...path.matchAll(/\/:(\w+)/g)].map(([, name]) => name!));
    expect(parameters.filter((item) => item.in === "path" && !item.required)).toEqual([]);
    expect(named("query")).toEqual(Object.keys(query?.shape ?? {}));
    expect(requestBody !== undefined).toBe((body ?? reads) !== undefined);
    expect(method === "GET" || requestBody !== undefined).toBe(true);
  }
  const ids = Object.values(document.paths).flatMap((item) => Object.values(item).map((each) => each.operationId));
  expect(new Set(ids).size).toBe(ids.length);
});

test("every reference leads to a schema, and no annotation of our own is left", () => {
  const text = JSON.stringify(document);
  const named = [...text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name!);
  expect(named.filter((name) => !Object.hasOwn(document.components.schemas, name))).toEqual([]);
  expect(text).not.toMatch(/"\$ref":"(?!#\/components\/)|"(?:secret|secretByName|restart)":/);
});

const chat = { model: "gpt-5-mini", messages: [{ role: "user", content: "Hello" }] };
const messages = { ...chat, max_tokens: 50 };
const content = { parts: [{ text: "Hello" }] };
const gemini = (method: string, model = "gpt-5-mini") => `/v1beta/models/${model}:${method}`;

/** A call of each endpoint that its schema says something about. */
// biome-ignore format: a table is read by its rows
const calls: [endpoint: string, status: number, address?: string, body?: object][] = [
  ["POST /v1/chat/completions", 200, undefined, chat],
  ["POST /v1/chat/completions", 200, undefined, { ...chat, stream: true }],
  ["POST /v1/chat/completions", 400, undefined, { messages: [] }],
  ["POST /v1/responses", 200, undefined, { model: "gpt-5-mini", input: "Hello" }],
  ["POST /v1/responses", 400, undefined, { model: 5 }],
  ["GET /v1/responses", 405],
  ["POST /v1/responses/compact", 200, undefined, { model: "gpt-5-mini", input: "Hello" }],
  ["POST /v1/responses/input_tokens", 200, undefined, { model: "gpt-5-mini", input: "Hello" }],
  ["POST /v1/responses/input_tokens", 400, undefined, { model: "gpt-5-mini", input: 5 }],
  ["POST /v1/alpha/search", 200, undefined, { commands: { time: [{ utc_offset: "+03:00" }] } }],
  ["POST /v1/messages", 200, undefined, messages],
  ["POST /v1/messages", 400, undefined, {}],
  ["POST /v1/messages/count_tokens", 200, undefined, messages],
  ["POST /v1/embeddings", 200, undefined, { model: "text-embedding-3-small", input: ["Hello"] }],
  ["GET /v1/models", 200],
  ["GET /v1/models", 200, "/v1/models?limit=2&after_id=gpt-5-mini"],
  ["GET /v1/models", 400, "/v1/models?limit=few"],
  ["GET /v1/models", 400, "/v1/models?limit=0"],
  ["GET /v1/models/:id", 200, "/v1/models/gpt-5-mini"],
  ["GET /v1/models/:id", 404, "/v1/models/nothing-like-it"],
  ["POST /v1beta/models/:model:generateContent", 200, gemini("generateContent"), { contents: [content] }],
  ["POST /v1beta/models/:model:generateContent", 400, gemini("generateContent"), { contents: 5 }],
  ["POST /v1beta/models/:model:generateContent", 404, gemini("generateContent", "none"), { contents: [content] }],
  ["POST /v1beta/models/:model:streamGenerateContent", 200, gemini("streamGenerateContent"), { contents: [content] }],
  ["POST /v1beta/models/:model:streamGenerateContent", 200, `${gemini("streamGenerateContent")}?alt=sse`, { contents: [content] }],
  ["POST /v1beta/models/:model:countTokens", 200, gemini("countTokens"), { contents: [content] }],
  ["GET /v1beta/models", 200, "/v1beta/models?pageSize=2"],
  ["GET /v1beta/models/:model", 200, "/v1beta/models/gpt-5-mini"],
  ["GET /v1beta/models/:model", 404, "/v1beta/models/none"],
  ["POST /:provider/v1/messages", 404, "/nobody/v1/messages", messages],
  ["POST /:provider/v1/messages/count_tokens", 404, "/nobody/v1/messages/count_tokens", messages],
  ["GET /:provider/v1/models", 404, "/nobody/v1/models"],
  ["GET /usage", 200],
  ["GET /usage/line", 200],
  ["GET /usage/line", 400, `/usage/line?format=${"x".repeat(501)}`],
  ["GET /usage/:accountIndex", 200, "/usage/0"],
  ["GET /usage/:accountIndex", 400, "/usage/first"],
  ["GET /usage/:accountIndex", 404, "/usage/99"],
  ["GET /token", 200],
  ["GET /token", 400, "/token?account=x"],
  ["GET /token", 404, "/token?account=9"],
  // Nobody signs in where there are no members.
  ["GET /.well-known/oauth-authorization-server", 404],
  ["POST /oauth/device_authorization", 404],
  ["POST /oauth/token", 404],
  ["POST /oauth/revoke", 404],
  ["GET /managed/settings", 200],
  ["GET /api/oauth/usage", 404],
  ["POST /v1/metrics", 200, undefined, {}],
  ["POST /v1/logs", 200, undefined, {}],
  ["POST /v1/traces", 200, undefined, {}],
  ["GET /", 200],
  ["GET /health", 200],
  ["GET /health/live", 200],
  ["GET /health/ready", 200],
  ["GET /metrics", 200],
  ["GET /api/admin/meta", 200],
  ["GET /api/admin/accounts", 200, "/api/admin/accounts?include_stats=1"],
  ["GET /api/admin/accounts", 400, "/api/admin/accounts?include_stats=yes"],
  ["POST /api/admin/accounts/sign-ins", 200, undefined, { host: "github.com", app: "vscode" }],
  ["POST /api/admin/accounts/sign-ins", 400, undefined, { host: "no host" }],
  ["GET /api/admin/accounts/sign-ins/:id", 404, "/api/admin/accounts/sign-ins/none"],
  ["POST /api/admin/accounts/sign-ins/:id/cancel", 404, "/api/admin/accounts/sign-ins/none/cancel", {}],
  ["POST /api/admin/accounts/apps", 400, undefined, { app: "1", installation: "x", private_key: "-" }],
  ["POST /api/admin/accounts/apps", 200, undefined, { app: acme.app, installation: acme.installation.id, private_key: acme.installation.privateKey }],
  ["POST /api/admin/accounts/pause", 404, undefined, { account_key: "github.com/nobody", paused: true }],
  ["POST /api/admin/accounts/pause", 200, undefined, { account_key: "github.com/octo-demo", paused: false }],
  ["POST /api/admin/accounts/order", 200, undefined, { account_keys: ["github.com/octo-demo"] }],
  ["POST /api/admin/accounts/order", 404, undefined, { account_keys: ["github.com/nobody"] }],
  ["POST /api/admin/accounts/remove", 200, undefined, { account_key: "github.com/acme-corp" }],
  ["POST /api/admin/accounts/remove", 404, undefined, { account_key: "github.com/nobody" }],
  ["GET /api/admin/requests", 200],
  ["GET /api/admin/requests", 400, "/api/admin/requests?limit=0"],
  ["GET /api/admin/requests/:requestId", 200, "/api/admin/requests/r-200"],
  ["GET /api/admin/requests/:requestId", 404, "/api/admin/requests/none"],
  ["GET /api/admin/prompts", 200],
  ["GET /api/admin/bill", 200, "/api/admin/bill?project=acme"],
  ["GET /api/admin/totals", 200],
  ["GET /api/admin/statistics", 200, "/api/admin/statistics?by=day,model"],
  ["GET /api/admin/statistics", 400, "/api/admin/statistics?by=colour"],
  ["GET /api/admin/export", 200],
  ["GET /api/admin/export", 200, "/api/admin/export?format=json"],
  ["GET /api/admin/export", 400, "/api/admin/export?format=xml"],
  ["GET /api/admin/models", 200],
  ["GET /api/admin/cache", 200],
  ["POST /api/admin/reconcile", 200, undefined, { token: "github_pat_DEMOocto0001" }],
  ["POST /api/admin/reconcile", 404, undefined, { account_key: "github.com/nobody" }],
  ["POST /api/admin/reconcile", 400, undefined, { month: "soon" }],
  ["POST /api/admin/reconcile", 502, undefined, {}],
  ["POST /api/admin/notices/test", 200, undefined, {}],
  ["POST /api/admin/live/:requestId/cancel", 404, "/api/admin/live/none/cancel", {}],
  ["GET /api/admin/config", 200],
  ["POST /api/admin/config", 200, undefined, { retentionDays: 20, modelAliases: null }],
  ["POST /api/admin/config", 400, undefined, { retentionDays: "many" }],
  ["POST /api/admin/config", 409, undefined, { retentionDays: 21, revision: "an older one" }],
  ["GET /api/admin/keys", 200],
  ["POST /api/admin/keys", 200, undefined, { name: "laptop" }],
  ["POST /api/admin/keys", 409, undefined, { name: "laptop" }],
  ["POST /api/admin/keys", 400, undefined, { name: 5 }],
  ["POST /api/admin/keys/:name/revoke", 200, "/api/admin/keys/laptop/revoke", {}],
  ["POST /api/admin/keys/:name/revoke", 404, "/api/admin/keys/laptop/revoke", {}],
  ["POST /api/admin/budgets", 200, undefined, { name: "all", unit: "requests", limit: 1000, per: "month" }],
  ["GET /api/admin/budgets", 200],
  ["GET /api/admin/members", 200],
  ["GET /api/admin/members", 400, "/api/admin/members?sort=age"],
  ["POST /api/admin/members", 404, undefined, { name: "anna" }],
  ["POST /api/admin/members", 400, undefined, { name: "anna", key_days: 0 }],
  ["GET /api/admin/members/:name", 404, "/api/admin/members/anna"],
  ["POST /api/admin/members/:name/limits", 404, "/api/admin/members/anna/limits", { key_days: null }],
  ["POST /api/admin/members/:name/withdraw", 404, "/api/admin/members/anna/withdraw", {}],
  ["POST /api/admin/members/:name/remove", 404, "/api/admin/members/anna/remove", {}],
  ["GET /api/admin/drift", 200],
  ["GET /api/admin/advice", 200],
  ["POST /api/admin/budgets", 400, undefined, { name: 5 }],
  ["POST /api/admin/budgets/remove", 200, undefined, { name: "all" }],
  ["POST /api/admin/budgets/remove", 404, undefined, { name: "all" }],
  ["GET /api/admin/openapi.json", 200],
];

describe("the server answers as described", () => {
  const rows = calls.map(([endpoint, status, address, body]) => ({ endpoint, status, address, body }));

  test.each(rows)("$endpoint: $status $address", async ({ endpoint, status, address, body }) => {
    const [method, path] = endpoint.split(" ") as [string, string];
    const { requestBody } = operation(method, path);
    const response = body
      ? await proxy.post(address ?? path, body, { headers: { accept: "application/json, text/event-stream" } })
      : await fetch(proxy.url + (address ?? path), { method });
    expect(response.status).toBe(status);
    if (body && status === 200) expect(faults(requestBody!.content["application/json"]!.schema, body)).toEqual([]);
    await conforms(method, path, response);
  });

  test("each endpoint is called, but the stream of live events", () => {
    const called = new Set(calls.map(([endpoint]) => endpoint));
    const missing = all.map(({ method, path }) => `${method} ${path}`).filter((endpoint) => !called.has(endpoint));
    expect(missing).toEqual(["GET /api/admin/live"]);
  });

  test("a body of the wrong content type is refused as described", async () => {
    for (const { path, reads, body } of adminEndpoints().filter(({ method }) => method === "POST")) {
      expect(body ?? reads).toBeDefined();
      const response = await fetch(proxy.url + path.replace(/:\w+/, "x"), { method: "POST", body: "{}" });
      expect(response.status).toBe(415);
      await conforms("POST", path, response);
    }
  });

  test("a request without the admin token is refused as described", async () => {
    await using other = await startProxy({ adminAuth: "always", env: { ADMIN_TOKEN: "a-token-of-the-admin-1" } });
    for (const { method, path } of adminEndpoints()) {
      const response = await fetch(other.url + path.replace(/:\w+/, "x"), { method });
      expect(response.status).toBe(401);
      await conforms(method, path, response);
    }
  });

  test("a request that runs, its events, and its end by the owner", async () => {
    const stop = new AbortController();
    await using slow = await startProxy({ demo: { pace: 100 } });
    const live = await fetch(`${slow.url}/api/admin/live`, { signal: stop.signal });
    const { schema } = operation("GET", "/api/admin/live").responses[200]!.content["text/event-stream"]!;
    const answer = slow.post("/v1/chat/completions", { ...chat, stream: true });
    const seen = new Set<string>();
    for await (const { event, data } of events(live)) {
      expect(faults(schema, { event, data })).toEqual([]);
      seen.add(event);
      if (event === "running") {
        const id = data.request_id as string;
        await conforms("GET", "/api/admin/requests/:requestId", await fetch(`${slow.url}/api/admin/requests/${id}`));
        const cancelled = await slow.post(`/api/admin/live/${id}/cancel`, {});
        if (cancelled.status === 200) await conforms("POST", "/api/admin/live/:requestId/cancel", cancelled);
      }
      if (event === "finished") break;
    }
    stop.abort();
    await (await answer).text();
    expect([...seen].sort()).toEqual(["accounts", "finished", "running", "snapshot"]);
  });
});

async function* events(response: Response): AsyncGenerator<{ event: string; data: Record<string, unknown> }> {
  let text = "";
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    const blocks = (text + chunk).split("\n\n");
    text = blocks.pop()!;
    for (const block of blocks) {
      const [, event, data] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? [];
      if (event && data) yield { event, data: JSON.parse(data) as Record<string, unknown> };
    }
  }
}

test("a change of the config takes back what the server has shown", async () => {
  const shown = (await (await fetch(`${proxy.url}/api/admin/config`)).json()) as { config: object; revision: string };
  const patch = { ...shown.config, revision: shown.revision };
  expect(faults(document.components.schemas.ConfigPatch!, patch)).toEqual([]);
  expect((await proxy.post("/api/admin/config", patch)).status).toBe(200);
});
