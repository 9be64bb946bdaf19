/** Scenario: what `dragoman doctor` says of a team, which it only looks at. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { version } from "../../package.json";
import type { Finding } from "../../src/cli/checks/check";
import { inHome } from "../../src/config/home-names";
import { openDiskQueues } from "../../src/team/disk-queue";
import { inProcess } from "../support/in-process";
import { addMember, withTeamStores } from "../support/members";
import { describeWithDatabases } from "../support/shared-postgres";
import { individuals, startTeam } from "../support/teams";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

describeWithDatabases("dragoman doctor in a team", (postgres) => {
  async function examine(env: Record<string, string>, about = /^(team|database)$/, ...more: string[]) {
    const { stdout } = await inProcess(["doctor", "--json", "--port", "0", ...more], env);
    const { checks } = JSON.parse(stdout) as { checks: Finding[] };
    return checks.filter(({ name }) => about.test(name));
  }

  test("who is let in, also where members have keys and the owner has none", async () => {
    await using team = await startTeam(postgres);
    const home = temporaryFolder();
    const env = { ...team.env, DRAGOMAN_HOME: home, ADMIN_TOKEN: "t-admin-0123456789" };
    const access = async () => (await examine(env, /^access$/))[0]!;
    expect(await access()).toMatchObject({ state: "ok", message: expect.stringContaining("known when a server runs") });
    await using server = await team.process({ args: ["--admin-auth=always"], env, home });
    expect(server.said()).not.toContain("WARNING");
    expect((await access()).message).toStartWith("Programs on this machine need no key");
    await withTeamStores(team, ({ members }) => members.invite("ben"));
    await until(async () => (await fetch(`${server.url}/usage/line`)).status === 401, "the server knows the member");
    const needed = "Clients need a key, and the admin API requires its token on this machine too.";
    expect(await access()).toEqual({ name: "access", state: "ok", message: needed });
    await server[Symbol.asyncDispose]();
    expect((await access()).message).toStartWith("Clients need a key");
  }, 60_000);

  test("servers, leader, keys, members without an account, and what waits on this machine", async () => {
    await using team = await startTeam(postgres);
    const home = temporaryFolder();
    const env = { ...team.env, DRAGOMAN_HOME: home };
    expect(await examine(env)).toEqual([
      { name: "database", state: "ok", message: expect.stringMatching(/^Postgres \d+\.\d.* has 1 account\.$/) },
      { name: "team", state: "ok", message: "No server is running." },
      { name: "team", state: "ok", message: "0 members." },
    ]);
    await team.server();
    await withTeamStores(team, async (stores) => {
      await addMember(stores, team, "anna", individuals("anna-demo"));
      await stores.members.invite("ben");
    });
    const [, servers, members] = await examine(env);
    const here = `${hostname()} (${version}`;
    expect(servers).toEqual({ name: "team", state: "ok", message: `1 server running: ${here}, leads).` });
    expect(members).toMatchObject({ state: "warn", message: "2 members; without an account: ben." });

    // One of an older version.
    await using sql = new SQL(team.env.DRAGOMAN_DATABASE_URL!, { max: 1 });
    await sql`INSERT INTO dragoman.servers (id, host, version) VALUES (gen_random_uuid(), 'elsewhere', '0.0.1')`;
    const queues = openDiskQueues(inHome(home, "waiting"), () => {});
    queues.queue("settlement").add([["one", []]]);
    queues.close();
    const before = readFileSync(inHome(home, "waiting"));
    const report = join(home, "report.md");
    const found = (await examine(env, undefined, "--report", report)).slice(1);
    expect(found.map(({ state }) => state)).toEqual(["ok", "warn", "warn", "warn"]);
    expect(found[0]!.message).toMatch(/^2 servers running: .+ \(.+, leads\), elsewhere \(0\.0\.1\)\.$/);
    expect(found[1]!.message).toBe("The servers have different versions.");
    expect(found[3]!.message).toContain("1 entry of the history and the budgets wait in");
    expect(readFileSync(inHome(home, "waiting"))).toEqual(before);
    const written = readFileSync(report, "utf8");
    expect(written).toContain("2 members; without an account: name-");
    expect(written).not.toMatch(new RegExp(`\\b${RegExp.escape(hostname())}\\b|\\bben\\b`));
  });
});
