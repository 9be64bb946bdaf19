/** Scenario: client keys with names: what each may use, until when, and that a revoked one is refused at once. */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { clientKeysOf, mayUse } from "../../../src/people/keys/client-keys";
import { formTokenIn } from "../../support/form-fields";
import { startProvider } from "../../support/provider";
import { type RunningProxy, startProxy } from "../../support/proxy";

const anna = "k-anna-0123456789";
const hashed = "k-hashed-0123456789";
const keys = [
  "k-plain-0123456789",
  { name: "anna", key: anna, models: ["gpt-*", "claude-sonnet-4.5"] },
  { name: "Build server", sha256: createHash("sha256").update(hashed).digest("hex") },
  { name: "old", key: "k-old-0123456789", expiresAt: "2026-01-01" },
];

const withKey = (key: string) => ({ headers: { "x-api-key": key, "content-type": "application/json" } });

async function statusOf(proxy: RunningProxy, key: string, path: string, body?: object) {
  const response = await fetch(proxy.url + path, {
    ...withKey(key),
    ...(body && { method: "POST", body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text };
}

const hello = [{ role: "user", content: "Hi" }];

describe("access", () => {
  test("a key is accepted as text, by its hash, and in either header", async () => {
    await using proxy = await startProxy({ config: { auth: { apiKeys: keys } } });
    for (const key of ["k-plain-0123456789", anna, hashed])
      expect((await statusOf(proxy, key, "/v1/models")).status).toBe(200);
    const bearer = await fetch(`${proxy.url}/v1/models`, { headers: { authorization: `Bearer ${hashed}` } });
    expect(bearer.status).toBe(200);
    // The hash itself is not a key.
    const { sha256 } = keys[2] as { sha256: string };
    expect((await statusOf(proxy, sha256, "/v1/models")).status).toBe(401);
  });

  test("a key's models hold on every endpoint and dialect", async () => {
    await using provider = startProvider({ key: "p-0123456789", auth: "x-api-key" });
    await using proxy = await startProxy({
      config: {
        auth: { apiKeys: keys },
        providers: { other: { type: "anthropic", baseUrl: provider.url, apiKey: "p-0123456789" } },
      },
    });
    const messages = { messages: hello, max_tokens: 50 };
    const refused: [path: string, body?: object][] = [
      ["/v1/chat/completions", { model: "gemini-3-pro-preview", messages: hello }],
      ["/v1/responses", { model: "gemini-3-pro-preview", input: "Hi" }],
      ["/v1/messages", { model: "claude-opus-4.6", ...messages }],
      ["/v1/messages/count_tokens", { model: "claude-opus-4.6", messages: hello }],
      // Another notation of the same model.
      ["/v1/messages/count_tokens", { model: "claude-opus-4-6", messages: hello }],
      ["/v1/embeddings", { model: "text-embedding-3-small", input: "Hi" }],
      ["/other/v1/messages", { model: "some-model", ...messages }],
      ["/other/v1/messages/count_tokens", { model: "some-model", messages: hello }],
      ["/v1/models/claude-opus-4.6"],
    ];
    const sentBefore = proxy.demo.journal.filter(({ path }) => /completions|responses|messages|embeddings/.test(path));
    for (const [path, body] of refused) {
      const { status, text } = await statusOf(proxy, anna, path, body);
      // Codex sends a request again that gets 403.
      const expected = path === "/v1/responses" ? 400 : 403;
      expect([path, status, text]).toEqual([path, expected, expect.stringContaining("`anna` may not use `")]);
    }
    const sent = proxy.demo.journal.filter(({ path }) => /completions|responses|messages|embeddings/.test(path));
    expect(sent).toEqual(sentBefore);
    expect(provider.seen).toEqual([]);
    for (const [path, body] of [
      ["/v1/chat/completions", { model: "gpt-4.1", messages: hello }],
      ["/v1/messages", { model: "claude-sonnet-4-5-20250929", ...messages }],
    ] as const)
      expect((await statusOf(proxy, anna, path, body)).status).toBe(200);
  });

  test("a second model in other letters, which upstreams in Go would serve instead, is refused", async () => {
    await using provider = startProvider({ key: "p-0123456789", auth: "x-api-key" });
    await using proxy = await startProxy({
      config: {
        auth: { apiKeys: [{ name: "anna", key: anna, models: ["gpt-*", "claude-sonnet-4.5", "other/small"] }] },
        providers: { other: { type: "anthropic", baseUrl: provider.url, apiKey: "p-0123456789" } },
      },
    });
    for (const [path, body] of [
      ["/v1/chat/completions", { model: "gpt-4.1", Model: "claude-opus-4.6", messages: hello }],
      ["/v1/responses", { MODEL: "gpt-5.3-codex", model: "gpt-4.1", input: "Hi" }],
      ["/v1/messages", { model: "claude-sonnet-4.5", moDel: "claude-opus-4.6", messages: hello, max_tokens: 50 }],
      ["/v1/messages", { model: "other/small", Model: "large", messages: hello, max_tokens: 50 }],
      ["/other/v1/messages", { model: "small", Model: "large", messages: hello, max_tokens: 50 }],
    ] as const) {
      const { status, text } = await statusOf(proxy, anna, path, body);
      expect([path, status, text]).toEqual([path, 400, expect.stringMatching(/`model`/i)]);
    }
    expect(proxy.demo.journal.filter(({ path }) => /completions|responses|messages/.test(path))).toEqual([]);
    expect(provider.seen).toEqual([]);
  });

  test("further models in `models`, which a provider would use when the first one fails, are held to it too", async () => {
    await using provider = startProvider({ key: "p-0123456789", auth: "x-api-key" });
    const other = { type: "anthropic", baseUrl: provider.url, apiKey: "p-0123456789" };
    const apiKeys = [{ name: "anna", key: anna, models: ["other/small*"] }];
    await using proxy = await startProxy({ config: { auth: { apiKeys }, providers: { other } } });
    const statuses = async (models: unknown) => {
      const body = { models, messages: hello, max_tokens: 50 };
      const own = await statusOf(proxy, anna, "/other/v1/messages", { model: "small", ...body });
      return [own.status, (await statusOf(proxy, anna, "/v1/messages", { model: "other/small", ...body })).status];
    };
    expect(await statuses(["small-2", "large"])).toEqual([403, 403]);
    expect(provider.seen.filter(({ method }) => method === "POST")).toEqual([]);
    expect(await statuses(["small-2"])).toEqual([200, 200]);
  });

  test("GET /v1/models lists what the key may use", async () => {
    await using proxy = await startProxy({ config: { auth: { apiKeys: keys } } });
    const idsFor = async (key: string): Promise<string[]> => {
      const response = await fetch(`${proxy.url}/v1/models`, withKey(key));
      return ((await response.json()) as { data: { id: string }[] }).data.map(({ id }) => id);
    };
    const all = await idsFor(hashed);
    const some = await idsFor(anna);
    expect(some).toEqual(all.filter((id) => id.startsWith("gpt-") || id === "claude-sonnet-4.5"));
    expect(some.length).toBeGreaterThan(1);
    expect(some.length).toBeLessThan(all.length);
  });

  test("a limited key may not read the Copilot token, which has no such limit", async () => {
    await using proxy = await startProxy({ config: { auth: { apiKeys: keys } } });
    expect((await statusOf(proxy, hashed, "/token")).status).toBe(200);
    expect((await statusOf(proxy, anna, "/token")).status).toBe(403);
  });
});

describe("patterns", () => {
  const uses = (pattern: string, model: string) => {
    const [key] = clientKeysOf([{ name: "x", key: "k", models: [pattern] }], undefined);
    return mayUse(key, model);
  };
  test.each([
    ["gpt-4.1", "gpt-4.1", true],
    ["gpt-4.1", "gpt-4.10", false],
    ["GPT-*", "gpt-4.1", true],
    ["*", "anything", true],
    ["claude-*-4.5", "claude-sonnet-4.5", true],
    ["claude-*-4.5", "claude-4.5", false],
    ["*mini*", "gpt-5-mini", true],
    ["*mini*", "mini", true],
    ["a*x*c", "a-b-c", false],
    ["ab*b*ba", "abba", false],
    ["a*a", "a", false],
    ["a*b*c", "a-b-b-c", true],
    ["a*b*c", "a-c-b", false],
    ["gpt-.1", "gpt-41", false],
    ["other/*", "other/model", true],
  ])("%s, %s: %p", (pattern, model, expected) => expect(uses(pattern, model)).toBe(expected));

  test("a pattern of many stars is matched like any other", () => {
    expect(uses("a*".repeat(120), `${"a".repeat(255)}b`)).toBe(true);
    expect(uses(`${"a*".repeat(120)}c`, `${"a".repeat(255)}b`)).toBe(false);
  });
});

describe("the admin API", () => {
  const admin = async (proxy: RunningProxy, path: string, body?: unknown) => {
    const response = await fetch(`${proxy.url}/api/admin/keys${path}`, {
      ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
      headers: { "content-type": "application/json" },
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  test("a created key works at once, is stored as its hash, and is shown once", async () => {
    await using proxy = await startProxy();
    const created = await admin(proxy, "", { name: "laptop", models: ["gpt-*"], expires_at: "2099-01-01" });
    const key = String(created.body.key);
    expect([created.status, created.body.name]).toEqual([200, "laptop"]);
    expect(key).toMatch(/^drg_[\w-]{43}$/);
    expect((await fetch(`${proxy.url}/v1/models`)).status).toBe(401);
    expect((await statusOf(proxy, key, "/v1/models")).status).toBe(200);
    const file = readFileSync(join(proxy.home, "config.json"), "utf8");
    expect(file).not.toContain(key);
    expect(file).toContain(createHash("sha256").update(key).digest("hex"));
    const { body } = await admin(proxy, "");
    expect(body).toMatchObject({ required: true, items: [{ name: "laptop", models: ["gpt-*"], expired: false }] });
    expect(JSON.stringify(body) + proxy.lines.join("\n")).not.toContain(key.slice(4, 20));
  });

  test("a server that other machines reach serves nobody when its last key is revoked, and says so", async () => {
    await using proxy = await startProxy({ exposed: true, config: { auth: { apiKeys: [keys[1]] } } });
    expect((await admin(proxy, "")).body).toMatchObject({ served_without: "nobody" });
    const page = await (await fetch(`${proxy.url}/admin/keys`)).text();
    expect(page).toContain("This removes the last client key. Other machines can reach this server");
    expect(await admin(proxy, "/anna/revoke", {})).toEqual({ status: 200, body: { revoked: true } });
    for (const key of [anna, "anything"]) expect((await statusOf(proxy, key, "/v1/models")).status).toBe(401);
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
});

describe("the config", () => {
  const show = async (proxy: RunningProxy) =>
    ((await (await fetch(`${proxy.url}/api/admin/config`)).json()) as { config: { auth: { apiKeys: unknown[] } } })
      .config.auth;
  const change = async (proxy: RunningProxy, apiKeys: unknown) => {
    const response = await fetch(`${proxy.url}/api/admin/config`, {
      method: "POST",
      body: JSON.stringify({ auth: { apiKeys } }),
      headers: { "content-type": "application/json" },
    });
    return { status: response.status, text: await response.text() };
  };

  test("keys and hashes are masked, and a mask stands for what is stored", async () => {
    await using proxy = await startProxy({ config: { auth: { apiKeys: keys } } });
    const { apiKeys } = await show(proxy);
    expect(JSON.stringify(apiKeys)).not.toMatch(/k-plain|k-anna|k-old|[0-9a-f]{20}/);
    // Sent back in another order, with one limit changed.
    const [plain, first, second, third] = apiKeys as [string, { name: string }, object, object];
    expect((await change(proxy, [third, { ...first, models: ["gpt-4.1"] }, second, plain])).status).toBe(200);
    expect(proxy.app.config.current.auth.apiKeys).toEqual([
      keys[3]!,
      { name: "anna", key: anna, models: ["gpt-4.1"] },
      keys[2]!,
      keys[0]!,
    ] as never);
    // Without a secret, the stored one stays.
    expect((await change(proxy, [{ name: "anna" }])).status).toBe(200);
    expect(proxy.app.config.current.auth.apiKeys).toEqual([{ name: "anna", key: anna }]);
    const stolen = await change(proxy, [{ name: "other", key: "…6789" }]);
    expect([stolen.status, stolen.text]).toEqual([400, expect.stringContaining("auth.apiKeys[0].key: is a mask")]);
  });
});

describe("the page", () => {
  const submit = async (proxy: RunningProxy, path: string, fields: Record<string, string>) => {
    const page = await (await fetch(`${proxy.url}/admin/keys`)).text();
    const form_token = formTokenIn(page);
    return fetch(proxy.url + path, {
      method: "POST",
      redirect: "manual",
      body: new URLSearchParams({ form_token, ...fields }),
    });
  };

  test("creates a key, shows it once, and revokes it", async () => {
    await using proxy = await startProxy({ config: { auth: { apiKeys: ["k-plain-0123456789"] } } });
    const created = await submit(proxy, "/admin/keys", {
      name: "Annas laptop",
      models: "gpt-*, claude-*",
      expires_at: "2099-01-31",
    });
    const key = /drg_[\w-]{43}/.exec(await created.text())?.[0] ?? "";
    expect([created.status, created.headers.get("cache-control")]).toEqual([200, "no-store"]);
    expect((await statusOf(proxy, key, "/v1/models")).status).toBe(200);
    const again = await (await fetch(`${proxy.url}/admin/keys`)).text();
    expect(again).toContain("Annas laptop");
    expect(again).not.toContain(key);
    const revoked = await submit(proxy, "/admin/keys/revoke", { name: "Annas laptop" });
    expect([revoked.status, revoked.headers.get("location")]).toEqual([303, "/admin/keys?revoked=Annas+laptop"]);
    expect((await statusOf(proxy, key, "/v1/models")).status).toBe(401);
  });

  test("a wrong field is named, and what was typed stays", async () => {
    await using proxy = await startProxy();
    const response = await submit(proxy, "/admin/keys", { name: "laptop", expires_at: "tomorrow" });
    const text = await response.text();
    expect(response.status).toBe(400);
    expect(text).toContain("expires_at: must be a date");
    expect(text).toContain('value="laptop"');
  });
});
