/** What a server reserves ahead of a budget: taken when it is used, renewed while it is used, and given back. */
import { afterAll, beforeEach, expect, test } from "bun:test";
import type { Subject } from "../../src/budgets/budgets";
import { type Budget, budgetSchema } from "../../src/config/budget-schema";
import { createLogger } from "../../src/logger";
import { Changes } from "../../src/team/changes";
import { Postgres } from "../../src/team/connection";
import { Leases } from "../../src/team/leases";
import { TeamLedger } from "../../src/team/ledger";
import { Replica } from "../../src/team/replica";
import { migrate } from "../../src/team/schema";
import { describeWithDatabases } from "../support/shared-postgres";

const minutes = 60_000;
const logger = createLogger(() => "error");
const noon = Date.parse("2026-11-22T12:00:00Z");
const nothing = { nanoCredits: null, premiumUnits: null };
const anybody: Subject = { account: "octo", key: "laptop", model: "gpt-4.1", client: null, session: null };

describeWithDatabases("a lease of a budget", (server) => {
  let postgres: Postgres;
  beforeEach(async () => {
    await postgres?.close();
    postgres = new Postgres({ url: await server.database() });
    await migrate(postgres);
  });
  afterAll(() => postgres.close());

  const budget = budgetSchema().parse({ name: "all", unit: "requests", limit: 1_000, per: "day" });
  const key = { budget: "requests/day/all", kind: "", member: "", item: "" } as const;
  const entryOf = (start: number) => ({ budget, holder: null, key: { ...key, start } });
  const [today, tomorrow] = [entryOf(1_000), entryOf(2_000)];

  /** A server, with a clock that is set by hand, and the number of updates in the database. */
  async function opened() {
    let now = 0;
    let unsettled = false;
    const replica = await Replica.join({
      postgres,
      logger,
      version: "1",
      sealKeys: [],
    });
    const leases = new Leases({
      postgres,
      replica: replica.id,
      graceMs: 10 * minutes,
      unsettled: () => unsettled,
      logger,
      monotonic: () => now,
    });
    await postgres.sql`INSERT INTO dragoman.ledger (budget, kind, member, item, start_ms)
      VALUES ('requests/day/all', '', '', '', 1000), ('requests/day/all', '', '', '', 2000) ON CONFLICT DO NOTHING`;
    const at = async (ms: number) => {
      now = ms;
      await leases.refresh();
    };
    const row = async () => {
      const [found] = await postgres.sql`SELECT xmin::text AS version, amount::int, start_ms::int AS start, state
        FROM dragoman.reservations WHERE is_lease AND replica = ${replica.id}`;
      return found;
    };
    const setUnsettled = (given: boolean) => {
      unsettled = given;
    };
    return { leases, at, row, replica, setUnsettled };
  }
  const reservedOf = async (start: number) => {
    const [row] = await postgres.sql`SELECT reserved::int FROM dragoman.ledger WHERE start_ms = ${start}`;
    return row.reserved;
  };

  test("a lease of a budget is two per cent, and costs nothing while the budget is not used", async () => {
    const { leases, at, row, replica } = await opened();
    await at(1);
    leases.use(today, 1);
    await at(10);
    const taken = await row();
    expect([taken.amount, await reservedOf(1_000)]).toEqual([20, 20]);
    for (let each = 1; each < 10; each += 1) await at(each * minutes);
    expect(await row()).toEqual(taken);
    // Not longer than the database keeps it for a server that is gone.
    const [{ seconds }] = await postgres.sql`SELECT extract(epoch FROM expires_at - now())::float8 AS seconds
      FROM dragoman.reservations WHERE is_lease`;
    expect(seconds).toBeWithin(25 * 60, 27 * 60);
    await at(11 * minutes);
    expect([(await row()).state, await reservedOf(1_000)]).toEqual(["settled", 0]);
    await replica.close();
  });

  test("a lease of a budget is taken anew after five minutes in which it was used, or when a request needs more", async () => {
    const { leases, at, row, replica } = await opened();
    leases.use(today, 1);
    await at(10);
    const { version } = await row();
    for (let each = 1; each < 5; each += 1) {
      leases.use(today, 1);
      await at(each * minutes);
    }
    expect((await row()).version).toBe(version);
    leases.use(today, 1);
    await at(6 * minutes);
    const renewed = await row();
    expect(renewed.version).not.toBe(version);
    await at(6 * minutes + 1);
    leases.use(today, 90);
    await at(6 * minutes + 2);
    expect((await row()).amount).toBe(90);
    await replica.close();
  });

  test("a lease of a budget follows the period: nothing of the one before stays reserved", async () => {
    const { leases, at, row, replica } = await opened();
    leases.use(today, 1);
    await at(10);
    leases.use(tomorrow, 1);
    expect(leases.spend(today, 1)).toBe(false);
    await at(20);
    expect([await reservedOf(1_000), await reservedOf(2_000), (await row()).start]).toEqual([0, 20, 2_000]);
    expect([leases.spend(today, 1), leases.spend(tomorrow, 1)]).toEqual([false, true]);
    for (let each = 1; each < 10; each += 1) await at(each * minutes);
    expect(await reservedOf(2_000)).toBe(20);
    await replica.close();
  });

  test("of a server that ends is free at once", async () => {
    const { leases, at, replica } = await opened();
    leases.use(today, 1);
    await at(10);
    leases.close();
    await replica.close();
    await postgres.sql`SELECT dragoman.expire_reservations(ledger) FROM dragoman.ledger`;
    expect(await reservedOf(1_000)).toBe(0);
  });

  test("is taken only while more than a fifth of the budget is left, and given back when others have used the rest", async () => {
    const { leases, at, row, replica } = await opened();
    const uses = (used: number) => postgres.sql`UPDATE dragoman.ledger SET used = ${used} WHERE start_ms = 1000`;
    leases.use(today, 1);
    await at(10);
    expect(await reservedOf(1_000)).toBe(20);
    await uses(799);
    await at(10_010);
    expect(await reservedOf(1_000)).toBe(20);
    await uses(800);
    await at(20_010);
    expect([await reservedOf(1_000), (await row()).state, leases.spend(today, 1)]).toEqual([0, "settled", false]);
    leases.use(today, 1);
    await at(minutes);
    expect(await reservedOf(1_000)).toBe(0);
    // Asked at this very moment, but before the request: it has nothing to try again for.
    expect(await leases.giveBack(today, leases.asked)).toBe(false);
    await replica.close();
  });

  test("a lease of a budget is not given back while the ledger does not know what was spent of it", async () => {
    const { leases, at, replica, setUnsettled } = await opened();
    leases.use(today, 1);
    await at(10);
    expect(leases.spend(today, 5)).toBe(true);
    setUnsettled(true);
    await at(30 * minutes);
    expect([await leases.giveBack(today, 0), await reservedOf(1_000)]).toEqual([false, 20]);
    setUnsettled(false);
    await at(60 * minutes);
    expect(await reservedOf(1_000)).toBe(0);
    await replica.close();
  });

  /** The ledgers of servers, and how often each of them grants one request of a budget. */
  async function ledgers(count: number) {
    const all = Array.from({ length: count }, () => {
      let leases: Leases;
      const replica = crypto.randomUUID();
      const ledger = new TeamLedger({
        ...{
          postgres,
          changes: new Changes(postgres, logger),
          replica,
          now: () => noon,
          warn: expect.unreachable,
        },
        openLeases: (unsettled) => {
          leases = new Leases({ postgres, replica, graceMs: 1_000, unsettled, logger });
          return leases;
        },
        openQueue: () => ({ add() {}, take: () => [], remove() {}, size: 0 }),
      });
      return { ledger, leases: leases! };
    });
    const isGranted = async (at: number, of: Budget) =>
      "reservation" in (await all[at % count]!.ledger.reserve([of], anybody, nothing));
    return { all, isGranted };
  }

  test("a lease of a budget is what a request of the same server gets before it is refused, and nobody else's", async () => {
    const { all, isGranted } = await ledgers(2);
    const of = budgetSchema().parse({ ...budget, limit: 10 });
    expect(await isGranted(0, of)).toBe(true);
    await all[0]!.leases.refresh();
    for (let count = 0; count < 8; count += 1) expect(await isGranted(1, of)).toBe(true);
    expect([await isGranted(1, of), await isGranted(0, of), await isGranted(0, of)]).toEqual([false, true, false]);
  });

  test("a lease of a budget lets races over three servers grant exactly the limit, of a shared amount and of each holder's", async () => {
    const { all, isGranted } = await ledgers(3);
    for (let round = 0; round < 12; round += 1) {
      const each = round % 2 === 0 ? undefined : "key";
      const of = budgetSchema().parse({ ...budget, name: `round-${round}`, limit: 12, each });
      const before = round % 4;
      // Some hold leases before the race begins, and some take them while it runs.
      for (let at = 0; at < before; at += 1) {
        await isGranted(at, of);
        await all[at]!.leases.refresh();
      }
      const racing = Array.from({ length: 60 }, (_, at) => isGranted(at, of));
      const refreshing = all.map(({ leases }) => leases.refresh());
      const granted = (await Promise.all(racing)).filter(Boolean).length;
      await Promise.all(refreshing);
      expect(granted + before).toBe(12);
    }
  });
});
