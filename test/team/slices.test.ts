/** What a server reserves ahead of a budget: taken when it is used, renewed while it is used, and given back. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { budgetSchema } from "../../src/config/budget-schema";
import { createLogger } from "../../src/logger";
import { openChanges } from "../../src/team/changes";
import { connectPostgres, type Postgres } from "../../src/team/connection";
import { joinReplicas, type Replica } from "../../src/team/replica";
import { migrate } from "../../src/team/schema";
import { openSlices } from "../../src/team/slices";
import { describeWithPostgres } from "../support/postgres";
import { sharedPostgres, type TestDatabases } from "../support/shared-postgres";

const minutes = 60_000;
const logger = createLogger(() => "error");

describeWithPostgres("a slice of a budget", () => {
  let server: TestDatabases;
  let postgres: Postgres;
  beforeAll(async () => {
    server = await sharedPostgres();
  });
  beforeEach(async () => {
    await postgres?.close();
    postgres = connectPostgres({ url: await server.database() });
    await migrate(postgres);
  });
  afterAll(async () => {
    await postgres.close();
    await server[Symbol.asyncDispose]();
  });

  const budget = budgetSchema().parse({ name: "all", unit: "requests", limit: 1_000, per: "day" });
  const entryOf = (start: number) => ({ budget, holder: null, key: ["requests/day/all", "", start] as const });
  const [today, tomorrow] = [entryOf(1_000), entryOf(2_000)];

  /** A server, with a clock that is set by hand, and the number of updates in the database. */
  async function opened() {
    let now = 0;
    const replica: Replica = await joinReplicas({
      postgres,
      logger: () => logger,
      version: "1",
      sealKeys: [],
    });
    const slices = openSlices({
      postgres,
      changes: openChanges(postgres, () => logger),
      replica: replica.id,
      graceMs: 10 * minutes,
      unsettled: () => false,
      logger: () => logger,
      monotonic: () => now,
    });
    await postgres.sql`INSERT INTO dragoman.ledger (budget, holder, start_ms)
      VALUES ('requests/day/all', '', 1000), ('requests/day/all', '', 2000) ON CONFLICT DO NOTHING`;
    const at = async (ms: number) => {
      now = ms;
      await slices.refresh();
    };
    const row = async () => {
      const [found] = await postgres.sql`SELECT xmin::text AS version, amount::int, start_ms::int AS start, state
        FROM dragoman.reservations WHERE is_slice AND replica = ${replica.id}`;
      return found;
    };
    return { slices, at, row, replica };
  }
  const reservedOf = async (start: number) => {
    const [row] = await postgres.sql`SELECT reserved::int FROM dragoman.ledger WHERE start_ms = ${start}`;
    return row.reserved;
  };

  test("is two per cent, and costs nothing while the budget is not used", async () => {
    const { slices, at, row, replica } = await opened();
    await at(1);
    slices.use(today, 1);
    await at(10);
    const taken = await row();
    expect([taken.amount, await reservedOf(1_000)]).toEqual([20, 20]);
    for (let each = 1; each < 10; each += 1) await at(each * minutes);
    expect(await row()).toEqual(taken);
    // Not longer than the database keeps it for a server that is gone.
    const [{ seconds }] = await postgres.sql`SELECT extract(epoch FROM expires_at - now())::float8 AS seconds
      FROM dragoman.reservations WHERE is_slice`;
    expect(seconds).toBeWithin(25 * 60, 27 * 60);
    await at(11 * minutes);
    expect([(await row()).state, await reservedOf(1_000)]).toEqual(["settled", 0]);
    await replica.close();
  });

  test("is taken anew after five minutes in which it was used, or when a request needs more", async () => {
    const { slices, at, row, replica } = await opened();
    slices.use(today, 1);
    await at(10);
    const { version } = await row();
    for (let each = 1; each < 5; each += 1) {
      slices.use(today, 1);
      await at(each * minutes);
    }
    expect((await row()).version).toBe(version);
    slices.use(today, 1);
    await at(6 * minutes);
    const renewed = await row();
    expect(renewed.version).not.toBe(version);
    await at(6 * minutes + 1);
    slices.use(today, 90);
    await at(6 * minutes + 2);
    expect((await row()).amount).toBe(90);
    await replica.close();
  });

  test("follows the period: nothing of the one before stays reserved", async () => {
    const { slices, at, row, replica } = await opened();
    slices.use(today, 1);
    await at(10);
    slices.use(tomorrow, 1);
    expect(slices.spend(today, 1)).toBe(false);
    await at(20);
    expect([await reservedOf(1_000), await reservedOf(2_000), (await row()).start]).toEqual([0, 20, 2_000]);
    expect([slices.spend(today, 1), slices.spend(tomorrow, 1)]).toEqual([false, true]);
    for (let each = 1; each < 10; each += 1) await at(each * minutes);
    expect(await reservedOf(2_000)).toBe(20);
    await replica.close();
  });

  test("of a server that ends is free at once", async () => {
    const { slices, at, replica } = await opened();
    slices.use(today, 1);
    await at(10);
    slices.close();
    await replica.close();
    await postgres.sql`SELECT dragoman.expire_reservations(ledger) FROM dragoman.ledger`;
    expect(await reservedOf(1_000)).toBe(0);
  });
});
