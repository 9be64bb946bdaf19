/** Rows: what the config may say, and the words with which it is refused. */
import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { configSchema, parseConfig } from "../../src/config/schema";
import type { ProxyError } from "../../src/lib/errors";
import { refusalOf } from "../support/refusal";

function refusal(value: unknown): ProxyError {
  const error = refusalOf(() => parseConfig(value));
  expect(error.status).toBe(400);
  return error;
}

test.each<[string, number, (at: number) => [string, unknown]]>([
  ["upstreamHeaders", 1_000, (at) => [`x-${at}`, "a"]],
  ["maxPromptTokens", 1_000, (at) => [`model-${at}`, 1]],
  ["claudeCodeSettings", 100, (at) => [`setting${at}`, true]],
])("%s takes %d entries and not one more", (name, most, entry) => {
  const of = (count: number) => ({ [name]: Object.fromEntries(Array.from({ length: count }, (_, at) => entry(at))) });
  expect(parseConfig(of(most))).toMatchObject(of(most));
  expect(refusal(of(most + 1)).details.param).toBe(name);
});

test("an empty config means these defaults", () => {
  const empty =
    "providers upstreamHeaders modelAliases fallbacks projectAccounts routes maxPromptTokens claudeCodeSettings";
  const none = "allowedOrigins allowedHosts budgets accountOrder pausedAccounts";
  const all = (names: string, value: unknown) => Object.fromEntries(names.split(" ").map((name) => [name, value]));
  expect<unknown>(parseConfig({})).toEqual({
    ...{ ...all(empty, {}), ...all(none, []), ...all("neverOverage accountAffinity autoWhenOnly", false) },
    ...all("toolSearch promptCache webSearchModel", "auto"),
    ...{ auth: { apiKeys: [] }, logLevel: "info", retentionDays: 14, maxRows: 200_000 },
    notices: { webhookFormat: "json", desktop: false, accounts: [0.8, 0.95] },
    ...{ whenLimited: "refuse", longestWaitMinutes: 2, freeModelRouting: "round-robin", tokenEstimateMultiplier: 1.15 },
    ...{ useResponsesApiWebSearch: true, webSearchEngine: { name: "model" }, updateNotice: true },
    anthropicApiKey: undefined,
  });
  // It is answered without the schema, which has the same defaults.
  expect(JSON.stringify(parseConfig({}))).toBe(JSON.stringify(configSchema().parse({})));
});

describe("unknown keys are refused by name:", () => {
  test.each([
    [{ foo: 1 }, "foo"],
    [{ logLevel: "debug", foo: 1 }, "foo"],
    [{ auth: { foo: 1 } }, "auth.foo"],
    [JSON.parse('{"__proto__":{"x":1}}'), "__proto__"],
    [{ constructor: { prototype: { x: 1 } } }, "constructor"],
    [JSON.parse('{"modelAliases":{"__proto__":"x"}}'), "modelAliases.__proto__"],
    [{ modelAliases: { constructor: "x" } }, "modelAliases.constructor"],
    [JSON.parse('{"upstreamHeaders":{"__proto__":"x"}}'), "upstreamHeaders.__proto__"],
  ])("an unknown key in the config is refused by its path: %j", (value, path) => {
    const { message, details } = refusal(value);
    expect(message).toContain(`${path}: not a known key`);
    expect(details.param).toBe(path);
    expect(Object.hasOwn(Object.prototype, "x")).toBe(false);
  });
});

describe("wrong values are refused by path:", () => {
  test.each([
    [{ logLevel: 1 }, "logLevel"],
    [{ useResponsesApiWebSearch: "true" }, "useResponsesApiWebSearch"],
    [{ auth: [] }, "auth"],
    [{ auth: { apiKeys: "k" } }, "auth.apiKeys"],
    [{ auth: { apiKeys: ["good", 1] } }, "auth.apiKeys[1]"],
    [{ auth: { apiKeys: [""] } }, "auth.apiKeys[0]"],
    [{ auth: { apiKeys: ["  "] } }, "auth.apiKeys[0]"],
    [{ auth: { apiKeys: ["a\r\nb"] } }, "auth.apiKeys[0]"],
    [{ auth: { apiKeys: ["a\u0000b"] } }, "auth.apiKeys[0]"],
    [{ auth: { apiKeys: ["🔑"] } }, "auth.apiKeys[0]"],
    [{ auth: { apiKeys: Array(1_001).fill("k") } }, "auth.apiKeys"],
    [{ auth: { apiKeys: [{ name: "ci", key: "k", accounts: [] }] } }, "auth.apiKeys[0].accounts"],
    [{ auth: { apiKeys: [{ name: "ci", key: "k", models: [] }] } }, "auth.apiKeys[0].models"],
    [{ projectAccounts: { web: [] } }, "projectAccounts.web"],
    [{ anthropicApiKey: "" }, "anthropicApiKey"],
    [{ vendorxApiKey: 5 }, "vendorxApiKey"],
    [{ retentionDays: 0 }, "retentionDays"],
    [{ retentionDays: 1.5 }, "retentionDays"],
    [{ retentionDays: "14" }, "retentionDays"],
    [{ maxRows: -1 }, "maxRows"],
    [{ providers: [] }, "providers"],
    [{ freeModelRouting: "random" }, "freeModelRouting"],
    [{ tokenEstimateMultiplier: 0 }, "tokenEstimateMultiplier"],
    [{ allowedOrigins: ["*"] }, "allowedOrigins[0]"],
    [{ allowedOrigins: ["null"] }, "allowedOrigins[0]"],
    [{ allowedOrigins: ["http://a/b"] }, "allowedOrigins[0]"],
    [{ allowedOrigins: ["http://a/"] }, "allowedOrigins[0]"],
    [{ allowedOrigins: ["http://a:80"] }, "allowedOrigins[0]"],
    [{ allowedOrigins: ["http://A"] }, "allowedOrigins[0]"],
    [{ allowedOrigins: ["http://u@a"] }, "allowedOrigins[0]"],
    [{ allowedOrigins: ["http://*.a"] }, "allowedOrigins[0]"],
    [{ allowedOrigins: ["app://*"] }, "allowedOrigins[0]"],
    [{ allowedOrigins: ["https://ok.example", "localhost"] }, "allowedOrigins[1]"],
    [{ allowedHosts: ["a:80"] }, "allowedHosts[0]"],
    [{ allowedHosts: ["http://a"] }, "allowedHosts[0]"],
    [{ allowedHosts: ["*.a"] }, "allowedHosts[0]"],
    [{ allowedHosts: [".a"] }, "allowedHosts[0]"],
    [{ allowedHosts: [""] }, "allowedHosts[0]"],
    [{ upstreamHeaders: { "x y": "1" } }, "upstreamHeaders.x y"],
    [{ upstreamHeaders: { "": "1" } }, "upstreamHeaders."],
    [{ upstreamHeaders: { "x-a": "1\r\nx-b: 2" } }, "upstreamHeaders.x-a"],
    [{ upstreamHeaders: { "x-a": "é" } }, "upstreamHeaders.x-a"],
    [{ upstreamHeaders: { "x-a": 1 } }, "upstreamHeaders.x-a"],
    [{ upstreamHeaders: { "X-Initiator": "agent" } }, "upstreamHeaders.X-Initiator"],
    [{ upstreamHeaders: { Authorization: "Bearer x" } }, "upstreamHeaders.Authorization"],
    [{ upstreamHeaders: { "Content-Length": "1" } }, "upstreamHeaders.Content-Length"],
    [{ upstreamHeaders: { "proxy-connection": "1" } }, "upstreamHeaders.proxy-connection"],
    [{ modelAliases: { fast: "" } }, "modelAliases.fast"],
    [{ modelAliases: { fast: null } }, "modelAliases.fast"],
    [{ modelAliases: [] }, "modelAliases"],
  ])("a wrong value in the config is refused by its path: %j", (value, path) => {
    const { message, details } = refusal(value);
    expect(details.param).toBe(path);
    expect(message).toStartWith(`${path}: `);
  });

  test("what is not an object at all", () => {
    for (const value of [null, [], "x", 1, undefined]) expect(refusal(value).message).toContain("expected object");
  });
});

test("a wrong choice is answered with the choices", () => {
  expect(refusal({ logLevel: "verbose" }).message).toBe('logLevel: expected one of "error"|"warn"|"info"|"debug".');
});

test("a key that is misspelt is answered with the one that is probably meant", () => {
  expect(refusal({ loglevel: "debug", bugets: [] }).message).toBe(
    "loglevel: not a known key (did you mean logLevel?); bugets: not a known key (did you mean budgets?).",
  );
  expect(refusal({ apiKeys: ["k"], webhookUrl: "https://example.com" }).message).toBe(
    "apiKeys: not a known key (did you mean auth.apiKeys?); webhookUrl: not a known key (did you mean notices.webhookUrl?).",
  );
});

test("all errors are in one sentence, and a thousand errors still in a short one", () => {
  expect(refusal({ maxRows: 0, foo: 1, bar: 2 }).message).toBe(
    "maxRows: expected number to be >=1; foo: not a known key; bar: not a known key.",
  );
  const keys = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`k${index}`, 1]));
  expect(refusal(keys).message).toEndWith("; and 995 more.");
});

test("a refusal never repeats a secret", () => {
  expect(
    refusal({ auth: { apiKeys: ["hunter2 "] }, anthropicApiKey: "hünter2", foo: "hunter2" }).message,
  ).not.toContain("unter2");
});

test("a config nested without end is refused, not a crash", () => {
  expect(refusal(JSON.parse(`{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`)).details.param).toBe("a");
});

test("both spellings of the counting key reach the program under one name; two values are refused", () => {
  for (const value of [
    { vendorxApiKey: "sk" },
    { anthropicApiKey: "sk" },
    { vendorxApiKey: "sk", anthropicApiKey: "sk" },
  ]) {
    expect(parseConfig(value).anthropicApiKey).toBe("sk");
    expect(parseConfig(value)).not.toHaveProperty("vendorxApiKey");
  }
  const { message, details } = refusal({ vendorxApiKey: "one", anthropicApiKey: "two" });
  expect([details.param, message.includes("anthropicApiKey")]).toEqual(["vendorxApiKey", true]);
});

test("what an owner may write is accepted", () => {
  const written = {
    auth: { apiKeys: ["sk-1", "with inner space", "!~"] },
    allowedOrigins: [
      "http://localhost:3000",
      "https://app.example",
      "chrome-extension://abcdefghijklmnopabcdefghijklmnop",
      "app://obsidian.md",
    ],
    allowedHosts: ["mybox", "host.docker.internal", "My_Service"],
    upstreamHeaders: { "X-GitHub-Api-Version": "2026-01-01", "editor-version": "" },
    modelAliases: { fast: "gpt-5-mini", "claude-3.5": "claude-sonnet-4.6" },
  };
  expect(parseConfig(written)).toMatchObject({
    ...written,
    allowedHosts: ["mybox", "host.docker.internal", "my_service"],
  });
});

test("form and README find every key's description, default and marks in the schema", () => {
  const { properties } = z.toJSONSchema(configSchema(), { io: "input" });
  for (const [name, property] of Object.entries(properties!))
    if (!["auth", "notices", "webSearchEngine"].includes(name)) expect(property).toHaveProperty("description");
  expect(properties).toMatchObject({
    auth: { properties: { apiKeys: { secret: true, restart: true, default: [] } } },
    retentionDays: { default: 14 },
    anthropicApiKey: { secret: true },
    vendorxApiKey: { secret: true },
  });
});

test("two budgets do not share an amount by their name, wherever they stand, and a space makes no other name", () => {
  const rules = { unit: "requests", limit: 3, per: "day" };
  const key = (name: string, budgets: object[]) => ({ name, key: `k-${name}-0123456789`, budgets });
  const refused = (config: object) => expect(() => parseConfig(config)).toThrow("has the name of another budget");
  refused({ budgets: [{ name: "ci/day", ...rules }], auth: { apiKeys: [key("ci", [rules])] } });
  refused({ auth: { apiKeys: [key("ci", [rules, rules])] } });
  refused({ auth: { apiKeys: [key("ci", [{ name: "x", ...rules }]), key("cd", [{ name: "x ", ...rules }])] } });
  const { auth } = parseConfig({ auth: { apiKeys: [key("ci ", [rules, { ...rules, per: "month" }])] } });
  expect(auth.apiKeys).toMatchObject([{ name: "ci" }]);
});
