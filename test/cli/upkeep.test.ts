/** The accounts of a team are asked about by one server, one after the other, and not more often than needed. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { keepAccountsKnown } from "../../src/cli/start/upkeep";
import { describeWithPostgres } from "../support/postgres";
import { sharedPostgres, type TestDatabases } from "../support/shared-postgres";
import { startTeamApp } from "../support/team-app";
import { until, untilStill } from "../support/until";

const quota = "/copilot_internal/user";
const hour = 3_600_000;
/** Looks often, and asks as seldom as usual. */
const times = { look: 20, gap: 2, shortest: 6 * hour, longest: 24 * hour, again: hour / 4 };

describeWithPostgres("the upkeep of a team's accounts", () => {
  let postgres: TestDatabases;
  beforeAll(async () => {
    postgres = await sharedPostgres();
  });
  afterAll(() => postgres[Symbol.asyncDispose]());

  test("each account once, by the leader, without an exchange; a sign-in that was revoked is seen by all servers", async () => {
    await using leader = await startTeamApp(postgres);
    await using other = await startTeamApp(postgres, { env: leader.env, demo: leader.demo });
    const { demo } = leader;
    const anna = await leader.addMember("anna", "anna-one", "anna-two");
    const ben = await leader.addMember("ben", "ben-one", "ben-two", "ben-three");
    // While one account of a person is suspended, GitHub is not asked about the others either.
    const carl = await leader.addMember("carl", "carl-one", "carl-two");
    leader.app.forMember(carl.id).accounts[0]!.mark({ name: "failed", reason: "Suspended.", suspended: true });
    await until(() => other.app.allAccounts.length === 7, "the other server knows all accounts");
    demo.accounts.find(({ login }) => login === "ben-two")!.githubToken = "ghu_another";
    let [open, most] = [0, 0];
    demo.intercept(quota, async () => {
      most = Math.max(most, ++open);
      await Bun.sleep(5);
      open -= 1;
      return undefined;
    });
    const [account] = leader.app.forMember(anna.id).accounts;
    await account!.quota();
    const running = [leader, other].map(({ app }) => keepAccountsKnown(app, times));
    const asked = () => demo.journal.filter(({ path }) => path === quota).length;
    await until(() => asked() >= 5, "it has asked five times");
    await untilStill(asked);
    expect(demo.journal.map(({ path }) => path)).toEqual(Array(5).fill(quota));
    expect(most).toBe(1);
    for (const { app } of [leader, other]) {
      const stateOf = () => app.forMember(ben.id).accounts.find(({ id }) => id === "ben-two")!.state;
      await until(() => stateOf().name === "failed", "the account has failed");
      expect(stateOf().reason).toContain("no longer accepts");
    }
    for (const { app } of [leader, other]) app.close();
    await Promise.all(running);
  });

  test("an account that nobody uses is asked about ever more seldom", async () => {
    await using team = await startTeamApp(postgres);
    const anna = await team.addMember("anna", "anna-one", "anna-two", "anna-three");
    const { demo, app } = team;
    let now = Date.now();
    app.now = () => now;
    const asked = () => demo.journal.filter(({ path }) => path === quota).length;
    const running = keepAccountsKnown(app, { ...times, look: 5, gap: 1 });
    await until(() => asked() === 3, "it has asked three times");
    // To the accounts, whose clock is the machine's, no answer is old.
    const calls: number[] = [];
    const began = now;
    for (const account of app.forMember(anna.id).accounts)
      account.quota = () => {
        calls.push(Math.round((now - began) / hour));
        return Promise.resolve(account.knownQuota!);
      };
    for (let passed = 0; passed < 72; passed++) {
      now += hour;
      await Bun.sleep(30);
    }
    expect([...new Set(calls)]).toEqual([7, 19, 43, 67]);
    expect(calls).toHaveLength(12);
    app.close();
    await running;
  });

  test("while GitHub does not answer, one account is asked about at each look, and none is left out", async () => {
    await using team = await startTeamApp(postgres);
    await team.addMember("anna", "anna-one", "anna-two", "anna-three");
    const { demo, app } = team;
    let now = Date.now();
    app.now = () => now;
    demo.intercept(quota, () => Response.json({}, { status: 503 }));
    const asked = () => demo.journal.filter(({ path }) => path === quota);
    const looks: number[] = [];
    const running = keepAccountsKnown(app, { ...times, look: 100 });
    for (let look = 1; look <= 3; look++) {
      await until(() => asked().length >= look, "it has looked once more");
      looks.push(performance.now());
    }
    expect(looks[2]! - looks[0]!).toBeGreaterThan(60);
    await untilStill(() => asked().length);
    expect(asked()).toHaveLength(3);
    demo.intercept(quota, () => undefined);
    now += hour;
    await until(() => app.allAccounts.every(({ knownQuota }) => knownQuota), "every quota is known");
    app.close();
    await running;
  });
});
