/** Scenario: servers are replaced by those of a newer version, one after the other, while streams run. */
import { expect, test } from "bun:test";
import { SQL } from "bun";
import { schemaVersion } from "../../../src/team/schema";
import { describeWithDatabases } from "../../support/shared-postgres";
import { chatBody, startTeam, type TeamProcess } from "../../support/teams";
import { until } from "../../support/until";

describeWithDatabases("a rolling upgrade", (postgres) => {
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
          chatBody("Tell me a story.", { stream: true }),
        );
        ended.push({ status: response.status, isWhole: (await response.text()).trimEnd().endsWith("[DONE]") });
      }
    });
    await until(() => ended.length > 0, "streams run and end");
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
    let rows = 0;
    await until(async () => {
      [{ rows }] = await sql`SELECT count(*)::int AS rows FROM dragoman.requests`;
      return rows >= ended.length;
    }, "every request has its row");
    await sql.close();
    expect(rows).toBe(ended.length);
  });
});
