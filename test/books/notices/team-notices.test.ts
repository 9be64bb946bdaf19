/**
 * Scenario: notices of a team: what keeps a member's account from serving reaches the owner once, whichever server
 * found it out.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { gathered, type Notice } from "../../../src/books/notices/conditions";
import { isSuspended } from "../../../src/people/accounts/account-state";
import type { Reservation } from "../../../src/people/budgets/entries";
import { unpriced } from "../../support/amounts";
import { describeWithPostgres } from "../../support/postgres";
import { sharedPostgres, type TestDatabases } from "../../support/shared-postgres";
import { startTeamApp } from "../../support/team-app";
import { until } from "../../support/until";
import { startReceiver, titlesOf } from "./bench";

describeWithPostgres("a team's notices", () => {
  let postgres: TestDatabases;
  beforeAll(async () => {
    postgres = await sharedPostgres();
  });
  afterAll(() => postgres[Symbol.asyncDispose]());

  test("a member's account that failed, is suspended or used up: once, by the leader, with the member's name", async () => {
    await using receiver = startReceiver();
    await using leader = await startTeamApp(postgres);
    await using other = await startTeamApp(postgres, { env: leader.env, demo: leader.demo });
    await leader.app.config.change({ notices: { webhookUrl: receiver.url } });
    const anna = await leader.addMember("anna", "anna-demo");
    const ben = await leader.addMember("ben", "ben-demo", "ben-work");
    const accountsOf = (team: typeof leader, id: string) => team.app.forMember(id).accounts;
    await until(
      () => accountsOf(other, anna.id).length + accountsOf(other, ben.id).length === 3,
      "the other server has all accounts",
    );

    // What the server that is not the leader finds out.
    const [annas] = accountsOf(other, anna.id);
    other.demo.accounts.find(({ login }) => login === "anna-demo")!.githubToken = "ghu_another";
    await annas!.copilotToken().catch(() => {});
    accountsOf(other, ben.id)[0]!.setState({ name: "failed", reason: "Account suspended.", suspended: true });
    const quota = leader.demo.accounts.find(({ login }) => login === "ben-work")!.quota.premium;
    Object.assign(quota, { entitlement: 300, remaining: 0 });
    await accountsOf(other, ben.id)[1]!.quota();
    await until(
      () =>
        accountsOf(leader, anna.id)[0]!.state.name === "failed" &&
        isSuspended(accountsOf(leader, ben.id)[0]!.state) &&
        accountsOf(leader, ben.id)[1]!.knownQuota !== undefined,
      "the leader knows what was marked",
    );
    await other.app.notices.check();
    expect(receiver.received).toEqual([]);
    for (const { app } of [leader, other, leader]) await app.notices.check();
    expect(titlesOf(receiver.received).sort()).toEqual([
      "Account anna-demo of anna failed",
      "Account ben-demo of ben is suspended",
      "Quota of ben-work of ben is used up",
    ]);
    const sent = JSON.stringify(receiver.received);
    expect(sent).toContain("No account of ben is used until a person has acted.");
    for (const secret of [anna.key, ben.key, "ghu_"]) expect(sent).not.toContain(secret);
  });

  test("what the webhook did not take is sent by the leader of that time, whichever server tried before", async () => {
    await using receiver = startReceiver(404);
    const { received } = receiver;
    await using leader = await startTeamApp(postgres);
    await leader.app.config.change({ notices: { webhookUrl: receiver.url } });
    const anna = await leader.addMember("anna", "anna-demo");
    leader.app
      .forMember(anna.id)
      .accounts[0]!.setState({ name: "failed", reason: "Account suspended.", suspended: true });
    const age = () =>
      postgres.administer(
        "UPDATE dragoman.notices SET tried_at = now() - interval '2 minutes'",
        leader.env.DRAGOMAN_DATABASE_URL!,
      );
    for (const expected of [1, 1]) {
      await leader.app.notices.check();
      expect(received).toHaveLength(expected);
    }
    for (const expected of [2, 2]) {
      await age();
      await leader.app.notices.check();
      expect(received).toHaveLength(expected);
    }
    expect(new Set(received.map(({ body }) => (JSON.parse(body) as { id: string }).id)).size).toBe(1);
  });
});

describeWithPostgres("a budget for each member", () => {
  test("a budget for each member has a notice for each threshold and member, once in the team, which names the member", async () => {
    await using postgres = await sharedPostgres();
    await using leader = await startTeamApp(postgres);
    await using other = await startTeamApp(postgres, { env: leader.env, demo: leader.demo });
    const [anna, ben] = [await leader.addMember("anna", "anna-demo"), await leader.addMember("ben", "ben-demo")];
    const limits = { ben: 40 };
    const rules = { unit: "requests", limit: 10, per: "month", warn: [0.5, 0.8] } as const;
    const budgets = [{ name: "each", each: "member", limits, ...rules }];
    await leader.app.config.change({ budgets });
    await until(() => other.app.budgets.budgets.length === 1, "the other server knows the budget");
    const titles = () =>
      leader.lines.concat(other.lines).flatMap((line) => /Budget .*? (?:used up|used)(?=\.)/.exec(line)?.[0] ?? []);
    const spent = new Map<string, number>();
    const spend = async ({ id, name }: { id: string; name: string }, count: number) => {
      const subject = { key: `${name}/key-1`, account: null, model: "gpt-5-mini" };
      for (let done = 0; done < count; done += 1) {
        const reservation = await other.app.budgets.reserve({ ...subject, member: { id, name } }, unpriced);
        other.app.budgets.settle(reservation as Reservation, {
          model: "gpt-5-mini",
          expected: unpriced,
          real: unpriced,
        });
      }
      const known = spent.get(id) ?? 0;
      spent.set(id, known + count);
      await until(async () => {
        const { states } = await leader.app.budgets.holders(leader.app.budgets.budgets[0]!, { limit: 9 });
        return states.some(({ holder, used }) => holder?.name === name && used === known + count);
      }, "the use is counted");
      for (const { app } of [leader, other, leader]) await app.notices.check();
    };
    await spend(anna, 4);
    expect(titles()).toEqual([]);
    await spend(anna, 1);
    // A quarter of Ben's own limit.
    await spend(ben, 10);
    expect(titles()).toEqual(["Budget each of anna: 50% used"]);
    await spend(anna, 3);
    await spend(anna, 2);
    await spend(ben, 10);
    expect(titles().slice(1)).toEqual([
      "Budget each of anna: 80% used",
      "Budget each of anna is used up",
      "Budget each of ben: 50% used",
    ]);
  });
});

test("one notice is sent of many about members or holders of budgets, and those about the owner stay", () => {
  const notices = Array.from({ length: 60 }, (_, at): Notice => {
    const title = `Quota of a${at} is used up`;
    return {
      id: `${at}`,
      type: "account",
      severity: "warning",
      title,
      message: "",
      ...(at > 1 && { about: at % 2 ? "members" : "holders of budgets" }),
    };
  });
  const sent = gathered(notices);
  expect(sent.map(({ title }) => title)).toEqual([
    "Quota of a0 is used up",
    "Quota of a1 is used up",
    "29 notices about holders of budgets",
    "29 notices about members",
  ]);
  expect(sent[2]!.message).toStartWith("Quota of a2 is used up; Quota of a4 is used up; ");
  expect(sent[2]!.message).toContain("; and 9 more.");
  expect(sent.slice(2).flatMap(({ of }) => of)).toHaveLength(58);
  expect(gathered(notices.slice(0, 12))).toHaveLength(12);
});
