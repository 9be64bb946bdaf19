/** Servers are replaced by those of a newer version, one after the other, while streams run. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { schemaVersion } from "../../src/team/schema";
import { describeWithPostgres } from "../support/postgres";
import { sharedPostgres, type TestDatabases } from "../support/shared-postgres";
import { startTeamApp } from "../support/team-app";
import { startTeam, type TeamProcess } from "../support/teams";
import { unloadedNow } from "../support/unloaded";

const ask = (content: string, more = {}) => ({ model: "gpt-5-mini", messages: [{ role: "user", content }], ...more });

describeWithPostgres("a rolling upgrade", () => {
  let postgres: TestDatabases;
  beforeAll(async () => {
    postgres = await sharedPostgres();
  });
  afterAll(() => postgres[Symbol.asyncDispose]());

  test("cuts no stream, although the newer version has changed the schema", async () => {
    await using team = await startTeam(postgres, { pace: 60 });
    const old = await Promise.all([team.process(), team.process()]);
    let serving: TeamProcess[] = [...old];
    const ended: { status: number; isWhole: boolean }[] = [];
    let stop = false;
    const streams = Array.from({ length: 12 }, async (_, at) => {
      while (!stop) {
        const response = await serving[at % serving.length]!.post(
          "/v1/chat/completions",
          ask("Tell me a story.", { stream: true }),
        );
        ended.push({ status: response.status, isWhole: (await response.text()).trimEnd().endsWith("[DONE]") });
      }
    });
    await Bun.sleep(300);
    const sql = new SQL(team.env.DRAGOMAN_DATABASE_URL!, { max: 1 });
    for (const server of old) {
      if (server === old[0])
        await sql
          .unsafe(`ALTER TABLE dragoman.requests ADD COLUMN of_the_next_version text NOT NULL DEFAULT 'x';
            CREATE TABLE dragoman.of_the_next_version (id int);
            UPDATE dragoman.schema SET version = ${schemaVersion + 1}, compatible_with = ${schemaVersion}`)
          .simple();
      const successor = await team.process();
      serving = [...serving.filter((each) => each !== server), successor];
      // As an orchestrator does: no new requests, then the signal.
      server.command.process.kill("SIGTERM");
      expect(await server.command.exited).toBe(0);
    }
    stop = true;
    await Promise.all(streams);
    expect(ended.length).toBeGreaterThan(24);
    expect(ended.filter(({ status, isWhole }) => status !== 200 || !isWhole)).toEqual([]);
    const deadline = unloadedNow() + 5_000;
    let rows = 0;
    while (rows < ended.length && unloadedNow() < deadline)
      [{ rows }] = await sql`SELECT count(*)::int AS rows FROM dragoman.requests`;
    await sql.close();
    expect(rows).toBe(ended.length);
  });

  test("servers of the version before write what they wrote, and until they are gone no limit is set that they may not know", async () => {
    await using one = await startTeamApp(postgres);
    const anna = await one.addMember("anna", "anna-hub");
    const { sql } = one.stores.postgres;
    const older = crypto.randomUUID();
    await sql`INSERT INTO dragoman.replicas (id, host, version, seal_keys, leads)
      VALUES (${older}, 'old-host', '0', '[]', false)`;
    await sql`INSERT INTO dragoman.members (name, role, created_at_ms, revision) VALUES ('ben', 'member', 1, 1)`;
    const [account] = await sql`SELECT key, sign_in FROM dragoman.accounts WHERE member = ${anna.id}`;
    await sql`INSERT INTO dragoman.account_states AS old (account, sign_in, state, epoch, quota, replica, revision, arrived)
      VALUES (${account.key}, ${account.sign_in}, '{}', 1, NULL, ${older}, 1, 1)
      ON CONFLICT (account) DO UPDATE SET epoch = old.epoch + excluded.epoch`;

    const { members } = one.stores;
    const limits = { models: ["gpt-5*"], keyDays: 30 };
    await expect(members.setLimits("anna", limits)).rejects.toThrow("An older dragoman still runs on old-host");
    await expect(members.invite("cleo", limits)).rejects.toThrow("set the limits then");
    expect(members.named("cleo")).toBeUndefined();
    const page = await fetch(`${one.url}/api/admin/members/anna/limits`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ key_days: 30 }),
    });
    expect(page.status).toBe(409);
    // To take limits away needs nobody.
    expect(await members.setLimits("anna", { models: null })).toMatchObject({ models: null });
    await sql`DELETE FROM dragoman.replicas WHERE id = ${older}`;
    expect(await members.setLimits("anna", limits)).toMatchObject(limits);
  });
});
