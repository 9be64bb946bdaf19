/** Sign-ins that wait for a person: in memory, and in Postgres for all servers of a team. */
import { afterEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { SQL } from "bun";
import type { SignInStore } from "../../src/accounts/sign-in-store";
import { readEnvironment } from "../../src/config/environment";
import { openStores } from "../../src/open-stores";
import type { Stores } from "../../src/stores";
import type { Postgres } from "../../src/team/connection";
import type { PostgresStores } from "../../src/team/stores";
import { describeWithOwnPostgres } from "../support/shared-postgres";
import { waitingSignIn } from "../support/sign-ins";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

async function sqlNumber(postgres: Postgres, expression: string): Promise<number> {
  const [row] = await postgres.askDirect((sql) => sql.unsafe(`SELECT ${expression}::int AS value`));
  return row.value;
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
  kept.follow({
    resume: ({ id, device }) => void heard.push(`resume ${id} ${device.deviceCode}`),
    stop: (id) => void heard.push(`stop ${id}`),
  });
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

describeWithOwnPostgres("in Postgres", (server) => {
  const team = async () => ({ DRAGOMAN_DATABASE_URL: await server.database(), DRAGOMAN_SEAL_KEY: sealKey });
  contract(async () => open(await team()));

  test("one is found by every server at once, cancelled by any, and then stopped at the leader", async () => {
    const env = await team();
    const [one, other] = [await open(env), await open(env)];
    const [first, second] = [waitingSignIn(), waitingSignIn({ host: "company.ghe.com" })];
    await one.kept.add(first);
    await one.kept.add(second);
    const { device: _, expiresAt, ...shown } = first;
    expect(await other.kept.find(first.id)).toMatchObject({ ...shown, state: { name: "waiting" } });
    expect(Math.abs((await other.kept.find(first.id))!.expiresAt - expiresAt)).toBeLessThan(1_000);
    await until(() => other.kept.waiting(null).length === 2, "the other server lists both");
    expect(other.kept.waiting(null).map(({ id }) => id)).toEqual([first.id, second.id]);
    expect([await one.kept.isMine(first.id), await other.kept.isMine(first.id)]).toEqual([true, false]);
    expect(await other.kept.cancel(first.id)).toBe(true);
    await until(() => one.heard.includes(`stop ${first.id}`), "the first server was told to stop");
    expect([(await one.kept.find(first.id))!.state, await one.kept.isMine(first.id)]).toEqual([
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
      expect([how, await one.kept.isMine(signIn.id), (await one.kept.find(signIn.id))?.state.name]).toEqual([
        ...[how, false, "cancelled"],
      ]);
    }
    expect([await one.kept.isMine(others.id), one.heard.length]).toEqual([true, ends.length]);
  });

  test("one whose host, app or member was changed in the database is not gone on with", async () => {
    const env = await team();
    const one = await open(env);
    const changes = ["host = 'evil.example'", "app = 'Iv1.evil0123'", "member = gen_random_uuid()", "host = host"];
    for (const _ of changes) await one.kept.add(waitingSignIn());
    await using sql = new SQL(env.DRAGOMAN_DATABASE_URL, { max: 1 });
    await sql`ALTER TABLE dragoman.sign_ins DROP CONSTRAINT IF EXISTS sign_ins_member_fkey`;
    const rows = await sql`SELECT encode(sha256, 'hex') AS hash FROM dragoman.sign_ins ORDER BY revision`;
    for (const [at, change] of changes.entries())
      await sql.unsafe(`UPDATE dragoman.sign_ins SET ${change}, revision = dragoman.announce_change('sign_ins')
        WHERE sha256 = decode('${rows[at].hash}', 'hex')`);
    const late = await open(env);
    await one.stores.close();
    opened.splice(opened.indexOf(one.stores), 1);
    await until(() => late.heard.length > 0, "the server that leads now goes on with what was not changed");
    expect(late.heard.map((line) => line.split(" ")[0])).toEqual(["resume"]);
  });

  test("one that was begun at any server is asked about by the server that leads", async () => {
    const env = await team();
    const [leader, other] = [await open(env), await open(env)];
    const signIn = waitingSignIn();
    expect(await other.kept.add(signIn)).toBe(false);
    await until(() => leader.heard.length > 0, "the leader goes on with it");
    expect([leader.heard, other.heard]).toEqual([[`resume ${signIn.id} ${signIn.device.deviceCode}`], []]);
    expect([await leader.kept.isMine(signIn.id), await other.kept.isMine(signIn.id)]).toEqual([true, false]);
  });

  test("of a leader that stops, the next one goes on with it", async () => {
    const env = await team();
    const [one, two, three] = [await open(env), await open(env), await open(env)];
    const signIn = waitingSignIn();
    await one.kept.add(signIn);
    for (const { kept } of [two, three]) await kept.find(signIn.id);
    await one.stores.close();
    opened.splice(opened.indexOf(one.stores), 1);
    await until(() => two.heard.length + three.heard.length > 0, "another server goes on with it");
    expect([...two.heard, ...three.heard]).toEqual([`resume ${signIn.id} ${signIn.device.deviceCode}`]);
    const mine = [await two.kept.isMine(signIn.id), await three.kept.isMine(signIn.id)];
    expect(mine.toSorted()).toEqual([false, true]);
    await (mine[0] ? two : three).kept.settle(signIn.id, done);
    await until(
      async () => (await (mine[0] ? three : two).kept.find(signIn.id))!.state.name === "done",
      "every server knows that it is done",
    );
  });

  test("a leader that has lost its connections, but lives, hands over or goes on: one asks GitHub, never none, never two", async () => {
    const env = await team();
    const [one, other] = [await open(env), await open(env)];
    const signIn = waitingSignIn();
    await one.kept.add(signIn);
    await other.kept.find(signIn.id);
    const sql = new SQL(env.DRAGOMAN_DATABASE_URL, { max: 1 });
    // The lock that says who leads belongs to this connection.
    const killed = await sql`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()`;
    expect(killed).toHaveLength(1);
    await sql.close();
    let owners: boolean[] = [];
    await until(async () => {
      owners = await Promise.all([one, other].map(({ kept }) => kept.isMine(signIn.id)));
      return owners[0] !== owners[1];
    }, "one server leads again");
    // Who runs it was told so last; who does not was told to stop, if it ever ran there.
    const last = ({ heard }: World, without: string) => heard.at(-1)?.split(" ")[0] ?? without;
    await until(() => last(one, "resume") === (owners[0] ? "resume" : "stop"), "the first server knows whose it is");
    await until(() => last(other, "stop") === (owners[0] ? "stop" : "resume"), "the other server knows whose it is");
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

  test("neither codes nor ids are in the table; the device code is gone with the end", async () => {
    const env = await team();
    const { kept } = await open(env);
    const [ended, waiting] = [waitingSignIn(), waitingSignIn()];
    for (const each of [ended, waiting]) await kept.add(each);
    await kept.settle(ended.id, done);
    const sql = new SQL(env.DRAGOMAN_DATABASE_URL, { max: 1 });
    const rows = await sql`SELECT s::text AS row, length(sealed_body) AS length FROM dragoman.sign_ins s
      ORDER BY state->>'name'`;
    await sql.close();
    expect(rows).toHaveLength(2);
    for (const { id, code, device } of [ended, waiting])
      for (const secret of [id, code.userCode, device.deviceCode])
        for (const written of [secret, Buffer.from(secret).toString("hex")])
          expect(rows.map(({ row }: { row: string }) => row).join("\n")).not.toContain(written);
    expect(rows[1].length - rows[0].length).toBeGreaterThan(waiting.device.deviceCode.length);
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
      expect(await kept.isMine(each.id)).toBe(false);
    }
    await kept.settle(failed.id, { name: "failed", reason: "x" });
    await kept.settle(saved.id, done);
    expect([(await kept.find(failed.id))!.state.name, (await kept.find(saved.id))!.state.name]).toEqual([
      "cancelled",
      "done",
    ]);
  });
}
