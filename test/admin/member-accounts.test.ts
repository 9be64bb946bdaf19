/**
 * Scenario: members pause and order their own accounts. This is kept in the database with the accounts, and not in the
 * owner's config.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { formTokenIn, signedIn } from "../support/form-fields";
import { type TestMember, withTeamStores } from "../support/members";
import { describeWithMembers, individuals, startTeam, type Team, type TeamServer } from "../support/teams";
import { until } from "../support/until";

describeWithMembers("a member's own accounts", (place) => {
  let team: Team;
  let servers: TeamServer[];
  let anna: TestMember;
  let ben: TestMember;

  beforeAll(async () => {
    team = await startTeam(place, { accounts: individuals("octo-one", "octo-two") });
    ({ anna, ben } = await team.addMembers({
      anna: ["anna-one", "anna-two", "anna-three"],
      ben: ["ben-one", "ben-two"],
    }));
    servers = [await team.server(), await team.server()];
  });
  afterAll(() => team[Symbol.asyncDispose]());

  const keyOf = (login: string) => `github.com/${login}`;
  const api = (server: TeamServer, who: TestMember | undefined, path: string, body?: object) =>
    fetch(`${server.url}/api/admin${path}`, {
      method: body ? "POST" : "GET",
      headers: { "content-type": "application/json", ...(who && { authorization: `Bearer ${who.key}` }) },
      ...(body && { body: JSON.stringify(body) }),
    });

  /** Login and state of the person's accounts, in their order. */
  async function shown(server: TeamServer, who?: TestMember): Promise<string[]> {
    const { items } = (await (await api(server, who, "/accounts")).json()) as {
      items: { account_id: string; state: string }[];
    };
    return items.map(({ account_id, state }) => `${account_id} ${state}`);
  }

  const untilShown = (server: TeamServer, who: TestMember, wanted: string[]) =>
    until(async () => (await shown(server, who)).join() === wanted.join(), `the accounts are ${wanted.join(", ")}`);

  /** The login whose account serves a premium request. */
  async function served(server: TeamServer, { key }: TestMember): Promise<string> {
    const question = { model: "claude-sonnet-4.6", messages: [{ role: "user", content: "Hello" }] };
    const answer = await server.post("/v1/chat/completions", question, { "x-api-key": key });
    expect(answer.status).toBe(200);
    await answer.text();
    const id = answer.headers.get("x-request-id");
    return (await server.admin(`/requests/${id}`)).item.account_id;
  }

  test("are used in the member's order, on every server", async () => {
    const [one, two] = servers as [TeamServer, TeamServer];
    expect(await served(two, anna)).toBe("anna-one");
    const wanted = { account_keys: ["anna-three", "anna-two"].map(keyOf) };
    const answer = await api(one, anna, "/accounts/order", wanted);
    expect([answer.status, await answer.json()]).toEqual([
      200,
      { account_keys: ["anna-three", "anna-two", "anna-one"].map(keyOf) },
    ]);
    await untilShown(two, anna, ["anna-three ready", "anna-two ready", "anna-one ready"]);
    expect(await served(two, anna)).toBe("anna-three");
  });

  test("get no requests while the member has paused them, from the page too", async () => {
    const [one, two] = servers as [TeamServer, TeamServer];
    const headers = await signedIn(one.url, anna.key);
    const submit = async (path: string, form: Record<string, string>) => {
      const page = await (await fetch(`${one.url}/admin/accounts`, { headers })).text();
      const form_token = formTokenIn(page);
      const body = new URLSearchParams({ form_token, ...form });
      const answer = await fetch(one.url + path, { method: "POST", redirect: "manual", headers, body });
      expect([path, answer.status]).toEqual([path, 303]);
    };
    await submit("/admin/accounts/pause", { account_key: keyOf("anna-three"), paused: "1" });
    await untilShown(two, anna, ["anna-three paused", "anna-two ready", "anna-one ready"]);
    expect(await served(two, anna)).toBe("anna-two");
    await submit("/admin/accounts/move", { account_key: keyOf("anna-two"), by: "1" });
    await untilShown(two, anna, ["anna-three paused", "anna-one ready", "anna-two ready"]);
    expect(await served(two, anna)).toBe("anna-one");
  });

  test("are nobody else's to pause or to order", async () => {
    const [one] = servers as [TeamServer];
    const before = [await shown(one, anna), await shown(one, ben), await shown(one)];
    for (const [who, login] of [
      [ben, "anna-one"],
      [anna, "ben-one"],
      [anna, "octo-one"],
      [undefined, "anna-one"],
    ] as const) {
      const [account_key, account_keys] = [keyOf(login), [keyOf(login)]];
      expect((await api(one, who, "/accounts/pause", { account_key, paused: true })).status).toBe(404);
      expect((await api(one, who, "/accounts/order", { account_keys })).status).toBe(404);
    }
    expect([await shown(one, anna), await shown(one, ben), await shown(one)]).toEqual(before);
  });

  test("a member's own accounts and the owner's, in the config, do not touch each other", async () => {
    const [one, two] = servers as [TeamServer, TeamServer];
    expect(JSON.stringify(await one.admin("/config"))).not.toContain("anna-");
    await one.admin("/accounts/pause", { account_key: keyOf("octo-one"), paused: true });
    await one.admin("/accounts/order", { account_keys: [keyOf("octo-two")] });
    expect(await shown(one)).toEqual(["octo-two ready", "octo-one paused"]);
    // A name that was left in the config is not about a member's account.
    await one.admin("/config", { pausedAccounts: [keyOf("octo-one"), keyOf("ben-one")] });
    expect(await shown(one, ben)).toEqual(["ben-one ready", "ben-two ready"]);
    expect(await shown(one, anna)).toEqual(["anna-three paused", "anna-one ready", "anna-two ready"]);
    const removed = await api(one, ben, "/accounts/remove", { account_key: keyOf("ben-one") });
    expect(removed.status).toBe(200);
    const { config } = await one.admin("/config");
    expect(JSON.stringify(config)).toContain(keyOf("ben-one"));
    await untilShown(two, ben, ["ben-two ready"]);
  });

  test("keep it when they are signed in again, and lose it when they are removed", async () => {
    const [one, two] = servers as [TeamServer, TeamServer];
    const [signedIn] = individuals("anna-three");
    const again = (githubToken: string) =>
      withTeamStores(team, async (stores) => {
        const saved = { login: "anna-three", host: "github.com", app: "vscode", addedAt: Date.now() } as const;
        const store = stores.accounts;
        return store.add({ ...saved, mode: "exchange", githubToken, member: anna.id });
      });
    expect(await again(signedIn!.githubToken)).toBe("replaced");
    await untilShown(two, anna, ["anna-three paused", "anna-one ready", "anna-two ready"]);
    await api(one, anna, "/accounts/remove", { account_key: keyOf("anna-three") });
    expect(await again(signedIn!.githubToken)).toBe("added");
    await untilShown(two, anna, ["anna-one ready", "anna-two ready", "anna-three ready"]);
  });
});
