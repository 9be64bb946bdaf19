/** What runs now on the servers of a team: the owner sees and cancels all of it on any of them, a member their own. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { formTokenIn, signedIn } from "../support/form-fields";
import { runningState } from "../support/history-rows";
import { watchFeed } from "../support/live-feed";
import type { TestMember } from "../support/members";
import { askAs } from "../support/members";
import { describeWithDatabases } from "../support/shared-postgres";
import { startTeamApp } from "../support/team-app";
import { individuals, startTeam, type Team, type TeamServer } from "../support/teams";
import { until } from "../support/until";

describeWithDatabases("the running requests of a team", (postgres) => {
  let team: Team;
  let servers: TeamServer[];
  let anna: TestMember;
  let ben: TestMember;
  let owner: { key: string };

  beforeAll(async () => {
    team = await startTeam(postgres, { accounts: individuals("octo-demo") });
    servers = await Promise.all([team.server(), team.server()]);
    owner = await servers[0]!.admin("/keys", { name: "owner-key" });
    ({ anna, ben } = await team.addMembers({ anna: ["anna-demo"], ben: ["ben-demo"] }));
    for (const server of servers)
      for (const each of [owner, anna, ben])
        await until(async () => (await ask(server, each, "Hello")).status === 200, "the server knows the key");
  });
  afterAll(() => team[Symbol.asyncDispose]());

  const ask = (server: TeamServer, who: { key: string }, content: string) =>
    askAs(server, who, content, { stream: true });
  /** A stream that runs until it is cancelled. */
  const run = async (server: TeamServer, who: { key: string }) => {
    const answer = await ask(server, who, "[demo: silence 25] Hello");
    return { id: answer.headers.get("x-request-id")!, text: answer.text() };
  };
  const bearer = ({ key }: { key: string }) => ({ authorization: `Bearer ${key}` });
  const cancel = (server: TeamServer, who: { key: string } | undefined, id: string) =>
    server.post(`/api/admin/live/${id}/cancel`, {}, who && bearer(who));

  test("what runs on one server is seen at the other, and cancelled from there", async () => {
    const [here, there] = [servers[0]!, servers[1]!];
    const feed = await watchFeed(here.url);
    await until(() => feed.heard.length > 0, "the feed has begun");
    const one = await run(there, owner);
    await until(() => feed.running.includes(one.id), "the feed shows the request");
    expect(await here.admin(`/requests/${one.id}`)).toMatchObject({ running: true, item: { request_id: one.id } });
    expect((await here.admin("/meta")).running_count).toBe(1);
    expect((await there.admin("/meta")).running_count).toBe(1);

    expect((await cancel(here, undefined, one.id)).status).toBe(200);
    expect(await one.text).toContain('"code":"cancelled"');
    await until(() => feed.about(one.id).some(({ event }) => event === "finished"), "the feed heard of the end");
    expect(feed.about(one.id).at(-1)!.data).toMatchObject({ error_type: "cancelled", key_name: "owner-key" });
    const { item } = await here.admin(`/requests/${one.id}`);
    expect(item).toMatchObject({ error_type: "cancelled", http_status: 200 });
    expect((await cancel(here, undefined, one.id)).status).toBe(404);
    await feed.leave();
  });

  test("the pages of one server list, show and cancel what runs on the other, without script", async () => {
    const [here, there] = [servers[0]!, servers[1]!];
    const one = await run(there, anna);
    const page = async (path: string) => (await fetch(`${here.url}${path}`)).text();
    await until(async () => (await page("/admin/requests")).includes(one.id), "the page lists the request");
    expect(await page("/admin")).toContain("1 request running");
    const shown = await page(`/admin/requests/${one.id}`);
    expect(shown).toContain("In progress");
    const form_token = formTokenIn(shown);
    const answer = await fetch(`${here.url}/admin/requests/${one.id}/cancel`, {
      method: "POST",
      body: new URLSearchParams({ form_token }),
    });
    // The redirect leads to the row, which the other server has just written.
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("cancelled")]);
    expect(await one.text).toContain("The owner of this proxy cancelled the request.");
  });

  test("a member sees and cancels their own only, wherever it runs; another's do not exist for them", async () => {
    const [here, there] = [servers[0]!, servers[1]!];
    const [own, another, owners] = await Promise.all([run(there, anna), run(there, ben), run(there, owner)]);
    const mine = await run(here, anna);
    const feed = await watchFeed(here.url, "/api/admin/live", bearer(anna));
    const all = await watchFeed(here.url);
    await until(() => feed.heard.length > 0 && feed.running.length === 2, "the feed shows both requests");
    expect(feed.running).toEqual([mine.id, own.id].sort());
    await until(() => all.running.length === 4, "the owner's feed shows all");
    const cookie = await signedIn(here.url, anna.key);
    const list = await (await fetch(`${here.url}/admin/requests`, { headers: cookie })).text();
    for (const { id } of [own, mine]) expect(list).toContain(id);
    const form_token = formTokenIn(list);
    for (const { id } of [another, owners]) {
      expect(list).not.toContain(id);
      for (const server of [here, there]) {
        expect((await cancel(server, anna, id)).status).toBe(404);
        const shown = await fetch(`${server.url}/api/admin/requests/${id}`, { headers: bearer(anna) });
        expect(shown.status).toBe(404);
      }
      const answer = await fetch(`${here.url}/admin/requests/${id}/cancel`, {
        method: "POST",
        headers: cookie,
        body: new URLSearchParams({ form_token }),
      });
      expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining("No running request")]);
    }
    expect((await cancel(here, anna, own.id)).status).toBe(200);
    expect(await own.text).toContain("The member whose key it uses cancelled the request.");
    await until(() => feed.about(own.id).some(({ event }) => event === "finished"), "the feed heard of the end");
    for (const { id } of [mine, another, owners]) expect((await cancel(here, undefined, id)).status).toBe(200);
    expect(await another.text).toContain("The owner of this proxy cancelled the request.");
    await until(() => feed.about(mine.id).some(({ event }) => event === "finished"), "the feed heard of the end");
    expect(feed.text).not.toMatch(new RegExp(`${another.id}|${owners.id}|ben|octo`));
    await Promise.all([feed.leave(), all.leave(), mine.text, owners.text]);
  });

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
  });

  test("a revoked key ends its streams on every server, and those of pages that it opened", async () => {
    const feeds = await Promise.all(
      servers.flatMap((server) => [
        watchFeed(server.url, "/api/admin/live", bearer(ben)),
        signedIn(server.url, ben.key).then((cookie) => watchFeed(server.url, "/admin/requests/live", cookie)),
      ]),
    );
    const staying = await watchFeed(servers[1]!.url, "/api/admin/live", bearer(anna));
    await until(() => [...feeds, staying].every(({ heard }) => heard.length > 0), "all feeds have begun");
    const revoke = `/api/admin/keys/${encodeURIComponent("ben/key-1")}/revoke`;
    expect((await servers[0]!.post(revoke, {}, bearer(ben))).status).toBe(200);
    await until(() => feeds.every(({ ended }) => ended), "the feeds of the revoked key have ended");
    expect(staying.ended).toBe(false);
    await staying.leave();
  });

  test("a page counts what runs beyond the 400 requests that it lists, and says so", async () => {
    await using one = await startTeamApp(postgres);
    const shown = runningState({ key_name: "owner-key" });
    for (let at = 0; at < 410; at += 1)
      one.app.inFlight.begin(`r-${at}`, { member: null, tell: () => ({ ...shown, request_id: `r-${at}` }), stop() {} });
    const page = await (await fetch(`${one.url}/admin/requests`)).text();
    expect(page).toContain("410 requests running");
    expect(page).toContain("Of these, 400 can be listed, the oldest of each person. The other 10 are left out.");
    expect(page.match(/\/cancel"/g)).toHaveLength(400);
    expect(await (await fetch(`${one.url}/admin`)).text()).toContain("410 requests running");
  });
});
