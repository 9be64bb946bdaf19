/** Rows: the price of a model whose list states none is taken from what its answers are billed by. */
import { expect, test } from "bun:test";
import type { CacheReport } from "../../../src/admin/api/cache";
import type { ModelItem } from "../../../src/admin/api/models";
import { creditAccounts } from "../../../src/demo/accounts";
import { type TimedProxy, timed } from "./bench";

/** Listed in both generations. */
const model = "gpt-5.3-codex";
const headers = { "x-claude-code-session-id": "5b3c1c1e-52c4" };
const system = "Be brief. ".repeat(700);

async function ask(proxy: TimedProxy, path: string, stream: boolean): Promise<string> {
  const messages = [{ role: "user", content: "What is this?" }];
  const bodies: Record<string, object> = {
    "/v1/messages": { max_tokens: 100, system, messages },
    "/v1/responses": { instructions: system, input: "What is this?", prompt_cache_key: "k" },
  };
  const body = { model, stream, ...bodies[path] };
  const response = await proxy.post(path, body, { headers });
  await response.text();
  expect(response.status).toBe(200);
  return proxy.rows()[0]!.request_id;
}

test.each([
  ["/v1/messages", true],
  ["/v1/responses", true],
  ["/v1/responses", false],
  ["/v1/messages", false],
])(
  "the page of a request splits its cost by the prices of the answers, and the cache page tells what was saved: %s, streamed %p",
  async (path, stream) => {
    await using proxy = await timed({ demo: { generation: "A", accounts: creditAccounts() } });
    await proxy.app.accounts[0]!.quota();
    const saved = async () =>
      ((await (await fetch(`${proxy.url}/api/admin/cache`)).json()) as CacheReport).totals.saved_nano_credits;
    const id = await ask(proxy, path, stream);
    const page = async (each: string) => await (await fetch(`${proxy.url}/admin/requests/${each}`)).text();
    expect(await page(id)).toContain("Credits per 1M tokens");
    expect(await page(id)).toContain(
      "The upstream lists no token price for this model. These are the prices that its answers stated last.",
    );
    // An answer states the price of cached tokens only if it had some.
    proxy.pass(61_000);
    await ask(proxy, path, stream);
    const { cached_tokens } = proxy.rows()[0]!;
    expect(cached_tokens).toBeGreaterThan(1_000);
    await using listed = await timed({ demo: { generation: "C" } });
    const { items } = (await (await fetch(`${listed.url}/api/admin/models`)).json()) as { items: ModelItem[] };
    const { per, input, cached_input } = items.find(({ id }) => id === model)!.price.tokens!;
    expect(input).toBeGreaterThan(cached_input!);
    expect(await saved()).toBe(Math.round((cached_tokens! * (input - cached_input!) * 1e9) / per));
  },
);

test("the price that the list states stays, whatever answers state", async () => {
  await using proxy = await timed({ demo: { generation: "C" } });
  const id = await ask(proxy, "/v1/messages", true);
  const page = await (await fetch(`${proxy.url}/admin/requests/${id}`)).text();
  expect(page).toContain("Credits per 1M tokens");
  expect(page).not.toContain("lists no token price");
});
