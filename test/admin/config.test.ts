/**
 * Scenario: the config over the admin API: revisions, and what a change does at once; `fixtures/books/config.txt` has what is
 * refused, and secrets that go in and never out.
 */
import { afterAll, beforeEach, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Stored } from "../../src/config/patch";
import { configKeys } from "../../src/config/secrets";
import { startProxy } from "../support/proxy";
import { until } from "../support/until";

const proxy = await startProxy();
const file = join(proxy.home, "config.json");
afterAll(() => proxy[Symbol.asyncDispose]());

interface Shown {
  config: Stored & { auth: { apiKeys: string[] }; providers: Record<string, { apiKey: string }> };
  sources: Record<string, "stored" | "default">;
  revision: string;
  waiting: string[];
  fault: string | null;
}

const post = (body: unknown, headers: Record<string, string> = {}, at = proxy) =>
  at.post("/api/admin/config", body, { headers });
const show = async (at = proxy) => (await (await fetch(`${at.url}/api/admin/config`)).json()) as Shown;
const onDisk = () => JSON.parse(readFileSync(file, "utf8")) as Stored;

/** What is left of a change that was refused: the answer, and that neither disk nor memory knows of it. */
async function refused(body: unknown, headers: Record<string, string> = {}) {
  const before = [readFileSync(file, "utf8"), JSON.stringify(proxy.app.config.current)];
  const response = await post(body, headers);
  const { error } = (await response.json()) as { error: { type: string; message: string; param?: string } };
  expect([readFileSync(file, "utf8"), JSON.stringify(proxy.app.config.current)]).toEqual(before as [string, string]);
  return { status: response.status, ...error };
}

const stored = () => ({
  logLevel: "warn",
  vendorxApiKey: "sk-ant-canary-00001111",
  auth: { apiKeys: ["k-canary-0123-aaaa", "k-canary-0123-bbbb"] },
  providers: {
    x: { type: "vendorx", baseUrl: "http://127.0.0.1:9/", apiKey: "pk-provider-0123456789" },
    "my-prov_2": { type: "anthropic", baseUrl: "https://h.example/path", apiKey: "pk-canary-22222222" },
  },
});

beforeEach(async () => {
  writeFileSync(file, JSON.stringify(stored()));
  await proxy.app.config.change({ auth: { apiKeys: stored().auth.apiKeys } });
});

test("the config is shown with every key, its value and where it is from, no secret, and the revision", async () => {
  const response = await fetch(`${proxy.url}/api/admin/config`);
  const text = await response.text();
  const shown = JSON.parse(text) as Shown;
  expect(text).not.toMatch(/canary|0123456789/);
  expect(shown.config).toMatchObject({
    logLevel: "warn",
    retentionDays: 14,
    anthropicApiKey: "…1111",
    auth: { apiKeys: ["…aaaa", "…bbbb"] },
    providers: { x: { baseUrl: "http://127.0.0.1:9", apiKey: "…6789" }, "my-prov_2": { apiKey: "…2222" } },
  });
  expect(shown.sources).toMatchObject({ logLevel: "stored", retentionDays: "default", anthropicApiKey: "stored" });
  expect(Object.keys(shown.sources).sort()).toEqual(
    configKeys()
      .map(({ path }) => path.join("."))
      .filter((key) => key !== "vendorxApiKey")
      .sort(),
  );
  expect([response.headers.get("etag"), response.headers.get("cache-control")]).toEqual([
    `"${shown.revision}"`,
    "no-store",
  ]);
  expect([shown.waiting, shown.fault]).toEqual([[], null]);
});

test("a change to what was shown leaves the file as it is, byte for byte", async () => {
  const before = readFileSync(file, "utf8");
  const type = { "content-type": "Application/JSON; charset=utf-8" };
  expect((await post((await show()).config, type)).status).toBe(200);
  expect(readFileSync(file, "utf8")).toBe(before);
  expect(before).not.toContain("…");
});

test("what was changed counts at once: accounts in order, the multiplier of estimates, limits of the history", async () => {
  await using other = await startProxy({ accounts: ["octo-demo", "work-demo"] });
  const served = async () => {
    const body = { model: "gpt-4.1", messages: [{ role: "user", content: "Hello" }] };
    for (let time = 0; time < 4; time++) await other.post("/v1/chat/completions", body);
    return new Set(
      other
        .rows()
        .slice(0, 4)
        .map(({ account_id }) => account_id),
    );
  };
  const count = async () => {
    const body = { model: "claude-sonnet-4.6", messages: [{ role: "user", content: "Hello ".repeat(1000) }] };
    return ((await (await other.post("/v1/messages/count_tokens", body)).json()) as { input_tokens: number })
      .input_tokens;
  };
  expect([...(await served())].sort()).toEqual(["octo-demo", "work-demo"]);
  const estimate = await count();
  await post({ freeModelRouting: "in-order", tokenEstimateMultiplier: 2.3, maxRows: 3 }, {}, other);
  expect(await count()).toBeGreaterThan(estimate * 1.9);
  await until(() => other.history.count() === 3, "all three rows are written");
  expect([...(await served())]).toEqual(["octo-demo"]);
});

test("a change made for another revision is 409, by member or header, and does not reveal the current one", async () => {
  const { revision } = await show();
  expect((await post({ maxRows: 9, revision })).status).toBe(200);
  expect(await refused({ maxRows: 10, revision })).toMatchObject({ status: 409, type: "config_conflict" });
  expect(await refused({ maxRows: 10 }, { "if-match": `"${revision}"` })).toMatchObject({ status: 409 });
  const now = await show();
  expect((await post({ maxRows: 10 }, { "if-match": `W/"${now.revision}"` })).status).toBe(200);
  expect((await post({ maxRows: 11 }, { "if-match": "*" })).status).toBe(200);
});

test("what was edited in the file meanwhile is kept", async () => {
  writeFileSync(file, JSON.stringify({ ...stored(), maxRows: 77, modelAliases: { a: "b" } }));
  expect((await post({ logLevel: "error" })).status).toBe(200);
  expect(onDisk()).toEqual({ ...stored(), maxRows: 77, modelAliases: { a: "b" }, logLevel: "error" });
  expect(proxy.app.config.current).toMatchObject({ maxRows: 77, logLevel: "error" });
});

test("an instance that others reach serves nobody when its last key is gone", async () => {
  await using exposed = await startProxy({ exposed: true, config: { auth: { apiKeys: ["k-only-0123456789"] } } });
  const change = (body: unknown) => post(body, {}, exposed);
  const asked = (headers: Record<string, string> = {}) => fetch(`${exposed.url}/v1/models`, { headers });
  for (const body of [{ auth: { apiKeys: [] } }, { auth: {} }, { auth: null }]) {
    expect((await change({ auth: { apiKeys: ["k-only-0123456789"] } })).status).toBe(200);
    expect((await asked({ "x-api-key": "k-only-0123456789" })).status).toBe(200);
    expect((await change(body)).status).toBe(200);
    for (const headers of [{}, { "x-api-key": "k-only-0123456789" }] as Record<string, string>[]) {
      const response = await asked(headers);
      expect([response.status, await response.json()]).toMatchObject([401, { error: { code: "no_client_key" } }]);
    }
  }
  expect((await change({ auth: { apiKeys: ["k-next-0123456789"] } })).status).toBe(200);
  expect((await asked({ "x-api-key": "k-next-0123456789" })).status).toBe(200);

  await using guarded = await startProxy({
    exposed: true,
    config: { auth: { apiKeys: ["k-only-0123456789"] } },
    env: { DRAGOMAN_API_KEY: "k-env-0123456789" },
  });
  const response = await post({ auth: { apiKeys: [] } }, {}, guarded);
  const withEnvKey = await fetch(`${guarded.url}/v1/models`, { headers: { "x-api-key": "k-env-0123456789" } });
  expect([response.status, withEnvKey.status]).toEqual([200, 200]);
});

test("a new secret is never logged, and a change is logged by its keys only", async () => {
  const upstreamHeaders = { "x-gateway-authorization": "Bearer canary-of-header-4711", "x-password": "canary-newer" };
  await post({ anthropicApiKey: "canary-new-secret-4711", upstreamHeaders, providers: {}, logLevel: "info" });
  for (const secret of ["canary-new-secret-4711", ...Object.values(upstreamHeaders)]) {
    proxy.app.logger.info(`It is ${secret}.`);
    expect(proxy.lines.at(-1)).toMatch(/It is (?:Bearer )?\[secret\]/);
  }
  expect(proxy.lines.join("")).toMatch(/The config was changed: .*anthropicApiKey/);
  expect(proxy.lines.join("")).not.toContain("canary-");
});
