/** Scenario: the owner's list of members: what it says, and what happens to what is wrongly tried. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "../../src/lib/sql";
import { addPartitions } from "../../src/team/requests";
import { fieldsIn, formTokenIn } from "../support/form-fields";
import { entry } from "../support/history-rows";
import { inProcess } from "../support/in-process";
import { askAs, askTables, type TestMember, withTeamStores } from "../support/members";
import { postJson } from "../support/post-json";
import { describeWithDatabases } from "../support/shared-postgres";
import { startTeamApp } from "../support/team-app";
import { startTeam, type Team, type TeamServer } from "../support/teams";
import { until } from "../support/until";

const dayMs = 86_400_000;
// biome-ignore lint/suspicious/noExplicitAny: whatever the API answers
type Any = any;

describeWithDatabases("the owner's members", (postgres) => {
  let team: Team;
  let servers: [TeamServer, TeamServer];
  let anna: TestMember;
  let ben: TestMember;
  const month = () => Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth(), 1);

  beforeAll(async () => {
    team = await startTeam(postgres);
    ({ anna, ben } = await team.addMembers({ anna: ["anna-demo"], ben: ["ben-one", "ben-two"] }));
    servers = [
      await team.server(),
      await team.process({ env: { ADMIN_TOKEN: "owner-token-0123456789", TZ: "America/New_York" } }),
    ];
    // Rows of the month before are kept.
    await servers[0].admin("/config", { retentionDays: 90 });
  });
  afterAll(() => team[Symbol.asyncDispose]());

  const addRows = (rows: Partial<ReturnType<typeof entry>>[]) =>
    withTeamStores(team, async (stores) => {
      const history = stores.openHistory({ retentionDays: () => 90, maxRows: () => 1e9, warn: () => {} });
      for (const row of rows) history.add(entry({ request_id: crypto.randomUUID(), ...row }));
      await history.flush();
    });
  const post = (path: string, body: object = {}, server = servers[0]) => server.admin(path, body) as Promise<Any>;
  const named = async (name: string): Promise<Any> => (await servers[0].admin(`/members/${name}`)).item;
  const join = (server: TeamServer, link: string, rest = "", method = "GET") =>
    fetch(server.url + new URL(link).pathname + rest, { method, redirect: "manual" });

  test("who have keys make every client need one, also where the owner has none", async () => {
    expect(await servers[0].admin("/keys")).toMatchObject({ items: [], required: true });
    const page = await (await fetch(`${servers[0].url}/admin/keys`)).text();
    expect(page).toContain("every client must send one");
    expect(page).not.toMatch(/Clients need no key|From the first key on/);
    const { code, stderr } = await inProcess(["key", "ls"], team.env);
    expect([code, stderr]).toEqual([0, expect.stringContaining("members have theirs")]);
  });

  test("the owner's members says from which day on, in UTC wherever the server is", async () => {
    const page = await (await fetch(`${servers[1].url}/admin/members`)).text();
    expect(page).toContain(`since ${new Date(month()).toISOString().slice(0, 10)}, 00:00 UTC`);
  });

  test("the owner's members adds up what each member used this month, whatever is kept already, and knows older requests", async () => {
    const now = Date.now();
    const before = month() - 3 * dayMs;
    await withTeamStores(team, (stores) => addPartitions(stores.postgres, [before, month(), now]));
    const used = { member: ben.id, cost: 2_000_000_000 };
    await addRows([
      { ...used, started_at_ms: before },
      { ...used, started_at_ms: month() },
      { ...used, started_at_ms: now - 1_000, cost: 0.66e9, cost_unit: "premium" },
      { member: anna.id, started_at_ms: before, cost: 1e9, cost_unit: "premium" },
      { member: null, started_at_ms: now },
    ]);
    for (let round = 0; round < 3; round += 1) {
      expect(await named("ben")).toMatchObject({
        request_count: 2 + round,
        cost: { credits: 2e9 + round * 5e9, premium: 0.66e9 },
        last_request_at_ms: now - 1_000,
      });
      // A late row of a day that is added up already.
      await addRows([{ member: ben.id, started_at_ms: month() + 5, cost: 5e9 }]);
    }
    expect(await named("anna")).toMatchObject({ request_count: 0, cost: {}, last_request_at_ms: before });
    const { items, total } = await servers[1].admin("/members?sort=requests&limit=1");
    expect([items.map(({ name }: Any) => name), total]).toEqual([["ben"], 2]);
    expect((await servers[1].admin("/members?name=NN&sort=cost")).items).toHaveLength(1);
    expect((await servers[1].admin("/members?offset=1")).items.map(({ name }: Any) => name)).toEqual(["ben"]);
    expect((await servers[1].admin("/members?sort=age")).error.message).toContain("must be one of name");
  });

  test("the list, one member and the command say the same; a failed account is named as such", async () => {
    expect((await askAs(servers[0], anna, "[demo: 401-pat @anna-demo]")).status).toBe(424);
    const seenBy = async (server: TeamServer) => (await server.admin("/members/anna")).item.accounts[0].state;
    for (const server of servers)
      await until(async () => (await seenBy(server)) === "failed", "the account has failed");
    const list = await servers[0].admin("/members");
    expect(list.items[0]).toMatchObject({
      ...{ name: "anna", id: anna.id, keys: 1, models: null, key_days: null, invitation_expires_at_ms: null },
      accounts: [{ account_key: "github.com/anna-demo", state: "failed" }],
    });
    const detail = await servers[1].admin("/members/ANNA");
    expect(detail.keys.map(({ name }: Any) => name)).toEqual(["anna/key-1"]);
    const ls = (...words: string[]) => inProcess(["member", "ls", ...words], team.env);
    expect(JSON.parse((await ls("--json")).stdout)).toEqual(await servers[0].admin("/members"));
    const { stdout, stderr } = await ls();
    expect(stdout).toMatch(/anna +.*github\.com\/anna-demo \(failed\)/);
    expect(stderr).toContain("anna has no account that works: they sign in again");
  });

  test("a member's page shows the limits that are saved, and saves only what was changed on it", async () => {
    await post("/members", { name: "dana", models: ["gpt-5*"], key_days: 30 });
    const url = `${servers[0].url}/admin/members/dana`;
    const page = await (await fetch(url)).text();
    const limitsIn = (html: string) => fieldsIn(html.slice(0, html.indexOf("Save limits")));
    expect(await limitsIn(page)).toMatchObject({ models: "gpt-5*", key_days: "30" });
    // Only what was changed on the page is saved: the days were changed after it was loaded.
    await post("/members/dana/limits", { key_days: 60 });
    const changed = { ...(await limitsIn(page)), form_token: formTokenIn(page), models: "gpt-5.4" };
    await fetch(`${url}/limits`, { method: "POST", body: new URLSearchParams(changed) });
    expect(await named("dana")).toMatchObject({ models: ["gpt-5.4"], key_days: 60 });
    await post("/members/dana/remove");
  });

  test("an invitation is shown once, replaced by the next, taken back, and opened by one person only", async () => {
    const limits = { models: ["gpt-5*"], key_days: 30 };
    const first = await post("/members", { name: "cleo", ...limits });
    expect(first.link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/admin\/join\/[\w-]{32}$/);
    expect([first.is_known, first.link.endsWith(first.path)]).toEqual([false, true]);
    const proxied = { host: "dragoman.example", "x-forwarded-proto": "https" };
    const headers = { ...proxied, "x-admin-token": "owner-token-0123456789" };
    const behind = await postJson(`${servers[1].url}/api/admin/members`, { name: "Cleo" }, headers);
    const second = (await behind.json()) as Any;
    expect([second.is_known, new URL(second.link).origin]).toEqual([true, "https://dragoman.example"]);
    expect(await named("cleo")).toMatchObject({ ...limits, keys: 0, accounts: [] });
    expect(await (await join(servers[1], first.link)).text()).toContain("replaced it by a newer one");
    expect((await join(servers[1], second.link)).status).toBe(200);
    expect((await named("cleo")).invitation_expires_at_ms).toBe(second.expires_at_ms);
    expect(Math.round((second.expires_at_ms - Date.now()) / 60_000)).toBe((7 * dayMs) / 60_000);
    expect(await post("/members/cleo/withdraw")).toEqual({ withdrawn: 1 });
    expect(await (await join(servers[1], second.link)).text()).toContain("took this invitation back");
    expect(await post("/members/cleo/withdraw")).toEqual({ withdrawn: 0 });

    const third = await post("/members", { name: "cleo" });
    await askTables(
      team,
      ({ now }) => sql`UPDATE dragoman.invitations SET expires_at_ms = ${now} - 3600000
        WHERE used_at_ms IS NULL AND withdrawn_at_ms IS NULL`,
    );
    const expired = await join(servers[0], third.link);
    expect([expired.status, await expired.text()]).toEqual([
      404,
      expect.stringContaining("This invitation expired on"),
    ]);

    // Anna's link, opened by two: whoever comes second sees whose account it is, and that the key is gone.
    const link = (await post("/members", { name: "anna" })).link;
    expect(await (await join(servers[1], link)).text()).toContain("anna-demo");
    const both = await Promise.all(servers.map((server) => join(server, link, "/key", "POST")));
    expect(both.map(({ status }) => status).sort()).toEqual([200, 404]);
    expect(await both.find(({ status }) => status === 404)!.text()).toContain("somebody else has this key");
  });

  test("a member without a key comes back by a new link", async () => {
    // This server may hear a moment later of the key that the other one has just made.
    await until(async () => (await named("anna")).keys === 2, "the server knows both keys");
    for (const { name } of (await servers[0].admin("/members/anna")).keys)
      await post(`/keys/${encodeURIComponent(name)}/revoke`);
    expect(await named("anna")).toMatchObject({ keys: 0 });
    const { link, is_known } = await post("/members", { name: "anna" });
    const shown = await (await join(servers[0], link, "/key", "POST")).text();
    const [, key] = /<pre id="new-key">(drg_[\w-]{43})<\/pre>/.exec(shown)!;
    expect([is_known, (await fetch(`${servers[0].url}/v1/models`, { headers: { "x-api-key": key! } })).status]).toEqual(
      [true, 200],
    );
  });

  test("the page shows many members in pages, by name or by use, and finds one by a part of the name", async () => {
    const many = Array.from({ length: 120 }, (_, i) => [crypto.randomUUID(), `many ${i + 1}`]);
    const rows = many.map(([id, name]) => sql`(${id}, ${name}, ${name}, 0)`);
    await askTables(
      team,
      () => sql`INSERT INTO dragoman.members (id, name, folded, created_at_ms)
        VALUES ${rows.reduce((one, other) => sql`${one}, ${other}`)}`,
    );
    const read = async (path: string) => {
      const answer = await fetch(servers[0].url + path);
      return { status: answer.status, text: await answer.text() };
    };
    await until(async () => (await servers[0].admin("/members")).total >= 120, "the server knows all members");
    const { total } = await servers[0].admin("/members");
    for (const sort of ["name", "last"]) {
      const names: string[] = [];
      let path: string | undefined = `/admin/members?sort=${sort}`;
      while (path !== undefined) {
        const { text } = await read(path);
        names.push(...[...text.matchAll(/href="\/admin\/members\/([^"/]+)"/g)].map(([, name]) => name!));
        path = /rel="next" href="([^"]+)"/.exec(text)?.[1]?.replaceAll("&amp;", "&");
      }
      expect([sort, names.length, new Set(names).size]).toEqual([sort, total, total]);
    }
    expect((await read("/admin/members?name=NY+77")).text).toContain("many%2077");
    expect((await read("/admin/members?name=nobody")).text).toContain("No member has such a name");
    expect((await read("/admin/members?offset=9999")).text).toContain("No further members");
    expect((await read("/admin/members?sort=age")).status).toBe(400);
  });
});

test("the page says what members need that is missing, and nothing once all is there", async () => {
  await using bare = await startTeamApp("folder");
  const page = await (await fetch(`${bare.url}/admin/members`)).text();
  expect(page).toContain("What members need");
  expect(page.match(/<span class="badge warn">Missing</g)).toHaveLength(4);
  await using ready = await startTeamApp("folder", {
    env: { ADMIN_TOKEN: "owner-token-0123456789", DRAGOMAN_API_KEY: "own" },
  });
  ready.app.exposed = true;
  const headers = { "x-forwarded-proto": "https", host: "localhost", "x-admin-token": "owner-token-0123456789" };
  expect(await (await fetch(`${ready.url}/admin/members`, { headers })).text()).not.toContain("What members need");
});

test("in a data folder too, the list names an account that has failed; a command does not know", async () => {
  await using team = await startTeamApp("folder");
  const { key } = await team.addMember("anna", "anna-demo");
  const failing = { model: "gpt-5-mini", messages: [{ role: "user", content: "[demo: 401-pat @anna-demo]" }] };
  expect((await postJson(`${team.url}/v1/chat/completions`, failing, { "x-api-key": key })).status).toBe(424);
  const accounts = (state: string | null) => [
    { name: "anna", accounts: [{ account_key: "github.com/anna-demo", state }] },
  ];
  expect(await (await fetch(`${team.url}/api/admin/members`)).json()).toMatchObject({ items: accounts("failed") });
  const { code, stdout } = await inProcess(["member", "ls", "--json"], team.env);
  expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, items: accounts(null) });
});

test("the forms of the pages invite, make a new link, take it back, revoke a key and remove a member", async () => {
  await using team = await startTeamApp("folder");
  const { key } = await team.addMember("anna", "anna-demo");
  const read = async (path: string, body?: URLSearchParams) =>
    (await fetch(`${team.url}/admin/members${path}`, { method: body ? "POST" : "GET", body })).text();
  const submit = async (path: string, fields: object = {}) =>
    read(path, new URLSearchParams({ form_token: formTokenIn(await read("")), ...fields }));
  expect(await submit("", { name: "ben" })).toMatch(/“ben” is invited.*for 7 days.*address of this machine/s);
  const linked = await submit("/anna/invite");
  expect(linked).toMatch(/A new link for “anna”.*for 7 days.*gives a further key/s);
  expect(await submit("/anna/withdraw")).toContain("The invitation was taken back: its link leads nowhere.");
  const [, code] = /\/admin\/join\/([\w-]{32})/.exec(linked)!;
  expect(await (await fetch(`${team.url}/admin/join/${code}`)).text()).toContain("took this invitation back");
  const [, name] = /name="key" value="([^"]+)"/.exec(await read("/anna"))!;
  expect(await submit("/anna/revoke", { key: name })).toMatch(/There is no key .* any more: it was revoked/);
  expect((await fetch(`${team.url}/v1/models`, { headers: { "x-api-key": key } })).status).toBe(401);
  expect(await submit("/anna/remove")).toMatch(/anna.* was removed.*Their keys are refused/s);
  expect(await (await fetch(`${team.url}/api/admin/members`)).json()).toMatchObject({
    items: [{ name: "ben" }],
    total: 1,
  });
});
