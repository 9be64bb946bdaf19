/**
 * Scenario: client keys that are made; `fixtures/scenes/keys.txt` has what each may use, `fixtures/books/keys.txt` and
 * `pages.txt` how they are kept, shown and revoked, pairs.test.ts what is told of each.
 */
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { clientKeysOf, mayUse } from "../../../src/people/keys/client-keys";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";

testScenes("keys");

test("a pattern of many stars is matched like any other", () => {
  const uses = (pattern: string, model: string) =>
    mayUse(clientKeysOf([{ name: "x", key: "k", models: [pattern] }], undefined)[0], model);
  expect(uses("a*".repeat(120), `${"a".repeat(255)}b`)).toBe(true);
  expect(uses(`${"a*".repeat(120)}c`, `${"a".repeat(255)}b`)).toBe(false);
});

const admin = async (proxy: RunningProxy, path: string, body?: unknown) => {
  const response = await fetch(`${proxy.url}/api/admin/keys${path}`, {
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    headers: { "content-type": "application/json" },
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};

test("a created key is stored as its hash, and stands in no line of the log", async () => {
  await using proxy = await startProxy();
  const key = String((await admin(proxy, "", { name: "laptop" })).body.key);
  expect(key).toMatch(/^drg_[\w-]{43}$/);
  const file = readFileSync(join(proxy.home, "config.json"), "utf8");
  expect(file).not.toContain(key);
  expect(file).toContain(createHash("sha256").update(key).digest("hex"));
  expect(JSON.stringify(await admin(proxy, "")) + proxy.lines.join("\n")).not.toContain(key.slice(4, 20));
});

test("a server that other machines reach serves nobody when its last key is revoked, and says so", async () => {
  const apiKeys = [{ name: "anna", key: "k-anna-0123456789" }];
  await using proxy = await startProxy({ exposed: true, config: { auth: { apiKeys } } });
  expect((await admin(proxy, "")).body).toMatchObject({ served_without: "nobody" });
  const page = await (await fetch(`${proxy.url}/admin/keys`)).text();
  expect(page).toContain("This removes the last client key. Other machines can reach this server");
  expect(await admin(proxy, "/anna/revoke", {})).toEqual({ status: 200, body: { revoked: true } });
  for (const key of ["k-anna-0123456789", "anything"])
    expect((await fetch(`${proxy.url}/v1/models`, { headers: { "x-api-key": key } })).status).toBe(401);
  expect(await (await fetch(`${proxy.url}/admin`)).text()).toContain("Nobody is served.");
});

test("names are unique, whatever their case; twenty at once are all kept", async () => {
  // As a person may write it.
  const apiKeys = [{ name: " Tool 20 ", key: "k-of-tool-20-0123456789" }];
  await using proxy = await startProxy({ config: { auth: { apiKeys } } });
  const names = Array.from({ length: 20 }, (_, at) => `tool ${at}`);
  const results = await Promise.all(names.map((name) => admin(proxy, "", { name })));
  expect(results.map(({ status }) => status)).toEqual(names.map(() => 200));
  for (const name of ["TOOL 3", "tool 20"]) expect((await admin(proxy, "", { name })).status).toBe(409);
  const { body } = await admin(proxy, "");
  expect((body.items as { name: string }[]).map(({ name }) => name).sort()).toEqual([...names, "Tool 20"].sort());
});
