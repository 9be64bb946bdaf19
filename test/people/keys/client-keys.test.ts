/**
 * Scenario: client keys that are made; `fixtures/scenes/keys.txt` has what each may use, `fixtures/books/keys.txt` and
 * `pages.txt` how they are kept, shown and revoked, pairs.test.ts what is told of each.
 */
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openConfig } from "../../../src/config/store";
import { clientKeysOf, findClientKey, mayUse } from "../../../src/people/keys/client-keys";
import { createKey, revokeKey } from "../../../src/people/keys/stored-keys";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";
import { temporaryFolder } from "../../support/temporary-folder";

testScenes("keys");

test("a pattern of many stars is matched like any other", () => {
  const uses = (pattern: string, model: string) =>
    mayUse(clientKeysOf([{ name: "x", key: "k", models: [pattern] }], undefined)[0], model);
  expect(uses("a*".repeat(120), `${"a".repeat(255)}b`)).toBe(true);
  expect(uses(`${"a*".repeat(120)}c`, `${"a".repeat(255)}b`)).toBe(false);
});

test("a key is made once for a name in any case, beside those that have none, and only a named one is revoked", async () => {
  const folder = temporaryFolder();
  const config = openConfig(join(folder, "config.json"));
  try {
    await config.change({ auth: { apiKeys: ["k-plain-0123456789"] } });
    const key = await createKey(config, { name: "CI" });
    await createKey(config, { name: "laptop", models: ["gpt-*"], expires_at: "2027-01-01" });
    await expect(createKey(config, { name: " ci " })).rejects.toThrow("There is a client key ` ci ` already.");
    await expect(revokeKey(config, "another")).rejects.toThrow("There is no client key `another`.");
    const keys = () => clientKeysOf(config.current.auth.apiKeys, undefined);
    expect(keys().map(({ name, models }) => [name, models])).toEqual([
      [null, null],
      ["CI", null],
      ["laptop", ["gpt-*"]],
    ]);
    expect(findClientKey([key], keys())?.name).toBe("CI");
    expect(findClientKey(["k-plain-0123456789", key], keys())?.name).toBeNull();
    expect(findClientKey([`${key}x`, ""], keys())).toBeUndefined();
    await revokeKey(config, "ci");
    expect(keys().map(({ name }) => name)).toEqual([null, "laptop"]);
    expect(JSON.stringify(config.current)).not.toContain(key);
  } finally {
    config.close();
  }
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
  await using proxy = await startProxy();
  const names = Array.from({ length: 20 }, (_, at) => `tool ${at}`);
  const results = await Promise.all(names.map((name) => admin(proxy, "", { name })));
  expect(results.map(({ status }) => status)).toEqual(names.map(() => 200));
  expect((await admin(proxy, "", { name: "TOOL 3" })).status).toBe(409);
  const { body } = await admin(proxy, "");
  expect((body.items as { name: string }[]).map(({ name }) => name).sort()).toEqual(names.sort());
});
