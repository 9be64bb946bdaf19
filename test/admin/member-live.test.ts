/** What runs now, as members see and cancel it: their own, and nothing of anybody else. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type LiveFeed, watchFeed } from "../support/live-feed";
import { addMember, type TestMember, withTeamStores } from "../support/members";
import { describeWithPostgres, startPostgres, type TestPostgres } from "../support/postgres";
import { until } from "../support/proxy";
import { individuals, startTeam, type Team, type TeamServer } from "../support/teams";

describeWithPostgres("the running requests of members", () => {
  let postgres: TestPostgres;
  let team: Team;
  let servers: TeamServer[];
  let anna: TestMember;
  let ben: TestMember;
  let owner: { key: string };

  beforeAll(async () => {
    postgres = await startPostgres();
    team = await startTeam(postgres, { accounts: individuals("octo-demo") });
    servers = await Promise.all([team.server(), team.server()]);
    owner = await servers[0]!.admin("/keys", { name: "owner-key" });
    await withTeamStores(team, async (stores) => {
      anna = await addMember(stores, team, "anna", individuals("anna-demo"));
      ben = await addMember(stores, team, "ben", individuals("ben-demo"));
    });
    for (const server of servers)
      for (const each of [owner, anna, ben]) {
        const deadline = performance.now() + 5_000;
        while ((await ask(server, each, "Hello")).status !== 200 && performance.now() < deadline) await Bun.sleep(20);
      }
  }, 60_000);
  afterAll(async () => {
    await team[Symbol.asyncDispose]();
    await postgres[Symbol.asyncDispose]();
  });

  const ask = (server: TeamServer, { key }: { key: string }, content: string) =>
    server.post(
      "/v1/chat/completions",
      { model: "gpt-5-mini", messages: [{ role: "user", content }], stream: true },
      { "x-api-key": key },
    );
  /** A stream that runs until it is cancelled. */
  const run = async (server: TeamServer, who: { key: string }) => {
    const answer = await ask(server, who, "[demo: silence 25] Hello");
    return { id: answer.headers.get("x-request-id")!, text: answer.text() };
  };
  const bearer = ({ key }: { key: string }) => ({ authorization: `Bearer ${key}` });
  const cancel = (server: TeamServer, who: { key: string } | undefined, id: string) =>
    server.post(`/api/admin/live/${id}/cancel`, {}, who && bearer(who));
  const listed = (feed: LiveFeed) => feed.heard[0]!.data.running.map((one: { request_id: string }) => one.request_id);
  const cookieOf = async (server: TeamServer, token: string) => {
    const answer = await fetch(`${server.url}/admin/sign-in`, {
      method: "POST",
      redirect: "manual",
      body: new URLSearchParams({ token }),
    });
    return { cookie: answer.headers.get("set-cookie")!.split(";")[0]! };
  };

  test("a member sees and cancels their own only; another's do not exist for them", async () => {
    const server = servers[0]!;
    const [own, another, owners] = await Promise.all([run(server, anna), run(server, ben), run(server, owner)]);
    const feed = await watchFeed(server.url, "/api/admin/live", bearer(anna));
    await until(() => feed.heard.length > 0);
    expect(listed(feed)).toEqual([own.id]);
    for (const { id } of [another, owners]) {
      expect((await cancel(server, anna, id)).status).toBe(404);
      const shown = await fetch(`${server.url}/api/admin/requests/${id}`, { headers: bearer(anna) });
      expect(shown.status).toBe(404);
    }
    expect((await cancel(server, anna, own.id)).status).toBe(200);
    expect(await own.text).toContain("The member whose key it uses cancelled the request.");
    await until(() => feed.heard.some(({ event }) => event === "finished"));
    expect((await cancel(server, undefined, another.id)).status).toBe(200);
    expect(await another.text).toContain("The owner of this proxy cancelled the request.");
    await cancel(server, undefined, owners.id);
    await owners.text;
    expect(feed.text).not.toMatch(new RegExp(`${another.id}|${owners.id}|ben|octo`));
    await feed.leave();
  }, 30_000);

  test("more than ten streams of one member are refused; the other's are not", async () => {
    const server = servers[0]!;
    const feeds = await Promise.all(
      Array.from({ length: 10 }, () => watchFeed(server.url, "/api/admin/live", bearer(anna))),
    );
    const eleventh = await fetch(`${server.url}/api/admin/live`, { headers: bearer(anna) });
    expect([eleventh.status, await eleventh.text()]).toEqual([429, expect.stringContaining("10 pages")]);
    const other = await watchFeed(server.url, "/api/admin/live", bearer(ben));
    expect(other.response.status).toBe(200);
    await Promise.all([...feeds, other].map((feed) => feed.leave()));
  }, 30_000);

  test("a revoked key ends its streams on every server within a second, and those of pages that it opened", async () => {
    const feeds = await Promise.all(
      servers.flatMap((server) => [
        watchFeed(server.url, "/api/admin/live", bearer(ben)),
        cookieOf(server, ben.key).then((cookie) => watchFeed(server.url, "/admin/requests/live", cookie)),
      ]),
    );
    const staying = await watchFeed(servers[1]!.url, "/api/admin/live", bearer(anna));
    await until(() => [...feeds, staying].every(({ heard }) => heard.length > 0));
    const revokedAt = performance.now();
    const revoke = `/api/admin/keys/${encodeURIComponent("ben/key-1")}/revoke`;
    expect((await servers[0]!.post(revoke, {}, bearer(ben))).status).toBe(200);
    await until(() => feeds.every(({ ended }) => ended));
    expect(performance.now() - revokedAt).toBeLessThan(1_000);
    expect(staying.ended).toBe(false);
    await staying.leave();
  }, 30_000);
});
