/** Servers that share a database, as processes: what one learns, all know; what one does, none does twice. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { describeWithPostgres, startPostgres, type TestPostgres } from "../support/postgres";
import { startTeam } from "../support/teams";

describeWithPostgres("servers of a team", () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres();
  }, 60_000);
  afterAll(() => server[Symbol.asyncDispose]());

  const ask = (content: string, more = {}) => ({ model: "gpt-5-mini", messages: [{ role: "user", content }], ...more });

  test("a request to either is served, and both show it", async () => {
    await using team = await startTeam(server);
    const [one, other] = await Promise.all([team.server(), team.server()]);
    expect((await one!.post("/v1/chat/completions", ask("Hello"))).status).toBe(200);
    expect((await other!.post("/v1/chat/completions", ask("Hello"))).status).toBe(200);
    for (const each of [one!, other!]) {
      const deadline = performance.now() + 2_000;
      let items = [];
      while (items.length < 2 && performance.now() < deadline) ({ items } = await each.admin("/requests"));
      expect(items.map((row: { http_status: number }) => row.http_status)).toEqual([200, 200]);
    }
  }, 30_000);
});
