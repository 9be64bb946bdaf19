/**
 * Scenario: the admin pages of servers that share a database: whichever of them gets a request, it goes on where the
 * last one ended.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { viewOf } from "../../src/books/history/rollup";
import { ProxyError } from "../../src/lib/errors";
import { type Edge, openVisitor, startEdge, type Visitor } from "../support/edge";
import { fieldsIn } from "../support/form-fields";
import { watchFeed } from "../support/live-feed";
import { withTeamStores } from "../support/members";
import { describeWithPassingDatabases } from "../support/shared-postgres";
import { startTeamApp } from "../support/team-app";
import { individuals, startTeam, type Team, type TeamProcess, type TeamServer } from "../support/teams";
import { until } from "../support/until";

const adminToken = "an-admin-token-0815";
const environment = { env: { ADMIN_TOKEN: adminToken } };

/** The sign-in in another browser, as a server sees it behind the proxy. */
const signInOf = ({ cookie }: Visitor, edge: Edge) => ({
  cookie,
  "x-forwarded-for": "10.0.0.9",
  host: new URL(edge.url).host,
});

describeWithPassingDatabases("the pages of a team", (postgres) => {
  let team: Team;
  let servers: [TeamProcess, TeamServer];
  let edge: Edge;
  beforeAll(async () => {
    team = await startTeam(postgres, { accounts: individuals("octo-demo") });
    Object.assign(team.demo.device, { interval: 0, pending: 0 });
    servers = await Promise.all([team.process(environment), team.server(environment)]);
    edge = startEdge(servers.map(({ url }) => url));
  });
  afterAll(async () => {
    await edge?.[Symbol.asyncDispose]();
    await team?.[Symbol.asyncDispose]();
  });

  /** The owner, who signed in at the first server. */
  async function signedIn(): Promise<Visitor> {
    const owner = openVisitor(edge);
    const { status } = await at(0, () => owner.post("/admin/sign-in", { token: adminToken, next: "/admin" }));
    expect(status).toBe(303);
    return owner;
  }
  const at = (server: number, visit: () => ReturnType<Visitor["get"]>) => {
    edge.to = server;
    return visit();
  };
  /** The person whose approval GitHub gets from now on. */
  const nextPerson = (login: string) => team.demo.accounts.splice(0, team.demo.accounts.length, ...individuals(login));

  test("who signed in at one server is signed in at the other; forms of one are submitted at the other, also after a restart", async () => {
    const owner = await signedIn();
    const pages = [await at(0, () => owner.get("/admin")), await at(1, () => owner.get("/admin"))];
    expect(pages.map(({ text }) => text.includes("Sign out"))).toEqual([true, true]);
    const style = ({ text }: { text: string }) => /admin\.css\?([\w-]{12})"/.exec(text)![1]!;
    expect(style(pages[0]!)).toBe(style(pages[1]!));

    const form = await fieldsIn((await at(0, () => owner.get("/admin/config"))).text);
    const changed = { ...form, retentionDays: "33", anthropicApiKey: "sk-canary-typed-0815" };
    const shown = await at(1, () => owner.post("/admin/config", changed));
    expect([shown.status, shown.text.includes("Review changes"), shown.text.includes("canary")]).toEqual([
      200,
      true,
      false,
    ]);
    const confirm = await fieldsIn(shown.text);
    const edited = await at(0, () => owner.post("/admin/config/save", { ...confirm, edit: "1" }));
    expect([(await fieldsIn(edited.text)).retentionDays, edited.text.includes("canary")]).toEqual(["33", false]);
    const saved = await at(0, () => owner.post("/admin/config/save", confirm));
    expect([saved.status, saved.location]).toEqual([303, "/admin/config?saved=retentionDays,anthropicApiKey"]);
    expect((await fieldsIn((await at(1, () => owner.get("/admin/config"))).text)).retentionDays).toBe("33");
    expect((await at(1, () => owner.post("/admin/config/save", confirm))).location).toBe("/admin/config?unchanged=1");

    // A form that a page of another site would make up is refused by both.
    for (const server of [0, 1])
      for (const form_token of ["", "x", `${Date.now().toString(36)}-${"A".repeat(43)}`]) {
        const refused = await at(server, () => owner.post("/admin/config", { ...form, form_token }));
        expect([refused.status, refused.text.includes("loaded too long ago")]).toEqual([403, true]);
      }

    servers[0].command.process.kill("SIGTERM");
    await servers[0].command.exited;
    servers[0] = await team.process(environment);
    edge.servers[0] = servers[0].url;
    const again = await at(0, () => owner.post("/admin/config", { ...form, retentionDays: "34" }));
    expect([again.status, again.text.includes("Review changes")]).toEqual([200, true]);
  });

  test("signing out at one server ends the sign-in and its live view at the other", async () => {
    const owner = await signedIn();
    const { form_token } = await fieldsIn((await at(1, () => owner.get("/admin"))).text);
    const stolen = signInOf(owner, edge);
    const feed = await watchFeed(servers[1].url, "/admin/requests/live", stolen);
    const status = async () => (await fetch(`${servers[1].url}/admin`, { headers: stolen })).status;
    expect([feed.response.status, await status()]).toEqual([200, 200]);
    expect((await at(0, () => owner.post("/admin/sign-out", { form_token: form_token! }))).status).toBe(303);
    await until(async () => feed.ended && (await status()) === 401, "the sign-in and its live view have ended");
    expect((await at(0, () => owner.get("/admin"))).status).toBe(401);
  });

  test("an invitation is accepted with each click at another server; the sign-in ends with the key at both", async () => {
    nextPerson("anna-demo");
    const { code, member } = await withTeamStores(team, ({ members }) => members.invite("anna"));
    edge.to = "turns";
    edge.reached.length = 0;
    const anna = openVisitor(edge);
    const welcome = await anna.get(`/admin/join/${code}`);
    expect(welcome.text).toContain("Welcome, anna");
    const begun = await anna.post(/<form method="post" action="([^"]+\/sign-in)"/.exec(welcome.text)![1]!);
    expect(begun.status).toBe(303);
    let shown = await anna.get(begun.location!);
    expect(shown.text).toContain("data-waiting");
    await until(async () => {
      shown = await anna.get(begun.location!);
      return !shown.text.includes("data-waiting");
    }, "the sign-in has ended");
    expect(shown.text).toContain("Signed in as");
    const last = await anna.post(/<form method="post" action="([^"]+\/key)"/.exec(shown.text)![1]!);
    const [, key] = /<pre id="new-key">(drg_[\w-]{43})<\/pre>/.exec(last.text)!;
    // A person takes longer to copy it than the servers to hear of it.
    const signIn = () => anna.post("/admin/sign-in", { token: key!, next: "/admin" });
    await until(async () => (await signIn()).status === 303, "the new key signs in");
    const pages = await Promise.all([1, 2, 3, 4].map(() => anna.get("/admin/requests")));
    expect(pages.map(({ status, text }) => [status, text.includes("Sign out")])).toEqual(
      new Array(4).fill([200, true]),
    );
    expect(new Set(edge.reached)).toEqual(new Set([0, 1]));
    expect(edge.reached.slice(0, 3)).toEqual([0, 1, 0]);

    await withTeamStores(team, ({ members }) => members.revokeKey(member.id, "key-1"));
    for (const server of [0, 1])
      await until(
        async () => (await at(server, () => anna.get("/admin"))).status === 401,
        "the sign-in has ended with its key",
      );
  });

  test("without the database people stay signed in and sign in, and nobody is shown an error of the program", async () => {
    const owner = await signedIn();
    expect((await at(1, () => owner.get("/admin/connect"))).status).toBe(200);
    await postgres.stop();
    try {
      for (const server of [0, 1])
        expect((await at(server, () => owner.get("/admin/connect"))).text).toContain("Sign out");
      const other = openVisitor(edge);
      const entered = await other.post("/admin/sign-in", { token: adminToken, next: "/admin" });
      expect([entered.status, entered.location]).toEqual([303, "/admin"]);
      const wrong = await openVisitor(edge).post("/admin/sign-in", { token: "wrong", next: "/admin" });
      expect(wrong.status).toBe(401);
      const { form_token = "" } = await fieldsIn((await owner.get("/admin/connect")).text);
      const out = await owner.post("/admin/sign-out", { form_token });
      expect([out.status, out.text.includes("You could not be signed out everywhere.")]).toEqual([503, true]);
      const page = await (
        await fetch(`${servers[1].url}/admin/connect`, { headers: { "x-forwarded-for": "10.0.0.9" } })
      ).text();
      expect(page).toContain('type="password"');
      for (const { said } of servers) expect(said()).not.toMatch(/ at .*:\d+:\d+/);
    } finally {
      await postgres.start();
      const isBack = async (server: TeamServer) => (await server.admin("/requests")).items !== undefined;
      await until(
        async () => (await Promise.all(servers.map(isBack))).every(Boolean),
        "both servers reach the database",
      );
    }
  });

  test("each grouping that the pages ask for is one that the rollup has", async () => {
    await using one = await startTeamApp(postgres);
    await one.addMember("anna", "anna-hub");
    await one.app.config.change({ budgets: [{ name: "all", unit: "requests", limit: 9, per: "month" }] });
    const asked = new Map<string, boolean>();
    const { history } = one.app;
    const statistics = history.statistics.bind(history);
    history.statistics = (filters, by) => {
      asked.set(by.join(), viewOf(filters, by) !== undefined);
      return statistics(filters, by);
    };
    for (const path of ["", "/accounts", "/budgets", "/cache", "/connect", "/health", "/keys", "/members", "/requests"])
      expect((await fetch(`${one.url}/admin${path}`).then((page) => page.text())).length).toBeGreaterThan(1_000);
    expect(asked.size).toBeGreaterThan(6);
    expect([...asked].filter(([, isAddedUp]) => !isAddedUp)).toEqual([]);
  });

  test("where adding up what members used takes too long, the pages and the list say so, and show the rest", async () => {
    await using one = await startTeamApp(postgres);
    const { id } = await one.addMember("anna", "anna-hub");
    const statistics = one.app.history.statistics;
    one.app.history.statistics = () => Promise.reject(new ProxyError("timeout", "It takes too long."));
    const list = await (await fetch(`${one.url}/api/admin/members?sort=requests`)).json();
    expect(list).toMatchObject({ items: [{ id, keys: 1, request_count: null, cost: {}, cost_at_least: true }] });
    const slow = await (await fetch(`${one.url}/admin/members?sort=cost`)).text();
    expect([slow.includes("could not be added up in time"), slow.includes("anna-hub")]).toEqual([true, true]);
    one.app.history.statistics = statistics;
    const page = await (await fetch(`${one.url}/admin/members/anna`)).text();
    expect(page).not.toContain("could not be added up");
  });
});
