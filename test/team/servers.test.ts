/** Scenario: servers that share a database, one as a process and two in another: what one learns, all know; what one does, none does twice. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hostname } from "node:os";
import { run } from "../support/command";
import { describeWithDatabases } from "../support/shared-postgres";
import { individuals, startTeam, type Team, type TeamServer } from "../support/teams";
import { until } from "../support/until";

const ask = (content: string, more = {}) => ({ model: "gpt-5-mini", messages: [{ role: "user", content }], ...more });
const exchanges = ({ demo }: Team) => demo.journal.filter(({ path }) => path === "/copilot_internal/v2/token").length;
const modelCalls = ({ demo }: Team) => demo.journal.filter(({ path }) => path === "/chat/completions");

describeWithDatabases("servers of a team", (postgres) => {
  /** With three servers, which most tests use one after the other. */
  let team: Team;
  let all: TeamServer[];
  beforeAll(async () => {
    team = await startTeam(postgres);
    all = await Promise.all([team.process(), team.server(), team.server()]);
  });
  afterAll(() => team[Symbol.asyncDispose]());

  async function servers(team: Team, count: number): Promise<TeamServer[]> {
    return Promise.all(Array.from({ length: count }, () => team.server()));
  }

  describe("a token", () => {
    test("three that start together exchange once; each request to each is served with that token", async () => {
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, at) => all[at % 3]!.post("/v1/chat/completions", ask("Hello"))),
      );
      expect(answers.map(({ status }) => status)).toEqual(new Array(12).fill(200));
      expect(exchanges(team)).toBe(1);
      expect(new Set(modelCalls(team).map(({ headers }) => headers.authorization)).size).toBe(1);
    });

    test("16 callers over three servers need a new one at the same moment: one exchange", async () => {
      await Promise.all(all.map((server) => server.post("/v1/chat/completions", ask("Hello"))));
      const before = exchanges(team);
      team.demo.expireTokens();
      team.demo.intercept("/copilot_internal/v2/token", () => Bun.sleep(150).then(() => undefined), 9);
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, at) => all[at % 3]!.post("/v1/chat/completions", ask("Hello"))),
      );
      expect(answers.map(({ status }) => status)).toEqual(new Array(16).fill(200));
      expect(exchanges(team) - before).toBe(1);
    });

    test("a server that exchanged by itself, as another one took long, is served after GitHub has ended all tokens", async () => {
      const send = async () => (await all[0]!.post("/v1/chat/completions", ask("Hello"))).status;
      const exchanging = (until: string) =>
        postgres.administer(
          `UPDATE dragoman.copilot_tokens SET exchanging_until = ${until}`,
          team.env.DRAGOMAN_DATABASE_URL!,
        );
      expect(await send()).toBe(200);
      await exchanging("now() + interval '1 hour'");
      for (let times = 0; times < 2; times += 1) {
        team.demo.expireTokens();
        expect(await send()).toBe(200);
        await exchanging("NULL");
      }
      const [{ state }] = (await all[0]!.admin("/accounts")).items;
      expect(state).toBe("ready");
    });
  });

  describe("every server hears", () => {
    test("GitHub's suspension of an account stops every server", async () => {
      for (const server of all) expect((await server.post("/v1/chat/completions", ask("Hello"))).status).toBe(200);
      const calls = modelCalls(team).length;
      const words = { message: "Sorry. Your account was suspended" };
      team.demo.intercept("/chat/completions", () => Response.json(words, { status: 403 }));
      expect((await all[0]!.post("/v1/chat/completions", ask("Hello"))).status).toBe(403);
      await until(async () => {
        const states = await Promise.all(all.map((server) => server.admin("/accounts")));
        return states.every(({ items }) => items[0].state === "failed");
      }, "every server knows of the suspension");
      // A server that starts later knows it too.
      for (const server of [...all, await team.server()]) {
        const refused = await server.post("/v1/chat/completions", ask("Hello"));
        const { error } = (await refused.json()) as { error: { code: string; message: string } };
        expect([refused.status, error.code]).toEqual([403, "account_suspended"]);
        expect(error.message).not.toContain("restart");
      }
      expect(modelCalls(team)).toHaveLength(calls + 1);

      // A new sign-in is a new start, also for servers that know of the suspension.
      Object.assign(team.demo.accounts[0]!, { githubToken: "ghu_DEMOoctoanew000000000000000000000000" });
      await team.signIn(team.demo.accounts);
      await until(async () => {
        const answers = await Promise.all(all.map((server) => server.post("/v1/chat/completions", ask("Hello"))));
        return answers.every(({ status }) => status === 200);
      }, "every server serves again");
    });

    test("an account that cools down is left alone by all", async () => {
      await using team = await startTeam(postgres, { accounts: individuals("octo-demo", "anna-demo") });
      const [one, other] = await servers(team, 2);
      const premium = ask("Hello", { model: "claude-sonnet-4.6" });
      const limited = () => Response.json({ message: "slow" }, { status: 429, headers: { "retry-after": "60" } });
      team.demo.intercept("/chat/completions", limited);
      expect((await one!.post("/v1/chat/completions", premium)).status).toBe(200);
      await until(async () => {
        const { items } = await other!.admin("/accounts");
        return items.some(({ state }: { state: string }) => state === "cooling");
      }, "the other server knows that the account cools down");
      const before = modelCalls(team).length;
      expect((await other!.post("/v1/chat/completions", premium)).status).toBe(200);
      expect(
        modelCalls(team)
          .slice(before)
          .map(({ account }) => account),
      ).toEqual(["anna-demo"]);
    });
  });

  test("a member who has just joined is served everywhere at once; a key that was revoked is refused everywhere", async () => {
    // From the first key on, all requests need one, so this is the last test of these servers.
    const spare = await all[0]!.admin("/keys", { name: "spare" });
    const { key: own } = await all[0]!.admin("/keys", { name: "laptop" });
    const use = (server: TeamServer, key: string) =>
      server.post("/v1/chat/completions", ask("Hello"), { authorization: `Bearer ${key}` });
    const anna = await team.addMember("anna", "anna-hub");
    // By the first request, before a server has looked which accounts are there.
    const first = await Promise.all(all.map((server) => use(server, anna.key)));
    expect(first.map(({ status }) => status)).toEqual([200, 200, 200]);
    for (const [key, path] of [
      [own, "/keys/laptop/revoke"],
      [anna.key, `/keys/${encodeURIComponent("anna/key-1")}/revoke`],
    ]) {
      await until(
        async () => (await Promise.all(all.map((server) => use(server, key)))).every(({ ok }) => ok),
        "every server knows the key",
      );
      expect(await all[1]!.admin(path, {})).toEqual({ revoked: true });
      await until(
        async () => (await Promise.all(all.map((server) => use(server, key)))).every(({ status }) => status === 401),
        "every server refuses the key",
      );
      expect((await use(all[2]!, spare.key)).status).toBe(200);
    }
  });

  test("the first lines name the database, whose accounts there are, and that a key is needed", async () => {
    await using team = await startTeam(postgres, { accounts: [] });
    await team.addMember("anna", "anna-one", "anna-two");
    await using command = run(["start", "--port", "0"], { env: team.env });
    await until(async () => command.stderr().includes("Try it:"), "the first lines are printed");
    const { host, pathname, password } = new URL(team.env.DRAGOMAN_DATABASE_URL!);
    expect(command.stderr()).toContain(`  Database  postgres://${host}${pathname}, with 1 member\n`);
    expect(command.stderr()).toContain("  Accounts  none of yours; 2 accounts of members\n");
    expect(command.stderr()).toContain("  Access    A key of a member, or one of the owner's, is required.\n");
    expect(command.stderr()).toContain("-H 'x-api-key: <your key>'");
    if (password) expect(command.stderr()).not.toContain(password);
  });

  test("an owner without an account is no fault where members have theirs; Health lists the servers", async () => {
    await using team = await startTeam(postgres, { accounts: [] });
    await team.addMember("anna", "anna-one");
    const [one] = await servers(team, 2);
    const page = async (path: string) => (await fetch(one!.url + path)).text();
    expect(await page("/admin")).toMatch(/class="note info">\s*<strong>No account is signed in\.<\/strong>/);
    let health = "";
    await until(async () => {
      health = await page("/admin/health");
      // Who leads is known with a later heartbeat than who is there.
      return health.split(hostname()).length > 2 && health.includes(">leader<");
    }, "Health lists both servers, and one that leads");
    expect(health).toContain("None of yours; 1 account of members.");
    expect(health).toContain("It answers.");
    expect(health.match(/>leader</g)).toHaveLength(1);
    expect(health).not.toContain("badge bad");
    const config = await page("/admin/config");
    expect(config).toContain("Saved in the database, for all servers.");
    expect(config).not.toMatch(/config\.json|config file/);
  });
});
