/** Rows: what commands ask a running server, and the day of its zone. */
import { expect, test } from "bun:test";
import { z } from "zod";
import { ask, type RunningServer, readAs, send } from "../../src/cli/running-server";
import { startOfDayIn } from "../../src/lib/format";

// biome-ignore format: a table is read by its rows
test.each([
  ["UTC", "2026-11-10T06:00:00Z", "2026-11-10T00:00:00Z"],
  ["America/Los_Angeles", "2026-11-10T06:00:00Z", "2026-11-09T08:00:00Z"],
  ["Asia/Kolkata", "2026-11-09T18:30:00Z", "2026-11-09T18:30:00Z"],
  // The clock goes forward at midnight.
  ["Asia/Beirut", "2026-03-29T12:00:00Z", "2026-03-28T22:00:00Z"],
])("the day of the server's zone %s at %s begins at %s", (zone, at, begins) => {
  expect(startOfDayIn(zone, Date.parse(at))).toBe(Date.parse(begins));
});

test("an answer of another version is told, and not taken for one of this", () => {
  const server = { url: "http://127.0.0.1:1", keys: [], pid: 1, demo: false };
  for (const answer of [{ count: "1" }, {}, [], null])
    expect(() => readAs(z.object({ count: z.number() }), answer as never, server)).toThrow("does not understand");
});

test("commands name paths, parameters, bodies and answers of the server as its routes do, which the compiler checks", () => {
  const server = {} as RunningServer;
  const wrong = async () => {
    await ask(server, "/api/admin/totals", { query: { from_ms: "0" } });
    // @ts-expect-error no such path
    await ask(server, "/api/admin/total");
    // @ts-expect-error no such parameter
    await ask(server, "/api/admin/totals", { query: { from: "0" } });
    // @ts-expect-error one that takes no query
    await ask(server, "/usage", { query: { from_ms: "0" } });
    // @ts-expect-error a path without its parameter
    await send(server, "/api/admin/keys/:name/revoke", {});
    await send(server, "/api/admin/budgets/remove", { name: "x" });
    // @ts-expect-error a member that the route does not take
    await send(server, "/api/admin/budgets/remove", { names: "x" });
    const said = await ask(server, "/api/admin/meta");
    // @ts-expect-error an answer that was not read
    said.version;
    readAs(z.object({ version: z.string() }), said, server);
    // @ts-expect-error another answer than the route gives
    readAs(z.object({ version: z.number() }), said, server);
  };
  expect(wrong).toBeFunction();
});
