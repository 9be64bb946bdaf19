/** What the admin pages keep between two requests of a browser: in memory, and in Postgres for all servers of a team. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { openFormTokens } from "../../src/admin/access/form-token";
import { readEnvironment } from "../../src/config/environment";
import { dayMs, hourMs } from "../../src/format";
import type { NewSession, PageSessions } from "../../src/keys/page-sessions";
import { sha256 } from "../../src/net/credentials";
import { openStores } from "../../src/open-stores";
import type { PageState, Stores } from "../../src/stores";
import { rotateSeals } from "../../src/team/seal-rotation";
import type { PostgresStores } from "../../src/team/stores";
import { describeWithPostgres, startPostgres, type TestPostgres } from "../support/postgres";
import { waitingSignIn } from "../support/sign-ins";
import { until } from "../support/until";

const adminToken = "an admin token";
const owner: NewSession = { member: null, secret: adminToken };
const sealKey = randomBytes(32).toString("base64");

/** A server, or one after it in the same team. */
interface World {
  stores: Stores;
  state: PageState;
  another(env?: Record<string, string>): Promise<{ stores: Stores; state: PageState }>;
  /** Milliseconds that pass. */
  wait(ms: number): Promise<void>;
  /** What an SQL client sees; undefined in memory. */
  sql?: SQL;
}

describe("in memory", () => {
  contract(async (open) => {
    let ahead = 0;
    const now = () => Date.now() + ahead;
    const stores = await open({});
    const state = stores.openPageState(now);
    return {
      stores,
      state,
      another: async () => ({ stores, state }),
      wait: async (ms) => {
        ahead += ms;
      },
    };
  });

  test("nothing is written to the data folder, and nothing outlives the process", async () => {
    const home = mkdtempSync(join(tmpdir(), "dragoman-pages-"));
    try {
      const stores = await openStores(readEnvironment({ HOME: home, DRAGOMAN_HOME: home }), { follow: true });
      const [state, next] = [stores.openPageState(Date.now), stores.openPageState(Date.now)];
      const id = await state.sessions.begin(owner);
      await state.changes.put({ patch: {}, revision: "1", form: new URLSearchParams() });
      expect(readdirSync(home)).toEqual([]);
      expect(await next.sessions.find(id)).toBeUndefined();
      const [form, other] = [state, next].map(({ formSecrets }) => openFormTokens(formSecrets, Date.now));
      expect(other!.isRight(form!.make(null), null)).toBe(false);
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  });
});

describeWithPostgres("in Postgres", () => {
  let server: TestPostgres;
  const clients: SQL[] = [];
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    for (const client of clients) await client.close();
    await server[Symbol.asyncDispose]();
  });
  const team = async (open: Open): Promise<World> => {
    const env = { DRAGOMAN_DATABASE_URL: await server.database(), DRAGOMAN_SEAL_KEY: sealKey, ADMIN_TOKEN: adminToken };
    const another = async (more: Record<string, string> = {}) => {
      const stores = await open({ ...env, ...more });
      return { stores, state: stores.openPageState(Date.now) };
    };
    const first = await another();
    const sql = new SQL(env.DRAGOMAN_DATABASE_URL, { max: 1 });
    clients.push(sql);
    return {
      ...first,
      another,
      sql,
      // The database decides what has expired: for the servers nothing has changed.
      async wait(ms) {
        for (const table of ["page_sessions", "pending_changes"])
          await sql.unsafe(`UPDATE dragoman.${table} SET expires_at = expires_at - interval '${ms} milliseconds'`);
      },
    };
  };
  contract(team);

  const opened: Stores[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((stores) => stores.close()));
  });
  const open: Open = async (env) => {
    const stores = await openStores(readEnvironment({ HOME: "/nonexistent", ...env }), { follow: true });
    opened.push(stores);
    return stores;
  };

  test("a member's session ends with the key that began it, and with the member, on every server", async () => {
    const { stores, state, another } = await team(open);
    const other = await another();
    const { members } = stores;
    const keys: { member: string; secret: string }[] = [];
    for (const name of ["anna", "anna", "ben"]) {
      const { member, key } = (await members!.accept((await members!.invite(name)).code))!;
      keys.push({ member: member.id, secret: key });
    }
    const ids = await Promise.all(keys.map((key) => state.sessions.begin(key)));
    const views = await Promise.all([state, other.state].flatMap(({ sessions }) => ids.map((id) => sessions.find(id))));
    expect(views.map((view) => view?.member)).toEqual([...keys, ...keys].map(({ member }) => member));
    await members!.revokeKey(keys[0]!.member, "key-1");
    await until(() => views[0]!.ended.aborted && views[3]!.ended.aborted, "both views of the session have ended");
    await members!.remove("ben");
    await until(() => views[2]!.ended.aborted && views[5]!.ended.aborted, "both views of the other session have ended");
    for (const { sessions } of [state, other.state])
      expect((await Promise.all(ids.map((id) => sessions.find(id)))).map((view) => view?.holds)).toEqual([
        undefined,
        true,
        undefined,
      ]);
    // Neither a wrong key nor somebody else's gives a session that holds.
    const wrong = await state.sessions.begin({ member: keys[1]!.member, secret: "drg_wrong" });
    expect(await state.sessions.find(wrong)).toBeUndefined();
  });

  test("another admin token ends the owner's sessions where it is set, also after all servers were restarted", async () => {
    const { state, another } = await team(open);
    const [id, local] = [
      await state.sessions.begin(owner),
      await state.sessions.begin({ member: null, secret: "whatever somebody on this machine typed" }),
    ];
    const [same, changed] = [await another(), await another({ ADMIN_TOKEN: "another one" })];
    expect((await same.state.sessions.find(id))?.holds).toBe(true);
    expect(await changed.state.sessions.find(id)).toBeUndefined();
    for (const { sessions } of [same.state, changed.state]) expect((await sessions.find(local))?.holds).toBe(true);
    expect((await state.sessions.find(id))?.holds).toBe(true);
  });

  test("a session of the owner that was written by somebody who has the database but no seal key does not hold", async () => {
    const { state, another, sql } = await team(open);
    const other = await another();
    const id = await state.sessions.begin(owner);
    const [{ credential }] = await sql!`SELECT credential FROM dragoman.page_sessions`;
    const forged = ["A", "B", "C"].map((letter) => letter.repeat(43));
    for (const [at, made] of [null, credential, Buffer.alloc(3)].entries())
      await sql!`INSERT INTO dragoman.page_sessions (sha256, credential, expires_at, revision)
        VALUES (${sha256(forged[at]!)}, ${made}, now() + interval '1 hour', dragoman.announce_change('page_sessions'))`;
    for (const { sessions } of [state, other.state])
      for (const [at, each] of [...forged, id].entries())
        expect([at, (await sessions.find(each))?.holds ?? false]).toEqual([at, at === 3]);
  });

  test("a form of one server is right for another with the same seal key, for a day, during a rotation too", async () => {
    const { state, another } = await team(open);
    const later = (ms: number) => () => Date.now() + ms;
    const form = openFormTokens(state.formSecrets, Date.now).make("m-1");
    const other = (await another()).state.formSecrets;
    expect(openFormTokens(other, later(hourMs)).isRight(form, "m-1")).toBe(true);
    expect(openFormTokens(other, later(dayMs + 1_000)).isRight(form, "m-1")).toBe(false);
    const rotated = (await another({ DRAGOMAN_SEAL_KEY_NEXT: randomBytes(32).toString("base64") })).state.formSecrets;
    expect(rotated.current()).toHaveLength(2);
    expect(openFormTokens(rotated, Date.now).isRight(form, "m-1")).toBe(true);
  });

  test("after a change of the seal key, what waits is opened with the new one alone", async () => {
    const next = randomBytes(32);
    const both = { DRAGOMAN_SEAL_KEY_NEXT: next.toString("base64") };
    const { state, stores, another } = await team((env) => open({ ...env, ...both }));
    const change = { patch: { logLevel: "debug" }, revision: "1", form: new URLSearchParams({ logLevel: "debug" }) };
    const id = await state.changes.put(change);
    const signIn = waitingSignIn();
    await stores.openSignIns().add(signIn);
    const { postgres, seals } = stores as PostgresStores;
    expect(await rotateSeals(postgres, seals, next)).toEqual({ count: 2, unopened: [] });
    const after = await another({ DRAGOMAN_SEAL_KEY: next.toString("base64"), DRAGOMAN_SEAL_KEY_NEXT: "" });
    expect((await after.state.changes.get(id))!.patch).toEqual(change.patch);
    expect((await after.stores.openSignIns().find(signIn.id))!.code).toEqual(signIn.code);
  });

  test("sessions that are known go on without the database; nobody else signs in, and it is said in a sentence", async () => {
    const { state, another, sql } = await team(open);
    const id = await state.sessions.begin(owner);
    const other = await another();
    await sql!.close();
    clients.splice(clients.indexOf(sql!), 1);
    await server.stop();
    try {
      for (const { sessions } of [state, other.state]) expect((await sessions.find(id))?.holds).toBe(true);
      const begun = state.sessions.begin(owner);
      expect(await Promise.resolve(begun).catch(({ message, status }) => [message, status])).toEqual([
        "The database cannot be used now: it cannot be reached. Nobody can sign in. Try again when it is back.",
        503,
      ]);
      const unknown = Promise.resolve(state.sessions.find("x".repeat(43)));
      expect(await unknown.catch(({ message }) => message)).toContain("cannot tell whether you are signed in");
    } finally {
      await server.start();
    }
    await until(
      async () => (await Promise.resolve(state.sessions.begin(owner)).catch(() => undefined)) !== undefined,
      "sessions can begin again",
    );
  });

  test("neither ids nor what is typed into a form are in the tables", async () => {
    const { state, sql } = await team(open);
    const id = await state.sessions.begin(owner);
    const change = await state.changes.put({
      patch: { anthropicApiKey: "sk-canary-0815" },
      revision: "1",
      form: new URLSearchParams({ anthropicApiKey: "sk-canary-0815" }),
    });
    const rows = await sql!`SELECT s::text AS row FROM dragoman.page_sessions s
      UNION ALL SELECT c::text FROM dragoman.pending_changes c`;
    const dump = rows.map(({ row }: { row: string }) => row).join("\n");
    expect(rows).toHaveLength(2);
    for (const secret of [id, change, "sk-canary-0815", adminToken])
      for (const written of [secret, Buffer.from(secret).toString("hex")]) expect(dump).not.toContain(written);
  });
});

type Open = (env: Record<string, string>) => Promise<Stores>;

function contract(make: (open: Open) => Promise<World>): void {
  const opened: Stores[] = [];
  const homes: string[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((stores) => stores.close()));
    for (const home of homes.splice(0)) rmSync(home, { recursive: true, force: true });
  });
  const world = () =>
    make(async (env) => {
      const home = mkdtempSync(join(tmpdir(), "dragoman-pages-"));
      homes.push(home);
      const environment = readEnvironment({ HOME: home, DRAGOMAN_HOME: home, ...env });
      const stores = await openStores(environment, { follow: true });
      opened.push(stores);
      return stores;
    });
  const holds = async (sessions: PageSessions, id: string) => (await sessions.find(id))?.holds ?? false;

  describe("a session", () => {
    test("is found by its id on each server at once, until it is ended; what shows live views hears of it", async () => {
      const { state, another } = await world();
      const other = (await another()).state;
      const [id, second] = [await state.sessions.begin(owner), await other.sessions.begin(owner)];
      expect(id).toMatch(/^[\w-]{43}$/);
      for (const { sessions } of [state, other])
        expect([await holds(sessions, id), await holds(sessions, second), await holds(sessions, "none")]).toEqual([
          true,
          true,
          false,
        ]);
      const [here, there] = [await state.sessions.find(id), await other.sessions.find(id)];
      expect([here!.member, there!.member]).toEqual([null, null]);
      await state.sessions.end(id);
      expect([here!.holds, here!.ended.aborted]).toEqual([false, true]);
      await until(() => there!.ended.aborted, "the view on the other server has ended");
      expect([there!.holds, await holds(other.sessions, id), await holds(state.sessions, second)]).toEqual([
        false,
        false,
        true,
      ]);
      await state.sessions.end(id);
      await state.sessions.end("none");
    });

    test("expires after twelve hours", async () => {
      const { state, another, wait } = await world();
      const id = await state.sessions.begin(owner);
      await wait(12 * hourMs - 5_000);
      expect(await holds((await another()).state.sessions, id)).toBe(true);
      await wait(5_000);
      expect(await holds((await another()).state.sessions, id)).toBe(false);
    });

    test("beyond the 64th of a person replaces the oldest", async () => {
      const { state } = await world();
      const ids: string[] = [];
      for (let count = 0; count < 66; count += 1) ids.push(await state.sessions.begin(owner));
      const found = await Promise.all(ids.map((id) => holds(state.sessions, id)));
      expect(found).toEqual([false, false, ...new Array(64).fill(true)]);
    });
  });

  describe("a config change that waits", () => {
    const change = (at = 0) => ({
      patch: { retentionDays: at, providers: { x: { apiKey: "sk-1" } } },
      revision: "7",
      form: new URLSearchParams([
        ["retentionDays", String(at)],
        ["auth.apiKeys", "ü\n&=one"],
      ]),
    });

    test("is shown by each server as it was prepared, until it is saved or discarded", async () => {
      const { state, another } = await world();
      const other = (await another()).state;
      const id = await state.changes.put(change(3));
      const found = await other.changes.get(id);
      expect([found!.patch, found!.revision]).toEqual([change(3).patch, "7"]);
      expect([...found!.form]).toEqual([...change(3).form]);
      for (const none of [null, "", "none"]) expect(await other.changes.get(none)).toBeUndefined();
      await other.changes.drop(id);
      for (const { changes } of [state, other]) expect(await changes.get(id)).toBeUndefined();
    });

    test("expires after half an hour; of more than 16 the oldest are gone", async () => {
      const { state, wait } = await world();
      const first = await state.changes.put(change());
      await wait(29 * 60_000);
      expect(await state.changes.get(first)).toBeDefined();
      await wait(60_000);
      expect(await state.changes.get(first)).toBeUndefined();
      const ids: string[] = [];
      for (let count = 0; count < 18; count += 1) ids.push(await state.changes.put(change(count)));
      const found = await Promise.all(ids.map((id) => state.changes.get(id)));
      expect(found.map((each) => each?.patch.retentionDays)).toEqual([
        undefined,
        undefined,
        ...ids.slice(2).map((_, at) => at + 2),
      ]);
    });
  });

  test("a form's token is right for the person whose page it was on, and for nobody else", async () => {
    const { state } = await world();
    const tokens = openFormTokens(state.formSecrets, Date.now);
    const [owners, annas] = [tokens.make(null), tokens.make("anna")];
    expect([tokens.isRight(owners, null), tokens.isRight(annas, "anna")]).toEqual([true, true]);
    expect([tokens.isRight(owners, "anna"), tokens.isRight(annas, null), tokens.isRight(annas, "ben")]).toEqual([
      false,
      false,
      false,
    ]);
    const changed = owners.slice(0, -1) + (owners.endsWith("A") ? "B" : "A");
    const earlier = `${(Date.now() - 60_000).toString(36)}${owners.slice(owners.indexOf("-"))}`;
    for (const wrong of [null, "", "x", changed, earlier, owners.replace("-", ""), `${owners}x`])
      expect([wrong, tokens.isRight(wrong, null)]).toEqual([wrong, false]);
  });
}
