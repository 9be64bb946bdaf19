/**
 * Property: two ways to one number. Random rows are written, every place that adds them up is asked over
 * HTTP, and each figure of the same thing must be the one that the rows themselves come to.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Entry } from "../../src/books/history/entry";
import { toolOf } from "../../src/clients/index";
import { dollars, formatAmount, formatCount, isoDay, percent } from "../../src/lib/format";
import { sessionHash, shortHash } from "../../src/proxy/relay/session-id";
import { passes } from "../support/history-oracle";
import { entry } from "../support/history-rows";
import { inProcess } from "../support/in-process";
import { type RunningProxy, startProxy } from "../support/proxy";
import { type Chance, openChance, triesOf } from "../support/random";

const hour = 3_600_000;
const day = 24 * hour;
/** The proxy's clock stands still, in the middle of an hour. */
const now = Math.floor(Date.now() / hour) * hour - 23 * 60_000;
const month = Date.UTC(new Date(now).getUTCFullYear(), new Date(now).getUTCMonth());
const sessions = ["one", "two", "three"];
const clients = [
  "claude-cli/2.0",
  "claude-cli/2.1",
  'a "quoted", <b>name</b>',
  "=cmd|' /C calc'!A0",
  "\u202egnp.exe",
  null,
];
const models = ["claude-sonnet-4.6", "gpt-5.4", 'odd,"<model>'];

/**
 * Who served, and what that cost: the plan of octo-demo, who is signed in, bills credits, bob's premium requests, and a request may
 * have come to bob after octo-demo refused it. Of some nothing is known, of some not all, and what was refused here costs nothing.
 */
function servedFrom({ pick, below, maybe }: Chance): Partial<Entry> {
  const account_id = pick("octo-demo", "bob");
  const isFallback = account_id === "bob" && maybe(0.3);
  const units = pick(0, 0.33, 1, 7.5) * 1e9;
  const cost = account_id === "octo-demo" ? below(2_000_000_000) : units;
  const unit = account_id === "octo-demo" ? "credits" : "premium";
  return {
    account_id,
    account_key: `github.com/${account_id}`,
    ...(isFallback && {
      attempts: '[{"account":"octo-demo","status":402,"ms":3},{"account":"bob","status":200,"ms":9}]',
    }),
    ...pick(
      ...[1, 2, 3].map(() => ({ cost, cost_unit: unit }) as const),
      { cost: null, cost_unit: null },
      { cost: 0, cost_unit: unit },
      { cost, cost_unit: unit, cost_at_least: unit === "credits" ? 1 : 0 },
    ),
  };
}

function tokensFrom({ pick, below, maybe }: Chance): Partial<Entry> {
  const input = below(200_000);
  return {
    input_tokens: maybe(0.8) ? input : null,
    cached_tokens: pick(null, 0, Math.floor(input / 3), input),
    cache_write_tokens: pick(null, 0, 17),
    output_tokens: maybe(0.8) ? below(9_000) : null,
  };
}

function rowsFrom(chance: Chance): Entry[] {
  const { pick, below, maybe } = chance;
  return Array.from({ length: 120 }, () => {
    const session = pick(...sessions, null);
    const member = session === null ? pick(null, "m1", "m2") : pick("m1", "m2");
    const cut = maybe(0.15) && { http_status: 499, error_type: "client_closed", error_message: "The client left." };
    const prompt = session !== null && maybe(0.7) ? shortHash(`${member} ${session} ${below(3)}`) : null;
    return entry({
      started_at_ms: now - pick(below(day), below(8 * day), below(29 * day)),
      duration_ms: below(60_000),
      client_name: pick(...clients),
      upstream_model: pick(...models),
      key_name: pick(null, "laptop", "a b,c"),
      project: pick(null, "acme & co"),
      session: session && sessionHash(session),
      prompt,
      kind: prompt && pick("main", "subagent", "auxiliary", "compaction", "search", null),
      cache_miss: pick(null, null, "system"),
      member,
      ...tokensFrom(chance),
      ...servedFrom(chance),
      ...cut,
    });
  });
}

const sum = (values: readonly (number | null)[]) => values.reduce<number>((all, value) => all + (value ?? 0), 0);

/** What rows cost, by themselves. */
const costOf = (rows: readonly Entry[]) => ({
  request_count: rows.length,
  cost: Object.fromEntries(
    [...Map.groupBy(rows, ({ cost_unit }) => cost_unit)].flatMap(([unit, own]) =>
      unit === null ? [] : [[unit, sum(own.map(({ cost }) => cost))]],
    ),
  ),
  unknown: rows.filter(({ cost }) => cost === null).length,
  cost_at_least: rows.some(({ cost, cost_at_least }) => cost_at_least === 1 || cost === null),
});
type Cost = ReturnType<typeof costOf>;

/** The same of an answer. */
const costIn = ({ request_count, cost, unknown, unknown_cost_count, cost_at_least }: Answered): Cost => ({
  ...{ request_count, cost, cost_at_least },
  unknown: unknown_cost_count ?? unknown!.cost,
});
interface Answered extends Omit<Cost, "unknown"> {
  unknown?: { cost: number };
  unknown_cost_count?: number;
}

/** The cached part of the input where both are known. */
function cachedOf(rows: readonly Entry[]) {
  const both = rows.filter((row) => row.input_tokens !== null && row.cached_tokens !== null);
  const [input, cached] = [sum(both.map((row) => row.input_tokens)), sum(both.map((row) => row.cached_tokens))];
  return { input, cached, share: input === 0 ? null : cached / input };
}

/** The text of a piece of HTML. */
const textOf = (html: string) =>
  html
    .replace(/<[^>]+>/g, " ")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&#39;/g, "'")
    .replace(/&amp;/g, "&")
    .replace(/\s+/g, " ")
    .trim();
/** What a `<dl>`, or a row of a table, says under this name. */
const pairIn = (html: string, name: string) => {
  const pair = html.split(`<dt>${name}</dt><dd>`)[1]?.split("</dd>")[0];
  const cell = html
    .split(`<td data-label="${name}"`)[1]
    ?.split("</td>")[0]
    ?.replace(/^[^>]*>/, "");
  const found = pair ?? cell;
  return found === undefined ? undefined : textOf(found);
};
const periodIn = (html: string, name: string) => html.split(`<th scope="row">${name}</th>`)[1]!.split("</tr>")[0]!;
const wordsOf = ({ cost, unknown, request_count, cost_at_least }: Cost) => {
  if (unknown === request_count) return "unknown";
  const words = (
    [
      ["credits", "cr"],
      ["premium", "pr"],
    ] as const
  ).flatMap(([unit, word]) => (cost[unit] ? `${formatAmount(cost[unit])} ${word}` : []));
  const nothing = cost.credits === undefined ? "0 pr" : "0 cr";
  return (cost_at_least ? "≥ " : "") + (words.join(" + ") || nothing);
};

/** Cells of a CSV file, by its head. */
function readCsv(text: string): Record<string, string>[] {
  const lines = text.trimEnd().split("\r\n");
  const cells = (line: string) =>
    [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, plain]) =>
      quoted === undefined ? plain! : quoted.replaceAll('""', '"'),
    );
  const head = cells(lines[0]!);
  return lines.slice(1).map((line) => Object.fromEntries(cells(line).map((cell, at) => [head[at]!, cell])));
}
const numberIn = (cell: string | undefined) => (cell === "" || cell === undefined ? null : Number(cell));

for (const round of Array.from({ length: triesOf(6) }, (_, at) => at))
  describe(`the figures of random rows, ${round}`, () => {
    const rows = rowsFrom(openChance(`figures ${round}`));
    let proxy: RunningProxy;
    beforeAll(async () => {
      const budget = { scope: {}, per: "month", then: "warn", warn: [], limit: 1e6 };
      proxy = await startProxy({
        clock: { now: () => now },
        config: {
          retentionDays: 40,
          budgets: [
            { ...budget, name: "all credits", unit: "credits" },
            { ...budget, name: "all premium", unit: "premium" },
          ],
        },
      });
      const { budgets, exchangeMetrics, history } = proxy.app;
      for (const row of rows) {
        history.add(row);
        exchangeMetrics.count(row, []);
        if (row.started_at_ms < month) continue;
        const amounts = { unit: row.cost_unit ?? "credits", amount: row.cost };
        const subject = { account: row.account_id, member: null, key: row.key_name, model: row.upstream_model! };
        const reservation = await budgets.reserve(
          { ...subject, accountKey: row.account_key!, isProvided: false, project: row.project },
          amounts,
        );
        if (!reservation || reservation instanceof Error) throw new Error("Nothing was reserved.");
        budgets.settle(reservation, { model: "", expected: amounts, real: amounts });
      }
      history.flush();
    });
    afterAll(() => proxy[Symbol.asyncDispose]());

    const ask = async (path: string) => {
      const answer = await fetch(`${proxy.url}${path}`);
      expect(answer.status).toBe(200);
      return answer;
    };
    const text = async (path: string) => (await ask(path)).text();
    // biome-ignore lint/suspicious/noExplicitAny: the answers of many endpoints
    const json = async (path: string): Promise<any> => (await ask(path)).json();
    const query = (filters: object) =>
      new URLSearchParams(
        Object.entries(filters).map(([name, value]): [string, string] => [name, value ?? "(none)"]),
      ).toString();

    test("the sums of the API, all and narrowed", async () => {
      for (const filters of [
        {},
        { member: "m1" },
        { member: "m2" },
        { upstream_model: models[2] },
        { key_name: null },
      ]) {
        const own = rows.filter((row) => passes(row, filters));
        const totals = await json(`/api/admin/totals?${query(filters)}`);
        expect(costIn(totals)).toEqual(costOf(own));
        expect(totals.cached_share).toBe(cachedOf(own).share);
      }
    });

    test("the groups of the statistics", async () => {
      for (const by of ["upstream_model", "client_name", "member", "project", "prompt", "account_key"] as const) {
        const { groups, totals } = await json(`/api/admin/statistics?by=${by}`);
        expect(costIn(totals)).toEqual(costOf(rows));
        for (const group of groups) {
          const own = rows.filter((row) => row[by] === group.key[by]);
          expect(costIn(group)).toEqual(costOf(own));
          expect(group.cached_share).toBe(cachedOf(own).share);
        }
        expect(sum(groups.map(({ request_count }: Cost) => request_count))).toBe(rows.length);
      }
    });

    test("the CSV of all requests, and the bill by day", async () => {
      const cells = readCsv(await text("/api/admin/export?format=csv"));
      const read = cells.map((row) => ({
        cost: numberIn(row.cost),
        cost_unit: row.cost_unit || null,
        cost_at_least: row.cost_at_least === "true" ? 1 : 0,
      }));
      expect(costOf(read as Entry[])).toEqual(costOf(rows));

      const bill = readCsv(await text("/api/admin/bill"));
      const byDay = Map.groupBy(rows, ({ started_at_ms }) => isoDay(started_at_ms));
      const expected = [...byDay].sort().flatMap(([day, own]) => {
        const { request_count, unknown, cost, cost_at_least } = costOf(own);
        const amounts = Object.entries(cost).sort();
        return (amounts.length === 0 ? [["", null] as const] : amounts).map(([unit, amount], at) => ({
          day,
          // Counts stand in the first line of a day, so that a column can be added up.
          requests: at === 0 ? `${request_count}` : "",
          unit,
          amount: amount === null ? "" : `${amount / 1e9}`,
          us_dollars: unit === "credits" ? (amount! / 1e11).toFixed(6) : "",
          requests_of_unknown_cost: at === 0 ? `${unknown}` : "",
          cost_at_least: `${cost_at_least}`,
        }));
      });
      expect(bill.map(({ prompts: _, ...line }) => line as object)).toEqual(expected);
      const prompts = new Set(rows.flatMap(({ prompt }) => prompt ?? []));
      expect(sum(bill.map((line) => Number(line.prompts)))).toBe(prompts.size);
    });

    test("each prompt, by the API, the command and its page", async () => {
      writeFileSync(join(proxy.home, "running.json"), JSON.stringify({ url: proxy.url, pid: 1 }));
      const { items, without_prompt } = await json("/api/admin/prompts?limit=200");
      const told = await inProcess(["usage", "prompts", "--json"], { DRAGOMAN_HOME: proxy.home });
      expect(JSON.parse(told.stdout).items).toEqual(items.slice(0, 20));
      const none = costOf(rows.filter(({ prompt }) => prompt === null));
      expect(costIn({ ...without_prompt, unknown_cost_count: none.unknown })).toEqual(none);
      const byPrompt = Map.groupBy(
        rows.filter(({ prompt }) => prompt !== null),
        ({ prompt }) => prompt!,
      );
      expect(items).toHaveLength(byPrompt.size);
      for (const item of items) {
        const own = byPrompt.get(item.prompt)!;
        expect(costIn(item)).toEqual(costOf(own));
        for (const unit of ["credits", "premium"])
          expect(sum(item.parts.map(({ cost }: Cost) => cost[unit] ?? 0))).toBe(costOf(own).cost[unit] ?? 0);
        expect(sum(item.parts.map(({ request_count }: Cost) => request_count))).toBe(own.length);
        const page = await text(`/admin/prompts/${encodeURIComponent(item.prompt)}`);
        expect(textOf(page.split('<p class="under">')[1]!.split("</p>")[0]!)).toEndWith(`· ${wordsOf(costOf(own))}`);
        const { unknown } = costOf(own);
        expect(page.includes("is not known")).toBe(unknown > 0 || wordsOf(costOf(own)) === "unknown");
        if (unknown > 0) expect(page).toContain(`The cost of ${unknown} request`);
      }
    });

    test("the page Requests, and Overview", async () => {
      const requests = await text("/admin/requests");
      const overview = await text("/admin");
      const periods = [
        ["Last 7 days", rows.filter((row) => row.started_at_ms >= now - 7 * day)],
        ["Last 30 days", rows],
      ] as const;
      const shown = [
        [requests, rows],
        ...periods.map(([name, own]) => [periodIn(overview, name), own] as const),
      ] as const;
      for (const [html, own] of shown) {
        const { cost, cost_at_least } = costOf(own);
        const sign = cost_at_least ? "≥ " : "";
        expect(`${pairIn(html, "AI credits")} `).toStartWith(`${sign}${formatAmount(cost.credits!)} `);
        if (html !== requests) expect(pairIn(html, "AI credits")).toContain(` ${sign}${dollars(cost.credits!)}`);
        expect(`${pairIn(html, "Premium requests")} `).toStartWith(`${sign}${formatAmount(cost.premium!)} `);
        expect(pairIn(html, "Tokens in")).toEndWith(`${percent(cachedOf(own).share!)} cached`);
      }
      const table = overview.split("Usage by client, last 7 days</caption>")[1]!.split("</table>")[0]!;
      const week = periods[0][1];
      const nameOf = ({ client_name }: Entry) => toolOf(client_name ?? "")?.name ?? client_name ?? "no name";
      const found = table.split("<tr").slice(2).map(textOf);
      const byTool = Map.groupBy(week, nameOf);
      expect(found).toHaveLength(byTool.size);
      for (const own of byTool.values()) {
        const { share } = cachedOf(own);
        const numbers = [
          formatCount(own.length),
          wordsOf(costOf(own)),
          share === null ? "unknown" : percent(share),
        ].join(" ");
        expect(found.some((line) => line.endsWith(` ${numbers}`))).toBe(true);
      }
    });

    test("an account's last seven days, on its page", async () => {
      const page = await text("/admin/accounts");
      const own = rows.filter((row) => row.account_id === "octo-demo" && row.started_at_ms >= now - 7 * day);
      const failed = own.filter(({ error_type }) => error_type !== null);
      expect(["Requests", "Failed"].map((name) => pairIn(page, name))).toEqual(
        [own, failed].map(({ length }) => `${length}`),
      );
    });

    test("the cache", async () => {
      const { totals, clients: byClient } = await json(`/api/admin/cache?from_ms=0`);
      const { input, cached, share } = cachedOf(rows);
      expect([totals.input_tokens, totals.cached_tokens, totals.cached_share]).toEqual([input, cached, share]);
      for (const { name, input_tokens, cached_share } of byClient) {
        const own = cachedOf(rows.filter(({ client_name }) => client_name === name));
        expect([name, input_tokens, cached_share]).toEqual([name, own.input, own.share]);
      }
    });

    test("the budgets, and what they show of the history", async () => {
      const { items } = await json("/api/admin/budgets");
      const counted = rows.filter(({ started_at_ms }) => started_at_ms >= month);
      const { cost } = costOf(counted);
      const used = items.map(({ used }: { used: number }) => Math.round(used * 1e9));
      expect(used).toEqual([cost.credits ?? 0, cost.premium ?? 0]);
    });

    test("the metrics", async () => {
      const metrics = await text("/metrics");
      const total = (unit: string) =>
        sum(
          [...metrics.matchAll(/^dragoman_cost_total\{(.*)\} (\S+)$/gm)].flatMap(([, labels, value]) =>
            labels!.includes(`unit="${unit}"`) ? Number(value) : [],
          ),
        );
      const { cost } = costOf(rows);
      for (const unit of ["credits", "premium"]) expect(Math.round(total(unit) * 1e9)).toBe(cost[unit] ?? 0);
    });

    test("the status line of each session", async () => {
      for (const session of sessions) {
        const own = rows.filter((row) => row.session === sessionHash(session));
        if (own.length === 0) continue;
        const last = own.findLast(({ prompt }) => prompt !== null);
        const line = await text(`/usage/line?session=${session}`);
        const prompt = own.filter((row) => row.prompt === last?.prompt);
        const said = [
          ...(last && wordsOf(costOf(prompt)) !== "unknown" ? [`${wordsOf(costOf(prompt))} prompt`] : []),
          `${wordsOf(costOf(own)).replace("unknown", "?")} session`,
        ];
        expect(line.replace(/^cache \S+ · /, "")).toStartWith(said.join(" · "));
      }
    });
  });

const start = () => startProxy({ clock: { now: () => now }, config: { retentionDays: 40 } });
const overviewOf = async (proxy: RunningProxy) => (await fetch(`${proxy.url}/admin`)).text();

test("the link to the failed requests of the last hours has as many as its chart says", async () => {
  await using proxy = await start();
  const failed = { http_status: 502, error_type: "upstream" };
  for (const minutes of [0, 30, 23 * 60 + 30, 23 * 60 + 50, 24 * 60 + 10])
    proxy.history.add(entry({ ...failed, started_at_ms: now - minutes * 60_000 }));
  proxy.history.flush();
  const overview = await overviewOf(proxy);
  const chart = overview.split("Requests by hour, last 24 hours")[1]!;
  const [, query = "", said] = /requests\?([^"]*has_error=1[^"]*)"[^>]*>.*?Failed.*?(\d+)/s.exec(chart)!;
  const linked = await (await fetch(`${proxy.url}/api/admin/totals?${query.replaceAll("&amp;", "&")}`)).json();
  expect([Number(said), (linked as { request_count: number }).request_count]).toEqual([3, 3]);
});

test("the bill is read no further once its asker has left", async () => {
  await using proxy = await start();
  for (let at = 0; at < 900; at++) proxy.history.add(entry({ started_at_ms: now - at, prompt: shortHash(`p${at}`) }));
  proxy.history.flush();
  const { history } = proxy.app;
  const { prompts } = history;
  const asker = new AbortController();
  let questions = 0;
  history.prompts = (...question) => {
    questions++;
    asker.abort();
    return new Promise((resolve) => setTimeout(resolve, 20)).then(() => prompts(...question));
  };
  const answer = fetch(`${proxy.url}/api/admin/bill`, { signal: asker.signal });
  await expect(answer).rejects.toThrow("aborted");
  await Bun.sleep(500);
  expect(questions).toBe(1);
});
