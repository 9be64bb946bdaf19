/** Scenario: `dragoman status` and `open`: what runs, in about ten lines. */

import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { ask, type RunningServer, readAs, send } from "../../src/cli/running-server";
import { startOfDayIn } from "../../src/lib/format";
import { run } from "../support/command";
import { inProcess } from "../support/in-process";
import { until } from "../support/until";
import { scriptedGithub } from "./bench";

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

test("`status` shows the server, the accounts, today's requests and the connected tools in at most ten lines", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo", "work-demo");
  await using server = run(["start", "--json", "--port", "0"], { env: github.env });
  const { url } = await server.ready();
  const ask = (model: string) =>
    fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "hi" }] }),
    }).then((response) => response.text());
  await ask("gpt-5-mini");
  await ask("there-is-none");
  expect((await inProcess(["connect", "claude", "--write"], github.env)).code).toBe(0);

  const { code, stdout } = await inProcess(["status"], github.env);
  expect(code).toBe(0);
  expect(stdout.trimEnd().split("\n").length).toBeLessThanOrEqual(10);
  for (const part of [url, "octo-demo  ready", "72%", "work-demo  ready  ∞", "3 requests, 1 failed", "Claude Code"])
    expect(stdout).toContain(part);

  const shown = JSON.parse((await inProcess(["status", "--json"], github.env)).stdout);
  expect(shown).toMatchObject({
    running: true,
    url,
    today: { request_count: 3, error_count: 1 },
    tools: ["Claude Code"],
  });
  expect((await inProcess(["open"], { ...github.env, CI: "1" })).stdout).toBe(`${url}/admin\n`);

  expect(stdout).not.toContain("Attention");
  writeFileSync(join(github.data, "config.json"), "{");
  const told = async () => (await inProcess(["status"], github.env)).stdout;
  await until(
    async () => /Attention +The config is not valid\. config\.json .* line 1/.test(await told()),
    "status tells it",
  );
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
