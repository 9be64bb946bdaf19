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

const [anna, ben, other] = ["0001", "0002", "0003"].map((tail) => `00000000-0000-4000-8000-00000000${tail}`) as [
  string,
  string,
  string,
];
const subjectOf = (given: Partial<Subject> = {}): Subject => ({
  ...{ account: null, key: null, model: "gpt-4.1" },
  ...given,
});
const request = (id: string, name: string, more: Partial<Subject> = {}) =>
  subjectOf({ member: { id, name }, key: `${name}/key-1`, account: `${name}-hub`, ...more });

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

  async function granted(budgets: Budget[], subject: Subject, amount: number): Promise<Reservation | undefined> {
    const result = await ledger.reserve(budgets, subject, credits(amount));
    return "reservation" in result ? result.reservation : undefined;
  }
  const use = async (budget: Budget, subject: Subject, amount: number) => {
    const reservation = await granted([budget], subject, amount);
    if (reservation) await ledger.settle(reservation, credits(amount));
    return reservation !== undefined && reservation.entries.length > 0;
  };

  test("each member has the whole limit; the owner's own requests are nobody's", async () => {
    const budget = budgetOf({ name: fresh(), each: "member" });
    expect(await use(budget, request(anna, "anna"), 9)).toBe(true);
    expect(await use(budget, request(anna, "anna", { key: "anna/key-2" }), 2)).toBe(false);
    expect(await use(budget, request(ben, "ben"), 10)).toBe(true);
    const owners = await ledger.reserve([budget], subjectOf({ key: "laptop" }), credits(100));
    expect(owners).toMatchObject({ reservation: { entries: [] } });
    expect(await ledger.states([budget], request(ben, "ben"))).toMatchObject([
      { used: 10, holder: { kind: "member", name: "ben" } },
    ]);
  });

  test("a member is counted by the id: another name keeps the amount, another person of the name starts from 0", async () => {
    for (const given of [{ each: "member" }, { scope: { member: "anna" } }, { each: "key" }]) {
      const budget = budgetOf({ name: fresh(), ...given });
      expect(await use(budget, request(anna, "anna"), 10)).toBe(true);
      expect(await use(budget, request(anna, "anna"), 1)).toBe(false);
      if (!("scope" in given)) expect(await use(budget, request(anna, "anne"), 1)).toBe(false);
      expect(await use(budget, request(other, "Anna"), 10)).toBe(true);
    }
  });

  test("a pattern of members shares one amount, unless each has their own", async () => {
    const shared = budgetOf({ name: fresh(), scope: { member: "*n*" } });
    expect(await use(shared, request(anna, "anna"), 6)).toBe(true);
    expect(await use(shared, request(ben, "ben"), 6)).toBe(false);
    const own = budgetOf({ name: fresh(), scope: { member: "*n*" }, each: "member" });
    expect(await use(own, request(anna, "anna"), 6)).toBe(true);
    expect(await use(own, request(ben, "ben"), 6)).toBe(true);
    expect(await granted([own], request(other, "eve"), 100)).toMatchObject({ entries: [] });
  });

  test("some have another limit, and a higher one keeps what was used", async () => {
    const before = budgetOf({ name: fresh(), each: "member" });
    expect(await use(before, request(anna, "anna"), 10)).toBe(true);
    const after = budgetOf({ ...before, limits: { ANNA: 30 } });
    expect(await use(after, request(anna, "anna"), 21)).toBe(false);
    expect(await use(after, request(anna, "anna"), 20)).toBe(true);
    expect(await use(after, request(ben, "ben"), 11)).toBe(false);
    const [state] = await ledger.states([after], request(anna, "anna"));
    expect(state).toMatchObject({ used: 30, budget: { limit: 30 } });
  });

  test("who has used most of their limit comes first, page by page", async () => {
    const budget = budgetOf({ name: fresh(), each: "key", limit: 100 });
    for (let at = 0; at < 12; at += 1) await use(budget, subjectOf({ key: `key-${at}` }), at + 1);
    const running = await granted([budget], subjectOf({ key: "key-11" }), 5);
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
    await ledger.release(running!);
    // Another kind of holder, or another period, is another list.
    expect(await ledger.holders({ ...budget, each: "account" }, { limit: 5 })).toEqual({ count: 0, rows: [] });
    expect(await ledger.holders({ ...budget, per: "day" }, { limit: 5 })).toEqual({ count: 0, rows: [] });
  });

  test("what is known of a price counts, and what is not is only counted", async () => {
    const budget = budgetOf({ name: fresh(), each: "member" });
    const result = await ledger.reserve([budget], request(anna, "anna"), unpriced);
    if (!("reservation" in result)) return expect.unreachable("refused");
    await ledger.settle(result.reservation, unpriced);
    expect((await ledger.holders(budget, { limit: 5 })).rows).toMatchObject([{ used: 0, unknown: 1 }]);
  });
}
