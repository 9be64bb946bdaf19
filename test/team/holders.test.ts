/** Scenario: budgets in which each member, key or account has an amount of its own, in both kinds of storage. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Stores } from "../../src/books/stores";
import { type Budget, budgetSchema } from "../../src/config/budget-schema";
import { readEnvironment } from "../../src/config/environment";
import { openStores } from "../../src/parts/open-stores";
import type { Subject } from "../../src/people/budgets/budgets";
import type { Reservation } from "../../src/people/budgets/entries";
import type { Ledger } from "../../src/people/budgets/ledger";
import { credits, unpriced } from "../support/amounts";
import { quickest } from "../support/quickest";
import { describeWithDatabases } from "../support/shared-postgres";

const noon = Date.parse("2026-11-22T12:00:00Z");
const budgetOf = (given: object): Budget =>
  budgetSchema().parse({ name: "all", unit: "credits", limit: 10, per: "month", ...given });

const subjectOf = (given: Partial<Subject>): Subject => ({ account: null, key: null, model: "gpt-4.1", ...given });

describe("in the data folder", () => contract(async () => ({})));

describeWithDatabases("in Postgres", (server) => {
  let address: string;
  beforeAll(async () => {
    address = await server.database();
  });
  const sealKey = randomBytes(32).toString("base64");
  contract(async () => ({ DRAGOMAN_DATABASE_URL: address, DRAGOMAN_SEAL_KEY: sealKey }));
});

function contract(variables: () => Promise<Record<string, string>>): void {
  let home: string;
  let stores: Stores;
  let ledger: Ledger;
  /** Another name for each, so that they share one database. */
  let names = 0;
  const fresh = () => `budget ${names++}`;

  beforeAll(async () => {
    home = mkdtempSync(join(quickest(), "dragoman-holders-"));
    stores = await openStores(readEnvironment({ HOME: home, DRAGOMAN_HOME: home, ...(await variables()) }), {
      follow: false,
    });
    ledger = stores.openLedger({ now: () => noon, warn: (sentence) => expect.unreachable(sentence) });
  });
  afterAll(async () => {
    ledger.close();
    await stores.close();
    rmSync(home, { recursive: true, force: true });
  });

  async function granted(budget: Budget, subject: Subject, amounts = unpriced): Promise<Reservation> {
    const result = await ledger.reserve([budget], subject, amounts);
    return "reservation" in result ? result.reservation : expect.unreachable("refused");
  }

  test("who has used most of their limit comes first, page by page", async () => {
    const budget = budgetOf({ name: fresh(), each: "key", limit: 100 });
    for (let at = 0; at < 12; at += 1) {
      const reservation = await granted(budget, subjectOf({ key: `key-${at}` }), credits(at + 1));
      await ledger.settle(reservation, credits(at + 1));
    }
    const running = await granted(budget, subjectOf({ key: "key-11" }), credits(5));
    // 3 of 4.
    const limits = { "/key-2": 4e9 };
    const page = await ledger.holders(budget, { limit: 5, limits });
    expect(page.count).toBe(12);
    expect(page.rows.map(({ item }) => item)).toEqual([2, 11, 10, 9, 8].map((at) => `key-${at}`));
    expect(page.rows[1]).toEqual({ member: "", item: "key-11", used: 12e9, reserved: 5e9, unknown: 0 });
    const last = await ledger.holders(budget, { limit: 5, offset: 10, limits });
    expect(last.rows.map(({ item }) => item)).toEqual(["key-1", "key-0"]);
    const high = await ledger.holders(budget, { limit: 50, atLeast: 0.11, limits });
    expect([high.count, high.rows.map(({ item }) => item)]).toEqual([3, ["key-2", "key-11", "key-10"]]);
    await ledger.release(running);
    // Another kind of holder, or another period, is another list.
    expect(await ledger.holders({ ...budget, each: "account" }, { limit: 5 })).toEqual({ count: 0, rows: [] });
    expect(await ledger.holders({ ...budget, per: "day" }, { limit: 5 })).toEqual({ count: 0, rows: [] });
  });

  test("what is known of a price counts, and what is not is only counted", async () => {
    const budget = budgetOf({ name: fresh(), each: "member" });
    const member = { id: "00000000-0000-4000-8000-000000000001", name: "anna" };
    await ledger.settle(await granted(budget, subjectOf({ member })), unpriced);
    expect((await ledger.holders(budget, { limit: 5 })).rows).toMatchObject([{ used: 0, unknown: 1 }]);
  });
}
