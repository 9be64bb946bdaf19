/**
 * Scenario: the accounts of a team are asked about by one server, one after the other, and not more often than needed.
 */
import { expect, test } from "bun:test";
import { keepAccountsKnown } from "../../src/cli/start/upkeep";
import { reasonOf } from "../../src/people/accounts/account-state";
import { describeWithDatabases } from "../support/shared-postgres";
import { startTeamApp } from "../support/team-app";
import { until, untilStill } from "../support/until";

const quota = "/copilot_internal/user";
const hour = 3_600_000;
/** Looks often, and asks as seldom as usual. */
const times = { look: 20, gap: 2, shortest: 6 * hour, longest: 24 * hour, again: hour / 4 };

describeWithDatabases("the upkeep of a team's accounts", (postgres) => {
  test("each account once, by the leader, without an exchange; a sign-in that was revoked is seen by all servers", async () => {
    await using leader = await startTeamApp(postgres);
    await using other = await startTeamApp(postgres, { env: leader.env, demo: leader.demo });
    const { demo } = leader;
    // While one account of a person is suspended, GitHub is not asked about the others either.
    const carl = await leader.addMember("carl", "carl-one", "carl-two");
    leader.app.forMember(carl.id).accounts[0]!.setState({ name: "failed", reason: "Suspended.", suspended: true });
    const anna = await leader.addMember("anna", "anna-one", "anna-two");
    const ben = await leader.addMember("ben", "ben-one", "ben-two", "ben-three");
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
      expect(reasonOf(stateOf())).toContain("no longer accepts");
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
    const looks = stepwise();
    const running = keepAccountsKnown(app, times, looks.wait);
    await looks.next();
    expect(demo.journal.filter(({ path }) => path === quota)).toHaveLength(3);
    // To the accounts, whose clock is the machine's, no answer is old.
    const calls: number[] = [];
    now = Date.now();
    const began = now;
    for (const account of app.forMember(anna.id).accounts)
      account.quota = () => {
        calls.push(Math.round((now - began) / hour));
        return Promise.resolve(account.knownQuota!);
      };
    for (let passed = 0; passed < 72; passed++) {
      now += hour;
      await looks.next();
    }
    expect([...new Set(calls)]).toEqual([6, 18, 42, 66]);
    expect(calls).toHaveLength(12);
    app.close();
    looks.stop();
    await running;
  });

  test("while GitHub does not answer, one account is asked about at each look, and none is left out", async () => {
    await using team = await startTeamApp(postgres);
    await team.addMember("anna", "anna-one", "anna-two", "anna-three");
    const { demo, app } = team;
    let now = Date.now();
    app.now = () => now;
    demo.intercept(quota, () => Response.json({}, { status: 503 }), 3);
    const asked = () => demo.journal.filter(({ path }) => path === quota);
    const looks = stepwise();
    const running = keepAccountsKnown(app, times, looks.wait);
    for (let look = 1; look <= 4; look++) {
      await looks.next();
      expect(asked(), `after look ${look}`).toHaveLength(Math.min(look, 3));
    }
    expect(new Set(asked().map(({ headers }) => new Headers(headers).get("authorization"))).size).toBe(3);
    now += hour;
    await looks.next();
    expect(app.allAccounts.every(({ knownQuota }) => knownQuota)).toBe(true);
    app.close();
    looks.stop();
    await running;
  });
});

/** Looks that happen when the test says so, with nothing between two questions. */
function stepwise() {
  let [idle, step] = [Promise.withResolvers<void>(), Promise.withResolvers<boolean>()];
  return {
    wait(ms: number): Promise<boolean> {
      if (ms !== times.look) return Promise.resolve(true);
      idle.resolve();
      return step.promise;
    },
    /** Lets one look happen, from its beginning to its end. */
    async next(): Promise<void> {
      await idle.promise;
      idle = Promise.withResolvers();
      const { resolve } = step;
      step = Promise.withResolvers();
      resolve(true);
      await idle.promise;
    },
    stop: () => step.resolve(false),
  };
}
