/**
 * Property: page sign-ins follow a plain model, in memory and on three servers: they begin, are found, end, expire, and
 * end with their key.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import type { Stores } from "../../../src/books/stores";
import { readEnvironment } from "../../../src/config/environment";
import { hourMs } from "../../../src/lib/format";
import { openStores } from "../../../src/parts/open-stores";
import type { PageSignIn, PageSignIns } from "../../../src/people/keys/page-sign-ins";
import fc from "../../support/random";
import { describeWithDatabases } from "../../support/shared-postgres";
import { temporaryFolder } from "../../support/temporary-folder";
import { until } from "../../support/until";

const adminToken = "an admin token";

interface ModelSignIn {
  member: string | null;
  secret: string;
  beganAt: number;
  isEnded: boolean;
}
interface Model {
  now: number;
  signIns: ModelSignIn[];
  revoked: Set<string>;
}
interface Real {
  clock: { now: number };
  servers: PageSignIns[];
  stores: Stores;
  /** Who may sign in: the owner, then a member with each of two keys. */
  people: { member: string | null; secret: string }[];
  ids: string[];
  /** What pages that are open hold: the number of the sign-in, and the sign-in. */
  views: { at: number; view: PageSignIn }[];
}
type Command = fc.AsyncCommand<Model, Real>;
const holds = ({ now, revoked }: Model, { beganAt, isEnded, secret }: ModelSignIn) =>
  !isEnded && !revoked.has(secret) && now - beganAt < 12 * hourMs;

/** At once where there is one server. */
async function agrees(what: string, { servers }: Real, claim: () => Promise<boolean>): Promise<void> {
  if (servers.length > 1) await until(claim, `${what} is as the model says`);
  else expect(await claim(), what).toBe(true);
}

/** After each step, every server and every open page says of every sign-in what the model says, as soon as it has heard of it. */
const command = (
  name: string,
  run: (model: Model, real: Real) => Promise<void> | void,
  check: (model: Model) => boolean,
): Command => ({
  check,
  toString: () => name,
  async run(model, real) {
    await run(model, real);
    for (const [at, signIn] of model.signIns.entries()) {
      const expected = holds(model, signIn);
      for (const [place, server] of real.servers.entries())
        await agrees(`sign-in ${at} at server ${place}`, real, async () => {
          const found = await server.find(real.ids[at]!);
          return found === undefined ? !expected : expected && found.holds && found.member === signIn.member;
        });
    }
    for (const { at, view } of real.views) {
      const expected = holds(model, model.signIns[at]!);
      const hasHeard = async () => view.holds === expected;
      await agrees(`a page of sign-in ${at}`, real, hasHeard);
    }
  },
});
const always = () => true;
const anySignIn = ({ signIns }: Model) => signIns.length > 0;

/** @param who A place among those who may sign in. */
const begin = (who: number, server: number) =>
  command(
    `person ${who} signs in at server ${server}`,
    async (model, { servers, ids, people }) => {
      const person = people[who % people.length]!;
      ids.push(await servers[server]!.begin(person));
      model.signIns.push({ ...person, beganAt: model.now, isEnded: false });
    },
    always,
  );
const open = (which: number, server: number) =>
  command(
    `open a page of sign-in ${which} at server ${server}`,
    async (model, { servers, ids, views }) => {
      const at = which % ids.length;
      const view = await servers[server]!.find(ids[at]!);
      expect(view !== undefined, "the page opens").toBe(holds(model, model.signIns[at]!));
      if (view) views.push({ at, view });
    },
    anySignIn,
  );
const end = (which: number, server: number) =>
  command(
    `end sign-in ${which} at server ${server}`,
    async ({ signIns }, { servers, ids }) => {
      const at = which % ids.length;
      await servers[server]!.end(ids[at]!);
      signIns[at]!.isEnded = true;
    },
    anySignIn,
  );
const revoke = (which: number) =>
  command(
    `revoke key ${which} of the member`,
    async ({ revoked }, { stores, people }) => {
      const { member, secret } = people[which]!;
      if (revoked.has(secret)) return;
      revoked.add(secret);
      await stores.members!.revokeKey(member!, `key-${which}`);
    },
    always,
  );
const pass = (hours: number) =>
  command(
    `${hours} hours pass`,
    (model, { clock }) => {
      model.now += hours * hourMs;
      clock.now += hours * hourMs;
    },
    always,
  );

const steps = (servers: number, more: fc.Arbitrary<Command>) => {
  const server = fc.nat(servers - 1);
  return fc.commands<Model, Real, false>([
    fc.tuple(fc.nat(2), server).map((given) => begin(...given)),
    fc.tuple(fc.nat(), server).map((given) => open(...given)),
    fc.tuple(fc.nat(), server).map((given) => end(...given)),
    more,
  ]);
};
const model = (now: number): Model => ({ now, signIns: [], revoked: new Set() });
const owner = { member: null, secret: adminToken };

describe("in memory", () => {
  test("the owner's sign-ins hold for twelve hours, until they are ended", async () => {
    const home = temporaryFolder();
    const stores = await openStores(readEnvironment({ HOME: home, DRAGOMAN_HOME: home }), { follow: true });
    const setup = () => {
      const clock = { now: Date.now() };
      const servers = [stores.openPageState(() => clock.now).signIns];
      return { model: model(clock.now), real: { clock, stores, servers, people: [owner], ids: [], views: [] } };
    };
    const hours = fc.constantFrom(1, 6, 11).map(pass);
    await fc.assert(fc.asyncProperty(steps(1, hours), (all) => fc.asyncModelRun(setup, all)));
    await stores.close();
  });
});

describeWithDatabases("in Postgres", (server) => {
  const opened: Stores[] = [];
  beforeAll(async () => {
    const env = {
      DRAGOMAN_DATABASE_URL: await server.database(),
      DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64"),
    };
    const environment = readEnvironment({ HOME: "/nonexistent", ADMIN_TOKEN: adminToken, ...env });
    for (let count = 0; count < 3; count += 1) opened.push(await openStores(environment, { follow: true }));
  });
  afterAll(async () => {
    for (const stores of opened) await stores.close();
  });

  test("the sign-ins of members and the owner hold on all of three servers, until they or their keys are ended", async () => {
    const [stores] = opened as [Stores];
    const servers = opened.map((each) => each.openPageState(Date.now).signIns);
    let names = 0;
    const setup = async () => {
      const name = `anna-${names++}`;
      const people: Real["people"] = [owner];
      for (let count = 0; count < 2; count += 1) {
        const { member, key } = (await stores.members!.accept((await stores.members!.invite(name)).code))!;
        people.push({ member: member.id, secret: key });
      }
      return { model: model(0), real: { clock: { now: 0 }, stores, servers, people, ids: [], views: [] } };
    };
    const revokes = fc.constantFrom(1, 2).map(revoke);
    await fc.assert(
      fc.asyncProperty(steps(3, revokes), (all) => fc.asyncModelRun(setup, all)),
      // Another run to find a shorter one would wait again for what does not come.
      { numRuns: 20, endOnFailure: true },
    );
  });
});
