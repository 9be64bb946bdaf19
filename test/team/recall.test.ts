/** A request is refused for a spent budget only if no server holds a slice that it could have; and it does not wait for the dead. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Subject } from "../../src/budgets/budgets";
import type { Reservation } from "../../src/budgets/entries";
import { type Budget, budgetSchema } from "../../src/config/budget-schema";
import { createLogger } from "../../src/logger";
import { openChanges } from "../../src/team/changes";
import { connectPostgres, type Postgres } from "../../src/team/connection";
import { openPostgresLedger, type PostgresLedger } from "../../src/team/ledger";
import type { Settlement } from "../../src/team/ledger-queries";
import { joinReplicas } from "../../src/team/replica";
import { migrate } from "../../src/team/schema";
import { openSlices, type Slices } from "../../src/team/slices";
import { openSpool } from "../../src/team/spool";
import { describeWithPostgres } from "../support/postgres";
import { sharedPostgres, type TestDatabases } from "../support/shared-postgres";
import { until } from "../support/until";

const logger = createLogger(() => "error");
const noon = Date.parse("2026-11-22T12:00:00Z");
const day = Date.parse("2026-11-22T00:00:00Z");
const nothing = { nanoCredits: null, premiumUnits: null };
const anybody: Subject = { account: "octo", key: "laptop", model: "gpt-4.1", client: null, session: null };
const budget = budgetSchema().parse({ name: "all", unit: "requests", limit: 10, per: "day" });
const longer = 60_000;

describeWithPostgres("before a request is refused", () => {
  let server: TestDatabases;
  let url: string;
  let stack: AsyncDisposableStack;
  /** Of the test itself. */
  let postgres: Postgres;
  beforeAll(async () => {
    server = await sharedPostgres();
  });
  beforeEach(async () => {
    await stack?.disposeAsync();
    stack = new AsyncDisposableStack();
    url = await server.database();
    postgres = connectPostgres({ url });
    stack.defer(() => postgres.close());
    await migrate(postgres);
  });
  afterAll(async () => {
    await stack.disposeAsync();
    await server[Symbol.asyncDispose]();
  });

  interface Opened {
    ledger: PostgresLedger;
    slices: Slices;
  }
  /** A server. @param recallMs How long it waits for others. */
  async function opened(recallMs = longer): Promise<Opened> {
    const own = connectPostgres({ url });
    const replica = await joinReplicas({ postgres: own, logger: () => logger, version: "1", sealKeys: [] });
    const changes = openChanges(own, () => logger);
    await changes.start();
    const home = mkdtempSync(join(tmpdir(), "dragoman-recall-"));
    const spool = openSpool(join(home, "spool"), (sentence) => expect.unreachable(sentence));
    let slices: Slices | undefined;
    const ledger = openPostgresLedger({
      ...{ postgres: own, changes, replica: replica.id },
      ...{ now: () => noon, warn: (sentence) => expect.unreachable(sentence) },
      openSlices(unsettled) {
        const parts = { postgres: own, changes, replica: replica.id, logger: () => logger };
        slices = openSlices({ ...parts, graceMs: 1_000, unsettled, recallMs });
        return slices;
      },
      openSpool: () => spool.queue<Settlement[]>("settlement"),
    });
    stack.defer(async () => {
      ledger.close();
      changes.close();
      await replica.close();
      await own.close();
      spool.close();
      rmSync(home, { recursive: true, force: true });
    });
    return { ledger, slices: slices! };
  }
  const reserve = async (
    { ledger }: Opened,
    of: Budget = budget,
    subject = anybody,
  ): Promise<Reservation | undefined> => {
    const result = await ledger.reserve([of], subject, nothing);
    return "reservation" in result ? result.reservation : undefined;
  };

  /**
   * Another server, as the database sees it: it holds a slice, hears what it is asked, and gives back when the test says so.
   * @param options.alive Whether it reports to the others.
   */
  async function holder({ alive = true } = {}) {
    const own = connectPostgres({ url });
    stack.defer(() => own.close());
    const replica = alive
      ? await joinReplicas({ postgres: own, logger: () => logger, version: "1", sealKeys: [] })
      : undefined;
    if (replica) stack.defer(() => replica.close());
    const id = replica?.id ?? crypto.randomUUID();
    const changes = openChanges(own, () => logger);
    let asked = 0;
    changes.on("slices", () => void asked++);
    await changes.start();
    stack.defer(() => changes.close());
    const slice = (share: number) => postgres.sql`SELECT dragoman.take_slice(${id}::uuid, 3600000,
      'requests/day/all', '', ${day}::bigint, ${budget.limit}::bigint, ${share}, 1) AS taken`;
    const [{ taken }] = await slice(0.1);
    expect(Number(taken)).toBe(1);
    return { giveBack: () => slice(0), asked: () => asked };
  }
  /** Takes all but what is in slices. */
  const spend = async (one: Opened, left: number) => {
    for (let count = left; count < budget.limit; count += 1) expect(await reserve(one)).toBeDefined();
  };

  test("another server that takes its time gives its slice back, and the request is granted", async () => {
    const one = await opened();
    await spend(one, 9);
    const other = await holder();
    await spend(one, 2);
    const pending = reserve(one);
    await until(async () => other.asked() > 0, "the other server was asked");
    expect(Bun.peek.status(pending)).toBe("pending");
    await other.giveBack();
    expect(await pending).toBeDefined();
    expect(await reserve(one)).toBeUndefined();
  });

  test("nobody waits for a server that is dead; what it holds stays its own", async () => {
    const one = await opened();
    await spend(one, 9);
    await holder({ alive: false });
    await spend(one, 2);
    expect(await reserve(one)).toBeUndefined();
  });

  test("a server that does not answer is waited for once, not with each request", async () => {
    const one = await opened(50);
    await spend(one, 9);
    const other = await holder();
    await spend(one, 2);
    for (let count = 0; count < 5; count += 1) expect(await reserve(one)).toBeUndefined();
    await until(async () => other.asked() > 0, "the other server was asked");
    expect(other.asked()).toBe(1);
  });

  test("nobody is asked for slices that would not be enough", async () => {
    const one = await opened();
    const credits = budgetSchema().parse({ ...budget, unit: "credits" });
    const ask = (amount: number) =>
      one.ledger.reserve([credits], anybody, { nanoCredits: amount * 1e9, premiumUnits: null });
    expect(await ask(1)).toHaveProperty("reservation");
    await one.slices.refresh();
    expect(await ask(7)).toHaveProperty("reservation");
    const state = async () => (await one.ledger.states([credits], anybody))[0]!;
    expect((await state()).reserved).toBe(9);
    expect(await ask(3)).toHaveProperty("exceeded");
    // Its own slice is there still.
    expect((await state()).reserved).toBe(9);
    expect(await ask(2)).toHaveProperty("reservation");
  });

  test("races over three servers grant exactly the limit, of a shared amount and of each holder's", async () => {
    const all = await Promise.all([opened(), opened(), opened()]);
    for (let round = 0; round < 12; round += 1) {
      const each = round % 2 === 0 ? undefined : "key";
      const of = budgetSchema().parse({ ...budget, name: `round-${round}`, limit: 12, each });
      // Some hold slices before the race begins, and some take them while it runs.
      for (const one of all.slice(0, round % 4)) {
        await reserve(one, of);
        await one.slices.refresh();
      }
      const before = round % 4;
      const racing = Array.from({ length: 60 }, (_, at) => reserve(all[at % 3]!, of));
      const refreshing = all.map(({ slices }) => slices.refresh());
      const granted = (await Promise.all(racing)).filter((result) => result !== undefined).length;
      await Promise.all(refreshing);
      expect(granted + before).toBe(12);
    }
  });
});
