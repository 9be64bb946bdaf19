/** Scenario: the schema of the database: made once, by one of several servers, and refused where it is too new. */
import { afterAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { SQL } from "bun";
import { columnNames } from "../../src/books/history/entry";
import { readEnvironment } from "../../src/config/environment";
import { Postgres } from "../../src/team/connection";
import { migrate, schemaVersion } from "../../src/team/schema";
import { openPostgresStores } from "../../src/team/stores";
import { describeWithPassingDatabases } from "../support/shared-postgres";
import { until } from "../support/until";

describeWithPassingDatabases("the schema", (server) => {
  const opened: Postgres[] = [];
  afterAll(async () => {
    for (const postgres of opened) await postgres.close();
  });
  const connected = (url: string) => {
    const postgres = new Postgres({ url });
    opened.push(postgres);
    return postgres;
  };

  test("eight servers that start at the same moment make it once", async () => {
    const url = await server.database({ empty: true });
    await Promise.all(Array.from({ length: 8 }, () => migrate(connected(url))));
    const ask: Postgres["ask"] = (question) => opened[0]!.ask(question);
    expect([...(await ask((sql) => sql`SELECT version, compatible_with FROM dragoman.schema`))]).toEqual([
      { version: schemaVersion, compatible_with: 1 },
    ]);
    const columns = await ask(
      (sql) => sql`SELECT column_name FROM information_schema.columns
        WHERE table_schema = 'dragoman' AND table_name = 'requests'`,
    );
    expect(columns.map(({ column_name }: { column_name: string }) => column_name)).toEqual(
      expect.arrayContaining(columnNames),
    );
    await migrate(opened[1]!);
  });

  test("a newer one is used as long as it is compatible with this version", async () => {
    const url = await server.database({ empty: true });
    const postgres = connected(url);
    await migrate(postgres);
    await postgres.ask((sql) => sql`UPDATE dragoman.schema SET version = 99, compatible_with = ${schemaVersion}`);
    await migrate(postgres);
    expect([...(await postgres.ask((sql) => sql`SELECT version FROM dragoman.schema`))]).toEqual([{ version: 99 }]);
    await postgres.ask((sql) => sql`UPDATE dragoman.schema SET compatible_with = 99`);
    await expect(migrate(postgres)).rejects.toThrow("newer dragoman (schema 99)");
  });

  test("members, the history and its portions get the columns that a later version has", async () => {
    const postgres = connected(await server.database({ empty: true }));
    await migrate(postgres);
    await postgres.ask((sql) => sql`ALTER TABLE dragoman.requests DROP COLUMN cache_miss`);
    await postgres.ask((sql) => sql`ALTER TABLE dragoman.rollup DROP COLUMN cache_miss`);
    await postgres.ask((sql) => sql`ALTER TABLE dragoman.portions DROP COLUMN unknown_cost`);
    await postgres.ask((sql) => sql`ALTER TABLE dragoman.members DROP COLUMN key_days`);
    await postgres.ask((sql) => sql`INSERT INTO dragoman.rollup_periods VALUES (1, 490000)`);
    await migrate(postgres);
    expect(await postgres.ask((sql) => sql`SELECT key_days FROM dragoman.members`)).toHaveLength(0);
    expect(await postgres.ask((sql) => sql`SELECT cache_miss FROM dragoman.requests`)).toHaveLength(0);
    expect(await postgres.ask((sql) => sql`SELECT cache_miss FROM dragoman.rollup`)).toHaveLength(0);
    expect(await postgres.ask((sql) => sql`SELECT unknown_cost FROM dragoman.portions`)).toHaveLength(0);
    // What was added up without the column is added up again.
    expect(await postgres.ask((sql) => sql`SELECT hour FROM dragoman.rollup_periods`)).toHaveLength(0);
  });

  test("a change gives its table another stamp, not before it is committed and not if it fails", async () => {
    const postgres = connected(await server.database({ empty: true }));
    await migrate(postgres);
    const stamp = async () =>
      (await postgres.ask((sql) => sql`SELECT stamp::text FROM dragoman.stamps WHERE name = 'accounts'`))[0].stamp;
    const add = (sql: SQL, key: string) => sql`INSERT INTO dragoman.accounts
      (key, host, login, app, mode, kind, sign_in, sealed_token, added_at_ms)
      VALUES (${`github.com/${key}`}, 'github.com', ${key}, 'vscode', 'exchange', 'person', 's', '\\x00', 1)`;
    const first = await stamp();
    const failing = postgres.transact(async (sql) => {
      await add(sql, "octo");
      throw new Error("no");
    });
    await expect(failing).rejects.toThrow("no");
    expect(await stamp()).toBe(first);
    await postgres.ask((sql) => add(sql, "octo"));
    expect(await stamp()).not.toBe(first);
  });

  test("a server that is not there is reported as such, and found again", async () => {
    const postgres = connected(await server.database({ empty: true }));
    await postgres.ask((sql) => sql`SELECT 1`);
    await server.stop();
    expect(await postgres.ask((sql) => sql`SELECT 1`).catch((thrown) => thrown)).toMatchObject({
      kind: "unable",
      status: 503,
      details: { code: "database_away" },
    });
    expect(postgres.isAway).toBe(true);
    await server.start();
    await until(() => !postgres.isAway, "the database is found again");
    expect([...(await postgres.ask((sql) => sql`SELECT 1 AS one`))]).toEqual([{ one: 1 }]);
  });

  test("questions that only wait for a connection are answered, however many others are before them", async () => {
    const postgres = connected(await server.database({ empty: true }));
    const ask = () => postgres.ask((sql) => sql`SELECT pg_sleep(0.1)`, 20_000);
    const answers = await Promise.allSettled(Array.from({ length: 60 }, ask));
    expect(answers.filter(({ status }) => status === "rejected")).toEqual([]);
    expect(postgres.isAway).toBe(false);
  });

  test("a busy database is not taken for an absent one: who finds no connection is told, requests have their own, and what runs goes on", async () => {
    const url = await server.database({ empty: true });
    const postgres = connected(url);
    await using lock = await new SQL(url, { max: 1 }).reserve();
    await lock`SELECT pg_advisory_lock(1)`;
    const fill = (lane: Pick<Postgres, "ask">) =>
      Array.from({ length: 4 }, () => lane.ask((sql) => sql`SELECT pg_advisory_xact_lock_shared(1)`, 30_000));
    const long = fill(postgres.requests);
    const late = await postgres.requests.transact((sql) => sql`SELECT 1`, 300).catch((thrown) => thrown);
    expect(late).toMatchObject({
      status: 503,
      details: { code: "database_busy", headers: { "retry-after": "5" } },
      message:
        "The database cannot be used now: it has too much to do. Therefore nothing was changed. Try again when it is back.",
    });
    // Pages have other connections, and wait for as long as a page may take.
    expect([...(await postgres.ask((sql) => sql`SELECT 1 AS one`))]).toEqual([{ one: 1 }]);
    await lock`SELECT pg_advisory_unlock(1)`;
    expect(await Promise.all(long)).toHaveLength(4);
    await lock`SELECT pg_advisory_lock(1)`;
    const pages = fill(postgres);
    const patient = postgres.ask((sql) => sql`SELECT 1 AS one`, 300);
    await Bun.sleep(600);
    // One that takes too long keeps its connection until its end, and those beside it go on to theirs.
    const slow = postgres.requests.ask((sql) => sql`SELECT pg_sleep(3)`, 500).catch((thrown) => thrown);
    const beside = postgres.requests.ask((sql) => sql`SELECT pg_sleep(1.5), 1 AS one`);
    expect(await slow).toMatchObject({ details: { code: "database_busy" } });
    expect((await beside)[0].one).toBe(1);
    expect([...(await postgres.requests.ask((sql) => sql`SELECT 1 AS one`))]).toEqual([{ one: 1 }]);
    expect(postgres.isAway).toBe(false);
    await lock`SELECT pg_advisory_unlock(1)`;
    expect(await Promise.all(pages)).toHaveLength(4);
    expect([...(await patient)]).toEqual([{ one: 1 }]);
  });

  test("a server has nine connections at most, of which one is direct, and all that it makes is in the schema dragoman", async () => {
    const url = await server.database({ empty: true });
    const direct = new URL(url);
    direct.searchParams.set("application_name", "direct");
    const postgres = new Postgres({ url, directUrl: direct.href });
    opened.push(postgres);
    await migrate(postgres);
    await using beside = new SQL(url, { max: 1 });
    const others = () =>
      beside`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`;
    expect(await others()).toHaveLength(1);
    const busy = Array.from({ length: 20 }, () => [
      postgres.ask((sql) => sql`SELECT pg_sleep(0.3)`),
      postgres.requests.ask((sql) => sql`SELECT pg_sleep(0.3)`),
      postgres.askDirect((sql) => sql`SELECT pg_sleep(0.02)`),
    ]).flat();
    let most = { all: 0, direct: 0 };
    const look = async () => {
      const [now] = await beside`SELECT count(*)::int AS all,
          count(*) FILTER (WHERE query LIKE '%0.02%' OR application_name = 'direct')::int AS direct
        FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`;
      if (now.all > most.all) most = now;
    };
    const ended = Promise.all(busy).then(() => true);
    while (!(await Promise.race([ended, look()]))) await Bun.sleep(20);
    expect(most).toEqual({ all: 9, direct: 1 });
    const elsewhere = await beside`SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
      WHERE nspname NOT IN ('dragoman', 'pg_catalog', 'information_schema', 'pg_toast')
      UNION ALL SELECT proname FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace
      WHERE nspname NOT IN ('dragoman', 'pg_catalog', 'information_schema')`;
    expect([...elsewhere]).toEqual([]);
  });

  test("an address without a database is an error, and the process may end", async () => {
    const postgres = connected("postgres://nobody@127.0.0.1:1/none");
    expect(await postgres.ask((sql) => sql`SELECT 1`).catch(({ details }) => details.code)).toBe("database_away");
    // The client of Bun would keep the process alive if it went on connecting.
    await expect(new SQL("postgres://nobody@127.0.0.1:1/none", { max: 1 })`SELECT 1`).rejects.toThrow();
  });

  test("a server that finds too few connections at its start waits, and starts when there are some", async () => {
    const url = await server.database();
    await server.administer("CREATE ROLE scarce LOGIN IN ROLE dragoman");
    const environment = readEnvironment({
      HOME: "/nonexistent",
      DRAGOMAN_DATABASE_URL: url.replace("dragoman@", "scarce@"),
      DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64"),
    });
    for (const limit of [1, 2, 4, 8]) {
      await server.administer(`ALTER ROLE scarce CONNECTION LIMIT ${limit}`);
      const opening = openPostgresStores(environment, { follow: true });
      let outcome = "waits";
      opening.then(
        () => (outcome = "opened"),
        (thrown) => (outcome = String(thrown)),
      );
      const taken = () => server.administer("SELECT 1 FROM pg_stat_activity WHERE usename = 'scarce'");
      await until(async () => outcome !== "waits" || (await taken()).length >= limit, "it has all that it may have");
      // It asks for the next one, and is refused.
      await Bun.sleep(50);
      expect([limit, outcome]).toEqual([limit, expect.stringMatching(/^(?:opened|waits)$/)]);
      await server.administer("ALTER ROLE scarce CONNECTION LIMIT -1");
      await (await opening).close();
    }
    await server.administer("ALTER ROLE scarce CONNECTION LIMIT 0");
    await expect(openPostgresStores(environment, { follow: false })).rejects.toThrow("it has no connection left");
    await server.administer("DROP ROLE scarce");
  });
});
