/** The OpenAPI document: every endpoint is in it, and each schema accepts what the server really answers. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { z } from "zod";
import { adminRoutes } from "../../src/admin/api/routes";
import { routes } from "../../src/api/routes";
import { entry } from "../support/history-rows";
import { type RunningProxy, startProxy } from "../support/proxy";

interface Operation {
  parameters: { name: string; in: string; required: boolean; schema: object }[];
  requestBody?: { content: Record<string, { schema: object }> };
  responses: Record<string, { description: string; content: Record<string, { schema: Record<string, unknown> }> }>;
}
interface Document {
  openapi: string;
  info: { title: string; version: string };
  paths: Record<string, Record<string, Operation>>;
}

const all = [...routes, ...adminRoutes];
const inDocument = (path: string) => path.replace(/:(\w+)/g, "{$1}");

let proxy: RunningProxy;
let document: Document;

beforeAll(async () => {
  proxy = await startProxy({ accounts: ["octo-demo", "work-demo"] });
  for (const http_status of [200, 429]) proxy.app.history.add(entry({ request_id: `r-${http_status}`, http_status }));
  proxy.app.history.flush();
  document = (await (await fetch(`${proxy.url}/api/admin/openapi.json`)).json()) as Document;
});
afterAll(() => proxy[Symbol.asyncDispose]());

test("holds every route with every parameter, and nothing else", () => {
  expect(document.openapi).toStartWith("3.1.");
  const held = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(held.sort()).toEqual(all.map(({ method, path }) => `${method} ${inDocument(path)}`).sort());
  for (const { method, path, query, body } of all) {
    const operation = document.paths[inDocument(path)]![method.toLowerCase()]!;
    const named = (place: string) => operation.parameters.filter((item) => item.in === place).map(({ name }) => name);
    expect(named("path")).toEqual([...path.matchAll(/:(\w+)/g)].map(([, name]) => name!));
    expect(named("query")).toEqual(Object.keys(query?.shape ?? {}));
    expect(operation.requestBody !== undefined).toBe(body !== undefined);
    expect(operation.responses[200]!.description).not.toBe("");
  }
});

const addresses: Record<string, string> = {
  "/v1/models/:id": "/v1/models/gpt-5-mini",
  "/usage/:accountIndex": "/usage/0",
  "/api/admin/requests/:requestId": "/api/admin/requests/r-200",
  "/api/admin/accounts": "/api/admin/accounts?include_stats=1",
  "/api/admin/statistics": "/api/admin/statistics?by=day,model",
};

const described = all.filter(({ method, response }) => method === "GET" && response instanceof z.ZodType);

test.each(described.map(({ path }) => path))("the schema of GET %s accepts the server's answer", async (path) => {
  const response = await fetch(proxy.url + (addresses[path] ?? path));
  expect(response.status).toBe(200);
  const { schema } = document.paths[inDocument(path)]!.get!.responses[200]!.content["application/json"]!;
  const result = z.fromJSONSchema(schema).safeParse(await response.json());
  expect(result.error?.issues ?? []).toEqual([]);
});
