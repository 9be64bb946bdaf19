/**
 * Takes the pictures of README.md: `bun test/support/pictures.ts`. A demo with two weeks of made-up requests, two client
 * keys and a budget, in Chromium. A palette, as pngquant makes one, keeps the files small.
 */
import { join } from "node:path";
import { openBrowser } from "./browser";
import { entry } from "./history-rows";
import { startProxy } from "./proxy";

const models = [
  {
    id: "claude-opus-4.6",
    client: "claude-cli/2.1.197",
    key: "claude-code",
    dialect: "messages",
    credits: 11,
    units: 3,
  },
  {
    id: "claude-sonnet-4.6",
    client: "claude-cli/2.1.197",
    key: "claude-code",
    dialect: "messages",
    credits: 4,
    units: 1,
  },
  { id: "gpt-5.4", client: "codex_cli_rs/0.169.0", key: "codex", dialect: "responses", credits: 5, units: 1 },
  { id: "gemini-3.1-pro-preview", client: "opencode/1.18.33", key: "opencode", dialect: "chat", credits: 3, units: 1 },
  { id: "gpt-5-mini", client: "opencode/1.18.33", key: "opencode", dialect: "responses", credits: 0, units: 0 },
] as const;

/** The same numbers each time, from 0 to 1. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

const day = 86_400_000;
const { browser, why } = await openBrowser();
if (!browser) throw new Error(why);
const keys = [...new Set(models.map(({ key }) => key))];
await using proxy = await startProxy({
  accounts: ["octo-demo", "work-demo", "plus-demo"],
  config: {
    auth: { apiKeys: keys.map((name) => ({ name, key: `k-of-${name}-0001` })) },
    budgets: [{ name: "Opus", unit: "premium", limit: 400, per: "month", scope: { model: "claude-opus-*" } }],
  },
});
const next = numbers(7);
const now = Date.now();
for (let at = now - 13.9 * day; at < now; at += next() * 0.06 * day) {
  const model = models[Math.floor(next() ** 1.4 * models.length)]!;
  const input = Math.round(4_000 + next() * 60_000);
  const fails = next() < 0.025;
  const size = 0.3 + next() * 1.4;
  proxy.app.history.add(
    entry({
      request_id: crypto.randomUUID(),
      started_at_ms: Math.round(at),
      duration_ms: Math.round(1_500 + next() * 14_000),
      first_byte_ms: fails ? null : Math.round(500 + next() * 1_900),
      path: { messages: "/v1/messages", responses: "/v1/responses", chat: "/v1/chat/completions" }[model.dialect],
      client_dialect: model.dialect,
      upstream_dialect: model.dialect,
      client_model: model.id.startsWith("claude") ? model.id.replace(".", "-") : model.id,
      upstream_model: model.id,
      account_id: next() < 0.7 ? "octo-demo" : "plus-demo",
      client_name: model.client,
      key_name: model.key,
      session: `session${Math.floor(next() * 20)}`,
      input_tokens: fails ? null : input,
      cached_tokens: fails ? null : Math.round(input * next() * 0.9),
      output_tokens: fails ? null : Math.round(100 + next() * 1_800),
      nano_credits: fails ? 0 : Math.round(model.credits * size * 1e9),
      premium_units: fails ? 0 : model.units,
      fixups: "[]",
      ...(fails && {
        http_status: 429,
        stop_reason: null,
        error_type: "rate_limited",
        error_message: "Too many requests.",
      }),
    }),
  );
}
proxy.app.history.flush();
for (const [name, path, height] of [
  ["overview", "/admin", 1320],
  ["requests", "/admin/requests?limit=25", 1010],
] as const) {
  const page = await browser.newPage({ viewport: { width: 1280, height } });
  await page.goto(proxy.url + path, { waitUntil: "load" });
  await page.screenshot({ path: join(import.meta.dir, `../../.github/${name}.png`) });
  await page.close();
}
await browser.close();
