/** What the admin pages of a team keep between two requests of a browser, which may reach another server each time. */
import { afterEach, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { openFormTokens } from "../../src/admin/access/form-token";
import { readEnvironment } from "../../src/config/environment";
import { dayMs, hourMs } from "../../src/format";
import type { NewSession, PageSessions } from "../../src/keys/page-sessions";
import { sha256 } from "../../src/net/in/credentials";
import { openStores } from "../../src/open-stores";
import type { Stores } from "../../src/stores";
import { describeWithOwnPostgres } from "../support/shared-postgres";
import { until } from "../support/until";

const adminToken = "an admin token";
const owner: NewSession = { member: null, secret: adminToken };
const sealKey = randomBytes(32).toString("base64");

describeWithOwnPostgres("the page state of a team", (server) => {
  const opened: Stores[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((stores) => stores.close()));
  });

  /** A server, and others of its team. */
  async function team(more: Record<string, string> = {}) {
    const url = await server.database();
    const another = async (env: Record<string, string> = {}) => {
      const variables = { DRAGOMAN_DATABASE_URL: url, DRAGOMAN_SEAL_KEY: sealKey, ADMIN_TOKEN: adminToken, ...more };
      const environment = readEnvironment({ HOME: "/nonexistent", ...variables, ...env });
      const stores = await openStores(environment, { follow: true });
      opened.push(stores);
      return { stores, state: stores.openPageState(Date.now) };
    };
    return { url, another, ...(await another()) };
  }
  const holds = async (sessions: PageSessions, id: string) => (await sessions.find(id))?.holds ?? false;

  test("a session is good on every server at once, and signed out on one it ends on all", async () => {
    const { state, another } = await team();
    const other = (await another()).state;
    const [id, second] = [state.sessions.begin(owner), other.sessions.begin(owner)];
    for (const { sessions } of [state, other])
      expect([await holds(sessions, id), await holds(sessions, second)]).toEqual([true, true]);
    const there = await other.sessions.find(id);
    await state.sessions.end(id);
    expect(await holds(state.sessions, id)).toBe(false);
    await until(() => !there!.holds, "the view on the other server has ended");
    expect([await holds(other.sessions, id), await holds(other.sessions, second)]).toEqual([false, true]);
    const late = (await another()).state;
    expect([await holds(late.sessions, id), await holds(late.sessions, second)]).toEqual([false, true]);
  });

  test("a session that needed no token on a server's own machine opens no other server", async () => {
    const { state, another } = await team();
    const other = (await another()).state;
    const id = state.sessions.begin({ member: null, secret: "typed where no token is asked for" });
    expect([await holds(state.sessions, id), await holds(other.sessions, id)]).toEqual([true, false]);
  });

  test("a member's session ends with the key that began it, and with the member, on every server", async () => {
    const { stores, state, another } = await team();
    const other = await another();
    const { members } = stores;
    const keys: { member: string; secret: string }[] = [];
    for (const name of ["anna", "anna", "ben"]) {
      const { member, key } = (await members!.accept((await members!.invite(name)).code))!;
      keys.push({ member: member.id, secret: key });
    }
    const ids = keys.map((key) => state.sessions.begin(key));
    const views = await Promise.all([state, other.state].flatMap(({ sessions }) => ids.map((id) => sessions.find(id))));
    expect(views.map((view) => view?.member)).toEqual([...keys, ...keys].map(({ member }) => member));
    await members!.revokeKey(keys[0]!.member, "key-1");
    await until(() => !views[0]!.holds && !views[3]!.holds, "both views of the session have ended");
    await members!.remove("ben");
    await until(() => !views[2]!.holds && !views[5]!.holds, "both views of the other session have ended");
    for (const { sessions } of [state, other.state])
      expect((await Promise.all(ids.map((id) => sessions.find(id)))).map((view) => view?.holds)).toEqual([
        undefined,
        true,
        undefined,
      ]);
    // Neither a wrong key nor somebody else's gives a session that holds.
    const wrong = state.sessions.begin({ member: keys[1]!.member, secret: "drg_wrong" });
    expect(await state.sessions.find(wrong)).toBeUndefined();
  });

  test("a form of one server is right for another with the same seal key, for a day", async () => {
    const { state, another } = await team();
    const later = (ms: number) => () => Date.now() + ms;
    const form = openFormTokens(state.formSecret, Date.now).make("m-1");
    const other = (await another()).state.formSecret;
    expect(openFormTokens(other, later(hourMs)).isRight(form, "m-1")).toBe(true);
    expect(openFormTokens(other, later(dayMs + 1_000)).isRight(form, "m-1")).toBe(false);
  });

  test("who has the database and no seal key can begin no session", async () => {
    const { state, url } = await team();
    const foreign = await team({ DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64") });
    const forged = foreign.state.sessions.begin(owner);
    expect(await state.sessions.find(forged)).toBeUndefined();
    const digest = sha256(forged).toString("hex");
    await server.administer(
      `INSERT INTO dragoman.ended_sessions VALUES ('\\x${digest}', 0, dragoman.announce_change('ended_sessions'))`,
      url,
    );
    expect(await state.sessions.find(forged)).toBeUndefined();
  });

  test("without the database people sign in and stay signed in, and who signs out is told that it holds here alone", async () => {
    const { state } = await team();
    const id = state.sessions.begin(owner);
    await server.stop();
    try {
      for (const each of [id, state.sessions.begin(owner)]) expect(await holds(state.sessions, each)).toBe(true);
      const ended = Promise.resolve(state.sessions.end(id));
      expect(await ended.catch(({ message, status }) => [message, status])).toEqual([
        "The database cannot be used now: it cannot be reached. You could not be signed out everywhere. Try again when it is back.",
        503,
      ]);
    } finally {
      await server.start();
    }
    await until(
      () =>
        Promise.resolve(state.sessions.end(id)).then(
          () => true,
          () => false,
        ),
      "the session can be ended",
    );
    expect(await holds(state.sessions, id)).toBe(false);
  });

  test("the value of a cookie is not in the tables", async () => {
    const { state, url } = await team();
    const id = state.sessions.begin(owner);
    await state.sessions.end(id);
    const rows = (await server.administer("SELECT e::text AS row FROM dragoman.ended_sessions e", url)) as {
      row: string;
    }[];
    expect(rows).toHaveLength(1);
    for (const secret of [id, adminToken])
      for (const written of [secret, Buffer.from(secret).toString("hex")]) expect(rows[0]!.row).not.toContain(written);
  });

  test("a form's token is right for the person whose page it was on, and for nobody else", async () => {
    const { state } = await team();
    const tokens = openFormTokens(state.formSecret, Date.now);
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
});
