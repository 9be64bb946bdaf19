/** A member of a team who means harm, on two servers: what a key can make the servers do. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { addMember, type TestMember, withTeamStores } from "../support/members";
import { describeWithPostgres, startPostgres, type TestPostgres } from "../support/postgres";
import { until } from "../support/proxy";
import { individuals, startTeam, type Team, type TeamServer } from "../support/teams";

describeWithPostgres("a member who means harm", () => {
  let postgres: TestPostgres;
  let team: Team;
  let servers: [TeamServer, TeamServer];
  let eve: TestMember;
  beforeAll(async () => {
    postgres = await startPostgres();
    team = await startTeam(postgres);
    servers = [await team.server(), await team.server()];
    eve = await withTeamStores(team, (stores) => addMember(stores, team, "eve", individuals("eve-hub")));
    for (const server of servers) await until(async () => (await ask(server, "/accounts")).status === 200);
  }, 60_000);
  afterAll(async () => {
    await team[Symbol.asyncDispose]();
    await postgres[Symbol.asyncDispose]();
  });

  // biome-ignore lint/suspicious/noExplicitAny: whatever the API answers
  type Any = any;
  const ask = async (server: TeamServer, path: string, body?: object) => {
    const answer = await fetch(`${server.url}/api/admin${path}`, {
      method: body ? "POST" : "GET",
      body: body && JSON.stringify(body),
      headers: { authorization: `Bearer ${eve.key}`, "content-type": "application/json" },
    });
    return { status: answer.status, json: (await answer.json()) as Any };
  };

  test("cannot make the servers call a host of their choice, nor learn from its answers", async () => {
    const [one, other] = servers;
    const asked = () => team.demo.journal.length;
    const before = asked();
    for (const host of ["evil.example", "ghe.com", "company.ghe.com.evil.example", "xghe.com", "a.b.ghe.com"])
      expect([host, (await ask(one, "/accounts/sign-ins", { host })).status]).toEqual([host, 403]);
    expect(asked()).toBe(before);
    const tenant = await ask(other, "/accounts/sign-ins", { host: "company.ghe.com" });
    expect([tenant.status, tenant.json.host]).toEqual([200, "company.ghe.com"]);
    await ask(one, `/accounts/sign-ins/${tenant.json.id}/cancel`, {});
    // The owner knows what they do, and members may follow.
    const owners = await one.admin("/accounts/sign-ins", { host: "github.example" });
    expect(owners.host).toBe("github.example");
  }, 20_000);
});
