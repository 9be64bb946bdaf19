/** `dragoman migrate`: from the data folder to a database and back, without losing or doubling anything. */
import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { SQL } from "bun";
import { entryFor } from "../../src/budgets/entries";
import { textOf } from "../../src/budgets/holders";
import { budgetSchema } from "../../src/config/budget-schema";
import { readEnvironment } from "../../src/config/environment";
import type { Entry } from "../../src/history/history";
import { openStores } from "../../src/open-stores";
import type { Stores } from "../../src/stores";
import { openDiskQueues } from "../../src/team/disk-queue";
import { run } from "../support/command";
import { entry } from "../support/history-rows";
import { asProcess, inProcess } from "../support/in-process";
import { describeWithDatabases } from "../support/shared-postgres";
import { temporaryFolder } from "../support/temporary-folder";

const budget = budgetSchema().parse({ name: "team", unit: "credits", limit: 10, per: "month" });
const each = budgetSchema().parse({ ...budget, name: "each", each: "member" });
const subject = { account: "anna", key: null, model: "gpt-5" };

describeWithDatabases("dragoman migrate", (postgres) => {
  const withStores = async <T>(env: Record<string, string>, work: (stores: Stores) => Promise<T>): Promise<T> => {
    const stores = await openStores(readEnvironment({ HOME: "/nonexistent", ...env }), { follow: false });
    try {
      return await work(stores);
    } finally {
      await stores.close();
    }
  };
  const migrate = async (env: Record<string, string>, to: string, ...more: string[]) => {
    const { code, stderr } = await inProcess(["migrate", "--to", to, ...more], env);
    return { code, said: stderr };
  };

  const rows = Array.from({ length: 1_300 }, (_, at) => entry({ started_at_ms: Date.now() - (1_300 - at) * 60_000 }));

  async function fill(env: Record<string, string>): Promise<void> {
    await withStores(env, async (stores) => {
      const config = stores.config;
      await config.change({
        retentionDays: 7,
        providers: { deep: { type: "anthropic", baseUrl: "https://deep.example", apiKey: "sk-0123456789" } },
      });
      config.close();
      const accounts = stores.accounts;
      for (const login of ["zoe", "anna"])
        await accounts.add({
          login,
          host: "github.com",
          app: "vscode",
          mode: "exchange",
          githubToken: `ghu_${login}0000000000`,
          addedAt: 1,
        });
      const history = stores.openHistory({ retentionDays: () => 7, maxRows: () => 10_000, warn: expect.unreachable });
      for (const row of rows) history.add(row);
      expect(await history.flush()).toBe(true);
      history.close();
      const ledger = stores.openLedger({ now: Date.now, warn: expect.unreachable });
      const result = await ledger.reserve([budget], subject, { nanoCredits: 2e9, premiumUnits: null });
      if ("exceeded" in result) return expect.unreachable("exceeded");
      await ledger.settle(result.reservation, { nanoCredits: 2.5e9, premiumUnits: null });
      ledger.close();
      await stores.openSentNotices({ now: Date.now, warn: expect.unreachable }).takeOver(["notice-1"]);
    });
  }

  const contentOf = (env: Record<string, string>) =>
    withStores(env, async (stores) => {
      const config = stores.config;
      const history = stores.openHistory({ retentionDays: () => 7, maxRows: () => 10_000, warn: expect.unreachable });
      const ledger = stores.openLedger({ now: Date.now, warn: expect.unreachable });
      const found = [];
      for (let after = 0, page = await history.after(0, 500); page.length > 0; page = await history.after(after, 500)) {
        found.push(...page.map(({ id: _, ...row }) => row));
        after = page.at(-1)!.id;
      }
      const content = {
        config: config.stored,
        accounts: stores.accounts.load().map(({ login, githubToken }) => [login, githubToken]),
        rows: found,
        used: (await ledger.read([entryFor(budget, null, Date.now())])).map(({ used, reserved }) => [used, reserved]),
        notices: [...(await stores.openSentNotices({ now: Date.now, warn: expect.unreachable }).all())],
      };
      for (const each of [config, history, ledger]) each.close();
      return content;
    });

  test("copies config, accounts, budgets, notices and requests, in their order, there and back", async () => {
    const [home, back] = [temporaryFolder(), temporaryFolder()];
    const sealed = { DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64") };
    await fill({ DRAGOMAN_HOME: home });
    const before = await contentOf({ DRAGOMAN_HOME: home });
    expect([before.rows.length, before.used, before.notices]).toEqual([1_300, [[2.5, 0]], ["notice-1"]]);
    const url = await postgres.database();

    // Twice: nothing is doubled.
    for (const env of [
      { DRAGOMAN_HOME: home, ...sealed },
      { DRAGOMAN_HOME: home, ...sealed },
    ])
      expect(await migrate(env, url)).toEqual({ code: 0, said: expect.stringContaining("2 accounts") });
    const inDatabase = { DRAGOMAN_HOME: temporaryFolder(), DRAGOMAN_DATABASE_URL: url, ...sealed };
    expect(await contentOf(inDatabase)).toEqual(before);

    expect(await migrate({ ...inDatabase, DRAGOMAN_HOME: back }, "folder")).toMatchObject({ code: 0 });
    expect(await contentOf({ DRAGOMAN_HOME: back })).toEqual(before);
  });

  test("a config that is there already stays; what is missing in the command is said", async () => {
    const home = temporaryFolder();
    await fill({ DRAGOMAN_HOME: home });
    const env = {
      DRAGOMAN_HOME: home,
      DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64"),
      DRAGOMAN_DATABASE_URL: await postgres.database(),
    };
    await withStores(env, async (stores) => {
      const config = stores.config;
      await config.change({ retentionDays: 30 });
      config.close();
    });
    const refused = await migrate(env, "database");
    expect(refused).toEqual({ code: 1, said: expect.stringContaining("is not empty") });
    expect(refused.said).toContain("another config");
    expect(await migrate(env, "database", "--dry-run")).toEqual({
      code: 0,
      said: expect.stringContaining("It would be refused"),
    });
    expect(await contentOf(env)).toMatchObject({ accounts: [], rows: [] });
    const { code, said } = await migrate(env, "database", "--merge");
    expect([code, said]).toEqual([0, expect.stringContaining("not the config, because there is another one")]);
    expect((await contentOf(env)).config).toEqual({ retentionDays: 30 });
    const { DRAGOMAN_DATABASE_URL: _, DRAGOMAN_SEAL_KEY: __, ...bare } = env;
    expect(await migrate(bare, "folder")).toEqual({ code: 2, said: expect.stringContaining("DRAGOMAN_DATABASE_URL") });
    expect(await migrate(bare, "nowhere")).toMatchObject({ code: 2 });
    expect(await migrate(bare, env.DRAGOMAN_DATABASE_URL)).toEqual({
      code: 1,
      said: expect.stringContaining("DRAGOMAN_SEAL_KEY"),
    });
  });

  test("a dry run counts and makes nothing; what was interrupted is completed; newer data is not mixed in", async () => {
    const [home, other] = [temporaryFolder(), temporaryFolder()];
    await fill({ DRAGOMAN_HOME: home });
    const url = await postgres.database({ empty: true });
    const seal = { DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64") };
    const env = { DRAGOMAN_HOME: home, ...seal };
    const counted = await migrate(env, url, "--dry-run");
    expect([counted.code, counted.said]).toEqual([
      0,
      expect.stringContaining("2 accounts, what 1 budget period used, and 1,300 requests"),
    ]);
    const sql = new SQL(url, { max: 1 });
    expect([...(await sql`SELECT to_regclass('dragoman.schema') AS made`)]).toEqual([{ made: null }]);

    // As far as a run came that was killed.
    const inDatabase = { DRAGOMAN_HOME: other, DRAGOMAN_DATABASE_URL: url, ...seal };
    const inTarget = (entries: Entry[]) =>
      withStores(inDatabase, async (stores) => {
        const history = stores.openHistory({ retentionDays: () => 7, maxRows: () => 10_000, warn: expect.unreachable });
        for (const row of entries) history.add(row);
        expect(await history.flush()).toBe(true);
        history.close();
      });
    await inTarget(rows.slice(0, 700));
    expect(await migrate(env, url)).toMatchObject({ code: 0 });
    expect((await contentOf(inDatabase)).rows).toHaveLength(1_300);

    // A team has worked with it since.
    await inTarget([entry({ started_at_ms: Date.now() })]);
    expect(await migrate(env, url)).toEqual({ code: 1, said: expect.stringContaining("requests of its own") });
    await sql`INSERT INTO dragoman.replicas (id, host, version, seal_keys) VALUES (gen_random_uuid(), 'elsewhere', '1', '[]')`;
    expect(await migrate(env, url)).toEqual({ code: 1, said: expect.stringContaining("1 server of the database") });
    await sql.close();
  });

  test("is refused while a server runs on the data folder", async () => {
    const home = temporaryFolder();
    await using server = run(["start", "--port", "0", "--json"], { env: { DRAGOMAN_HOME: home } });
    const { url } = await server.ready();
    const env = { DRAGOMAN_HOME: home, DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64") };
    const { code, stderr } = await asProcess(["migrate", "--to", await postgres.database()], env);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`A dragoman server runs at ${url}`)]);
  });

  test("to a folder, which is one person's, members are left out with their accounts, requests and amounts", async () => {
    const seal = { DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64") };
    const team = { DRAGOMAN_HOME: temporaryFolder(), DRAGOMAN_DATABASE_URL: await postgres.database(), ...seal };
    await fill(team);
    await withStores(team, async (stores) => {
      const { member } = await stores.members!.invite("bea");
      await stores.accounts.add({
        login: "bea",
        host: "github.com",
        app: "vscode",
        mode: "exchange",
        githubToken: "ghu_bea0000000000",
        addedAt: 2,
        member: member.id,
      });
      const history = stores.openHistory({ retentionDays: () => 7, maxRows: () => 10_000, warn: expect.unreachable });
      history.add(entry({ started_at_ms: Date.now(), member: member.id }));
      expect(await history.flush()).toBe(true);
      history.close();
      const config = stores.config;
      await config.change({ budgets: [each] });
      config.close();
      const ledger = stores.openLedger({ now: Date.now, warn: expect.unreachable });
      const asked = { ...subject, key: "bea/key-1", account: "bea", member: { id: member.id, name: "bea" } };
      const kinds = ["member", "key", "account"] as const;
      const budgets = kinds.map((kind) => ({ ...each, each: kind, name: `each ${kind}` }));
      for (const of of [asked, { ...subject, key: "laptop" }]) {
        const result = await ledger.reserve(budgets, of, { nanoCredits: 2e9, premiumUnits: null });
        if ("exceeded" in result) return expect.unreachable("exceeded");
        await ledger.settle(result.reservation, { nanoCredits: 1e9, premiumUnits: null });
      }
      expect(await ledger.periods()).toHaveLength(6);
      ledger.close();
    });
    const folder = { DRAGOMAN_HOME: temporaryFolder() };
    const sentence = "Not copied: 1 member (bea) with their keys, accounts and requests";
    for (const more of [["--dry-run"], []]) {
      const { code, said } = await migrate({ ...team, ...folder }, "folder", ...more);
      expect([code, said]).toEqual([0, expect.stringContaining(sentence)]);
      expect(said).toContain("2 accounts");
      expect(said).toContain("1,300 requests");
      // One that all share, and the owner's key and account.
      expect(said).toContain("what 3 budget periods used");
      expect(said).toContain("1 budget (each) counts requests of members only, and so nothing in a data folder.");
    }
    await withStores(folder, async (stores) => {
      const ledger = stores.openLedger({ now: Date.now, warn: expect.unreachable });
      const holders = (await ledger.periods()).map(({ key }) => textOf(key));
      expect(holders.sort()).toEqual(["", `account/github.com/${subject.account}`, "key/laptop"]);
      ledger.close();
    });
    const moved = await contentOf(folder);
    expect(moved.accounts.map(([login]) => login)).toEqual(["zoe", "anna"]);
    expect(moved.rows.map(({ request_id }) => request_id)).toEqual(rows.map(({ request_id }) => request_id));
  });

  test("what this machine could not write while the database was away is moved too", async () => {
    const seal = { DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64") };
    const home = temporaryFolder();
    const team = { DRAGOMAN_HOME: home, DRAGOMAN_DATABASE_URL: await postgres.database(), ...seal };
    await fill(team);
    const { key } = await withStores(team, async (stores) => {
      const ledger = stores.openLedger({ now: Date.now, warn: expect.unreachable });
      const [period] = await ledger.periods();
      ledger.close();
      return period!;
    });
    const waiting = entry({ started_at_ms: Date.now() });
    const queues = openDiskQueues(join(home, "waiting.sqlite"), expect.unreachable);
    queues.queue<Entry>("request").add([[waiting.request_id, waiting]]);
    const { start: start_ms, ...rest } = key;
    const settlement = { ...rest, start_ms, amount: 1e9, unknown: 0 };
    queues.queue("settlement").add([[crypto.randomUUID(), [settlement]]]);
    queues.close();
    expect(await migrate(team, "folder")).toMatchObject({ code: 0 });
    const moved = await contentOf({ DRAGOMAN_HOME: home });
    expect(moved.rows.at(-1)?.request_id).toBe(waiting.request_id);
    expect(moved.used).toEqual([[3.5, 0]]);
  });
});
