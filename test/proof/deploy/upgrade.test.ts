/**
 * Scenario: from the version before to this one: what it has written is read, and a team's servers are replaced one by
 * one or told why not.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { scriptedGithub } from "../../cli/bench";
import { type Command, run } from "../../support/command";
import { describeWith } from "../../support/sandbox";
import { describeWithDatabases } from "../../support/shared-postgres";
import { brokenBetween, type OpenApiDocument, type Surface } from "../../support/surface";
import { placeOf, upstreamEnv } from "../../support/teams";
import { temporaryFolder } from "../../support/temporary-folder";
import { until } from "../../support/until";
import { extracted, versionBefore } from "../../support/version-before";

const chat = (content: string) => ({ model: "gpt-5-mini", messages: [{ role: "user", content }] });

interface Asked {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the API answers
  body: any;
}

async function ask(url: string, body?: unknown, key?: string): Promise<Asked> {
  const headers = { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) };
  const response = await fetch(
    url,
    body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) },
  );
  const text = await response.text();
  return { status: response.status, body: text.startsWith("{") ? JSON.parse(text) : text };
}

async function ended(command: Command): Promise<void> {
  command.process.kill("SIGTERM");
  expect(await command.exited).toBe(0);
}

test("the proof begins with the first tag: the version before is the newest that is tagged on another commit", () => {
  const folder = temporaryFolder();
  const git = (...args: string[]) => {
    const author = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"];
    const { exitCode, stdout, stderr } = Bun.spawnSync(["git", ...author, ...args], { cwd: folder });
    expect(exitCode, stderr.toString()).toBe(0);
    return stdout.toString().trim();
  };
  const commit = (message: string) => {
    git("commit", "--quiet", "--allow-empty", "--message", message);
    return git("rev-parse", "HEAD");
  };
  git("init", "--quiet");
  const first = commit("first");
  expect(versionBefore(folder)).toBeUndefined();
  git("tag", "v0.9.0");
  expect(versionBefore(folder)).toBeUndefined();
  const second = commit("second");
  expect(versionBefore(folder)).toBe(first);
  git("tag", "v0.10.0");
  expect(versionBefore(folder)).toBe(first);
  commit("third");
  expect(versionBefore(folder)).toBe(second);
});

/** @param instead Another version's program. */
async function surfaceOf(env: Record<string, string>, instead?: readonly string[]): Promise<Surface> {
  await using server = run(["start", "--demo", "--port", "0", "--json"], { env, instead });
  const { url } = await server.ready();
  await using completion = run(["completion", "bash"], { env, instead });
  expect(await completion.exited).toBe(0);
  const api = (await ask(`${url}/api/admin/openapi.json`)).body as OpenApiDocument;
  return { api, completion: completion.stdout() };
}

test("a path, member, value, command or option that is gone is named, and so is what is demanded anew", async () => {
  const whole = await surfaceOf({ DRAGOMAN_HOME: temporaryFolder() });
  expect(brokenBetween(whole, whole)).toEqual([]);
  const { api, completion } = structuredClone(whole);
  const config = "POST /api/admin/config application/json sent";
  const [properties] = [api.paths["/api/admin/config"]!.post!.requestBody!.content!["application/json"]!.schema!];
  expect(properties.properties?.logLevel ?? properties.$ref).toBeDefined();
  delete api.paths["/usage"];
  const schema = properties.$ref ? api.components.schemas[properties.$ref.split("/").at(-1)!]! : properties;
  delete schema.properties!.maxRows;
  schema.required = ["logLevel"];
  const shorter = completion.replace("--dry-run ", "");
  const broken = brokenBetween(whole, { api, completion: shorter });
  for (const line of [
    "GET /usage",
    `${config}.maxRows`,
    `${config} needs logLevel`,
    "dragoman database copy --dry-run",
  ])
    expect(broken).toContain(line);
  expect(broken.filter((line) => !/ \/usage\b|maxRows|needs logLevel|--dry-run/.test(line))).toEqual([]);
});

describeWith("versionBefore", "from the version before", () => {
  let before: ReturnType<typeof extracted>;
  beforeAll(() => {
    before = extracted(versionBefore()!);
  });
  afterAll(() => before[Symbol.dispose]());

  test("the config, accounts, keys, history, budgets and connected tools of the version before go on as they were", async () => {
    await using github = scriptedGithub({ device: { interval: 1, pending: 0 } });
    const env = { ...github.env, DRAGOMAN_COPILOT_API_URL: github.demo.url };
    const start = (instead?: readonly string[]) => run(["start", "--port", "0", "--json"], { env, instead });
    const finished = async (args: string[], instead?: readonly string[]) => {
      const command = run(args, { env, instead });
      expect(await command.exited, command.stderr()).toBe(0);
    };
    const settings = join(github.home, ".claude/settings.json");
    const own = '{\n  "model": "opus"\n}\n';
    mkdirSync(join(github.home, ".claude"));
    writeFileSync(settings, own);

    await finished(["auth"], before.program);
    const old = start(before.program);
    const { url } = await old.ready();
    // It makes one request of its own.
    await finished(["connect", "claude-code", "--write"], before.program);
    expect(readFileSync(settings, "utf8")).not.toBe(own);
    const budget = { name: "all", unit: "requests", limit: 100, per: "month" };
    const changed = await ask(`${url}/api/admin/config`, { modelAliases: { mine: "gpt-5-mini" }, budgets: [budget] });
    expect(changed.status).toBe(200);
    const created = await ask(`${url}/api/admin/keys`, { name: "anna" });
    const { key } = created.body;
    expect(key).toStartWith("drg_");
    for (let turn = 0; turn < 5; turn += 1)
      expect((await ask(`${url}/v1/chat/completions`, { ...chat("Hello"), model: "mine" }, key)).status).toBe(200);
    const read = async (at: string) => ({
      config: (await ask(`${at}/api/admin/config`)).body.config,
      accounts: (await ask(`${at}/api/admin/accounts`)).body,
      keys: (await ask(`${at}/api/admin/keys`)).body,
      rows: (await ask(`${at}/api/admin/requests?limit=200`)).body.items,
      budgets: (await ask(`${at}/api/admin/budgets`)).body,
    });
    await until(async () => (await read(url)).rows.length === 6, "six requests have a row each");
    const written = await read(url);
    await ended(old);

    await using fresh = start();
    const { url: now } = await fresh.ready();
    const kept = await read(now);
    expect(kept.config).toMatchObject(written.config);
    expect(kept.rows).toMatchObject(written.rows);
    for (const part of ["accounts", "keys", "budgets"] as const)
      expect(JSON.stringify(kept[part]), part).toInclude(
        `"${{ accounts: "octo-demo", keys: "anna", budgets: "all" }[part]}"`,
      );
    expect(kept.budgets).toMatchObject({ items: [{ used: 5 }] });
    expect((await ask(`${now}/v1/chat/completions`, { ...chat("Hello"), model: "mine" }, key)).status).toBe(200);
    expect((await ask(`${now}/v1/chat/completions`, chat("Hello"), "drg_another")).status).toBe(401);
    await until(async () => (await read(now)).rows.length === 7, "the seventh request has its row");
    expect((await read(now)).budgets).toMatchObject({ items: [{ used: 6 }] });
    expect(fresh.stderr()).not.toMatch(/ (?:warn|error) /);
    await finished(["connect", "claude-code", "--undo", "--yes"]);
    expect(readFileSync(settings, "utf8")).toBe(own);
  });

  test("each path, member, command and option of the version before is still there", async () => {
    const env = { DRAGOMAN_HOME: temporaryFolder() };
    expect(brokenBetween(await surfaceOf(env, before.program), await surfaceOf(env))).toEqual([]);
  });

  describeWithDatabases("a team", (postgres) => {
    test("a server of this version works beside one of the version before, or does not start and says why", async () => {
      await using github = scriptedGithub({ device: { interval: 1, pending: 0 } });
      const env = {
        ...upstreamEnv(github.demo),
        ...(await placeOf(postgres)),
        DRAGOMAN_DATABASE_URL: await postgres.database({ empty: true }),
      };
      const start = (instead?: readonly string[]) => run(["start", "--port", "0", "--json"], { env, instead });
      await using signIn = run(["auth"], { env, instead: before.program });
      expect(await signIn.exited, signIn.stderr()).toBe(0);
      await using old = start(before.program);
      const { url } = await old.ready();
      const served = async (at: string) => (await ask(`${at}/v1/chat/completions`, chat("Hello"))).status;
      expect(await served(url)).toBe(200);
      await using fresh = start();
      const began = await Promise.race([fresh.ready(), fresh.exited]);
      if (typeof began === "number") {
        expect(began).toBe(1);
        expect(fresh.stderr()).toMatch(/^dragoman: The database was changed by .+\(schema \d+\), .+\.\n$/);
        expect(await served(url)).toBe(200);
        return;
      }
      for (let turn = 0; turn < 5; turn += 1) expect([await served(url), await served(began.url)]).toEqual([200, 200]);
      await ask(`${url}/api/admin/config`, { modelAliases: { mine: "gpt-5-mini" } });
      const config = async () => (await ask(`${began.url}/api/admin/config`)).body.config.modelAliases;
      await until(async () => Bun.deepEquals(await config(), { mine: "gpt-5-mini" }), "the other server has the alias");
      await ended(old);
      expect(await served(began.url)).toBe(200);
      const rows = async () => (await ask(`${began.url}/api/admin/requests?limit=200`)).body.items.length;
      await until(async () => (await rows()) === 12, "the requests of both servers have a row each");
    });
  });
});
