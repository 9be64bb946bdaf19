/** What servers know after a failover to a standby that had not heard of the last changes, and after which numbers are given anew. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { sha256 } from "../../../src/net/in/credentials";
import type { TestMember } from "../../support/members";
import { describeWithOwnPostgres } from "../../support/shared-postgres";
import { startTeamApp, type TeamApp } from "../../support/team-app";
import { until } from "../../support/until";

describeWithOwnPostgres("a failover", (postgres) => {
  let [one, other]: TeamApp[] = [];
  let servers: TeamApp[] = [];
  beforeAll(async () => {
    one = await startTeamApp(postgres);
    other = await startTeamApp(postgres, { env: one.env, demo: one.demo });
    servers = [one, other];
  });
  afterAll(async () => {
    await other![Symbol.asyncDispose]();
    await one![Symbol.asyncDispose]();
  });

  const url = () => one!.env.DRAGOMAN_DATABASE_URL!;
  const administer = (statements: string) => postgres.administer(statements, url());
  const isValid = async (server: TeamApp, key: string) =>
    (await fetch(`${server.url}/v1/models`, { headers: { "x-api-key": key } })).status !== 401;
  const untilAllSay = (key: string, valid: boolean) =>
    until(
      async () => (await Promise.all(servers.map((each) => isValid(each, key)))).every((each) => each === valid),
      "every server agrees whether the key is valid",
    );
  const untilAll = (holds: (server: TeamApp) => boolean) =>
    until(() => servers.every(holds), "it holds on every server");
  const newKey = ({ id, key }: TestMember, name: string) =>
    one!.app.members!.createKey(id, { name, models: null, expiresAt: null, by: sha256(key) });

  test("a key that is revoked with the number of a lost change is refused by every server, and a lost key too", async () => {
    const anna = await one!.addMember("anna");
    const key = await newKey(anna, "laptop");
    const failOver = await postgres.laggingStandby(url());
    const lost = await newKey(anna, "lost");
    await untilAllSay(lost, true);
    await failOver();
    await until(
      () =>
        one!.app.members!.revokeKey(anna.id, "laptop").then(
          () => true,
          () => false,
        ),
      "the key can be revoked",
    );
    await untilAllSay(key, false);
    await untilAllSay(lost, false);
  });

  test("what was revoked, removed or ended and lost in a failover stays so, on every server and in the database", async () => {
    const ben = await one!.addMember("ben", "ben-demo");
    const carl = await one!.addMember("carl", "carl-demo");
    const key = await newKey(ben, "laptop");
    const sessions = servers.map((each) => each.app.pageState.sessions);
    const session = await sessions[0]!.begin({ member: ben.id, secret: ben.key });
    await one!.app.config.change({ auth: { apiKeys: ["owner-key-1", "owner-key-2"] } });
    for (const each of [ben.key, carl.key, key, "owner-key-1"]) await untilAllSay(each, true);
    const failOver = await postgres.laggingStandby(url());
    await until(
      () =>
        one!.app.members!.revokeKey(ben.id, "laptop").then(
          () => true,
          () => false,
        ),
      "the key can be revoked",
    );
    await one!.app.members!.remove("carl");
    await one!.app.accountStore.remove("ben-demo");
    await sessions[0]!.end(session);
    await one!.app.config.change({ auth: { apiKeys: ["owner-key-2"] } });
    const gone = [carl.key, key, "owner-key-1"];
    for (const each of gone) await untilAllSay(each, false);
    await untilAll((each) => each.app.allAccounts.length === 0);
    await failOver();
    const rows = async () =>
      administer(`SELECT (SELECT count(*)::int FROM dragoman.keys WHERE revoked_at_ms IS NULL AND name = 'laptop') AS keys,
        (SELECT count(*)::int FROM dragoman.members WHERE removed_at_ms IS NULL AND name = 'carl') AS members,
        (SELECT count(*)::int FROM dragoman.accounts WHERE removed_at_ms IS NULL) AS accounts,
        (SELECT count(*)::int FROM dragoman.ended_sessions) AS ended`);
    expect(await rows()).toEqual([{ keys: 1, members: 1, accounts: 2, ended: 0 }]);
    await until(
      async () => Bun.deepEquals(await rows(), [{ keys: 0, members: 0, accounts: 0, ended: 1 }]),
      "nothing is left of the member",
    );
    const third = await startTeamApp(postgres, { env: one!.env, demo: one!.demo });
    servers.push(third);
    for (const each of gone) await untilAllSay(each, false);
    await untilAllSay(ben.key, true);
    await untilAllSay("owner-key-2", true);
    for (const each of servers) {
      expect(each.app.members!.list().map(({ name }) => name)).toEqual(["anna", "ben"]);
      expect(each.app.allAccounts).toEqual([]);
      expect(await each.app.pageState.sessions.find(session)).toBeUndefined();
    }
    servers.pop();
    await third[Symbol.asyncDispose]();
  });

  test("the mark of a change tells servers whose connections stayed that its number was given before", async () => {
    const dora = await one!.addMember("dora");
    const key = await newKey(dora, "laptop");
    await untilAllSay(key, true);
    // As if the last change, of another key, had been lost.
    await administer(`UPDATE dragoman.revisions SET revision = revision - 1 WHERE name = 'keys';
      UPDATE dragoman.keys SET revoked_at_ms = 1, revision = dragoman.announce_change('keys')
        WHERE member = '${dora.id}' AND name = 'laptop'`);
    await untilAllSay(key, false);
  });
});
