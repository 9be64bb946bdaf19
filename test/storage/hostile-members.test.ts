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

  test("cannot ask GitHub for codes without end by cancelling each: GitHub would refuse them to everybody", async () => {
    team.demo.device.pending = 1_000_000;
    const statuses: number[] = [];
    for (let begun = 0; begun < 30; begun += 1) {
      const server = servers[begun % 2]!;
      const { status, json } = await ask(server, "/accounts/sign-ins", {});
      statuses.push(status);
      if (status === 200) await ask(server, `/accounts/sign-ins/${json.id}/cancel`, {});
    }
    expect(statuses.filter((status) => status === 200).length).toBeWithin(15, 23);
    expect(statuses.slice(25)).toEqual(new Array(5).fill(429));
    // The owner has none of that.
    expect((await servers[0].admin("/accounts/sign-ins", {})).state).toBe("waiting");
  }, 30_000);
});
