/**
 * Property: both ledgers allow and count what a plain sum does: random requests, ends, limits, clocks and races over
 * three servers.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import type { Stores } from "../../../src/books/stores";
import { type Budget, budgetSchema } from "../../../src/config/budget-schema";
import { readEnvironment } from "../../../src/config/environment";
import { dayMs, hourMs } from "../../../src/lib/format";
import { openStores } from "../../../src/parts/open-stores";
import type { Subject } from "../../../src/people/budgets/budgets";
import type { Reservation } from "../../../src/people/budgets/entries";
import { type Ledger, reservationLifetime } from "../../../src/people/budgets/ledger";
import { credits } from "../../support/amounts";
import { BudgetModel } from "../../support/budget-model";
import fc, { triesOf } from "../../support/random";
import { describeWithDatabases } from "../../support/shared-postgres";
import { temporaryFolder } from "../../support/temporary-folder";

/** A minute before a day and a month end. */
const start = Date.parse("2027-01-31T23:59:00Z");

interface Servers {
  now: number;
  ledgers: Ledger[];
  running: Reservation[];
}
interface Model {
  budgets: BudgetModel;
  running: NonNullable<ReturnType<BudgetModel["reserve"]>>[];
}
type Command = fc.AsyncCommand<Model, Servers>;
const command = (
  name: string,
  run: (model: Model, servers: Servers) => Promise<void>,
  check = (_: Model) => true,
): Command => ({ check, run, toString: () => name });

const ask = (subject: Subject, amount: number | null, at: number) =>
  command(`ask server ${at} for ${amount} of ${JSON.stringify(subject)}`, async ({ budgets, running }, servers) => {
    const result = await servers.ledgers[at]!.reserve(budgets.budgets, subject, credits(amount));
    const expected = budgets.reserve(subject, amount);
    expect("reservation" in result, "a request is allowed").toBe(expected !== undefined);
    if (!expected || !("reservation" in result)) return;
    running.push(expected);
    servers.running.push(result.reservation);
  });

/** Some servers lock the budgets in the other order. */
const race = (subject: Subject, amount: number | null) =>
  command(`race for ${amount} of ${JSON.stringify(subject)}`, async ({ budgets, running }, servers) => {
    const orders = [budgets.budgets, budgets.budgets.toReversed()];
    const asked = Array.from({ length: 15 }, (_, at) =>
      servers.ledgers[at % 3]!.reserve(orders[at % 2]!, subject, credits(amount)),
    );
    const granted = (await Promise.all(asked)).flatMap((result) =>
      "reservation" in result ? [result.reservation] : [],
    );
    const expected = asked.flatMap(() => budgets.reserve(subject, amount) ?? []);
    expect(granted.length, "requests that are allowed of 15 at once").toBe(expected.length);
    running.push(...expected);
    servers.running.push(...granted);
  });

/** @param real What it cost; null if that is not known, undefined if nothing was charged. */
const end = (which: number, real: number | null | undefined, at: number) =>
  command(
    `end ${which} at server ${at} with ${real}`,
    async ({ budgets, running }, servers) => {
      const [[expected], [reservation]] = [running, servers.running].map((all) =>
        all.splice(which % all.length, 1),
      ) as [Model["running"], Reservation[]];
      const ledger = servers.ledgers[at]!;
      if (real === undefined) budgets.release(expected!);
      else budgets.settle(expected!, real);
      await (real === undefined ? ledger.release(reservation!) : ledger.settle(reservation!, credits(real)));
    },
    ({ running }) => running.length > 0,
  );

const limit = (which: number, to: number) =>
  command(`limit budget ${which} to ${to}`, async ({ budgets: model }) => {
    model.budgets = model.budgets.map((budget, at) =>
      at === which % model.budgets.length ? { ...budget, limit: to } : budget,
    );
  });

const pass = (ms: number) =>
  command(`let ${ms / 60_000} minutes pass`, async ({ budgets }, servers) => {
    budgets.now += ms;
    servers.now += ms;
  });

const look = (subject: Subject, at: number) =>
  command(`look at server ${at} as ${JSON.stringify(subject)}`, async ({ budgets }, { ledgers }) => {
    const expected = budgets.states(subject);
    const found = await ledgers[at]!.states(budgets.budgets, subject);
    const plain = found.map(({ budget: { name }, used, unknown, reserved }) => ({ name, used, unknown, reserved }));
    expect(plain, "what is used and reserved").toEqual(expected);
  });

const [anna, ben, otherAnna] = ["anna", "ben", "anna"].map((name) => ({ id: crypto.randomUUID(), name }));
/** The same person by another name. */
const anne = { ...anna!, name: "anne" };
const subjects: fc.Arbitrary<Subject> = fc
  .record({
    member: fc.option(fc.constantFrom(anna!, ben!, otherAnna!, anne)),
    key: fc.constantFrom("key-1", "key-2"),
    account: fc.option(fc.constantFrom("hub-1", "hub-2")),
  })
  .map(({ key, member, ...rest }) => ({ ...rest, member, key: member ? `${member.name}/${key}` : key, model: "m" }));

let names = 0;
const budgets: fc.Arbitrary<Budget> = fc
  .record({
    scope: fc.constantFrom(
      {},
      { member: "anna" },
      { member: "*" },
      { member: "b*" },
      { member: "*n*" },
      { key: "*/key-1" },
      { account: "hub-1" },
    ),
    each: fc.constantFrom(undefined, "member", "key", "account"),
    per: fc.constantFrom("day", "month"),
    unit: fc.constantFrom("credits", "requests"),
    limit: fc.integer({ min: 1, max: 12 }),
    raised: fc.boolean(),
    then: fc.constantFrom("stop", "stop", "stop", "warn"),
  })
  .map(({ each, raised, ...given }) => {
    const limits = each && raised ? { limits: { anna: 15, "ben/key-1": 15, "hub-2": 15 } } : {};
    return budgetSchema().parse({ ...given, ...(each && { each }), ...limits, name: `budget ${names++}` });
  });

/** @param lifetimeMs Of a reservation, by the clock that is given. */
function follows(variables: () => Promise<Record<string, string>>, lifetimeMs: number, numRuns: number): void {
  const clock: Servers = { now: start, ledgers: [], running: [] };
  const opened: Stores[] = [];
  beforeAll(async () => {
    const environment = readEnvironment({ HOME: home, DRAGOMAN_HOME: home, ...(await variables()) });
    for (let server = 0; server < 3; server += 1) {
      const stores = await openStores(environment, { follow: true });
      opened.push(stores);
      clock.ledgers.push(stores.openLedger({ now: () => clock.now, warn: (sentence) => expect.unreachable(sentence) }));
    }
  });
  afterAll(async () => {
    for (const ledger of clock.ledgers) ledger.close();
    for (const stores of opened) await stores.close();
  });
  const home = temporaryFolder(afterAll);

  test("three servers allow, refuse and count every request of a random history as a plain sum does", async () => {
    const amount = fc.option(fc.integer({ min: 0, max: 4 }));
    const server = fc.nat(2);
    const commands = [
      fc.tuple(subjects, amount, server).map((given) => ask(...given)),
      fc.tuple(subjects, amount, server).map((given) => ask(...given)),
      fc.tuple(fc.nat(), fc.option(amount, { nil: undefined }), server).map((given) => end(...given)),
      fc.tuple(subjects, fc.integer({ min: 1, max: 2 })).map((given) => race(...given)),
      fc.tuple(fc.nat(), fc.integer({ min: 1, max: 20 })).map((given) => limit(...given)),
      fc.constantFrom(2 * 60_000, hourMs, 2 * hourMs, dayMs, 7 * dayMs, -dayMs).map(pass),
      fc.tuple(subjects, server).map(([subject, at]) => look(subject, at)),
    ];
    await fc.assert(
      fc.asyncProperty(
        fc.array(budgets, { minLength: 1, maxLength: 4 }),
        fc.commands(commands, { size: "+1" }),
        async (given, steps) => {
          const setup = () => {
            // A run again, to find a shorter one, starts from nothing too.
            const fresh = given.map((budget) => ({ ...budget, name: `${budget.name}-${names++}` }));
            Object.assign(clock, { now: start, running: [] });
            return { model: { budgets: new BudgetModel(fresh, start, lifetimeMs), running: [] }, real: clock };
          };
          await fc.asyncModelRun(setup, steps);
        },
      ),
      { numRuns },
    );
  });
}

describe("in one file that three processes share", () =>
  follows(async () => ({}), reservationLifetime, triesOf(300, 6)));

describeWithDatabases("in Postgres", (server) => {
  // Postgres ends reservations by its own clock.
  const variables = async () => ({
    DRAGOMAN_DATABASE_URL: await server.database(),
    DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64"),
  });
  follows(variables, Number.POSITIVE_INFINITY, triesOf(60, 6));
});
