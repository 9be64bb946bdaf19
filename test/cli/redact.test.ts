/** Rows: secrets in the text of a settings file are masked before it is shown. */
import { expect, test } from "bun:test";
import { maskSecrets } from "../../src/cli/connect/redact";

test("secrets are cut down to their end; counts and switches are not", () => {
  const shown = (text: string) => maskSecrets(text, ["the-client-key-of-the-owner"]);
  expect(shown('x = "the-client-key-of-the-owner"')).toBe('x = "…wner"');
  expect(shown('"apiKey": "sk-0123456789abcdef",')).toBe('"apiKey": "…cdef",');
  expect(shown("OPENAI_API_KEY=short")).toBe("OPENAI_API_KEY=…");
  expect(shown("authorization: Bearer abcdefghijklmnopqrst")).toBe("authorization: Bearer …qrst");
  expect(shown('"Authorization": "Basic dXNlcjpwYXNzd29yZA=="')).toBe('"Authorization": "Basic …ZA=="');
  expect(shown('password = "two words, and more" # mine')).toBe('password = "…more" # mine');
  expect(shown('http_headers = { x-api-key = "a-client-key-of-mine" }')).toBe('http_headers = { x-api-key = "…mine" }');
  expect(shown("passphrase: 'it is ours alone'")).toBe("passphrase: '…lone'");
  expect(shown('{ "GITHUB_PAT": "ghp_0123456789abcdef" }')).toBe('{ "GITHUB_PAT": "…cdef" }');
  expect(shown('args = ["--header", "ghp_0123456789abcdef"]')).toBe('args = ["--header", "[github token]"]');
  expect(shown("url: https://me:hush@example.com/x")).toBe("url: https://[secret]@example.com/x");
  expect(shown("MY_ENV_KEY=ABCDEFGHIJKLMNOP")).toBe("MY_ENV_KEY=…MNOP");
  expect(shown('"envKey": "sk-0123456789abcdef"')).toBe('"envKey": "…cdef"');
  expect(maskSecrets('"apiKey": "a \\"quoted\\" key"', ['a "quoted" key'])).not.toContain("quoted");
  for (const plain of [
    '"max_tokens": 128000,',
    '"prompt_cache_key": false',
    '"ANTHROPIC_AUTH_TOKEN": "unused"',
    "key = true",
    'http_headers = { x-api-key = "unused" }',
    '"tokenSource": "manual"',
    '"envKey": "DRAGOMAN_API_KEY",',
  ])
    expect(shown(plain)).toBe(plain);
});
