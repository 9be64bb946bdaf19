/** Scenario: a budget for each member over several servers: what one member uses is exact, and nobody else's. */
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { signedIn } from "../support/form-fields";
import { askAs, type TestMember, withTeamStores } from "../support/members";
import { describeWithPassingDatabases } from "../support/shared-postgres";
import { startTeam, type Team, type TeamServer } from "../support/teams";
import { until } from "../support/until";

const messageOf = async (response: Response) =>
  ((await response.json()) as { error: { message: string } }).error.message;

/** Who has an amount of their own in a budget, as the owner sees it: name → used. */
async function usedBy(server: TeamServer, budget: string): Promise<Record<string, number>> {
  const { items } = await server.admin(`/budgets?budget=${budget}&limit=200`);
  const holders: { name: string; used: number }[] = items?.[0]?.holders?.items ?? [];
  return Object.fromEntries(holders.map(({ name, used }) => [name, used]));
}

describeWithPassingDatabases("a budget for each member", (postgres) => {
  let team: Team;
  let all: TeamServer[];
  let anna: TestMember;
  let ben: TestMember;

  beforeAll(async () => {
    team = await startTeam(postgres);
    ({ anna, ben } = await team.addMembers({ anna: ["anna-hub"], ben: ["ben-hub"] }));
    all = await Promise.all([team.process(), team.server(), team.server()]);
  });
  afterEach(() => all[0]!.admin("/config", { budgets: [] }));
  afterAll(() => team[Symbol.asyncDispose]());

  const addBudget = async (budget: object) => {
    expect(await all[0]!.admin("/budgets", { unit: "requests", per: "month", ...budget })).toEqual({ added: true });
    const name = (budget as { name: string }).name;
    await until(async () => {
      const lists = await Promise.all(all.map((server) => server.admin(`/budgets?budget=${name}`)));
      return lists.every(({ items }) => items.length === 1);
    }, "every server knows the budget");
  };
  /** At once, or as soon as what earlier requests cost has taken the place of what was reserved for them. */
  const refusedWith = (server: TeamServer, member: TestMember, sentence: string) =>
    until(async () => {
      const response = await askAs(server, member);
      return response.status === 429 && (await messageOf(response)).includes(sentence);
    }, "the request is refused with this sentence");
  const removeBudget = (name: string) => all[0]!.admin("/budgets/remove", { name });

  test("what a member used outlives a restart, and is not that of another person of the name", async () => {
    await addBudget({ name: "persons", limit: 2, scope: { member: "Cleo" } });
    const invite = () => team.addMember("cleo", "cleo-hub");
    const statuses = async (server: TeamServer, member: TestMember) => {
      const models = () => fetch(`${server.url}/v1/models`, { headers: { "x-api-key": member.key } });
      await until(async () => (await models()).status === 200, "the models are listed");
      const found: number[] = [];
      for (let count = 0; count < 3; count += 1) found.push((await askAs(server, member)).status);
      return found;
    };
    const cleo = await invite();
    expect(await statuses(all[0]!, cleo)).toEqual([200, 200, 429]);
    const fresh = await team.server();
    expect(await statuses(fresh, cleo)).toEqual([429, 429, 429]);
    await withTeamStores(team, (stores) => stores.members.remove("cleo"));
    const second = await invite();
    expect(await statuses(fresh, second)).toEqual([200, 200, 429]);
    const holders = async () => {
      const { items } = await fresh.admin("/budgets?budget=persons");
      const found: { name: string | null; member: string; used: number }[] = items[0].holders.items;
      return Object.fromEntries(found.map(({ name, member, used }) => [member, [name, used]]));
    };
    await until(
      async () => Bun.deepEquals(await holders(), { [second.id]: ["cleo", 2], [cleo.id]: [null, 2] }),
      "both persons have their own amounts, and the first has no name any more",
    );
    await removeBudget("persons");
  });

  test("a member sees their own amounts, and of a shared budget only that it is used up", async () => {
    await addBudget({ name: "own", limit: 7, each: "member", limits: { ben: 9 } });
    await addBudget({ name: "keys", limit: 8, each: "key", scope: { member: "*" } });
    await addBudget({ name: "hubs", limit: 6, each: "account", scope: { account: "anna*" } });
    await addBudget({ name: "of-anna", limit: 5, scope: { key: "anna/*" } });
    await addBudget({ name: "everybody", limit: 4 });
    await addBudget({ name: "of-ben", limit: 50, scope: { member: "ben" } });
    const list = async (member: TestMember) => {
      const answer = await fetch(`${all[0]!.url}/api/admin/budgets`, { headers: { "x-admin-token": member.key } });
      return ((await answer.json()) as { items: Record<string, unknown>[] }).items;
    };
    await (await askAs(all[0]!, anna)).text();
    for (let count = 0; count < 2; count += 1) await (await askAs(all[1]!, ben)).text();
    await until(async () => (await usedBy(all[0]!, "own")).ben === 2, "Ben has used 2");
    const response = await askAs(all[0]!, anna);
    const remaining = response.headers.get("x-dragoman-budget-remaining")!.split(", ");
    const left = Object.fromEntries(remaining.map((each) => each.replace(" requests", "").split("=")));
    expect(Object.keys(left).sort()).toEqual(["hubs", "keys", "of-anna", "own"]);
    // Each server may have reserved one ahead.
    for (const [name, most] of Object.entries({ own: 5, keys: 6, hubs: 4, "of-anna": 3 }))
      expect(Number(left[name])).toBeWithin(most - 3, most + 1);
    await response.text();
    await until(async () => (await usedBy(all[0]!, "own")).anna === 2, "Anna has used 2");

    // Everybody's is used up: one refusal for all, without amounts.
    const refused = await askAs(all[0]!, anna);
    const message = await messageOf(refused);
    expect([refused.status, message]).toEqual([
      429,
      expect.stringContaining("The budget `everybody`, which you share with others, is used up, free again at"),
    ]);
    expect(message).not.toMatch(/\d of \d/);
    const seen = await list(anna);
    expect(seen.map(({ name, used, exhausted, limit }) => [name, used, exhausted, limit])).toEqual([
      ["own", 2, false, 7],
      ["keys", null, false, 8],
      ["hubs", null, false, 6],
      ["of-anna", 2, false, 5],
      ["everybody", null, true, 4],
    ]);
    expect(seen[1]!.holders).toMatchObject({ count: 1, items: [{ name: "anna/key-1", used: 2 }] });
    expect(seen[2]!.holders).toMatchObject({ count: 1, items: [{ name: "anna-hub", used: 2 }] });
    expect(JSON.stringify(seen)).not.toMatch(/ben/);
    expect((await list(ben)).map(({ name }) => name)).toEqual(["own", "keys", "everybody", "of-ben"]);

    // The owner sees all, the largest share first.
    const { items } = await all[2]!.admin("/budgets?budget=own");
    const holders: { name: string; used: number; limit: number; member: string }[] = items[0].holders.items;
    expect(holders.map(({ name, used, limit, member }) => [name, used, limit, member])).toEqual([
      ["anna", 2, 7, anna.id],
      ["ben", 2, 9, ben.id],
    ]);
    await removeBudget("everybody");

    // A member's own limit, with the amounts.
    await until(async () => {
      const last = await askAs(all[0]!, anna);
      return last.status === 429;
    }, "the request is refused");
    await refusedWith(all[0]!, anna, "The budget `of-anna` is used up: 5 of 5 requests used");
    await removeBudget("of-anna");
    await until(async () => (await askAs(all[0]!, anna)).status === 200, "the request is served again");
    await refusedWith(all[0]!, anna, "The budget `hubs` of anna-hub is used up: 6 of 6");

    const page = await pageOf(all[0]!, anna);
    expect(page).toContain("anna-hub");
    expect(page).toContain('<strong class="num">6</strong> of 7 requests used');
    for (const hidden of ["ben", "New budget", "Send test notice", "/admin/budgets/remove"])
      expect(page).not.toContain(hidden);
    const keys = await pageOf(all[0]!, anna, "?budget=keys");
    expect([keys.includes("anna/key-1"), keys.includes("ben")]).toEqual([true, false]);
    for (const name of ["of-ben", "everybody", "own"])
      expect(await pageOf(all[0]!, anna, `?budget=${name}`)).toContain("There is no such budget");
    await addBudget({ name: "typo", limit: 9, each: "member", limits: { BEN: 4, bem: 5 }, scope: { member: "ana" } });
    const owners = await (await fetch(`${all[0]!.url}/admin/budgets`)).text();
    for (const shown of ["7 requests for each member; ben 9", "anna", "ben", "New budget"])
      expect(owners).toContain(shown);
    expect(owners).toMatch(/There is no member <bdi[^>]*>ana, bem</);
    await removeBudget("typo");
    for (const name of ["own", "keys", "hubs", "of-ben"]) await removeBudget(name);
  });

  test("a request that runs while its member is removed is counted as that member's", async () => {
    await addBudget({ name: "leaving", limit: 9, each: "member" });
    const dora = await team.addMember("dora", "dora-hub");
    const models = () => fetch(`${all[0]!.url}/v1/models`, { headers: { "x-api-key": dora.key } });
    await until(async () => (await models()).status === 200, "the models are listed");
    const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<undefined>()];
    team.demo.intercept("/chat/completions", () => {
      reached.resolve();
      return gate.promise;
    });
    const running = askAs(all[0]!, dora);
    await reached.promise;
    await withTeamStores(team, (stores) => stores.members.remove("dora"));
    // A chat that is still served would be counted too.
    await until(async () => (await models()).status === 401, "the key is refused");
    gate.resolve(undefined);
    const response = await running;
    expect([response.status, response.headers.get("x-dragoman-budget-remaining")]).toEqual([
      200,
      expect.stringMatching(/^leaving=[678] requests$/),
    ]);
    await until(async () => {
      const { items } = await all[0]!.admin("/budgets?budget=leaving");
      const [holder] = items[0].holders.items;
      return holder?.member === dora.id && holder.name === null && holder.used === 1;
    }, "the one who left is listed without a name");
  });

  test("a member whose key a budget binds may not read the token, which no budget counts", async () => {
    const token = ({ key }: TestMember) =>
      fetch(`${all[0]!.url}/token`, { headers: { "x-api-key": key } }).then(({ status }) => status);
    expect(await token(anna)).toBe(200);
    await addBudget({ name: "bound", limit: 7, scope: { member: "anna" } });
    expect([await token(anna), await token(ben)]).toEqual([403, 200]);
    await removeBudget("bound");
  });

  test("without the database, whom a budget limits is refused for now, and others are served and counted afterwards", async () => {
    const server = all[0]!;
    await addBudget({ name: "limited", limit: 500, scope: { member: "anna" } });
    await addBudget({ name: "watched", limit: 1, each: "member", then: "warn" });
    for (const member of [anna, ben]) expect((await askAs(server, member)).status).toBe(200);
    await postgres.stop();
    try {
      for (const [path, error] of [
        ["/v1/chat/completions", { error: { code: "budget_unavailable" } }],
        ["/v1/messages", { type: "error", error: { type: "api_error" } }],
      ] as const) {
        const refused = await fetch(server.url + path, {
          method: "POST",
          headers: { "content-type": "application/json", "x-api-key": anna.key },
          body: JSON.stringify({ model: "gpt-5-mini", max_tokens: 9, messages: [{ role: "user", content: "Hello" }] }),
        });
        expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
        expect(refused.headers.get("x-should-retry")).not.toBe("false");
        const text = await refused.text();
        expect(JSON.parse(text)).toMatchObject(error);
        expect(text).toContain("The budget `limited` cannot be checked");
      }
      for (let count = 0; count < 4; count += 1) expect((await askAs(server, ben)).status).toBe(200);
    } finally {
      await postgres.start();
    }
    await until(async () => {
      const used = await usedBy(all[1]!, "watched").catch(() => ({}) as Record<string, number>);
      return used.anna === 1 && used.ben === 5;
    }, "what was served is in the ledger");
    expect((await askAs(server, anna)).status).toBe(200);
    for (const name of ["limited", "watched"]) await removeBudget(name);
  });
});

async function pageOf(server: TeamServer, { key }: TestMember, query = ""): Promise<string> {
  const { cookie } = await signedIn(server.url, key);
  return (await fetch(`${server.url}/admin/budgets${query}`, { headers: { cookie } })).text();
}
