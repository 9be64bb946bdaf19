/** Scenario: what every implementation of the stores promises: the files of the data folder, and Postgres. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import type { Dimension, Entry, Filters, History, Statistics } from "../../src/books/history/history";
import { type Portion, packed } from "../../src/books/history/portions";
import type { Stores } from "../../src/books/stores";
import { type Budget, budgetSchema } from "../../src/config/budget-schema";
import { readEnvironment } from "../../src/config/environment";
import { hourMs } from "../../src/lib/format";
import { costUnitNames } from "../../src/lib/money";
import { openStores } from "../../src/parts/open-stores";
import type { Account } from "../../src/people/accounts/account";
import { type SavedAccount, secretOf } from "../../src/people/accounts/account-store";
import type { Subject } from "../../src/people/budgets/budgets";
import { entryFor } from "../../src/people/budgets/entries";
import { unpriced } from "../support/amounts";
import { expectTotals, passes } from "../support/history-oracle";
import { entry, noon } from "../support/history-rows";
import { type PgBouncer, startPgBouncer } from "../support/pgbouncer";
import { describeWithPostgres } from "../support/postgres";
import fc from "../support/random";
import { describeWith } from "../support/sandbox";
import { sharedPostgres, type TestDatabases } from "../support/shared-postgres";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

/** One team or one person, with empty stores. */
interface World {
  stores: Stores;
  /** Another server, or another process of the same data folder. */
  open(): Promise<Stores>;
}

const sealKey = randomBytes(32).toString("base64");
const unreachable = (sentence: string) => expect.unreachable(sentence);

describe("in the data folder", () => contract(async () => ({}), false));

describeWithPostgres("in Postgres", () => {
  let server: TestDatabases;
  beforeAll(async () => {
    server = await sharedPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());
  contract(async () => ({ DRAGOMAN_DATABASE_URL: await server.database(), DRAGOMAN_SEAL_KEY: sealKey }), true);
});

describeWith("pgbouncer", "in Postgres behind PgBouncer", () => {
  describeWithPostgres("each transaction by another connection", () => {
    let server: TestDatabases;
    let pooler: PgBouncer;
    beforeAll(async () => {
      server = await sharedPostgres();
      pooler = await startPgBouncer(await server.database());
    });
    afterAll(async () => {
      await pooler[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    });
    contract(async () => {
      const url = await server.database();
      const urls = { DRAGOMAN_DATABASE_URL: pooler.pooled(url), DRAGOMAN_DATABASE_DIRECT_URL: url };
      return { ...urls, DRAGOMAN_SEAL_KEY: sealKey };
    }, true);
  });
});

function contract(variables: () => Promise<Record<string, string>>, isPostgres: boolean): void {
  const opened: Stores[] = [];
  const closing: { close(): unknown }[] = [];
  afterEach(async () => {
    for (const each of closing.splice(0)) each.close();
    await Promise.all(opened.splice(0).map((stores) => stores.close()));
  });
  /** It is closed after the test. */
  const kept = <T extends { close(): unknown }>(each: T): T => {
    closing.push(each);
    return each;
  };

  async function world(): Promise<World> {
    const home = temporaryFolder();
    const environment = readEnvironment({ HOME: home, DRAGOMAN_HOME: home, ...(await variables()) });
    const open = async () => {
      const stores = await openStores(environment, { follow: true, write() {} });
      opened.push(stores);
      return stores;
    };
    return { stores: await open(), open };
  }

  describe("the config", () => {
    test("a team's config is empty at first, and what is changed is kept", async () => {
      const { stores, open } = await world();
      const config = stores.config;
      expect([config.stored, config.fault, config.current.logLevel]).toEqual([{}, undefined, "info"]);
      const before = config.revision;
      await config.change({ logLevel: "debug", retentionDays: 3 });
      expect([config.current.logLevel, config.current.retentionDays]).toEqual(["debug", 3]);
      expect(config.revision).not.toBe(before);
      const again = (await open()).config;
      expect([again.stored, again.current]).toEqual([config.stored, config.current]);
    });

    test("a change for another revision is refused, and a wrong one too; nothing is changed then", async () => {
      const { stores, open } = await world();
      const [one, other] = [stores.config, (await open()).config];
      const { revision } = one;
      await one.change({ retentionDays: 5 });
      await other.reload();
      expect(await one.change({ retentionDays: 6 }, { revision }).catch(({ kind }) => kind)).toBe("conflict");
      expect(await other.change({ retentionDays: -1 }).catch(({ kind }) => kind)).toBe("invalid_request");
      await one.reload();
      expect([one.current.retentionDays, other.current.retentionDays]).toEqual([5, 5]);
    });

    test("changes of another server take effect, and are reported by their members", async () => {
      const { stores, open } = await world();
      const [one, other] = [stores.config, (await open()).config];
      const heard: string[][] = [];
      other.follow({ changed: (members) => void heard.push(members), refused: unreachable, noted: unreachable });
      await one.change({ logLevel: "warn", auth: { apiKeys: ["k-0123456789"] } });
      await until(() => other.current.logLevel === "warn", "the other config has the new value");
      expect(other.current.auth.apiKeys).toEqual(["k-0123456789"]);
      expect(heard.flat().sort()).toEqual(["auth", "logLevel"]);
    });

    test("no change of the config is lost of 30 at once by two servers", async () => {
      const { stores, open } = await world();
      const configs = [stores.config, (await open()).config];
      const aliases = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`alias-${at}`, `model-${at}`]));
      await Promise.all(
        Object.entries(aliases).map(async ([alias, model], at) => {
          const config = configs[at % 2]!;
          for (;;) {
            await config.reload();
            const { revision, current } = config;
            const next = { ...current.modelAliases, [alias]: model };
            const outcome = await config.change({ modelAliases: next }, { revision }).catch(({ kind }) => kind);
            if (outcome === undefined) return;
            expect(outcome).toBe("conflict");
          }
        }),
      );
      for (const config of configs) {
        await config.reload();
        expect(config.current.modelAliases).toEqual(aliases);
        config.close();
      }
    });
  });

  describe("the accounts", () => {
    const account = (login: string, differing: Partial<SavedAccount> = {}): SavedAccount => ({
      login,
      host: "github.com",
      app: "vscode",
      mode: "exchange",
      githubToken: `gho_${login.toLowerCase().padEnd(30, "0")}`,
      addedAt: 1,
      ...differing,
    });

    test("are in the order of their registration; a login that signs in again keeps its place", async () => {
      const { stores, open } = await world();
      const store = stores.accounts;
      await store.prepare("github.com");
      // Whatever the clock said.
      for (const [at, login] of ["zoe", "Anna", "bert"].entries())
        expect(await store.add(account(login, { addedAt: 4e12 - at }))).toBe("added");
      const anew = { githubToken: "gho_another_token", app: "opencode", mode: "direct" } as const;
      expect(await store.add(account("anna", anew))).toBe("replaced");
      // An organization's, with the key of an App.
      const installation = { id: "987", privateKey: "-----BEGIN …" };
      const acme = {
        login: "acme",
        host: "github.com",
        app: "4711",
        mode: "exchange",
        installation,
        addedAt: 1,
      } as const;
      await store.add(acme);
      const expected = [
        ["zoe", "vscode", "exchange", "gho_zoe000000000000000000000000000"],
        ["anna", "opencode", "direct", "gho_another_token"],
        ["bert", "vscode", "exchange", "gho_bert00000000000000000000000000"],
        ["acme", "4711", "exchange", JSON.stringify(installation)],
      ];
      const shown = (each: typeof store) =>
        each.load().map((found) => [found.login, found.app, found.mode, secretOf(found)]);
      expect(shown(store)).toEqual(expected);
      expect(shown((await open()).accounts)).toEqual(expected);
    });

    test("are found by number and by name, and removed", async () => {
      const { stores } = await world();
      const store = stores.accounts;
      for (const each of [account("anna"), account("anna", { host: "company.ghe.com" }), account("bert")])
        await store.add(each);
      expect(store.find("3").found.login).toBe("bert");
      expect(store.find("Company.ghe.com/ANNA").found.host).toBe("company.ghe.com");
      expect(() => store.find("anna")).toThrow(
        "Accounts on 2 hosts are called anna; name one with its host: github.com/anna, company.ghe.com/anna.",
      );
      expect(() => store.find("nobody")).toThrow("There is no account nobody");
      const stamp = store.stamp();
      expect((await store.remove("BERT")).removed.login).toBe("bert");
      expect(store.stamp()).not.toBe(stamp);
      expect(store.load().map(({ host }) => host)).toEqual(["github.com", "company.ghe.com"]);
      expect(await store.add(account("bert", { addedAt: 5 }))).toBe("added");
      expect(store.load().at(-1)!.login).toBe("bert");
    });

    test("an invalid account is refused by the name of the field, never with the token", async () => {
      const { stores } = await world();
      const store = stores.accounts;
      const adding = (async () => store.add(account("../../x", { githubToken: "gho_secret" })))();
      const error = await adding.catch((thrown) => thrown);
      expect(error.message).toContain("its login is not valid");
      expect(error.message).not.toContain("gho_secret");
    });

    test("a login belongs to one member, or to the owner", async () => {
      const { stores, open } = await world();
      const store = stores.accounts;
      const adding = async (member: string | undefined) => store.add(account("anna", member ? { member } : {}));
      await adding(undefined);
      const stranger = crypto.randomUUID();
      expect(await adding(stranger).catch(({ details }) => details.code)).toBe("account_taken");
      expect((await open()).accounts.load()[0]!.member).toBeUndefined();
    });

    test("what another server adds and removes is seen", async () => {
      const { stores, open } = await world();
      const [one, other] = [stores.accounts, (await open()).accounts];
      let changes = 0;
      other.follow?.(() => {
        changes += 1;
      });
      const stamp = other.stamp();
      await one.add(account("anna"));
      await until(() => other.stamp() !== stamp, "the other's stamp has changed");
      expect(other.load().map(({ login }) => login)).toEqual(["anna"]);
      await one.remove("anna");
      await until(() => other.load().length === 0, "the other's list is empty");
      if (other.follow) expect(changes).toBeGreaterThanOrEqual(2);
    });
  });

  describe("the history", () => {
    const options = { retentionDays: () => 14, maxRows: () => 100_000, warn: unreachable, now: () => noon };
    const openedHistory = async (more: Partial<typeof options> = {}) =>
      kept((await world()).stores.openHistory({ ...options, ...more }));

    test("a team's history returns rows as they were added: their unknown values, odd texts, the newest first", async () => {
      const { stores, open } = await world();
      const history = stores.openHistory(options);
      const odd = "naïve 🎉 \u0001\t\n\"quoted\" \\ 'single' $1 \u2028";
      const rows = [
        entry({ client_model: odd, error_message: odd, error_type: "x", cost: 0.33e9, cost_unit: "premium" }),
        entry({ started_at_ms: noon + 1, cost: 9_007_199_254_740_991, stream: 0, tokens_estimated: 1 }),
        entry({ account_id: null, client_name: null, first_byte_ms: null, input_tokens: null, member: "m-1" }),
      ];
      for (const row of rows) history.add(row);
      expect(await history.flush()).toBe(true);
      const { items, has_more, next_cursor_id } = await history.list({}, 10);
      expect(items.map(({ id: _, ...row }) => row)).toEqual(rows.toReversed());
      expect([has_more, next_cursor_id]).toEqual([false, null]);
      expect(await history.get(rows[0]!.request_id)).toMatchObject(rows[0]!);
      expect(await history.get("unknown")).toBeUndefined();
      expect([await history.count(), await history.oldest()]).toEqual([3, noon]);
      expect(history.degraded).toBe(false);
      history.close();
      const again = (await open()).openHistory(options);
      expect(await again.count()).toBe(3);
      again.close();
    });

    test("how models count tokens is kept, the newest number of each", async () => {
      const { stores, open } = await world();
      const history = stores.openHistory(options);
      expect(await history.tokenRatios()).toEqual([]);
      await history.keepTokenRatio({ model: "gpt-5.4", ratio: 1.1, requests: 1 });
      await history.keepTokenRatio({ model: "claude 🎉", ratio: 1.25, requests: 7 });
      await history.keepTokenRatio({ model: "gpt-5.4", ratio: 1.0625, requests: 2 });
      history.close();
      const again = (await open()).openHistory(options);
      const kept = await again.tokenRatios();
      expect(kept.toSorted((one, other) => one.requests - other.requests)).toEqual([
        { model: "gpt-5.4", ratio: 1.0625, requests: 2 },
        { model: "claude 🎉", ratio: 1.25, requests: 7 },
      ]);
      again.close();
    });

    test("a text that no database stores arrives without what it cannot be, and holds nothing up", async () => {
      const history = await openedHistory();
      for (const client_model of ["a\0b", "half \ud800 pair", "good"]) history.add(entry({ client_model }));
      expect(await history.flush()).toBe(true);
      const models = (await history.list({}, 10)).items.map(({ client_model }) => client_model);
      expect([models[0], models.length]).toEqual(["good", 3]);
    });

    test("the same request is stored once", async () => {
      const history = await openedHistory();
      const row = entry();
      for (let times = 0; times < 3; times += 1) history.add(row);
      await history.flush();
      history.add(row);
      expect(await history.count()).toBe(1);
    });

    test("the dearest prompts of a time go on over pages, each with all that it cost", async () => {
      const history = await openedHistory();
      const add = (prompt: string, cost: number, hoursAgo: number) =>
        history.add(entry({ prompt, cost, started_at_ms: noon - hoursAgo * hourMs }));
      for (const [prompt, cost, hoursAgo] of [
        ["two", 20, 1],
        ["three", 29, 2],
        ["old", 90, 50],
        ["three", 1, 3],
        ["one", 10, 1],
        ["half", 5, 1],
        ["none", 0, 1],
      ] as const)
        add(prompt, cost, hoursAgo);
      await history.flush();
      const pages: Awaited<ReturnType<typeof history.prompts>>[] = [];
      do {
        const cursor = pages.at(-1)?.next_cursor_id ?? undefined;
        pages.push(await history.prompts({ from_ms: noon - 24 * hourMs }, 2, cursor, "dearest"));
      } while (pages.at(-1)!.has_more && pages.length < 4);
      const told = pages
        .flatMap(({ items }) => items)
        .map(({ prompt, parts }) => [prompt, parts.reduce((sum, { cost }) => sum + cost.credits!, 0)]);
      expect(told).toEqual([
        ["three", 30],
        ["two", 20],
        ["one", 10],
        ["half", 5],
        ["none", 0],
      ]);
      expect(pages.at(-1)!.next_cursor_id).toBeNull();
    });

    test("what prompts were made of is added up by day, each row once, a member's apart, and unknown costs are told", async () => {
      const history = await openedHistory();
      const part = { tool: null, count: 1, cached: 10, cost: 7, grown: null };
      const row = (more: Partial<Entry>, portions: Partial<Portion>[]) =>
        entry({ ...more, portions: packed(portions.map((each) => ({ ...part, ...each }) as Portion)) });
      const tools = { kind: "tools", tool: "mcp__github", tokens: 100 } as const;
      const files = { kind: "files", tokens: 9 } as const;
      const first = row({}, [tools, { kind: "system", tokens: 50, cost: null }, files, { ...files, cost: null }]);
      for (const each of [first, first, row({}, [tools]), row({ member: "anna" }, [{ ...tools, tokens: 1 }])])
        history.add(each);
      history.add(entry({ portions: null }));
      history.add(row({ started_at_ms: noon - 72 * hourMs }, [{ ...tools, tokens: 1_000 }]));
      await history.flush();
      history.add(first);
      await history.flush();
      const sums = await history.portions({ from_ms: noon - 24 * hourMs });
      const model = first.upstream_model;
      expect(sums).toEqual([
        {
          kind: "tools",
          tool: "mcp__github",
          upstream_model: model,
          requests: 3,
          tokens: 201,
          cached: 30,
          cost: 21,
          cost_at_least: false,
        },
        {
          kind: "files",
          tool: null,
          upstream_model: model,
          requests: 2,
          tokens: 18,
          cached: 20,
          cost: 7,
          cost_at_least: true,
        },
        {
          kind: "system",
          tool: null,
          upstream_model: model,
          requests: 1,
          tokens: 50,
          cached: 10,
          cost: null,
          cost_at_least: true,
        },
      ]);
      expect(await history.portions({ from_ms: noon, member: "anna" })).toMatchObject([{ tokens: 1 }]);
      expect((await history.portions({}))[0]).toMatchObject({ tokens: 1_201 });
    });

    test("rows of days that are too old are removed as days; newer ones stay", async () => {
      const history = await openedHistory();
      for (const days of [0, 1, 13, 16, 20, 400]) history.add(entry({ started_at_ms: noon - days * 24 * hourMs }));
      await history.flush();
      await history.prune();
      expect(await history.oldest()).toBe(noon - 13 * 24 * hourMs);
      expect(await history.count()).toBe(3);
    });

    test("pages follow each other without a gap, under any filters", async () => {
      const history = await openedHistory();
      const all = await filled(history, 400);
      const cases = fc.sample(filtersArbitrary(), 40);
      for (const filters of cases) {
        const expected = all.filter((row) => passes(row, filters)).map(({ request_id }) => request_id);
        const found: string[] = [];
        let cursor: number | undefined;
        do {
          const page = await history.list(filters, 37, cursor);
          found.push(...page.items.map(({ request_id }) => request_id));
          expect(page.has_more).toBe(page.next_cursor_id !== null);
          cursor = page.next_cursor_id ?? undefined;
        } while (cursor !== undefined);
        expect([filters, found]).toEqual([filters, expected.toReversed()]);
        const last = all.filter((row) => passes(row, filters)).at(-1);
        expect(await history.lastOf(filters)).toBe(last?.started_at_ms);
      }
    });

    test("totals and groups are those of the rows, under any filters, whether asked first or again", async () => {
      // The days are over.
      const history = await openedHistory({ now: () => noon + 5 * 24 * hourMs });
      const all = await filled(history, 400);
      const bys: Dimension[][] = [[], ["day"], ["hour"], ["status_class"], ["client_name"], ["day", "upstream_model"]];
      for (const [at, filters] of fc.sample(filtersArbitrary(), 30).entries()) {
        const by = bys[at % bys.length]!;
        const statistics = await history.statistics(filters, by);
        expectTotals(
          statistics.totals,
          all.filter((row) => passes(row, filters)),
        );
        expectTotals(
          await history.totals(filters),
          all.filter((row) => passes(row, filters)),
        );
        expectGroups(statistics, all);
        expect(await history.statistics(filters, by)).toEqual(statistics);
      }
    });

    test("of groups by time the newest come first, of others those with most requests", async () => {
      const history = await openedHistory();
      await filled(history, 300);
      const hours = (await history.statistics({}, ["hour"])).groups;
      expect(hours.map(({ filters }) => filters.from_ms)).toEqual(
        hours.map(({ filters }) => filters.from_ms).toSorted((one, other) => other! - one!),
      );
      const models = (await history.statistics({}, ["upstream_model"])).groups.map((group) => group.request_count);
      expect(models).toEqual(models.toSorted((one, other) => other - one));
      expect(await history.statistics({ client_name: "nobody" }, ["hour"])).toMatchObject({ groups: [], others: null });
    });
  });

  describe("the ledger", () => {
    const budgetOf = (given: object): Budget =>
      budgetSchema().parse({ name: "all", unit: "requests", limit: 10, per: "month", ...given });
    const anybody: Subject = { account: "octo", key: "anna", model: "gpt-4.1" };
    const amountsOf = (budgets: readonly Budget[]) => budgets.map((budget) => entryFor(budget, null, noon));
    const ledgerOf = (stores: Stores) => kept(stores.openLedger({ now: () => noon, warn: unreachable }));

    test("what has too little left is refused in all budgets or in none", async () => {
      const ledger = ledgerOf((await world()).stores);
      const [wide, narrow] = [budgetOf({ name: "wide", limit: 100 }), budgetOf({ name: "narrow", limit: 2 })];
      for (let count = 0; count < 2; count += 1) await ledger.reserve([wide, narrow], anybody, unpriced);
      const result = await ledger.reserve([wide, narrow], anybody, unpriced);
      expect(result).toMatchObject({ exceeded: { budget: narrow, used: 0, reserved: 2 } });
      expect((await ledger.read(amountsOf([wide])))[0]!.reserved).toBe(2);
    });
  });

  describe("affinity", () => {
    const [anna, bert] = ["github.com/anna", "github.com/bert"].map((key) => ({ key }) as Account) as [
      Account,
      Account,
    ];

    test("the first mark that is remembered names the account, if it is one of those asked for", async () => {
      const { stores } = await world();
      const affinity = stores.affinity;
      affinity.remember("one", anna);
      affinity.remember("two", bert);
      expect(await affinity.accountFor(["none", "two", "one"], [anna, bert])).toBe(bert);
      expect(await affinity.accountFor(["one"], [bert, { key: "github.com/zoe" } as Account])).toBeUndefined();
      affinity.remember("one", bert);
      expect(await affinity.accountFor(["one"], [anna, bert])).toBe(bert);
      expect(await affinity.knows(["one", "two"])).toBeTrue();
      expect(await affinity.knows(["one", "none"])).toBeFalse();
    });

    if (isPostgres)
      test("another server knows it a moment later", async () => {
        const { stores, open } = await world();
        const [one, other] = [stores.affinity, (await open()).affinity];
        one.remember("mark", bert);
        await until(
          async () => (await other.accountFor(["none", "mark"], [anna, bert])) === bert,
          "the other has the account of the mark",
        );
        expect(await (await open()).affinity.knows(["mark"])).toBeTrue();
      });
  });
}

/** Rows of some days, written in random order of their times. */
async function filled(history: History, count: number): Promise<Entry[]> {
  const rows = fc.sample(rowArbitrary(), count);
  for (const row of rows) history.add(row);
  await history.flush();
  return rows;
}

const rowArbitrary = () =>
  fc
    .record({
      started_at_ms: fc.integer({ min: noon - 30 * hourMs, max: noon + 30 * hourMs }),
      duration_ms: fc.integer({ min: 0, max: 100_000 }),
      first_byte_ms: fc.option(fc.integer({ min: 0, max: 5_000 })),
      http_status: fc.constantFrom(200, 200, 200, 400, 429, 502),
      upstream_model: fc.constantFrom("gpt-5", "claude", null),
      client_name: fc.constantFrom("codex/1", "claude-cli/2", "x", null),
      member: fc.constantFrom("m-1", "m-2", null),
      stream: fc.constantFrom<(0 | 1)[]>(0, 1),
      input_tokens: fc.option(fc.nat(1_000_000)),
      cached_tokens: fc.option(fc.nat(1_000)),
      cost: fc.option(fc.nat(1_000_000_000)),
      cost_unit: fc.constantFrom(...costUnitNames),
    })
    .map((given) => entry({ ...given, ...(given.http_status >= 400 && { error_type: "upstream" }) }));

const filtersArbitrary = (): fc.Arbitrary<Filters> =>
  fc.record(
    {
      upstream_model: fc.constantFrom("gpt-5", null, "other"),
      client_name: fc.constantFrom("codex/1", null),
      member: fc.constantFrom("m-1", null),
      stream: fc.boolean(),
      status: fc.constantFrom(200, 429),
      status_class: fc.constantFrom(2, 4),
      has_error: fc.boolean(),
      from_ms: fc.integer({ min: noon - 20 * hourMs, max: noon }),
      to_ms: fc.integer({ min: noon, max: noon + 20 * hourMs }),
    },
    { requiredKeys: [] },
  );

/** Each group has the totals of the rows that its own filters find, and the groups have all rows. */
function expectGroups({ groups, totals, by }: Statistics, all: Entry[]): void {
  for (const group of groups)
    expectTotals(
      group,
      all.filter((row) => passes(row, group.filters)),
    );
  if (by.length > 0) expect(groups.reduce((count, group) => count + group.request_count, 0)).toBe(totals.request_count);
}
