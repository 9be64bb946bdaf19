/** Rows: providers in the config: types, presets, and the key that stays with its address. */
import { describe, expect, test } from "bun:test";
import { patched } from "../../src/config/patch";
import { presets } from "../../src/config/provider-presets";
import { parseConfig } from "../../src/config/schema";
import { refusalOf } from "../support/refusal";

const providersOf = (providers: object) => parseConfig({ providers }).providers;

test("the name selects a preset where no type is given", () => {
  expect(providersOf({ ollama: {}, openrouter: { apiKey: "k-openrouter" } })).toEqual({
    ollama: {
      type: "chat",
      baseUrl: "http://127.0.0.1:11434/v1",
      auth: "bearer",
      maxTokens: "max_tokens",
      thinking: "reasoning",
    },
    openrouter: {
      type: "chat",
      baseUrl: "https://openrouter.ai/api/v1",
      auth: "bearer",
      apiKey: "k-openrouter",
      thinking: "reasoning",
    },
  });
});

test("every preset is a valid provider", () => {
  for (const name of Object.keys(presets))
    expect(providersOf({ [name]: { apiKey: "k-preset" } })[name]).toMatchObject({ ...presets[name] });
});

test("a preset may be elsewhere; with a type, the name means nothing", () => {
  const baseUrl = "https://ollama.example/v1";
  expect(providersOf({ ollama: { baseUrl } }).ollama).toMatchObject({ type: "chat", baseUrl, maxTokens: "max_tokens" });
  const typed = providersOf({ ollama: { type: "responses", baseUrl } }).ollama!;
  expect([typed.type, typed.maxTokens]).toEqual(["responses", undefined]);
});

describe("refused by path:", () => {
  const x = { type: "anthropic", baseUrl: "https://h.example", apiKey: "pk-0123456789" };
  const names = ["", "v1", "admin", "api", "usage", "token", "health", "assets", "a/b", "..", "a b", "%2e", "é"];
  const addresses = [
    ...["javascript:alert(1)", "file:///etc/passwd", "data:,x", "ftp://h", "http://evil.example"],
    ...["http://169.254.169.254", "https://169.254.169.254/latest", "https://[fd00:ec2::254]"],
    ...[
      "https://metadata.google.internal",
      "https://u:p@h",
      "https://h?k=1",
      "https://h#x",
      "//h",
      "https://h\t.evil",
      "",
    ],
  ];
  const keys = ["a\r\nb", "a\nb", "a\u0000b", "🔑", "key…"];
  test.each<[object, string]>([
    ...[...names, "toString"].map((name): [object, string] => [{ [name]: x }, `providers.${name}`]),
    [{ ["n".repeat(1_000)]: x }, `providers.${"n".repeat(100)}`],
    ...addresses.map((baseUrl): [object, string] => [{ y: { ...x, baseUrl } }, "providers.y.baseUrl"]),
    ...keys.map((apiKey): [object, string] => [{ y: { ...x, apiKey } }, "providers.y.apiKey"]),
    [{ y: { ...x, foo: 1 } }, "providers.y.foo"],
    [{ mine: {} }, "providers.mine.type"],
    [{ mine: { baseUrl: "https://h.example" } }, "providers.mine.type"],
    [{ mine: { type: "chat" } }, "providers.mine.baseUrl"],
    [{ ollama: { type: "chat" } }, "providers.ollama.baseUrl"],
    [{ anthropic: {} }, "providers.anthropic.apiKey"],
    [{ mine: { type: "messages", baseUrl: "https://h.example" } }, "providers.mine.apiKey"],
    [{ mine: { type: "soap", baseUrl: "https://h.example" } }, "providers.mine.type"],
    [{ ollama: { baseUrl: "http://10.0.0.1:11434/v1" } }, "providers.ollama.baseUrl"],
    [{ ollama: { maxTokens: "n_predict" } }, "providers.ollama.maxTokens"],
    [{ ollama: { unsupportedParams: ["a b"] } }, "providers.ollama.unsupportedParams[0]"],
    [{ ollama: { models: [""] } }, "providers.ollama.models[0]"],
    [{ ollama: { models: [{ name: "x" }] } }, "providers.ollama.models[0].id"],
    [{ ollama: { models: [{ id: "x", price: { input: 1 } }] } }, "providers.ollama.models[0].price.output"],
    [{ ollama: { models: [{ id: "x", price: { input: -1, output: 1 } }] } }, "providers.ollama.models[0].price.input"],
    [{ constructor: {} }, "providers.constructor"],
  ])("providers that cannot work are refused by the path of what is wrong: %j", (providers, path) => {
    expect(refusalOf(() => providersOf(providers)).details.param).toBe(path);
  });
});

describe("a key stays with its address", () => {
  const stored = { providers: { openrouter: { apiKey: "k-openrouter-0123456789" }, ollama: {} } };

  test("that of a preset is the preset's, written or not", () => {
    const shown = { type: "chat", baseUrl: "https://openrouter.ai/api/v1", apiKey: "…6789" };
    expect(patched(stored, { providers: { openrouter: shown } }).providers).toEqual({
      openrouter: { ...shown, apiKey: "k-openrouter-0123456789" },
    });
  });

  test("a stored key must be sent again for another address", () => {
    for (const openrouter of [
      { baseUrl: "https://evil.example/v1" },
      { baseUrl: "https://evil.example/v1", apiKey: "…6789" },
      { type: "chat", baseUrl: "https://evil.example/v1" },
    ])
      expect(refusalOf(() => patched(stored, { providers: { openrouter } })).details.param).toBe(
        "providers.openrouter.apiKey",
      );
  });

  test("a provider without a key may move", () => {
    const ollama = { baseUrl: "http://127.0.0.1:4242/v1" };
    expect(patched(stored, { providers: { ollama } }).providers).toEqual({ ollama });
  });
});
