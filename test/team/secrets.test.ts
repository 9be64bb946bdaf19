/** Scenario: what the database of a team gives away: no token, no key, no prompt. */
import { beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { run } from "../support/command";
import { openVisitor, startEdge } from "../support/edge";
import { fieldsIn } from "../support/form-fields";
import { withTeamStores } from "../support/members";
import { describeWithOwnPostgres } from "../support/shared-postgres";
import { individuals, startTeam, type Team, type TeamProcess } from "../support/teams";
import { temporaryFolder } from "../support/temporary-folder";

const ask = (content: string, more = {}) => ({ model: "gpt-5-mini", messages: [{ role: "user", content }], ...more });

const logged = {
  logging_collector: "on",
  log_destination: "stderr",
  log_statement: "all",
  log_parameter_max_length: "-1",
  log_parameter_max_length_on_error: "-1",
  log_min_messages: "debug1",
  track_activity_query_size: "64kB",
};

describeWithOwnPostgres("the database of a team", (postgres) => {
  beforeAll(async () => {
    // The owner of a database may have all statements written down, with their parameters.
    for (const [name, value] of Object.entries(logged))
      await postgres.administer(`ALTER SYSTEM SET ${name} = '${value}'`);
    await postgres.stop();
    await postgres.start();
  });

  test("holds no token, key or prompt, neither in its tables nor in its files, and writes none to its log", async () => {
    await using team = await startTeam(postgres, { accounts: individuals("octo-demo", "anna-demo") });
    const adminToken = "CANARY-admin-token-0815";
    const server = await team.process({ env: { ADMIN_TOKEN: adminToken } });
    const { key } = await server.admin("/keys", { name: "anna" });
    const secrets = {
      adminToken,
      typed: "sk-CANARYtyped0123456789",
      prompt: "CANARY-zebra-umbrella-4711",
      answer: "CANARY-answer-marmalade-0815",
      providerKey: "sk-CANARYprovider0123456789",
      apiKey: "k-CANARYplain0123456789",
      webhook: "CANARYwebhooksecret0123456789",
      header: "CANARYheader0123456789",
    };
    const config = {
      auth: {
        apiKeys: [secrets.apiKey, { name: "anna", sha256: new Bun.CryptoHasher("sha256").update(key).digest("hex") }],
      },
      providers: { deep: { type: "anthropic", baseUrl: "https://deep.example", apiKey: secrets.providerKey } },
      notices: { webhookUrl: "https://hooks.example/x", webhookSecret: secrets.webhook },
      upstreamHeaders: { "x-auth-token": secrets.header },
    };
    await server.admin("/config", { ...config, logLevel: "debug" });
    const ofPages = await usePages(team, server, secrets);
    const ofMember = await withTeamStores(team, async ({ members }) => {
      const { code } = await members.invite("anna");
      return [code, (await members.accept(code))!.key];
    });
    const send = (content: string, more = {}) =>
      server.post("/v1/chat/completions", ask(content, more), {
        authorization: `Bearer ${key}`,
        "x-session-id": "s-1",
      });
    for (const directive of ["", "[demo: 400-bad once] ", "[demo: 500 once] ", "[demo: redacted] "])
      await (await send(`${directive}${secrets.prompt} ${secrets.answer}`, { stream: true })).text();
    expect((await server.admin("/requests")).items.length).toBeGreaterThanOrEqual(4);

    const tokens = [
      ...team.demo.accounts.map(({ githubToken }) => githubToken),
      ...team.demo.journal.flatMap(({ headers }) => headers.authorization?.split(" ").slice(1).join(" ") ?? []),
    ];
    expect(tokens.length).toBeGreaterThan(4);
    const hidden = [...new Set([...Object.values(secrets), ...ofPages, ...ofMember, key, ...tokens])];
    const [metrics, said] = [await (await fetch(`${server.url}/metrics`)).text(), server.command.stderr()];
    expect(said).toContain("The config was changed");
    for (const secret of hidden)
      for (const text of [metrics, said]) expect([secret, text.includes(secret)]).toEqual([secret, false]);
    const sql = new SQL(team.env.DRAGOMAN_DATABASE_URL!, { max: 1 });
    const tables =
      await sql`SELECT relname AS name FROM pg_class WHERE relnamespace = 'dragoman'::regnamespace AND relkind = 'r'`;
    const texts: string[] = [];
    for (const { name } of tables)
      for (const { row } of await sql.unsafe(`SELECT t::text AS row FROM dragoman.${name} t`)) texts.push(row);
    await sql.close();
    const dump = texts.join("\n");
    expect(dump).toContain("github.com/octo-demo");
    const files = await postgres.bytesOnDisk();
    // The files do have what is stored: otherwise nothing was looked at.
    expect(files.some((bytes) => bytes.includes("github.com/octo-demo"))).toBe(true);
    for (const [what, statement] of [
      ["a row", "INSERT INTO dragoman.requests"],
      ["a Copilot token", "INSERT INTO dragoman.copilot_tokens"],
      ["a parameter", "github.com/octo-demo'"],
    ] as const)
      expect([what, files.some((bytes) => bytes.includes(statement))]).toEqual([what, true]);
    for (const secret of hidden)
      for (const written of [secret, Buffer.from(secret).toString("hex"), Buffer.from(secret).toString("base64")]) {
        expect([written, dump.includes(written)]).toEqual([written, false]);
        expect([written, files.some((bytes) => bytes.includes(written))]).toEqual([written, false]);
      }
  });

  /** Leaves a page sign-in, a form, a config change and two sign-ins at GitHub behind. @returns Their ids, tokens and codes. */
  async function usePages(
    { demo }: Team,
    { url }: TeamProcess,
    { adminToken, typed }: Record<"adminToken" | "typed", string>,
  ): Promise<string[]> {
    await using edge = startEdge([url]);
    const owner = openVisitor(edge);
    await owner.post("/admin/sign-in", { token: adminToken, next: "/admin" });
    const form = await fieldsIn((await owner.get("/admin/config")).text);
    const shown = await owner.post("/admin/config", { ...form, anthropicApiKey: typed });
    const { change } = await fieldsIn(shown.text);
    const form_token = form.form_token!;
    const begin = async () => (await owner.post("/admin/accounts/sign-in", { form_token })).location!;
    const [first, second] = [await begin(), await begin()];
    await owner.post(`${first}/cancel`, { form_token });
    const [, userCode] = /<code id="user-code">([^<]+)</.exec((await owner.get(second)).text)!;
    const codes = demo.deviceCodes();
    const cookie = owner.cookie.split("=")[1]!;
    expect([cookie.length > 60, change!.length > 60, codes.length]).toEqual([true, true, 2]);
    const ids = [first, second].map((path) => path.split("/").at(-1)!);
    return [cookie, change!, userCode!, form_token.slice(form_token.indexOf("-") + 1), ...ids, ...codes];
  }

  test("without a key, or with another, a server refuses to start with a sentence", async () => {
    await using team = await startTeam(postgres);
    const { DRAGOMAN_SEAL_KEY: _, ...without } = team.env;
    const another = { ...team.env, DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64") };
    for (const [env, sentence] of [
      [without, "needs a key that seals the tokens"],
      [{ ...team.env, DRAGOMAN_SEAL_KEY: "short" }, "32 bytes as base64"],
    ] as const)
      await expect(withTeamStores({ env }, async () => {})).rejects.toThrow(sentence);
    await using started = run(["start", "--port", "0", "--json"], { env: another });
    expect(await started.exited).toBeGreaterThan(0);
    expect(started.stderr()).toContain("are sealed with the key");
    expect(started.stderr()).not.toContain(team.env.DRAGOMAN_SEAL_KEY!);
  });

  test("who has a config or accounts in the data folder is told that they are not used", async () => {
    await using team = await startTeam(postgres, { accounts: [] });
    const home = temporaryFolder();
    mkdirSync(join(home, "accounts"), { mode: 0o700 });
    writeFileSync(join(home, "config.json"), "{}");
    const server = await team.server({ env: { DRAGOMAN_HOME: home } });
    expect(server.said()).toContain("config.json and the accounts of the data folder are not used");
  });
});
