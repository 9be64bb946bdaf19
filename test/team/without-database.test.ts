/**
 * Scenario: what a team promises while its database is away or was replaced by an older one; test/proof/team/ has every
 * way to get there.
 */
import { expect, test } from "bun:test";
import { run } from "../support/command";
import { describeWithPassingDatabases } from "../support/shared-postgres";
import { startTeamApp, type TeamApp } from "../support/team-app";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

const chat = (server: TeamApp, key: string) =>
  fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": key },
    body: JSON.stringify({ model: "gpt-5-mini", messages: [{ role: "user", content: "Hello" }] }),
  });

test("a server that starts waits for its database for 30 seconds", async () => {
  await using server = run(["start", "--port", "0"], {
    env: {
      DRAGOMAN_HOME: temporaryFolder(),
      DRAGOMAN_DATABASE_URL: "postgres://nobody@127.0.0.1:9/none",
      DRAGOMAN_SEAL_KEY: Buffer.alloc(32, 7).toString("base64"),
    },
  });
  await until(() => server.stderr().includes("Waiting for the database, for 30 s at most."), "it says that it waits");
  expect(server.process.exitCode).toBeNull();
});

describeWithPassingDatabases("without the database", (postgres) => {
  test("requests go on, changes are refused, and each request has one row when the database is back", async () => {
    await using server = await startTeamApp(postgres);
    const anna = await server.addMember("anna", "anna-hub");
    await until(async () => (await chat(server, anna.key)).status === 200, "the server knows the key");
    const before = (await server.app.history.list({}, 100)).items.length;
    await postgres.stop();
    try {
      const answers = await Promise.all(Array.from({ length: 5 }, () => chat(server, anna.key)));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
      await expect(server.app.members!.revokeKey(anna.id, "key-1")).rejects.toThrow("nothing was changed");
      expect((await chat(server, "drg_unknown")).status).toBe(401);
    } finally {
      await postgres.start();
    }
    await until(() => server.app.history.flush(), "the rows are written");
    const { items } = await server.app.history.list({}, 100);
    expect(items).toHaveLength(before + 5);
    expect(new Set(items.map(({ request_id }) => request_id)).size).toBe(before + 5);
  });

  test("nobody is served when the database is away for longer than keys may be trusted", async () => {
    await using server = await startTeamApp(postgres, { env: { DRAGOMAN_DATABASE_GRACE: "0" } });
    const anna = await server.addMember("anna", "anna-hub");
    await until(async () => (await chat(server, anna.key)).status === 200, "the server knows the key");
    await postgres.stop();
    try {
      await until(async () => (await chat(server, anna.key)).status === 503, "the time without the database is over");
      const refused = await chat(server, anna.key);
      expect([refused.headers.get("retry-after"), await refused.text()]).toEqual([
        "5",
        expect.stringContaining('"code":"database_away"'),
      ]);
      // A key that was not seen in the last minute is asked for in vain.
      const { status, headers } = await chat(server, `drg_${"x".repeat(43)}`);
      expect([status, headers.get("retry-after")]).toEqual([503, "5"]);
    } finally {
      await postgres.start();
    }
    await until(async () => (await chat(server, anna.key)).status === 200, "the server serves again");
  });
});
