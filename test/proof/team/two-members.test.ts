/** Scenario: nothing that one member asks for makes another member's request fail or wait. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { adminEndpoints } from "../../../src/admin/api/plugin";
import { pageEndpoints } from "../../../src/admin/pages/plugin";
import { columnNames } from "../../../src/books/history/entry";
import { inHome } from "../../../src/config/home-names";
import { clientEndpoints } from "../../../src/routes/clients";
import { signedIn } from "../../support/form-fields";
import { leastOf, took } from "../../support/least";
import { askAs, type TestMember } from "../../support/members";
import { describeWithMembers, startTeam, type Team, type TeamProcess } from "../../support/teams";
import { until } from "../../support/until";

const rows = 300_000;
/** Milliseconds that another member's request may take meanwhile, and seconds that each route is asked for. */
const [most, seconds] = [100, 3];

/** Every route of a member that reads and names nothing: with what costs most to answer. */
const routes = [
  ...adminEndpoints(),
  ...pageEndpoints(),
  ...clientEndpoints().map((each) => ({ ...each, role: "member" })),
]
  .filter(({ method, role, path }) => method === "GET" && role === "member" && !/[:*]/.test(path))
  .map(({ path }) => (path.endsWith("/statistics") ? `${path}?by=prompt` : path))
  .filter((path) => !/\/(live|sign-out)$/.test(path));

describeWithMembers("two members at once", (place) => {
  let team: Team;
  let server: TeamProcess;
  let anna: TestMember;
  let ben: TestMember;
  let cookie: string;

  beforeAll(async () => {
    team = await startTeam(place);
    server = await team.process();
    ({ anna, ben } = await team.addMembers({ anna: ["anna-hub"], ben: ["ben-hub"] }));
    await server.admin("/budgets", { name: "each", unit: "requests", limit: 1e6, per: "month", each: "member" });
    for (const each of [anna, ben])
      await until(async () => (await askAs(server, each)).status === 200, "the member is served");
    await until(async () => (await fill()) > rows, "the rows are there");
    ({ cookie } = await signedIn(server.url, anna.key));
  }, 300_000);
  afterAll(() => team?.[Symbol.asyncDispose]());

  /** Copies the member's request within this hour, each with a prompt and a session, which no sum that was made ahead has. */
  async function fill(): Promise<number> {
    const at = Math.floor(Date.now() / 3_600_000) * 3_600_000;
    const own: Partial<Record<string, string>> = {
      request_id: "request_id || '-' || n",
      started_at_ms: `${at} + n % 3000`,
      prompt: "'p-' || n % 20000",
      session: "'s-' || n % 5000",
    };
    const copied = (table: string, numbers: string) =>
      `INSERT INTO ${table} (${columnNames}) SELECT ${columnNames.map((name) => own[name] ?? name)}
        FROM (SELECT * FROM ${table} WHERE member = '${anna.id}' ORDER BY id LIMIT 1) AS one, ${numbers}`;
    const url = team.env.DRAGOMAN_DATABASE_URL;
    if (url === undefined) {
      using file = new Database(inHome(team.env.DRAGOMAN_HOME!, "history"));
      file.run("PRAGMA busy_timeout = 30000");
      const numbers = `(WITH RECURSIVE each(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM each WHERE n < ${rows}) SELECT n FROM each)`;
      return file.run(copied("requests", numbers)).changes + 1;
    }
    await using sql = new SQL(url, { max: 1 });
    const { count } = await sql.unsafe(copied("dragoman.requests", `generate_series(1, ${rows}) AS n`));
    await sql.unsafe("ANALYZE dragoman.requests");
    return count + 1;
  }

  /** By a process of its own, so that this one has time to measure. @returns The status; 0 if it did not come in time. */
  async function get(path: string): Promise<number> {
    const header = path.startsWith("/admin") ? `cookie: ${cookie}` : `authorization: Bearer ${anna.key}`;
    const command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-m", String(seconds), "-H", header];
    return Number(await Bun.spawn([...command, server.url + path], { stdout: "pipe" }).stdout.text());
  }

  /** @returns The longest of another member's requests meanwhile, in ms. */
  async function besidesEight(path: string): Promise<number> {
    let isDone = false;
    const asked = Promise.all(Array.from({ length: 8 }, () => get(path))).finally(() => {
      isDone = true;
    });
    const statuses = new Set<number>();
    let longest = 0;
    for (; !isDone; await Bun.sleep(10))
      longest = Math.max(
        longest,
        await took(async () => {
          const answer = await askAs(server, ben);
          await answer.text();
          statuses.add(answer.status);
        }),
      );
    const answers = await asked;
    expect(answers.filter((status) => status >= 500 || status === 424)).toEqual([]);
    expect([...statuses]).toEqual([200]);
    return longest;
  }

  test.each(routes)(
    "%s, eight times at once with 300,000 rows",
    async (path) => {
      expect(await leastOf(most, () => besidesEight(path))).toBeLessThan(most);
    },
    60_000,
  );
});
