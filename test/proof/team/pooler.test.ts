/**
 * Scenario: servers behind PgBouncer: the same promises, also while it is restarted; and a word to who forgot the
 * direct address.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { run } from "../../support/command";
import { type PgBouncer, startPgBouncer } from "../../support/pgbouncer";
import { describeWith } from "../../support/sandbox";
import { describeWithOwnPostgres } from "../../support/shared-postgres";
import { chatBody, startTeam } from "../../support/teams";
import { until } from "../../support/until";

describeWith("pgbouncer", "behind PgBouncer", () => {
  describeWithOwnPostgres("servers of a team", (postgres) => {
    let pooler: PgBouncer;
    beforeAll(async () => {
      pooler = await startPgBouncer(await postgres.database());
    });
    afterAll(async () => {
      await pooler[Symbol.asyncDispose]();
    });

    test("exchange once, keep a budget exactly, and lose nothing while PgBouncer is restarted", async () => {
      await using team = await startTeam(postgres, { pooler });
      const all = await Promise.all([team.process(), team.process()]);
      const limit = 900;
      await all[0]!.admin("/budgets", { name: "team", unit: "requests", limit, per: "month" });
      await until(
        async () => (await all[1]!.admin("/budgets")).items?.length === 1,
        "the other server knows the budget",
      );
      const ids: string[] = [];
      const send = async (at: number) => {
        const response = await all[at % 2]!.post("/v1/chat/completions", chatBody("Hello"));
        await response.text();
        if (response.ok) ids.push(response.headers.get("x-request-id")!);
        return response.status;
      };
      expect(await Promise.all(Array.from({ length: 16 }, (_, at) => send(at)))).toEqual(new Array(16).fill(200));
      expect(team.demo.journal.filter(({ path }) => path === "/copilot_internal/v2/token")).toHaveLength(1);
      const six = () => Promise.all(Array.from({ length: 6 }, (_, at) => send(at)));
      const crossing = six();
      await pooler.stop();
      const statuses = [...(await crossing), ...(await six())];
      // Without the database nobody knows what is left of the budget.
      expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
      await pooler.start();
      await until(async () => (await six()).every((status) => status === 200), "requests are served again");
      const used = ids.length;
      await until(async () => (await all[1]!.admin("/budgets")).items?.[0]?.used === used, "the budget is exact");
      await Promise.all(Array.from({ length: limit - used + 20 }, (_, at) => send(at)));
      expect([await send(0), await send(1), ids.length]).toEqual([429, 429, limit]);
      const sql = new SQL(team.env.DRAGOMAN_DATABASE_DIRECT_URL!, { max: 1 });
      const rows = () => sql`SELECT request_id FROM dragoman.requests WHERE http_status = 200`;
      await until(async () => (await rows()).length === limit, "every row is written");
      const stored = (await rows()).map(({ request_id }: { request_id: string }) => request_id);
      await sql.close();
      expect(stored.sort()).toEqual(ids.sort());
    });

    test("without a direct address a server does not start, and says what is missing", async () => {
      await using team = await startTeam(postgres, { pooler });
      const { DRAGOMAN_DATABASE_DIRECT_URL: _, ...env } = team.env;
      await using started = run(["start", "--port", "0", "--json"], { env });
      expect(await started.exited).toBeGreaterThan(0);
      expect(started.stderr()).toContain("set DRAGOMAN_DATABASE_DIRECT_URL");
    });
  });
});
