/** Rows: limits and defaults of the config; what it may say is in `fixtures/pairs/config/`. */
import { expect, test } from "bun:test";
import { z } from "zod";
import { presets } from "../../src/config/provider-presets";
import { configSchema, parseConfig } from "../../src/config/schema";
import type { ProxyError } from "../../src/lib/errors";
import { refusalOf } from "../support/refusal";

function refusal(value: unknown): ProxyError {
  const error = refusalOf(() => parseConfig(value));
  expect(error.status).toBe(400);
  return error;
}

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

test("a thousand errors are told in a short sentence, and a long name is cut in it", () => {
  const keys = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`k${index}`, 1]));
  expect(refusal(keys).message).toEndWith("; and 995 more.");
  expect(refusal({ providers: { ["n".repeat(1_000)]: {} } }).details.param).toBe(`providers.${"n".repeat(100)}`);
});

test("every preset of a provider is a valid one", () => {
  for (const name of Object.keys(presets))
    expect(parseConfig({ providers: { [name]: { apiKey: "k-preset" } } }).providers[name]).toMatchObject({
      ...presets[name],
    });
});

test("a config nested without end is refused, not a crash", () => {
  expect(refusal(JSON.parse(`{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`)).details.param).toBe("a");
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
