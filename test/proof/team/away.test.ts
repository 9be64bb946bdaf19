/** Scenario: every way in which a database can be away: it is noticed, said in the right words, and over by itself. */
import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { History } from "../../../src/books/history/history";
import { budgetSchema } from "../../../src/config/budget-schema";
import { readEnvironment } from "../../../src/config/environment";
import type { Budget, Subject } from "../../../src/people/budgets/budgets";
import type { Ledger } from "../../../src/people/budgets/ledger";
import { Postgres } from "../../../src/team/connection";
import { openPostgresStores } from "../../../src/team/stores";
import { unpriced } from "../../support/amounts";
import { entry } from "../../support/history-rows";
import {
  describeWithPostgres,
  guardedRole,
  type PostgresOptions,
  startPostgres,
  type TestPostgres,
} from "../../support/postgres";
import { testWith } from "../../support/sandbox";
import { startTcpFront, type TcpFront } from "../../support/tcp-front";
import { until } from "../../support/until";

const limit = 500;
const budget: Budget = budgetSchema().parse({ name: "team", unit: "requests", limit, per: "month" });
const anybody: Subject = { account: "octo", key: "anna", model: "gpt-4.1" };

interface World {
  postgres: TestPostgres;
  front: TcpFront;
  /** The database's own address, as the superuser. */
  url: string;
}

type Change = (world: World) => unknown;
/** What the error says; what begins and ends it; whether questions that only read are answered. */
type Situation = [reason: string, begin: Change, end: Change, canRead?: "can be read"];

const database = (url: string) => new URL(url).pathname.slice(1);
const endSessions = ({ postgres, url }: World) =>
  postgres.administer(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database(url)}' AND pid <> pg_backend_pid()`,
  );
const restart = async ({ postgres }: World, standby: "asked" | "closed") => {
  // A standby answers before it has read everything that came after this.
  await postgres.administer("CHECKPOINT");
  await postgres.stop();
  await postgres.start({ standby });
};

/** Of the role that the server has. */
const alter = ({ postgres }: World, what: string) => postgres.administer(`ALTER ROLE ${guardedRole} ${what}`);

const situations: Record<string, Situation> = {
  "nobody listens at its address": [
    "it cannot be reached",
    ({ front }) => front.refuse(),
    ({ front }) => front.accept(),
  ],
  "it is stopped, and a proxy before it still accepts connections and closes them": [
    "it does not answer",
    ({ postgres }) => postgres.stop(),
    ({ postgres }) => postgres.start(),
  ],
  "it keeps its connections and answers nothing": [
    "it does not answer",
    ({ postgres }) => postgres.pause(),
    ({ postgres }) => postgres.resume(),
  ],
  "the network loses everything, and the old connections for ever": [
    "it does not answer",
    ({ front }) => front.silence(),
    ({ front }) => front.speak(),
  ],
  "it is starting": [
    "it is starting or stopping",
    (world) => restart(world, "closed"),
    ({ postgres }) => postgres.promote(),
  ],
  "it is a standby": [
    "it is a standby, which can only be read",
    (world) => restart(world, "asked"),
    ({ postgres }) => postgres.promote(),
    "can be read",
  ],
  "the password was changed": [
    "it refuses this server's user or password",
    (world) => alter(world, "PASSWORD 'other'").then(() => endSessions(world)),
    (world) => alter(world, "PASSWORD 'secret'"),
  ],
  "others have all its connections": [
    "it has no connection left for this server",
    (world) => alter(world, "CONNECTION LIMIT 0").then(() => endSessions(world)),
    (world) => alter(world, "CONNECTION LIMIT -1"),
  ],
  "the database has another name": [
    "it has no database of this name",
    async (world) => {
      await endSessions(world);
      // Whoever connects again in between would hold the name.
      await world.postgres.administer(`ALTER DATABASE ${database(world.url)} ALLOW_CONNECTIONS false`);
      await endSessions(world);
      await world.postgres.administer(`ALTER DATABASE ${database(world.url)} RENAME TO renamed`);
    },
    async ({ postgres, url }) => {
      await postgres.administer(`ALTER DATABASE renamed RENAME TO ${database(url)}`);
      await postgres.administer(`ALTER DATABASE ${database(url)} ALLOW_CONNECTIONS true`);
    },
  ],
};

describeWithPostgres("a database is away, because", () => {
  /** A server's stores, whose way to the database is the front; and the config of another server, which has a way of its own. */
  async function world(options: PostgresOptions = {}) {
    const stack = new AsyncDisposableStack();
    const postgres = stack.use(await startPostgres(options));
    await postgres.administer(`CREATE ROLE ${guardedRole} LOGIN PASSWORD 'secret' IN ROLE dragoman`);
    const url = await postgres.database();
    const front = stack.use(await startTcpFront(Number(new URL(url).port)));
    const sealKey = randomBytes(32).toString("base64");
    const open = async (port: string | number) => {
      const address = Object.assign(new URL(url), { username: guardedRole, password: "secret", port: String(port) });
      const home = mkdtempSync(join(tmpdir(), "dragoman-away-"));
      stack.defer(() => rmSync(home, { recursive: true, force: true }));
      const given = { DRAGOMAN_DATABASE_URL: address.href, DRAGOMAN_SEAL_KEY: sealKey };
      const environment = readEnvironment({ HOME: home, DRAGOMAN_HOME: home, ...given });
      const stores = await openPostgresStores(environment, { follow: true });
      stack.defer(() => stores.close());
      return stores;
    };
    const stores = await open(front.port);
    const warnings: string[] = [];
    const warn = (sentence: string) => void warnings.push(sentence);
    const limits = { retentionDays: () => 9, maxRows: () => 1e6 };
    const history = stores.openHistory({ ...limits, warn, monotonic: performance.now });
    const ledger = stores.openLedger({ now: Date.now, warn });
    stack.defer(() => {
      for (const store of [history, ledger]) store.close();
    });
    return {
      ...{ parts: { postgres, front, url }, stores, config: stores.config, history, ledger, warnings },
      other: (await open(new URL(url).port)).config,
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  }

  for (const [name, [reason, begin, end, canRead]] of Object.entries(situations))
    test.concurrent(name, async () => {
      await using opened = await world();
      const { parts, stores, config, history, ledger, other, warnings } = opened;
      await spendOne(ledger);
      const ids = [add(history)];
      await history.flush();

      await begin(parts);
      const refused = () => errorOf(() => config.change({ logLevel: "debug" }));
      // It is asked again every half second, and a database that starts goes through more than one state.
      await until(
        async () => (await refused())?.message.includes(reason) ?? false,
        `a change is refused because ${reason}`,
      );
      expect(await refused()).toMatchObject({ status: 503, message: expect.stringContaining(reason) });
      if (!canRead) expect(history.degraded).toBe(true);
      const spending = await Promise.all(Array.from({ length: 4 }, () => errorOf(() => spendOne(ledger))));
      for (const thrown of spending)
        expect(thrown).toMatchObject({ status: 503, details: { code: "budget_unavailable" } });
      await Promise.allSettled(Array.from({ length: 20 }, () => history.count()));
      ids.push(add(history), add(history));
      await history.flush();
      expect(warnings.filter((sentence) => sentence.includes("request history cannot be written"))).toHaveLength(1);

      await end(parts);
      await until(
        async () => (await errorOf(() => config.change({ retentionDays: 7 }))) === undefined,
        "the config can be changed again",
      );
      await until(() => history.flush(), "the rows are written");
      await spendOne(ledger);
      await until(() => hasUsed(ledger, 2), "the ledger is exact");
      await until(async () => (await reserved(parts)) === 0, "nothing stays reserved");
      expect((await history.list({}, 9)).items.map((row) => row.request_id).sort()).toEqual(ids.sort());
      await until(() => other.current.retentionDays === 7, "the other server has the change");
      // And what others say is heard again.
      await other.change({ retentionDays: 8 });
      await until(() => config.current.retentionDays === 8, "the other server's change is heard");
      // A question from before may fail only now, and begins another look.
      await until(() => !stores.postgres.isAway, "the database is found again");
    });

  test.concurrent("a connection breaks while it writes: whether or not the database did it, it is done once", async () => {
    await using opened = await world();
    const { parts, stores, history, ledger, config } = opened;
    const ids: string[] = [];
    for (const delivered of [true, false]) {
      // By what is sent with a statement, which itself is sent once on each connection.
      for (const sent of ["request_id", '"cap":', '"unknown":']) {
        parts.front.cutAt(sent, delivered);
        ids.push(add(history));
        // While the connection is made anew, a request may be refused: that counts nothing.
        await until(async () => (await errorOf(() => spendOne(ledger))) === undefined, "a request is served");
        await history.flush();
      }
      await until(() => !stores.postgres.isAway, "the database is found again");
      parts.front.cutAt("INSERT INTO dragoman.config", delivered);
      const thrown = await errorOf(() => config.change({ retentionDays: delivered ? 3 : 4 }));
      expect(thrown?.message).toContain("Whether the change was made is not known");
    }
    expect(parts.front.cuts).toBe(8);
    await until(() => !stores.postgres.isAway, "the database is found again");
    await until(() => history.flush(), "the rows are written");
    expect((await history.list({}, 9)).items.map((row) => row.request_id).sort()).toEqual(ids.sort());
    await until(() => hasUsed(ledger, 6), "the ledger is exact");
    // Nothing that was reserved unheard is left.
    expect(await reserved(parts)).toBe(0);
  });

  testWith(
    "containers",
    "its disk is full: rows wait and follow, what needs no room goes on, and changes are refused",
    async () => {
      await using opened = await world({ diskMiB: 200 });
      const { parts, config, history, warnings } = opened;
      const ids = [add(history)];
      await history.flush();
      const free = parts.postgres.fillDisk();
      for (let count = 0; count < 400; count += 1) ids.push(add(history));
      await history.flush();
      expect(warnings.join("\n")).toContain("No space left on device");
      expect(history.degraded).toBe(true);
      expect(await history.count()).toBeLessThan(ids.length);
      expect(await errorOf(() => config.change({ retentionDays: 7 }))).toMatchObject({
        status: 503,
        message: expect.stringContaining("its disk is full. Therefore nothing"),
      });
      free();
      await config.change({ retentionDays: 7 });
      await until(() => history.flush(), "the rows are written");
      expect(await history.count()).toBe(ids.length);
    },
    60_000,
  );

  test("the address names the database, whatever PGDATABASE says", async () => {
    await using postgres = await startPostgres();
    const url = await postgres.database();
    process.env.PGDATABASE = "postgres";
    const connected = new Postgres({ url });
    try {
      const [row] = await connected.ask((sql) => sql`SELECT current_database() AS name`);
      expect(row.name).toBe(database(url));
    } finally {
      delete process.env.PGDATABASE;
      await connected.close();
    }
  });

  const reserved = async ({ postgres, url }: World) =>
    (await postgres.administer("SELECT FROM dragoman.reservations WHERE state = 'running'", url)).length;

  function add(history: History): string {
    const row = entry({ started_at_ms: Date.now() });
    history.add(row);
    return row.request_id;
  }

  async function spendOne(ledger: Ledger): Promise<void> {
    const result = await ledger.reserve([budget], anybody, unpriced);
    if ("exceeded" in result) expect.unreachable("exceeded");
    else await ledger.settle(result.reservation, unpriced);
  }
});

async function hasUsed(ledger: Ledger, amount: number): Promise<boolean> {
  try {
    return (await ledger.states([budget], anybody))[0]!.used === amount;
  } catch {
    return false; // away still
  }
}

/** The error that it ends with. */
async function errorOf(work: () => Promise<unknown>): Promise<{ status?: number; message: string } | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    return error as Error;
  }
}
