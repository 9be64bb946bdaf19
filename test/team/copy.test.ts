/** Scenario: `dragoman database copy`: from the data folder to a database, without losing or doubling anything. */
import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { SQL } from "bun";
import type { Entry } from "../../src/books/history/history";
import type { Stores } from "../../src/books/stores";
import { budgetSchema } from "../../src/config/budget-schema";
import { readEnvironment } from "../../src/config/environment";
import type { LocalStores } from "../../src/parts/local-stores";
import { openStores } from "../../src/parts/open-stores";
import { secretOf } from "../../src/people/accounts/account-store";
import { entryFor } from "../../src/people/budgets/entries";
import { credits } from "../support/amounts";
import { run } from "../support/command";
import { entry } from "../support/history-rows";
import { asProcess, inProcess } from "../support/in-process";
import { describeWithDatabases } from "../support/shared-postgres";
import { temporaryFolder } from "../support/temporary-folder";

const budget = budgetSchema().parse({ name: "team", unit: "credits", limit: 10, per: "month" });
const subject = { account: "anna", key: null, model: "gpt-5" };

describeWithDatabases("dragoman database copy", (postgres) => {
  const withStores = async <T>(env: Record<string, string>, work: (stores: Stores) => Promise<T>): Promise<T> => {
    const stores = await openStores(readEnvironment({ HOME: "/nonexistent", ...env }), { follow: false });
    try {
      return await work(stores);
    } finally {
      await stores.close();
    }
  };
  const copy = async (env: Record<string, string>, ...more: string[]) => {
    const { code, stderr } = await inProcess(["database", "copy", ...more], env);
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
      const { members } = stores as LocalStores;
      const { member } = (await members.accept((await members.invite("ben", { models: ["gpt-*"] })).code))!;
      await members.invite("cleo");
      const bens = { login: "ben-octo", host: "github.com", app: "vscode", mode: "exchange", addedAt: 9 } as const;
      await accounts.add({ ...bens, githubToken: "ghu_ben0000000000", member: member.id });
      await accounts.choices!.pause(member.id, "github.com/ben-octo", true);
      const history = stores.openHistory({ retentionDays: () => 7, maxRows: () => 10_000, warn: expect.unreachable });
      for (const row of rows) history.add(row);
      expect(await history.flush()).toBe(true);
      history.close();
      const ledger = stores.openLedger({ now: Date.now, warn: expect.unreachable });
      const result = await ledger.reserve([budget], subject, credits(2));
      if ("exceeded" in result) return expect.unreachable("exceeded");
      await ledger.settle(result.reservation, credits(2.5));
      ledger.close();
      const notices = stores.openSentNotices({ now: Date.now, warn: expect.unreachable });
      await notices.claim(["notice-1"]);
      await notices.note([{ id: "notice-1", delivered: ["mail"], isDone: true }]);
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
        accounts: stores.accounts.load().map((account) => [account.login, secretOf(account)]),
        members: await membersIn(stores),
        rows: found,
        used: (await ledger.read([entryFor(budget, null, Date.now())])).map(({ used, reserved }) => [used, reserved]),
        // What was sent is not sent again, wherever it was copied to.
        notices: await stores.openSentNotices({ now: Date.now, warn: expect.unreachable }).claim(["notice-1"]),
      };
      for (const each of [config, history, ledger]) each.close();
      return content;
    });

  async function membersIn({ members, accounts }: Stores) {
    await members!.hearAll();
    const open = await members!.openInvitations();
    const shown = members!.list().map((member) => ({
      ...member,
      keys: members!.clientKeysOf(member.id).map(({ name, digest }) => [name, digest.toString("hex")]),
      isInvited: open.some((each) => each.member === member.id),
    }));
    return { shown, isPaused: accounts.choices!.isPaused("github.com/ben-octo") };
  }

  test("copies config, members, accounts, budgets, notices and requests, in their order", async () => {
    const home = temporaryFolder();
    const sealed = { DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64") };
    await fill({ DRAGOMAN_HOME: home });
    const before = await contentOf({ DRAGOMAN_HOME: home });
    expect([before.rows.length, before.used, before.notices]).toEqual([1_300, [[2.5, 0]], []]);
    const url = await postgres.database();

    // Twice: nothing is doubled.
    const env = { DRAGOMAN_HOME: home, DRAGOMAN_DATABASE_URL: url, ...sealed };
    for (const _ of [1, 2])
      expect(await copy(env)).toEqual({ code: 0, said: expect.stringContaining("2 members, 3 accounts") });
    expect(await contentOf({ ...env, DRAGOMAN_HOME: temporaryFolder() })).toEqual(before);
  });

  /** A folder with content, and an empty database to copy it to. */
  async function filled() {
    const home = temporaryFolder();
    await fill({ DRAGOMAN_HOME: home });
    return {
      DRAGOMAN_HOME: home,
      DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64"),
      DRAGOMAN_DATABASE_URL: await postgres.database(),
    };
  }

  test("a config that is there already stays; what is missing in the command is said", async () => {
    const env = await filled();
    await withStores(env, async (stores) => {
      const config = stores.config;
      await config.change({ retentionDays: 30 });
      config.close();
    });
    const refused = await copy(env);
    expect(refused).toEqual({ code: 1, said: expect.stringContaining("is not empty") });
    expect(refused.said).toContain("another config");
    expect(await copy(env, "--dry-run")).toEqual({ code: 0, said: expect.stringContaining("It would be refused") });
    expect(await contentOf(env)).toMatchObject({ accounts: [], rows: [] });
    const ofMachine = {
      login: "cli",
      host: "github.com",
      app: "copilot-cli",
      mode: "direct",
      command: "copilot",
    } as const;
    await withStores({ DRAGOMAN_HOME: env.DRAGOMAN_HOME }, async ({ accounts }) =>
      accounts.add({ ...ofMachine, addedAt: 9 }),
    );
    const { code, said } = await copy(env, "--merge");
    expect([code, said]).toEqual([0, expect.stringContaining("not the config, because there is another one")]);
    expect(said).toContain("Not copied: The account cli of the Copilot CLI belongs to one machine");
    expect((await contentOf(env)).config).toEqual({ retentionDays: 30 });
    const { DRAGOMAN_DATABASE_URL: _, ...bare } = env;
    expect(await copy(bare)).toEqual({ code: 2, said: expect.stringContaining("DRAGOMAN_DATABASE_URL") });
    const { DRAGOMAN_SEAL_KEY: __, ...keyless } = env;
    expect(await copy(keyless)).toEqual({ code: 1, said: expect.stringContaining("DRAGOMAN_SEAL_KEY") });
  });

  test("another member of the same name stops the copy before any member is copied", async () => {
    const env = await filled();
    await withStores(env, ({ members }) => members!.invite("ben"));
    const { code, said } = await copy(env, "--merge");
    expect([code, said]).toEqual([
      1,
      expect.stringContaining("The database has another member ben. Remove one of the"),
    ]);
    const { shown } = await withStores(env, membersIn);
    expect(shown.map(({ name, keys }) => [name, keys])).toEqual([["ben", []]]);
  });

  test("a dry run counts and makes nothing; what was interrupted is completed; newer data is not mixed in", async () => {
    const [home, other] = [temporaryFolder(), temporaryFolder()];
    await fill({ DRAGOMAN_HOME: home });
    const url = await postgres.database({ empty: true });
    const seal = { DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64") };
    const env = { DRAGOMAN_HOME: home, DRAGOMAN_DATABASE_URL: url, ...seal };
    const counted = await copy(env, "--dry-run");
    expect([counted.code, counted.said]).toEqual([
      0,
      expect.stringContaining("2 members, 3 accounts, what 1 budget period used, and 1,300 requests"),
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
    expect(await copy(env)).toMatchObject({ code: 0 });
    expect((await contentOf(inDatabase)).rows).toHaveLength(1_300);

    // A team has worked with it since.
    await inTarget([entry({ started_at_ms: Date.now() })]);
    expect(await copy(env)).toEqual({ code: 1, said: expect.stringContaining("requests of its own") });
    await sql`INSERT INTO dragoman.servers (id, host, version) VALUES (gen_random_uuid(), 'elsewhere', '1')`;
    expect(await copy(env)).toEqual({ code: 1, said: expect.stringContaining("1 server of the database") });
    await sql.close();
  });

  test("is refused while a server runs on the data folder", async () => {
    const home = temporaryFolder();
    await using server = run(["start", "--port", "0", "--json"], { env: { DRAGOMAN_HOME: home } });
    const { url } = await server.ready();
    const seal = { DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64") };
    const env = { DRAGOMAN_HOME: home, DRAGOMAN_DATABASE_URL: await postgres.database(), ...seal };
    const { code, stderr } = await asProcess(["database", "copy"], env);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`A dragoman server runs at ${url}`)]);
  });
});
