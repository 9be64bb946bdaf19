/** Rows: why a turn's prompt was not read from the upstream's cache, as the history says. */
import { expect, test } from "bun:test";
import type { Row } from "../../../src/books/history/history";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { type TimedProxy, timed } from "./bench";

const gpt = exampleModels.small;
const haiku = "claude-haiku-4.5";
const words = (text: string, count: number) => `${text} `.repeat(count);
const tool = (name: string) => ({ name, description: words("Reads a file.", 40), input_schema: { type: "object" } });
const session = { "x-claude-code-session-id": "5b3c1c1e-52c4" };

interface Turn {
  model?: string;
  system?: unknown;
  tools?: object[];
  /** How many turns are over. */
  turns?: number;
  first?: string;
  /** What the model said in each of them. */
  past?: string;
  /** What it said in one of them. */
  said?: Record<number, string>;
  headers?: Record<string, string>;
}

const send = async (proxy: TimedProxy, turn: Turn = {}) => (await sendFor(proxy, turn)).cache_miss;

async function sendFor(proxy: TimedProxy, turn: Turn = {}): Promise<Row> {
  const { model = gpt, system = words("Be brief.", 700), tools = [tool("read")], turns = 0, headers = session } = turn;
  const messages = [
    { role: "user", content: turn.first ?? "What is this?" },
    ...Array.from({ length: turns }, (_, at) => [
      { role: "assistant", content: words(`${turn.said?.[at] ?? turn.past ?? "It is"} ${at}.`, 30) },
      { role: "user", content: words(`And ${at}?`, 30) },
    ]).flat(),
  ];
  const response = await proxy.post("/v1/messages", { model, max_tokens: 100, system, tools, messages }, { headers });
  expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
  return proxy.rows()[0]!;
}

const [account] = demoAccounts();
const accounts = ["one-demo", "two-demo"].map((login, at) => ({
  ...account!,
  login,
  githubToken: account!.githubToken.replace(/.$/, String(at)),
  quota: quotas.credits(),
}));
const start = (config: object = {}) => timed({ demo: { accounts: accounts.slice(0, 1), generation: "C" }, config });

test("a cache miss is none for the first turn, nor for those that find it", async () => {
  await using proxy = await start();
  expect(await send(proxy)).toBe(null);
  for (let turns = 1; turns < 4; turns++) expect(await send(proxy, { turns })).toBe(null);
  expect(proxy.rows()[0]!.cached_tokens).toBeGreaterThan(1000);
});

test.each<[string, Turn]>([
  ["system", { system: words("The time is 12:01. Be brief.", 700) }],
  ["tools", { tools: [tool("read"), tool("write")] }],
  ["model", { model: exampleModels.gpt }],
])("a cache miss is of the %s if that changed", async (reason, changed) => {
  await using proxy = await start();
  await send(proxy);
  expect(await send(proxy, { turns: 1, ...changed })).toBe(reason);
  expect(await send(proxy, { turns: 2, ...changed })).toBe(null);
});

test("a cache miss is of time after more than five minutes", async () => {
  await using proxy = await start();
  await send(proxy);
  proxy.pass(4 * 60_000);
  expect(await send(proxy, { turns: 1 })).toBe(null);
  proxy.pass(6 * 60_000);
  expect(await send(proxy, { turns: 2 })).toBe("expired");
});

test.each([
  ["five minutes", {}, "expired"],
  ["an hour", { ephemeral_1h_input_tokens: 2_900 }, "unknown"],
])("a cache miss is of time by how long the prompt was written for: %s", async (_, cache_creation, afterTen) => {
  await using proxy = await start({ promptCache: "1h" });
  let read = 0;
  proxy.demo.intercept(
    "/v1/messages",
    () =>
      Response.json({
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: haiku,
        content: [{ type: "text", text: "Yes." }],
        stop_reason: "end_turn",
        usage: {
          input_tokens: 100,
          cache_read_input_tokens: read,
          cache_creation_input_tokens: read > 0 ? 0 : 2_900,
          cache_creation: read > 0 ? {} : cache_creation,
          output_tokens: 2,
        },
      }),
    Number.POSITIVE_INFINITY,
  );
  expect(await send(proxy, { model: haiku })).toBe(null);
  proxy.pass(10 * 60_000);
  expect(await send(proxy, { model: haiku, turns: 1 })).toBe(afterTen);
  // Reading it keeps it for as long again.
  read = 2_900;
  expect(await send(proxy, { model: haiku, turns: 2 })).toBe(null);
  read = 0;
  proxy.pass(50 * 60_000);
  expect(await send(proxy, { model: haiku, turns: 3 })).toBe(afterTen);
  proxy.pass(70 * 60_000);
  expect(await send(proxy, { model: haiku, turns: 4 })).toBe("expired_long");
});

test("a cache miss is of the account if another one served", async () => {
  await using proxy = await timed({ demo: { accounts, generation: "C" }, config: { freeModelRouting: "in-order" } });
  await send(proxy);
  const served = proxy.rows()[0]!.account_id;
  const first = proxy.app.accounts.find(({ id }) => id === served)!;
  first.setState({ name: "cooling", until: proxy.app.now() + 20_000, reason: "For a test." });
  expect(await send(proxy, { turns: 1 })).toBe("account");
});

test("a cache miss names what changed, and what it cost", async () => {
  await using proxy = await start();
  const tools = [tool("read"), tool("mcp__playwright__click"), tool("mcp__playwright__type")];
  const changeAfter = async (turn: Turn) => {
    const row = await sendFor(proxy, turn);
    return { reason: row.cache_miss, change: JSON.parse(row.cache_change ?? "null"), lost: row.cache_lost_cost };
  };
  expect(await changeAfter({})).toEqual({ reason: null, change: null, lost: null });
  const added = await changeAfter({ turns: 1, tools });
  expect(added).toMatchObject({ reason: "tools", change: { added: ["mcp__playwright"] } });
  // What was in the cache is about all of the first prompt, and was written anew.
  const { input_tokens } = proxy.rows()[1]!;
  const price = (await proxy.app.catalogue.models()).find(({ id }) => id === gpt)!.price.tokens!;
  expect(added.lost).toBe(Math.round((input_tokens! * (price.cacheWrite! - price.cachedInput!) * 1e9) / price.per));
  const changed = [{ ...tools[0], description: "Reads." }, ...tools.slice(1)];
  expect(await changeAfter({ turns: 2, tools: changed })).toMatchObject({ change: { changed: ["read"] } });
  expect(await changeAfter({ turns: 3, tools: changed.slice(1) })).toMatchObject({ change: { removed: ["read"] } });
  expect(await changeAfter({ turns: 4, tools: changed.slice(1).reverse() })).toMatchObject({ reason: "tools" });
  expect(await changeAfter({ turns: 5, model: exampleModels.gpt, tools: changed.slice(1).reverse() })).toMatchObject({
    reason: "model",
    change: { model: gpt },
  });
});

test("a cache miss is of the first message that was rewritten", async () => {
  await using proxy = await start();
  await send(proxy, { system: "Be brief.", turns: 60 });
  const row = await sendFor(proxy, { system: "Be brief.", turns: 61, past: "It was" });
  expect([row.cache_miss, JSON.parse(row.cache_change!)]).toEqual(["rewritten", { message: 2, of: 121 }]);
});

test.each<[string, Turn, number]>([
  ["its first one, as a date in it may be", { first: "It is Sunday." }, 1],
  ["one behind most of the prompt, which is read", { said: { 50: "It was" } }, 102],
])("a cache miss is of a message that was rewritten: %s", async (_, rewritten, message) => {
  await using proxy = await start();
  const before = await sendFor(proxy, { turns: 60 });
  const row = await sendFor(proxy, { turns: 61, ...rewritten });
  expect([row.cache_miss, JSON.parse(row.cache_change!)]).toEqual(["rewritten", { message, of: 121 }]);
  const price = (await proxy.app.catalogue.models()).find(({ id }) => id === gpt)!.price.tokens!;
  const lost = before.input_tokens! - row.cached_tokens!;
  expect(lost).toBeGreaterThan(1024);
  expect(row.cache_lost_cost).toBe(Math.round((lost * (price.cacheWrite! - price.cachedInput!) * 1e9) / price.per));
  expect(await send(proxy, { turns: 62, ...rewritten })).toBe(null);
});

test("a message that is rewritten near the end of a prompt loses too little to be a cache miss", async () => {
  await using proxy = await start();
  await send(proxy, { turns: 60 });
  expect(await send(proxy, { turns: 61, said: { 59: "It was" } })).toBe(null);
});

test("a cache miss is of the missing key if the client names no session", async () => {
  await using proxy = await start();
  const reasons = [];
  for (let turns = 0; turns < 6; turns++) reasons.push(await send(proxy, { turns, headers: {} }));
  expect(new Set(reasons)).toEqual(new Set([null, "no_key"]));
});

test("a cache miss is of the missing marks if a client of Claude's own dialect sets none", async () => {
  await using proxy = await start();
  await send(proxy, { model: haiku });
  expect(await send(proxy, { model: haiku, turns: 1 })).toBe("no_marks");
});

test("a cache miss is of a shorter prompt if the client compacted it", async () => {
  await using proxy = await start();
  await send(proxy, { turns: 60 });
  const row = await sendFor(proxy, { turns: 40, past: "In short:" });
  expect([row.cache_miss, JSON.parse(row.cache_change!)]).toEqual(["shortened", { message: 2, of: 121 }]);
});

test("a cache miss is not found in a session's other agent, which has another prompt", async () => {
  await using proxy = await start();
  await send(proxy);
  expect(await send(proxy, { first: "Search the files.", system: words("Search well.", 700) })).toBe(null);
  expect(await send(proxy, { turns: 1 })).toBe(null);
});

test("a miss of a system text that changes beyond its beginning, in a body of megabytes", async () => {
  await using proxy = await start();
  const text = words("Be brief.", 20_000);
  await send(proxy, { system: `${text} It is 12:00.` });
  const half = text.length / 2;
  expect(await send(proxy, { system: `${text.slice(0, half / 2)} It is 12:01. ${text.slice(half)}` })).toBe("system");
});

test("a row has the beginning of a hash of the session, never the session", async () => {
  await using proxy = await start();
  await send(proxy);
  await send(proxy, { headers: {} });
  const [without, row] = proxy.rows();
  expect(without!.session).toBe(null);
  expect(row!.session).toMatch(/^[0-9a-f]{12}$/);
  expect(JSON.stringify(proxy.rows())).not.toContain("5b3c1c1e-52c4");
});
