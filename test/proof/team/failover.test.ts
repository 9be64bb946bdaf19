/**
 * Scenario: what servers know after a failover to a standby that had not heard of the last changes: what that one has,
 * each of them the same.
 */
import { afterAll, beforeAll, test } from "bun:test";
import { sha256 } from "../../../src/lib/net/in/credentials";
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
  const changed = (change: () => Promise<unknown>) =>
    until(
      () =>
        change().then(
          () => true,
          () => false,
        ),
      "it can be changed",
    );

  test("what the standby has is what every server knows, and a change under a number that was given before is heard", async () => {
    const [anna, ben] = [await one!.addMember("anna", "anna-demo"), await one!.addMember("ben", "ben-demo")];
    const [laptop, phone] = [await newKey(anna, "laptop"), await newKey(anna, "phone")];
    await one!.app.config.change({ auth: { apiKeys: ["owner-key-1", "owner-key-2"] } });
    for (const each of [laptop, phone, ben.key, "owner-key-1"]) await untilAllSay(each, true);
    const failOver = await postgres.laggingStandby(one!.env.DRAGOMAN_DATABASE_URL!);
    await changed(() => one!.app.members!.revokeKey(anna.id, "phone"));
    const lost = await newKey(anna, "lost");
    await one!.app.members!.remove("ben");
    await one!.app.accountStore.remove("anna-demo");
    await one!.app.config.change({ auth: { apiKeys: ["owner-key-2"] } });
    for (const each of [phone, ben.key, "owner-key-1"]) await untilAllSay(each, false);
    await untilAllSay(lost, true);
    await untilAll((each) => each.app.allAccounts.length === 0);

    await failOver();
    await changed(() => one!.app.members!.revokeKey(anna.id, "laptop"));
    await untilAllSay(laptop, false);
    await untilAllSay(lost, false);
    for (const each of [phone, ben.key, "owner-key-1", "owner-key-2"]) await untilAllSay(each, true);
    await untilAll((each) => each.app.members!.list().length === 2 && each.app.allAccounts.length === 2);
    // What was lost can be done again.
    await one!.app.members!.remove("ben");
    await one!.app.config.change({ auth: { apiKeys: ["owner-key-2"] } });
    for (const each of [ben.key, "owner-key-1"]) await untilAllSay(each, false);
  });
});
