/** Scenario: what one member asks at the pages makes no other member's request fail or wait: scenario with servers. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { adminEndpoints } from "../../../src/admin/api/plugin";
import { columnNames } from "../../../src/books/history/entry";
import { insertRows } from "../../../src/team/requests";
import { entry } from "../../support/history-rows";
import { askAs, type TestMember } from "../../support/members";
import { describeWithDatabases } from "../../support/shared-postgres";
import { startTeamApp, type TeamApp } from "../../support/team-app";
import { until } from "../../support/until";

const rowsEach = 300_000;

describeWithDatabases("two members at once", (postgres) => {
  let server: TeamApp;
  let anna: TestMember;
  let ben: TestMember;
  let cleo: TestMember;

  beforeAll(async () => {
    server = await startTeamApp(postgres);
    anna = await server.addMember("anna", "anna-hub");
    ben = await server.addMember("ben", "ben-hub");
    cleo = await server.addMember("cleo", "cleo-hub");
    const budget = { name: "each", unit: "requests", limit: 1e6, per: "month", each: "member" };
    await server.app.config.change({ budgets: [budget] });
    await fill([anna, ben]);
    await until(async () => (await ask()).status === 200, "the third member is served");
  }, 300_000);
  afterAll(() => server[Symbol.asyncDispose]());

  const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000;
  /** Rows of this hour, each with a prompt, which no sum that was made ahead has. */
  async function fill(members: readonly TestMember[]): Promise<void> {
    const sql = new SQL(server.env.DRAGOMAN_DATABASE_URL!, { max: 1 });
    const at = hour;
    for (const { id } of members) {
      const template = entry({ member: id, started_at_ms: at, request_id: `row-${id}`, prompt: "p", key_name: "k" });
      await insertRows(server.stores.postgres, [template], undefined);
      const own: Partial<Record<string, string>> = {
        request_id: "request_id || '-' || n",
        started_at_ms: "started_at_ms + n % 3000",
        prompt: "'p-' || n % 20000",
      };
      await sql.unsafe(`INSERT INTO dragoman.requests (${columnNames})
        SELECT ${columnNames.map((name) => own[name] ?? name)} FROM dragoman.requests, generate_series(2, ${rowsEach}) AS n
        WHERE request_id = 'row-${id}'`);
    }
    await sql.unsafe("ANALYZE dragoman.requests");
    await sql.close();
  }

  const ask = () => askAs({ post } as never, cleo);
  const post = (path: string, body: unknown, headers: Record<string, string>) =>
    fetch(server.url + path, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const get = async (path: string, { key }: TestMember) => {
    const answer = await fetch(server.url + path, { headers: { authorization: `Bearer ${key}` } });
    return { status: answer.status, text: await answer.text() };
  };

  /** The third member's requests, one after the other, while others ask. */
  async function besides<T>(asked: Promise<T>): Promise<{ answers: T; statuses: number[]; longest: number }> {
    let isDone = false;
    const done = asked.finally(() => {
      isDone = true;
    });
    done.catch(() => {});
    const statuses: number[] = [];
    let longest = 0;
    while (!isDone) {
      const begun = performance.now();
      const answer = await ask();
      await answer.text();
      statuses.push(answer.status);
      longest = Math.max(longest, performance.now() - begun);
      await Bun.sleep(50);
    }
    return { answers: await done, statuses, longest };
  }

  test("statistics of 300,000 rows each, eight at once, are answered, and a third member is served meanwhile", async () => {
    const eight = Array.from({ length: 8 }, (_, at) => get("/api/admin/statistics?by=prompt", [anna, ben][at % 2]!));
    const { answers, statuses, longest } = await besides(Promise.all(eight));
    expect(answers.map(({ status, text }) => (status === 200 ? 200 : `${status} ${text.slice(0, 300)}`))).toEqual(
      Array(8).fill(200),
    );
    expect(statuses.length).toBeGreaterThan(5);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(longest).toBeLessThan(2_000);
    expect(server.stores.postgres.isAway).toBe(false);
  }, 180_000);

  const paths = adminEndpoints()
    .filter(({ method, role, path }) => method === "GET" && role === "member" && !path.includes(":"))
    .map(({ path }) => path)
    .filter((path) => path !== "/api/admin/live");
  test.each(paths)(
    "%s by a member, eight times at once: another member is served meanwhile",
    async (path) => {
      // Files of all rows would take minutes.
      const query = path.endsWith("/statistics")
        ? "?by=session"
        : /export|bill/.test(path)
          ? `?from_ms=${hour + 2_990}`
          : "";
      const eight = Array.from({ length: 8 }, (_, at) => get(path + query, [anna, ben][at % 2]!));
      const { answers, statuses, longest } = await besides(Promise.all(eight));
      expect(answers.filter(({ status }) => status >= 500 || status === 424)).toEqual([]);
      expect(new Set(statuses)).toEqual(new Set([200]));
      expect(longest).toBeLessThan(2_000);
    },
    180_000,
  );
});
