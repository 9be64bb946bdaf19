/**
 * Scenario: the database is away for a while: requests are served, nothing is counted twice, and every row is there
 * afterwards.
 */
import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { SQL } from "bun";
import { inHome } from "../../../src/config/home-names";
import { openVisitor, startEdge } from "../../support/edge";
import { untilKnown } from "../../support/members";
import { describeWithOwnPostgres } from "../../support/shared-postgres";
import { chatBody, startTeam, type Team, type TeamProcess } from "../../support/teams";
import { temporaryFolder } from "../../support/temporary-folder";
import { until } from "../../support/until";

describeWithOwnPostgres("while the database is away", (postgres) => {
  afterEach(() => postgres.start());

  test("requests and streams go on, nothing is sent twice, and every ended one has its row afterwards", async () => {
    await using team = await startTeam(postgres, { pace: 10 });
    const all = await Promise.all([team.process(), team.process()]);
    const anna = await all[0]!.admin("/keys", { name: "anna" });
    const headers = { authorization: `Bearer ${anna.key}` };
    await untilKnown(all, [anna]);

    const ids: string[] = [];
    let stop = false;
    const send = async (server: TeamProcess, stream: boolean) => {
      const text = stream ? "[demo: long 40] Tell me a story." : "Hello";
      const response = await server.post("/v1/chat/completions", chatBody(text, { stream }), headers);
      const answer = await response.text();
      expect([response.status, answer.includes(stream ? "[DONE]" : "choices")]).toEqual([200, true]);
      ids.push(response.headers.get("x-request-id")!);
    };
    const loads = Array.from({ length: 4 }, async (_, at) => {
      for (; !stop; await Bun.sleep(20)) await send(all[at % 2]!, at === 0);
    });
    const more = (count: number, before = ids.length) =>
      until(() => ids.length >= before + count, "so many more requests have ended");
    await more(8);
    await postgres.stop();
    await more(8);
    // A token that is refused now is exchanged by each server alone.
    team.demo.expireTokens();
    await more(16);
    const refused = await fetch(`${all[0]!.url}/api/admin/config`, {
      method: "POST",
      body: JSON.stringify({ logLevel: "debug" }),
      headers: { "content-type": "application/json" },
    });
    expect([refused.status, await refused.text()]).toEqual([503, expect.stringContaining("nothing was changed")]);
    expect((await fetch(`${all[0]!.url}/api/admin/requests`)).status).toBe(503);
    const readiness = async () => (await fetch(`${all[0]!.url}/health/ready`)).json();
    await until(
      async () => Bun.deepMatch({ status: "ready", degraded: ["history", "database"] }, await readiness()),
      "the server says that it is degraded",
    );
    const health = await (await fetch(`${all[0]!.url}/admin/health`)).text();
    expect(health).toContain("Their entries wait on this server until the database takes them");
    await postgres.start();
    await more(8);
    stop = true;
    await Promise.all(loads);

    const rows = await rowsOf(team, (found) => ids.every((id) => found.has(id)));
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(rows.get(id)).toMatchObject({ http_status: 200, key_name: "anna" });
    // Each request went upstream once, or once more after a 401 that everybody got.
    const calls = team.demo.journal.filter(({ path, status }) => path === "/chat/completions" && status === 200);
    expect(calls).toHaveLength(rows.size);
  });

  test("a request that a budget limits is refused for now, and the budget is exact afterwards", async () => {
    await using team = await startTeam(postgres);
    const all = await Promise.all([team.process(), team.process()]);
    const limit = 60;
    await all[0]!.admin("/budgets", { name: "team", unit: "requests", limit, per: "month" });
    await until(async () => (await all[1]!.admin("/budgets")).items.length === 1, "the other server knows the budget");
    const counted = (reserved: number, used: number) => async () =>
      Bun.deepMatch({ reserved, used }, (await all[1]!.admin("/budgets")).items?.[0] ?? {});
    for (const server of all) expect((await server.post("/v1/chat/completions", chatBody("Hello"))).status).toBe(200);
    await until(counted(0, 2), "both are counted");
    // This one ends while the database is away.
    const running = all[0]!.post("/v1/chat/completions", chatBody("[demo: silence 5] Hello", { stream: true }));
    await until(counted(1, 2), "a request runs");
    await postgres.stop();
    for (let count = 0; count < 3; count += 1) {
      const refused = await all[0]!.post("/v1/chat/completions", chatBody("Hello"));
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
      expect(await refused.text()).toContain("The budget `team` cannot be checked");
    }
    expect((await (await running).text()).trimEnd().endsWith("[DONE]")).toBe(true);
    await postgres.start();
    await until(counted(0, 3), "the budget is exact");
    // With the database, the whole rest can be used again, also by one server alone.
    const send = async () => (await all[1]!.post("/v1/chat/completions", chatBody("Hello"))).status;
    const statuses = await Promise.all(Array.from({ length: limit - 3 + 20 }, send));
    expect(statuses.filter((status) => status === 200)).toHaveLength(limit - 3);
    expect(statuses.filter((status) => status === 429)).toHaveLength(20);
  });

  test("rows of a server that is killed then follow when it starts again", async () => {
    await using team = await startTeam(postgres);
    const home = temporaryFolder();
    const server = await team.process({ home });
    expect((await server.post("/v1/chat/completions", chatBody("Hello"))).status).toBe(200);
    await rowsOf(team, (found) => found.size === 1);
    await postgres.stop();
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1)
      ids.push((await server.post("/v1/chat/completions", chatBody("Hello"))).headers.get("x-request-id")!);
    // The rows are on the disk a moment later.
    await until(() => waitingIn(home) === ids.length, "the rows wait on the disk");
    server.command.process.kill("SIGKILL");
    await server.command.exited;
    await postgres.start();
    await team.process({ home });
    await rowsOf(team, (found) => ids.every((id) => found.has(id)));
  });

  test("after the grace period a server refuses, because it does not know whose key or sign-in is still valid", async () => {
    await using team = await startTeam(postgres);
    const adminToken = "an-admin-token-0815";
    const server = await team.process({ env: { DRAGOMAN_DATABASE_GRACE: "0", ADMIN_TOKEN: adminToken } });
    await using edge = startEdge([server.url]);
    const owner = openVisitor(edge);
    await owner.post("/admin/sign-in", { token: adminToken, next: "/admin" });
    expect((await owner.get("/admin/try")).status).toBe(200);
    expect((await server.post("/v1/chat/completions", chatBody("Hello"))).status).toBe(200);
    await postgres.stop();
    await until(async () => (await fetch(`${server.url}/health/ready`)).status === 503, "the server is not ready");
    const refused = await server.post("/v1/chat/completions", chatBody("Hello"));
    expect([refused.status, await refused.text()]).toEqual([
      503,
      expect.stringContaining("The database has been away"),
    ]);
    const page = await owner.get("/admin/try");
    expect([page.status, page.text.includes("The database has been away")]).toEqual([503, true]);
    expect((await fetch(`${server.url}/health/live`)).status).toBe(200);
    await postgres.start();
    await until(
      async () => (await server.post("/v1/chat/completions", chatBody("Hello"))).status === 200,
      "requests are served again",
    );
    expect((await owner.get("/admin/try")).status).toBe(200);
  });

  /** How many rows wait in the data folder for the database. */
  function waitingIn(home: string): number {
    const path = inHome(home, "waiting");
    if (!existsSync(path)) return 0;
    using queues = new Database(path, { readonly: true });
    const tables = queues.query("SELECT name FROM sqlite_master").all();
    return tables.length > 0 ? queues.query("SELECT key FROM waiting WHERE kind = 'request'").all().length : 0;
  }

  /** The rows in the database, once the claim holds. */
  async function rowsOf({ env }: Team, claim: (rows: Map<string, object>) => boolean): Promise<Map<string, object>> {
    const sql = new SQL(env.DRAGOMAN_DATABASE_URL!, { max: 1 });
    let rows = new Map<string, object>();
    await until(async () => {
      const found = await sql`SELECT request_id, http_status::int AS http_status, key_name FROM dragoman.requests`;
      rows = new Map(found.map((row: { request_id: string }) => [row.request_id, row]));
      return claim(rows);
    }, "the rows are in the database");
    await sql.close();
    return rows;
  }
});
