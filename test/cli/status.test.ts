/** Rows: what commands ask a running server. */
import { expect, test } from "bun:test";
import { z } from "zod";
import { ask, type RunningServer, readAs, send } from "../../src/cli/running-server";

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
