/**
 * Scenario: `dragoman database reseal`, as src/deploy/TEAMS.md tells it: everything is sealed with the new key, or
 * nothing.
 */
import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { textOfDocument } from "../../src/deploy/documents/documents";
import { keyIdIn, keyIdOf } from "../../src/lib/seals";
import { program } from "../support/command";
import { browserOf, signedInTool, toolAt } from "../support/device-login";
import { startEdge } from "../support/edge";
import { inProcess } from "../support/in-process";
import { withTeamStores } from "../support/members";
import { describeWithDatabases } from "../support/shared-postgres";
import { individuals, startTeam } from "../support/teams";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

const newKey = () => randomBytes(32).toString("base64");
const idOf = (key: string) => keyIdOf(Buffer.from(key, "base64"));

describeWithDatabases("a change of the seal key", (postgres) => {
  /** The ids of the keys that the secrets in the tables are sealed with. */
  const keysIn = async (url: string) => {
    const rows = (await postgres.administer(
      `SELECT sealed_token AS sealed FROM dragoman.accounts WHERE sealed_token IS NOT NULL
        UNION ALL SELECT sealed_token FROM dragoman.copilot_tokens UNION ALL SELECT sealed_body FROM dragoman.config`,
      url,
    )) as { sealed: Uint8Array }[];
    expect(rows.length).toBeGreaterThanOrEqual(3);
    return [...new Set(rows.map(({ sealed }) => keyIdIn(sealed)))];
  };
  const reseal = async (env: Record<string, string>) => {
    const { code, stderr } = await inProcess(["database", "reseal"], env);
    return { code, said: stderr };
  };

  test("done as the guide says, it keeps accounts, config and the sign-ins of tools", async () => {
    await using team = await startTeam(postgres, { accounts: individuals("octo-demo") });
    const anna = await team.addMember("anna", "anna-octo");
    const url = team.env.DRAGOMAN_DATABASE_URL!;
    const before = await team.process();
    await using edge = startEdge([before.url]);
    await before.admin("/config", { maxPromptTokens: { "gpt-5": 1_000 } });
    await until(async () => (await toolAt(edge).ask(anna.key)).status === 200, "the member is served");
    // Claude Code by `/login`, and this machine by `dragoman login`.
    const claude = await signedInTool(edge, anna.key);
    const home = temporaryFolder();
    const env = { PATH: process.env.PATH ?? "", HOME: home, DRAGOMAN_HOME: join(home, "data") };
    const login = Bun.spawn([...program, "login", edge.url], { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    let said = "";
    const reading = (async () => {
      for await (const piece of login.stderr) said += new TextDecoder().decode(piece);
    })();
    await until(() => /[B-Z]{4}-[B-Z]{4}/.test(said), "the code is shown");
    await (await browserOf(edge, anna.key)).decide(/[B-Z]{4}-[B-Z]{4}/.exec(said)![0]);
    expect(await login.exited).toBe(0);
    await reading;

    const [, commands] = /## Change the seal key\n[\s\S]*?```sh\n([\s\S]*?)```/.exec(
      textOfDocument("src/deploy/TEAMS.md"),
    )!;
    const guide = async () => {
      const quoted = program.map((word) => `'${word}'`).join(" ");
      const script = `dragoman() { ${quoted} "$@"; }\n${commands}echo "$DRAGOMAN_SEAL_KEY_NEXT"`;
      const child = Bun.spawn(["bash", "-ec", script], {
        env: { ...env, ...team.env },
        stdout: "pipe",
        stderr: "pipe",
      });
      const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
      return { code, err, key: out.trim() };
    };
    // A server that runs could open nothing any more.
    expect(await guide()).toMatchObject({
      code: 1,
      err: expect.stringContaining("1 server of the database is running. Stop it first"),
    });
    expect(await keysIn(url)).toEqual([idOf(team.env.DRAGOMAN_SEAL_KEY!)]);
    before.command.process.kill("SIGTERM");
    expect(await before.command.exited).toBe(0);
    const { code, err, key } = await guide();
    expect([code, err]).toEqual([0, expect.stringMatching(/[345] secrets sealed with the new key/)]);
    expect(await keysIn(url)).toEqual([idOf(key)]);

    const stale = await withTeamStores(team, async () => {}).catch(String);
    expect(String(stale)).toContain(`are sealed with the key ${idOf(key)}`);
    const after = await team.process({ env: { DRAGOMAN_SEAL_KEY: key } });
    edge.servers[0] = after.url;
    expect((await after.admin("/accounts")).items[0].state).toBe("ready");
    expect((await after.admin("/config")).config.maxPromptTokens).toEqual({ "gpt-5": 1_000 });
    // The tokens that they have, and those that they get for them.
    expect((await toolAt(edge).ask(claude.access_token)).status).toBe(200);
    const renewed = await toolAt(edge).refresh(claude.refresh_token);
    expect(renewed.status).toBe(200);
    expect((await toolAt(edge).ask(renewed.access_token)).status).toBe(200);
    const printed = Bun.spawn([...program, "key", "print"], { env, stdout: "pipe", stderr: "pipe" });
    const token = (await printed.stdout.text()).trim();
    expect((await toolAt(edge).ask(token)).status).toBe(200);
    await postgres.administer("UPDATE dragoman.seal SET token_secret_until = now()", url);
    await using late = await team.server({ env: { DRAGOMAN_SEAL_KEY: key } });
    const old = await Promise.all([claude.access_token, renewed.access_token].map((each) => toolAt(late).ask(each)));
    expect(old.map(({ status }) => status)).toEqual([401, 200]);
  }, 60_000);

  test("is refused whole where a secret cannot be opened, and names it", async () => {
    await using team = await startTeam(postgres, { accounts: individuals("octo-demo", "ben-demo", "cora-demo") });
    const url = team.env.DRAGOMAN_DATABASE_URL!;
    const damage = () =>
      postgres.administer(
        `UPDATE dragoman.accounts SET sealed_token = set_byte(sealed_token, 40, get_byte(sealed_token, 40) # 1)
          WHERE login = 'ben-demo'`,
        url,
      );
    const [present, next] = [team.env.DRAGOMAN_SEAL_KEY!, newKey()];
    const env = { ...team.env, DRAGOMAN_SEAL_KEY_NEXT: next };
    await damage();
    const { code, said } = await reseal(env);
    expect([code, said]).toEqual([1, expect.stringContaining("Nothing was changed: 1 secret cannot be opened")]);
    expect(said).toContain("accounts github.com/ben-demo");
    expect(await keysIn(url)).toEqual([idOf(present)]);
    await damage();
    expect(await reseal(env)).toEqual({ code: 0, said: expect.stringContaining("3 secrets sealed with the new key") });
    expect(await keysIn(url)).toEqual([idOf(next)]);
    // The key that was is none any more; and whoever lacks a key is told which.
    expect(await reseal(env)).toEqual({ code: 1, said: expect.stringContaining("which is not here") });
    const { DRAGOMAN_SEAL_KEY_NEXT: _, ...without } = env;
    expect(await reseal(without)).toEqual({ code: 2, said: expect.stringContaining("DRAGOMAN_SEAL_KEY_NEXT") });
    const known = await withTeamStores({ env: { ...team.env, DRAGOMAN_SEAL_KEY: next } }, async (stores) =>
      stores.accounts.load(),
    );
    expect(known.map(({ login }) => login).sort()).toEqual(["ben-demo", "cora-demo", "octo-demo"]);
  });
});
