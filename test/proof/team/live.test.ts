/** What runs on the servers of a team, while servers are replaced and killed, and while the database is away. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { watchFeed } from "../../support/live-feed";
import { askAs } from "../../support/members";
import { describeWithOwnPostgres } from "../../support/shared-postgres";
import { individuals, startTeam, type Team, type TeamServer } from "../../support/teams";
import { until } from "../../support/until";

describeWithOwnPostgres("the running requests of a team", (postgres) => {
  let team: Team;
  let servers: TeamServer[];
  let owner: { key: string };

  beforeAll(async () => {
    team = await startTeam(postgres, { accounts: individuals("octo-demo") });
    servers = await Promise.all([team.process(), team.process()]);
    owner = await servers[0]!.admin("/keys", { name: "owner-key" });
    for (const server of servers)
      await until(async () => (await ask(server, owner, "Hello")).status === 200, "the server knows the key");
  });
  afterAll(async () => {
    await team[Symbol.asyncDispose]();
  });

  const ask = (server: TeamServer, who: { key: string }, content: string) =>
    askAs(server, who, content, { stream: true });
  /** A stream that runs until it is cancelled. */
  const run = async (server: TeamServer, who: { key: string }) => {
    const answer = await ask(server, who, "[demo: silence 25] Hello");
    return { id: answer.headers.get("x-request-id")!, text: answer.text() };
  };
  const cancel = (server: TeamServer, id: string) => server.post(`/api/admin/live/${id}/cancel`, {});

  test("a server that is being replaced still shows what runs there, and lets it be cancelled", async () => {
    const third = await team.process();
    const feed = await watchFeed(servers[0]!.url);
    const last = await run(third, owner);
    await until(() => feed.running.includes(last.id), "the feed shows the request");
    third.command.process.kill("SIGTERM");
    await until(() => feed.gap === undefined, "every server answers the feed");
    const late = await watchFeed(servers[1]!.url);
    await until(() => late.running.includes(last.id), "the late feed shows the request");
    expect(feed.running).toContain(last.id);
    expect((await cancel(servers[1]!, last.id)).status).toBe(200);
    expect(await last.text).toContain('"code":"cancelled"');
    await third.command.exited;
    await until(() => !feed.running.includes(last.id) && feed.gap === undefined, "the feed shows the request no more");
    await Promise.all([feed.leave(), late.leave()]);
  });

  test("a server that is killed: what it ran vanishes, and until then it is said who is silent", async () => {
    const third = await team.process();
    const feed = await watchFeed(servers[0]!.url);
    const lost = await run(third, owner);
    lost.text.catch(() => {}); // the connection breaks
    await until(() => feed.running.includes(lost.id), "the feed shows the request");
    third.command.process.kill("SIGKILL");
    await until(() => !feed.running.includes(lost.id), "what the killed server ran has vanished");
    expect(feed.gap).toContain("did not answer");
    const page = await (await fetch(`${servers[1]!.url}/admin/requests`)).text();
    expect(page).toContain("1 server of 3 did not answer");
    await feed.leave();
  });

  test("while the database is away, a page shows what runs on its own server, and says that the rest is unknown", async () => {
    const [here, there] = [servers[0]!, servers[1]!];
    const [own, other] = await Promise.all([run(here, owner), run(there, owner)]);
    const feed = await watchFeed(here.url);
    await until(() => feed.heard.length > 0 && feed.running.length === 2, "the feed shows both requests");
    await postgres.stop();
    await fetch(`${here.url}/admin/requests`);
    await until(() => feed.running.length === 1, "the feed shows its own server only");
    expect(feed.gap).toContain("The database cannot be used now");
    const answer = await fetch(`${here.url}/admin/requests`);
    const page = await answer.text();
    expect([answer.status, page.includes(own.id), page.includes(other.id)]).toEqual([200, true, false]);
    expect(page).toContain("unknown what other servers run");
    expect(page).toContain("The history cannot be shown.");
    expect((await cancel(here, other.id)).status).toBe(503);
    expect((await cancel(here, own.id)).status).toBe(200);
    await own.text;
    await postgres.start();
    await until(() => feed.running.includes(other.id), "the feed shows the other server again");
    expect((await cancel(here, other.id)).status).toBe(200);
    await Promise.all([other.text, feed.leave()]);
  });
});
