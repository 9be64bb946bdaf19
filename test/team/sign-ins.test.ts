/** Scenario: sign-ins that wait for a person: in memory, and in Postgres for all servers of a team. */
import { afterEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import type { Stores } from "../../src/books/stores";
import { readEnvironment } from "../../src/config/environment";
import { openStores } from "../../src/parts/open-stores";
import type { SignInStore, WaitingSignIn } from "../../src/people/accounts/sign-in-store";
import type { Postgres } from "../../src/team/connection";
import type { PostgresStores } from "../../src/team/stores";
import { describeWithPassingDatabases } from "../support/shared-postgres";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

async function sqlNumber(postgres: Postgres, expression: string): Promise<number> {
  const [row] = await postgres.askDirect((sql) => sql.unsafe(`SELECT ${expression}::int AS value`));
  return row.value;
}

let count = 0;
function waitingSignIn(more: Partial<WaitingSignIn> = {}): WaitingSignIn {
  count += 1;
  return {
    id: randomBytes(16).toString("base64url"),
    host: "github.com",
    app: "vscode",
    member: null,
    code: { userCode: `ABCD-${count}`, address: "https://github.com/login/device", mayOpen: true, expiresIn: 900 },
    expiresAt: Date.now() + 900_000,
    ...more,
  };
}

interface World {
  kept: SignInStore;
  /** What the runner of this server is told. */
  heard: string[];
}

const sealKey = randomBytes(32).toString("base64");
const opened: Stores[] = [];
afterEach(() => Promise.all(opened.splice(0).map((stores) => stores.close())));

async function open(env: Record<string, string>): Promise<World & { stores: Stores }> {
  const home = temporaryFolder();
  const stores = await openStores(readEnvironment({ HOME: home, DRAGOMAN_HOME: home, ...env }), { follow: true });
  opened.push(stores);
  const kept = stores.signIns;
  const heard: string[] = [];
  kept.follow((id) => void heard.push(`stop ${id}`));
  return { kept, heard, stores };
}

const done = {
  name: "done",
  login: "octo",
  accountKey: "github.com/octo",
  outcome: "added",
  fault: undefined,
} as const;

describe("in memory", () => contract(() => open({})));

describeWithPassingDatabases("in Postgres", (server) => {
  const team = async () => ({ DRAGOMAN_DATABASE_URL: await server.database(), DRAGOMAN_SEAL_KEY: sealKey });
  contract(async () => open(await team()));

  test("one is found by every server at once, cancelled by any, and then stopped where it was begun", async () => {
    const env = await team();
    const [one, other] = [await open(env), await open(env)];
    const [first, second] = [waitingSignIn(), waitingSignIn({ host: "company.ghe.com" })];
    await one.kept.add(first);
    await one.kept.add(second);
    const { expiresAt, ...shown } = first;
    expect(await other.kept.find(first.id)).toMatchObject({ ...shown, state: { name: "waiting" } });
    expect(Math.abs((await other.kept.find(first.id))!.expiresAt - expiresAt)).toBeLessThan(1_000);
    await until(() => other.kept.waiting(null).length === 2, "the other server lists both");
    expect(other.kept.waiting(null).map(({ id }) => id)).toEqual([first.id, second.id]);
    expect(await one.kept.waits(first.id)).toBe(true);
    expect(await other.kept.cancel(first.id)).toBe(true);
    await until(() => one.heard.includes(`stop ${first.id}`), "the first server was told to stop");
    expect([(await one.kept.find(first.id))!.state, await one.kept.waits(first.id)]).toEqual([
      { name: "cancelled" },
      false,
    ]);
    await one.kept.settle(second.id, done);
    await until(
      async () => (await other.kept.find(second.id))!.state.name === "done",
      "the other server knows that it is done",
    );
    expect([(await other.kept.find(second.id))!.state, other.heard]).toEqual([{ ...done }, []]);
    // A server that starts later knows them too.
    expect((await (await open(env)).kept.find(second.id))!.code).toEqual(second.code);
  });

  test("four of a person may wait, over all servers", async () => {
    const env = await team();
    const both = [await open(env), await open(env)];
    const added = await Promise.all(
      Array.from({ length: 8 }, async (_, at) => {
        const outcome = both[at % 2]!.kept.add(waitingSignIn());
        return Promise.resolve(outcome).then(
          () => "added",
          ({ details }) => details.code as string,
        );
      }),
    );
    expect(added.toSorted()).toEqual([...new Array(4).fill("added"), ...new Array(4).fill("too_many_sign_ins")]);
  });

  test("a member's ends when a key is revoked, and when their link is withdrawn, replaced or used", async () => {
    const env = await team();
    const [one, other] = [await open(env), await open(env)];
    const members = other.stores.members!;
    const { code, member } = await members.invite("anna");
    const { member: ben } = await members.invite("ben");
    const others = waitingSignIn({ member: ben.id });
    await one.kept.add(others);
    let link = code;
    const ends: [string, () => Promise<unknown>][] = [
      ["replaced", async () => (link = (await members.invite("anna")).code)],
      ["used", () => members.accept(link)],
      ["revoked", () => members.revokeKey(member.id, "key-1")],
      [
        "withdrawn",
        async () => [await members.invite("anna"), await begun(), await members.withdrawInvitations("anna")],
      ],
    ];
    let signIn = waitingSignIn({ member: member.id });
    const begun = async () => {
      signIn = waitingSignIn({ member: member.id });
      await one.kept.add(signIn);
    };
    for (const [how, end] of ends) {
      if (how !== "withdrawn") await begun();
      await end();
      await until(() => one.heard.includes(`stop ${signIn.id}`), "the first server was told to stop");
      expect([how, await one.kept.waits(signIn.id), (await one.kept.find(signIn.id))?.state.name]).toEqual([
        ...[how, false, "cancelled"],
      ]);
    }
    expect([await one.kept.waits(others.id), one.heard.length]).toEqual([true, ends.length]);
  });

  test("of a server that stops, all are over: their persons are told to begin again", async () => {
    const env = await team();
    const [one, other] = [await open(env), await open(env)];
    const [own, others] = [waitingSignIn(), waitingSignIn()];
    await one.kept.add(own);
    await other.kept.add(others);
    await one.stores.close();
    opened.splice(opened.indexOf(one.stores), 1);
    await until(
      async () => (await other.kept.find(own.id))!.state.name === "failed",
      "the other server knows that nobody asks GitHub about it",
    );
    expect((await other.kept.find(own.id))!.state).toEqual({
      name: "failed",
      reason: "The server that waited for the answer of GitHub has stopped. Begin again.",
    });
    expect(await other.kept.waits(others.id)).toBe(true);
  });

  test("of a server whose machine has disappeared: Postgres closes its connection, so that its locks are free", async () => {
    const { postgres } = (await open(await team())).stores as PostgresStores;
    const setting = (name: string) => sqlNumber(postgres, `current_setting('tcp_keepalives_${name}')`);
    const [idle, interval, count] = await Promise.all(["idle", "interval", "count"].map(setting));
    expect([idle! > 0, idle! + interval! * count!]).toEqual([true, 30]);
  });

  test("that an account was saved just before the database went away is known to all when it is back", async () => {
    const env = await team();
    const [one, other] = [await open(env), await open(env)];
    const signIn = waitingSignIn();
    await one.kept.add(signIn);
    await other.kept.find(signIn.id);
    await server.stop();
    const settled = one.kept.settle(signIn.id, done);
    try {
      expect((await other.kept.find(signIn.id))!.state.name).toBe("waiting");
      expect(await Promise.resolve(other.kept.cancel(signIn.id)).catch(({ status }) => status)).toBe(503);
    } finally {
      await server.start();
    }
    await settled;
    await until(
      async () => (await other.kept.find(signIn.id))!.state.name === "done",
      "every server knows that it is done",
    );
  });
});

function contract(make: () => Promise<World>): void {
  test("a sign-in waits for its person, until it is done, has failed, or is cancelled", async () => {
    const { kept, heard } = await make();
    const all = [waitingSignIn(), waitingSignIn(), waitingSignIn()];
    for (const each of all) await kept.add(each);
    const [first, second, third] = all.map(({ id }) => id) as [string, string, string];
    expect(kept.waiting(null).map(({ id, state }) => [id, state.name])).toEqual(all.map(({ id }) => [id, "waiting"]));
    expect(kept.waiting("00000000-0000-4000-8000-000000000000")).toEqual([]);
    await kept.settle(first, done);
    await kept.settle(second, { name: "failed", reason: "It was declined." });
    expect(await kept.cancel(third)).toBe(true);
    const states = await Promise.all([first, second, third].map(async (id) => (await kept.find(id))!.state));
    expect(states).toEqual([done, { name: "failed", reason: "It was declined." }, { name: "cancelled" }]);
    expect([kept.waiting(null), heard.includes(`stop ${third}`)]).toEqual([[], true]);
    expect([await kept.find("none"), await kept.cancel("none")]).toEqual([undefined, false]);
  });

  test("stays cancelled if it fails afterwards, but says that an account was saved", async () => {
    const { kept } = await make();
    const [failed, saved] = [waitingSignIn(), waitingSignIn()];
    for (const each of [failed, saved]) {
      await kept.add(each);
      await kept.cancel(each.id);
      expect(await kept.waits(each.id)).toBe(false);
    }
    await kept.settle(failed.id, { name: "failed", reason: "x" });
    await kept.settle(saved.id, done);
    expect([(await kept.find(failed.id))!.state.name, (await kept.find(saved.id))!.state.name]).toEqual([
      "cancelled",
      "done",
    ]);
  });
}
