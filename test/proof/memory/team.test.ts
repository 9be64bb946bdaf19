/** Scenario: what a server of a team holds in memory while the database has, or says, much. */
import { expect, test } from "bun:test";
import { columnNames } from "../../../src/books/history/entry";
import { statisticsOf } from "../../../src/books/history/statistics";
import { Postgres } from "../../../src/team/connection";
import { insertRows } from "../../../src/team/requests";
import { migrate } from "../../../src/team/schema";
import { atOneMoment } from "../../../src/team/statistics";
import { entry, noon } from "../../support/history-rows";
import { describeWithOwnPostgres } from "../../support/shared-postgres";

describeWithOwnPostgres("memory of a server of a team", (server) => {
  test("the statistics of 20,000 sessions take less than 80 MB of the server that is asked", async () => {
    const postgres = new Postgres({ url: await server.database() });
    await migrate(postgres);
    await insertRows(postgres, [entry({ started_at_ms: noon })], noon);
    const columns = columnNames.filter((name) => !["request_id", "session", "duration_ms"].includes(name)).join(", ");
    const copy = `INSERT INTO dragoman.requests (request_id, session, duration_ms, ${columns})
      SELECT 'copy ' || at, 'session ' || at % 20000, at % 9000, ${columns} FROM dragoman.requests, generate_series(1, 60000) AS at`;
    await postgres.ask((sql) => sql.unsafe(copy), 60_000);
    Bun.gc(true);
    const before = process.memoryUsage.rss();
    let most = before;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss());
    }, 5);
    const { groups, others, totals } = await atOneMoment(postgres, (source) => statisticsOf(source, {}, ["session"]));
    clearInterval(watch);
    expect([groups.length, others!.request_count, totals.request_count]).toEqual([5_000, 60_001 - 5_000 * 3, 60_001]);
    const grown = Math.round((Math.max(most, process.memoryUsage.rss()) - before) / 1e6);
    expect(grown).toBeLessThan(80);
    await postgres.close();
  });
});
