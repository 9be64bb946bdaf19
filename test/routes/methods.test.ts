/**
 * Rows: a known path with a method that it does not have is 405 and names those that it has, whatever the path looks
 * like.
 */
import { afterAll, expect, test } from "bun:test";
import { adminEndpoints } from "../../src/admin/api/plugin";
import { pageEndpoints } from "../../src/admin/pages/plugin";
import { clientEndpoints } from "../../src/routes/clients";
import { startProxy } from "../support/proxy";

const proxy = await startProxy({
  config: { providers: { deep: { type: "anthropic", baseUrl: "http://127.0.0.1:1", apiKey: "k" } } },
});
afterAll(() => proxy[Symbol.asyncDispose]());

/** What stands for each parameter. A model may have slashes. */
const values: Record<string, string> = { provider: "deep", model: "vendor/gpt-5-mini", accountIndex: "0" };
const filled = (path: string) => path.replace(/(?<=\/):(\w+)/g, (_, name) => values[name] ?? "gpt-5-mini");

/** The methods of each path. */
const methodsByPathOf = (endpoints: readonly { method: string; path: string }[]) =>
  new Map(
    [...Map.groupBy(endpoints, ({ path }) => path)].map(([path, same]) => [
      path,
      same.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method])),
    ]),
  );

/** Also as some clients spell them. */
const paths = new Map([
  ...methodsByPathOf(clientEndpoints()),
  ...["/v1/v1/messages", "/v1/v1/messages/count_tokens", "/responses/compact", "/alpha/search"].map(
    (path) => [path, ["POST"]] as [string, string[]],
  ),
  ["/responses", ["POST", "GET", "HEAD"]],
  ["/v1/models/:model:generateContent", ["POST"]],
  ["/v1/models/:model:countTokens", ["POST"]],
  ...methodsByPathOf(adminEndpoints()),
]);

const all = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const cases = [...paths].flatMap(([path, methods]) =>
  all
    .filter((method) => !methods.includes(method))
    .map((method) => [method, filled(path), methods.join(", ")] as const),
);

test.each(cases)("a request %s %s is refused with 405, which names what is served: %s", async (method, path, allow) => {
  const response = await fetch(proxy.url + path, {
    method,
    ...(method !== "GET" && { body: "{}", headers: { "content-type": "application/json" } }),
  });
  expect([response.status, response.headers.get("allow")]).toEqual([405, allow]);
  expect(await response.text()).toContain(`${method} is not served`);
});

test.each([...methodsByPathOf(pageEndpoints())])("the page %s by another method", async (path, methods) => {
  // Another method is refused before anybody looks at the path.
  for (const method of ["GET", "POST"].filter((each) => !methods.includes(each))) {
    const response = await fetch(proxy.url + filled(path), { method });
    expect([method, response.status, response.headers.get("allow")]).toEqual([method, 405, methods.join(", ")]);
  }
});

test("an address that does not exist is 404 with every method", async () => {
  for (const [method, path] of [
    ["POST", "/v1beta/models/gpt-5-mini:sing"],
    ["GET", "/v1beta/models/gpt-5-mini:sing"],
    ["GET", "/v1/models/gpt-5-mini:sing"],
    ["POST", "/v1/models/gpt-5-mini:sing"],
    ["GET", "/v1/nothing"],
    ["POST", "/admin/nothing"],
  ] as const)
    expect([path, (await fetch(proxy.url + path, { method })).status]).toEqual([path, 404]);
});
