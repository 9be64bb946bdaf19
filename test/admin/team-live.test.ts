/**
 * Scenario: what runs now on a server of a team: the owner sees and cancels all of it there, a member their own; the
 * other server says that it does not.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { formTokenIn, signedIn } from "../support/form-fields";
import { watchFeed } from "../support/live-feed";
import { askAs, type TestMember, untilKnown } from "../support/members";
import { describeWithDatabases } from "../support/shared-postgres";
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
    await untilKnown(servers, [owner, anna, ben]);
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

  test("what runs on one server is seen and cancelled there; the other one says that it does not show it", async () => {
    const [here, there] = [servers[0]!, servers[1]!];
    const sentence = "Requests that 1 other server may run are not shown here.";
    const page = async (server: TeamServer, path: string) => (await fetch(`${server.url}${path}`)).text();
    for (const each of servers)
      await until(async () => (await page(each, "/admin/requests")).includes(sentence), "it knows the other server");
    const [one, other] = [await run(there, owner), await run(there, owner)];
    const feeds = [await watchFeed(here.url), await watchFeed(there.url)];
    await until(() => feeds[1]!.running.length === 2, "the feed shows both requests");
    expect([feeds[0]!.running, feeds[0]!.elsewhere, feeds[1]!.elsewhere]).toEqual([[], sentence, sentence]);
    expect((await here.admin("/meta")).running_count).toBe(0);
    expect((await there.admin("/meta")).running_count).toBe(2);
    expect(await page(here, "/admin")).toContain("no running requests here");
    expect(await page(there, "/admin")).toContain("2 requests running here");
    expect(await page(there, "/admin/requests")).toContain(one.id);
    expect(await page(here, "/admin/requests")).not.toContain(one.id);

    const refused = await cancel(here, undefined, one.id);
    expect([refused.status, await refused.text()]).toEqual([404, expect.stringContaining(sentence)]);
    expect((await cancel(there, undefined, one.id)).status).toBe(200);
    expect(await one.text).toContain('"code":"cancelled"');
    const form_token = formTokenIn(await page(there, `/admin/requests/${other.id}`));
    const answer = await fetch(`${there.url}/admin/requests/${other.id}/cancel`, {
      method: "POST",
      body: new URLSearchParams({ form_token }),
    });
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("cancelled")]);
    expect(await other.text).toContain("The owner of this proxy cancelled the request.");
    // The row of what has ended is in the history of both.
    expect((await here.admin(`/requests/${one.id}`)).item).toMatchObject({ error_type: "cancelled", http_status: 200 });
    await Promise.all(feeds.map((feed) => feed.leave()));
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
});
