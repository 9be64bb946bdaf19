/**
 * Scenario: a role or a database may have settings on which statements would fail: each connection is opened with its
 * own.
 */
import { expect, test } from "bun:test";
import { aboutConfig, Seals } from "../../src/lib/seals";
import { Postgres } from "../../src/team/connection";
import { otherSettings, settings } from "../../src/team/settings";
import { inProcess } from "../support/in-process";
import { describeWithDatabases } from "../support/shared-postgres";
import { startTeamApp } from "../support/team-app";
import { until } from "../support/until";

/** Of each setting a value with which something fails, or may. */
const hostile: Record<keyof typeof settings | "DateStyle", string> = {
  bytea_output: "escape",
  DateStyle: "German",
  default_transaction_isolation: "serializable",
  default_transaction_read_only: "on",
  extra_float_digits: "-15",
  IntervalStyle: "iso_8601",
  lock_timeout: "1ms",
  standard_conforming_strings: "off",
  statement_timeout: "20s",
  TimeZone: "+14",
};

describeWithDatabases("a database with other settings", (postgres) => {
  async function hostileDatabase(): Promise<string> {
    const url = await postgres.database();
    const name = new URL(url).pathname.slice(1);
    for (const [setting, value] of Object.entries(hostile))
      await postgres.administer(`ALTER DATABASE ${name} SET ${setting} = '${value}'`);
    return url;
  }

  test("servers start, change what they keep, and read it back; doctor finds nothing", async () => {
    const url = await hostileDatabase();
    // The settings are in effect for whoever brings none.
    expect(await postgres.administer("SHOW bytea_output", url)).toEqual([{ bytea_output: "escape" }]);
    await using one = await startTeamApp(postgres, { env: { DRAGOMAN_DATABASE_URL: url } });
    const anna = await one.addMember("anna", "anna-hub");
    await one.app.config.change({ retentionDays: 9 });
    await using other = await startTeamApp(postgres, { env: one.env, demo: one.demo });
    expect(other.app.config.current.retentionDays).toBe(9);
    for (const server of [one, other])
      await until(async () => {
        const answer = await fetch(`${server.url}/v1/chat/completions`, {
          method: "POST",
          headers: { "content-type": "application/json", "x-api-key": anna.key },
          body: JSON.stringify({ model: "gpt-5-mini", messages: [{ role: "user", content: "Hello" }] }),
        });
        return answer.status === 200;
      }, "the member is served");
    await until(async () => (await one.app.history.list({}, 10)).items.length >= 2, "the rows are read");
    await other.app.config.change({ retentionDays: 10 });
    await until(() => one.app.config.current.retentionDays === 10, "the change is heard");
    for (const server of [one, other]) expect(server.lines.join("")).not.toMatch(/"level":"(?:warn|error)"/);
    const { stdout, stderr } = await inProcess(["doctor", "--json"], one.env);
    expect(stdout + stderr).not.toContain("bytea_output");
  });

  test("behind a pooler that does not pass ours on, a server does not start and says what to set, as doctor does", async () => {
    const url = await hostileDatabase();
    await using team = await startTeamApp(postgres, {});
    // With a direct address, `url` leads through a pooler, so its connections bring no settings.
    const env = { ...team.env, DRAGOMAN_DATABASE_URL: url, DRAGOMAN_DATABASE_DIRECT_URL: url };
    const pooled = new Postgres({ url, directUrl: url });
    expect(Object.keys(await otherSettings(pooled)).sort()).toEqual(Object.keys(settings).sort());
    await pooled.close();
    const usual = await postgres.database();
    for (const zone of ["Etc/UTC", "UTC", "GMT", "Etc/GMT+0", "Zulu"]) {
      await postgres.administer(`ALTER DATABASE ${new URL(usual).pathname.slice(1)} SET TimeZone = '${zone}'`);
      const named = new Postgres({ url: usual, directUrl: usual });
      expect([zone, await otherSettings(named)]).toEqual([zone, {}]);
      await named.close();
    }
    const refused = await startTeamApp(postgres, { env, demo: team.demo }).catch(String);
    expect(refused).toContain("bytea_output is escape");
    expect(refused).toContain("ALTER ROLE … SET bytea_output = 'hex';");
    const { code, stdout, stderr } = await inProcess(["doctor"], env);
    expect(code).toBe(1);
    expect(stdout + stderr).toContain("settings with which dragoman cannot work: bytea_output is escape");
  });

  test("a pooler that refuses ours when a connection is opened is told apart from one without a database", async () => {
    const told = async (words: string) => {
      const fields = `SFATAL\0C08P01\0M${words}\0\0`;
      const refusal = Buffer.concat([Buffer.from("E\0\0\0\0"), Buffer.from(fields)]);
      refusal.writeInt32BE(4 + fields.length, 1);
      using pooler = Bun.listen({
        ...{ hostname: "127.0.0.1", port: 0 },
        socket: { data: (socket) => void socket.end(refusal) },
      });
      const asked = new Postgres({ url: `postgres://x@127.0.0.1:${pooler.port}/x?sslmode=disable` });
      const thrown = await asked.ask((sql) => sql`SELECT 1`).catch(String);
      await asked.close();
      return thrown;
    };
    // As PgBouncer 1.18 has it.
    expect(await told("unsupported startup parameter: bytea_output")).toContain(
      "a pooler before it refuses the settings that a connection is opened with. Behind a pooler, set DRAGOMAN_DATABASE_DIRECT_URL",
    );
    expect(await told("pgbouncer cannot connect to server")).toContain("it cannot be reached. Try again");
  });

  test("a config that only a newer version can read leaves the one before in effect, until it can be read again", async () => {
    await using server = await startTeamApp(postgres);
    const { config } = server.app;
    await config.change({ retentionDays: 9 });
    const seals = new Seals(Buffer.from(server.env.DRAGOMAN_SEAL_KEY!, "base64"));
    const write = async (body: object) => {
      const sealed = seals.seal(JSON.stringify(body), aboutConfig).toString("hex");
      await postgres.administer(
        `UPDATE dragoman.config SET sealed_body = '\\x${sealed}', revision = DEFAULT`,
        server.env.DRAGOMAN_DATABASE_URL,
      );
      await config.reload();
    };
    await write({ retentionDays: 8, newSetting: true });
    expect([config.current.retentionDays, config.fault]).toEqual([
      9,
      "The config in the database has an error for this version: newSetting: not a known key.",
    ]);
    await write({ retentionDays: 8 });
    expect([config.current.retentionDays, config.fault]).toEqual([8, undefined]);
    expect(server.lines.join("")).toMatch(/error for this version.*valid for this version again/s);
  });

  test("budgets that are added at the same moment at two servers are all kept", async () => {
    await using one = await startTeamApp(postgres);
    await using other = await startTeamApp(postgres, { env: one.env, demo: one.demo });
    const names = ["a", "b", "c", "d"];
    const add = (name: string, at: number) =>
      fetch(`${[one, other][at % 2]!.url}/api/admin/budgets`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ name, limit: 1, unit: "requests", per: "day" }),
      });
    expect((await Promise.all(names.map(add))).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    await one.app.config.reload();
    expect(one.app.config.current.budgets.map(({ name }) => name).sort()).toEqual(names);
  });

  test("doctor says that another key has sealed the secrets, and that a newer version has changed the tables", async () => {
    await using server = await startTeamApp(postgres);
    await server.addMember("anna", "anna-hub");
    const found = async (env: object) =>
      JSON.parse((await inProcess(["doctor", "--json"], { ...server.env, ...env })).stdout).checks.find(
        ({ name }: { name: string }) => name === "database",
      );
    expect(await found({ DRAGOMAN_SEAL_KEY: Buffer.alloc(32).toString("base64") })).toMatchObject({
      state: "fail",
      message: expect.stringContaining("its secrets are sealed with a key that is not set here"),
    });
    await postgres.administer("UPDATE dragoman.schema SET compatible_with = 99", server.env.DRAGOMAN_DATABASE_URL);
    expect(await found({})).toMatchObject({
      state: "fail",
      message: expect.stringContaining("was changed by a newer dragoman"),
    });
  });
});
