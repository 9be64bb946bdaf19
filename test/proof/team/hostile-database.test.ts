/**
 * Scenario: somebody who has the database of a team but not its seal key: who may connect and nothing else, or who may
 * change every row. No token leaves for a place of theirs, and nothing of the requests that run is seen.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { askAs, type TestMember, untilKnown } from "../../support/members";
import { describeWithOwnPostgres } from "../../support/shared-postgres";
import { startTeam, type Team, type TeamProcess, type TeamServer } from "../../support/teams";
import { until } from "../../support/until";

describeWithOwnPostgres("somebody with the database and no seal key", (postgres) => {
  let team: Team;
  let servers: [TeamProcess, TeamProcess];
  let anna: TestMember;
  let ben: TestMember;
  /** May change every row. */
  let sql: SQL;
  beforeAll(async () => {
    team = await startTeam(postgres);
    servers = [await team.process(), await team.process()];
    ({ anna, ben } = await team.addMembers({ anna: ["anna-hub"], ben: ["ben-hub"] }));
    sql = new SQL(team.env.DRAGOMAN_DATABASE_URL!, { max: 2 });
    await untilKnown(servers, [anna, ben]);
  }, 60_000);
  afterAll(async () => {
    await sql.close();
    await team[Symbol.asyncDispose]();
  });

  const ask = (server: TeamServer, who: { key: string }, content = "Hello") =>
    askAs(server, who, content, { stream: true });
  const statusOf = async (server: TeamServer, who: { key: string }) => {
    const answer = await ask(server, who);
    await answer.text();
    return answer.status;
  };
  test("a role that may connect reads nothing", async () => {
    await postgres.administer("CREATE ROLE stranger LOGIN");
    const url = new URL(team.env.DRAGOMAN_DATABASE_URL!);
    url.username = "stranger";
    await using stranger = new SQL(url.href, { max: 2 });
    for (const table of ["members", "requests", "copilot_tokens"])
      expect(await stranger.unsafe(`SELECT 1 FROM dragoman.${table}`).then(String, String)).toContain(
        "permission denied",
      );
  });

  test("sealed values moved to another place are refused in words, and nobody else is served with them", async () => {
    const warned = (server: TeamServer, text: string) =>
      until(() => server.said().includes(text), "the server has said why");
    const before = await sql`SELECT key, sealed_token FROM dragoman.accounts`;
    const ofKey = (key: string) => before.find((row: { key: string }) => row.key === key);
    const [annas, bens] = [ofKey("github.com/anna-hub"), ofKey("github.com/ben-hub")];
    const put = (key: string, sealed: Uint8Array) =>
      sql.begin((transaction) => transaction`UPDATE dragoman.accounts SET sealed_token = ${sealed} WHERE key = ${key}`);
    const [{ config }] = await sql`SELECT coalesce((SELECT sealed_body FROM dragoman.config), 'none'::bytea) AS config`;
    const [{ token }] =
      await sql`SELECT sealed_token AS token FROM dragoman.copilot_tokens WHERE account = ${bens.key}`;
    const unknownKey = Buffer.from(bens.sealed_token);
    unknownKey.fill(7, 1, 9);
    const bytes = Buffer.from(bens.sealed_token);
    for (const sealed of [annas.sealed_token, config, token, unknownKey, bytes.subarray(0, 40), Buffer.alloc(0)]) {
      await put(bens.key, sealed);
      for (const server of servers) {
        await until(async () => (await statusOf(server, ben)) === 424, "the server has no account for the member");
        expect(await statusOf(server, anna)).toBe(200);
      }
      await put(bens.key, bens.sealed_token);
      for (const server of servers)
        await until(async () => (await statusOf(server, ben)) === 200, "the member is served again");
    }
    for (const server of servers) {
      await warned(server, "The account github.com/ben-hub cannot be used.");
      await warned(server, "was changed where it is stored, and cannot be opened");
      await warned(server, "are sealed with the key 0707070707070707");
    }
  });

  test("a Copilot token of another account, or damaged, is replaced by a new one", async () => {
    const others = await sql`SELECT sealed_token FROM dragoman.copilot_tokens WHERE account = 'github.com/anna-hub'`;
    for (const sealed of [others[0].sealed_token, Buffer.from("nonsense")]) {
      await sql`UPDATE dragoman.copilot_tokens SET sealed_token = ${sealed} WHERE account = 'github.com/ben-hub'`;
      const late = await team.server();
      expect(await statusOf(late, ben)).toBe(200);
      expect(late.said()).toContain("The Copilot token of github.com/ben-hub in the database cannot be used.");
      await late[Symbol.asyncDispose]();
    }
  });

  test("a token is not sent to a host that the database names", async () => {
    await sql`UPDATE dragoman.copilot_tokens SET base_url = 'https://copilot.evil.example'`;
    const late = await team.server({ env: { DRAGOMAN_COPILOT_API_URL: "" } });
    expect([await statusOf(late, ben), late.said()]).toEqual([
      200,
      expect.stringContaining("The database names https://copilot.evil.example as the model host"),
    ]);
  });
});
