/** The lines of requests that wait at several servers, as the database has them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createLogger } from "../../src/logger";
import { Postgres } from "../../src/team/connection";
import { migrate } from "../../src/team/schema";
import { OwnServer } from "../../src/team/server";
import { postgresLines } from "../../src/team/waiting";
import { describeWithDatabases } from "../support/shared-postgres";

const hourMs = 3_600_000;

describeWithDatabases("the lines of a team", (server) => {
  let postgres: Postgres;
  beforeAll(async () => {
    postgres = new Postgres({ url: await server.database() });
    await migrate(postgres);
  });
  afterAll(() => postgres.close());

  async function linesOfServer() {
    const logger = createLogger(() => "error");
    const own = await OwnServer.join({ postgres, logger, version: "1" });
    return { own, lines: postgresLines(postgres, own.id) };
  }

  test("a request goes although the message was lost that its limit has ended", async () => {
    const { lines, own } = await linesOfServer();
    const waiter = { id: "one", line: "a", waitedMs: 0 };
    await lines.join({ ...waiter, readyInMs: hourMs });
    await lines.keep([{ ...waiter, readyInMs: hourMs }]);
    expect(await lines.first("a", 1)).toEqual(new Set());
    // The database was away when the budget was raised: `move` came to nothing.
    await lines.keep([{ ...waiter, readyInMs: 0 }]);
    expect(await lines.first("a", 1)).toEqual(new Set(["one"]));
    await own.close();
  });

  test("a request keeps its place when it is told anew, and the oldest that is ready goes first", async () => {
    const [one, other] = [await linesOfServer(), await linesOfServer()];
    const [older, newer] = [
      { id: "older", line: "b", waitedMs: 60_000 },
      { id: "newer", line: "b", waitedMs: 0 },
    ];
    await other.lines.join({ ...newer, readyInMs: 0 });
    await one.lines.join({ ...older, readyInMs: hourMs });
    expect(await other.lines.first("b", 1)).toEqual(new Set(["newer"]));
    await one.lines.keep([{ ...older, waitedMs: 0, readyInMs: 0 }]);
    expect(await other.lines.first("b", 1)).toEqual(new Set(["older"]));
    for (const { own } of [one, other]) await own.close();
  });
});
