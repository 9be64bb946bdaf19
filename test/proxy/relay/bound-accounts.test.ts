/**
 * Scenario: requests of a key or a project that is bound to accounts: whatever fails, not one reaches another account;
 * `fixtures/scenes/accounts.txt` has what such a request is told.
 */
import { afterAll, beforeEach, expect, test } from "bun:test";
import { startProxy } from "../../support/proxy";
import fc from "../../support/random";

const always = Number.POSITIVE_INFINITY;
const [octo, work, plus] = ["github.com/octo-demo", "github.com/work-demo", "github.com/plus-demo"] as const;
const proxy = await startProxy({
  accounts: ["octo-demo", "work-demo", "plus-demo"],
  config: {
    auth: {
      apiKeys: [
        "open",
        { name: "company", key: "company", accounts: [work] },
        { name: "both", key: "both", accounts: [work, octo] },
      ],
    },
    projectAccounts: { shop: [work], notes: [octo, plus] },
  },
});
afterAll(() => proxy[Symbol.asyncDispose]());

/** What the next calls of generation fail with; undefined for those that are served. */
let fault: (account: string) => Response | undefined;
for (const path of ["/chat/completions", "/v1/messages", "/responses", "/embeddings"])
  proxy.demo.intercept(path, ({ account = "" }) => fault(account), always);
beforeEach(() => {
  fault = () => undefined;
  for (const account of proxy.app.accounts) account.setState({ name: "ready" });
});

const asks: ((says: string) => [path: string, body: object])[] = [
  (says) => ["/v1/chat/completions", { model: "gpt-5-mini", messages: [{ role: "user", content: says }] }],
  (says) => [
    "/v1/messages",
    { model: "claude-sonnet-4.6", max_tokens: 9, messages: [{ role: "user", content: says }] },
  ],
  (says) => ["/v1/responses", { model: "gpt-5.3-codex", input: says }],
  (says) => ["/v1/messages/count_tokens", { model: "claude-sonnet-4.6", messages: [{ role: "user", content: says }] }],
  (says) => ["/v1/embeddings", { model: "text-embedding-3-small", input: says }],
  (says) => ["/v1/chat/completions", { model: "auto", messages: [{ role: "user", content: says }] }],
];
interface Caller {
  says: string;
  key: string;
  headers: Record<string, string>;
  accounts: string[];
}
const callers: Caller[] = [
  { says: "of-the-company", key: "company", headers: {}, accounts: ["work-demo"] },
  { says: "of-the-shop", key: "open", headers: { "x-dragoman-project": "shop" }, accounts: ["work-demo"] },
  {
    says: "of-the-notes",
    key: "open",
    headers: { "x-dragoman-project": "notes" },
    accounts: ["octo-demo", "plus-demo"],
  },
  { says: "of-both", key: "both", headers: { "x-dragoman-project": "notes" }, accounts: ["octo-demo"] },
  { says: "of-nobody", key: "company", headers: { "x-dragoman-project": "notes" }, accounts: [] },
];

test("of 180 requests with failures of each account not one crosses", async () => {
  const statuses = new Map<number, number>();
  const seen = new Map<string, Set<string>>(callers.map(({ says }) => [says, new Set()]));
  let numbers = 0;
  const [seed] = fc.sample(fc.nat(), 1);
  fault = () => {
    numbers += 1;
    const at = Bun.hash.xxHash32(String(numbers), seed) / 2 ** 32;
    if (at > 0.35) return undefined;
    const status = [429, 402, 500, 503, 401, 403][Math.floor(at * 17)] ?? 529;
    return Response.json({ error: { code: "made_up", message: "No." } }, { status, headers: { "retry-after": "0" } });
  };
  for (let round = 0; round < 6; round += 1) {
    for (const account of proxy.app.accounts) account.setState({ name: "ready" });
    const from = proxy.demo.journal.length;
    await Promise.all(
      callers.flatMap(({ says, key, headers }) =>
        asks.map(async (ask) => {
          const response = await proxy.post(...ask(says), { headers: { "x-api-key": key, ...headers } });
          await response.text();
          statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        }),
      ),
    );
    for (const { bytes, account } of proxy.demo.journal.slice(from < proxy.demo.journal.length ? from : 0))
      for (const { says } of callers) if (Buffer.from(bytes).includes(says)) seen.get(says)!.add(account ?? "nobody");
  }
  for (const { says, accounts } of callers) expect([says, [...seen.get(says)!].sort()]).toEqual([says, accounts]);
  expect(statuses.get(200)).toBeGreaterThan(20);
  expect(statuses.size).toBeGreaterThan(3);
});

test("the page of accounts says which keys and projects are bound", async () => {
  const page = await (await fetch(`${proxy.url}/admin/accounts`)).text();
  expect(page).toMatch(/The key <code>company<\/code> uses <code>github\.com\/work-demo<\/code> and no other account/);
  expect(page).toContain("The project <code>notes</code> uses");
});
