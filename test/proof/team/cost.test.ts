/** Scenario: how often a request waits for the database, and what it is answered when the database answers late. */
import { expect, test } from "bun:test";
import { took } from "../../support/least";
import { askAs, type TestMember } from "../../support/members";
import { describeWithDatabases } from "../../support/shared-postgres";
import { startTcpFront } from "../../support/tcp-front";
import { startTeam } from "../../support/teams";
import { until } from "../../support/until";

describeWithDatabases("a request of a member", (postgres) => {
  /** A server whose way to the database can be made longer. */
  async function world() {
    const team = await startTeam(postgres);
    const url = new URL(team.env.DRAGOMAN_DATABASE_URL!);
    const front = await startTcpFront(Number(url.port));
    const { anna, ben } = await team.addMembers({ anna: ["anna-hub"], ben: ["ben-hub"] });
    const server = await team.process({
      env: { DRAGOMAN_DATABASE_URL: Object.assign(url, { port: front.port }).href },
    });
    const ask = async (member: TestMember) => {
      const answer = await askAs(server, member);
      const { error } = (await answer.json()) as { error?: { code: string } };
      return [answer.status, error?.code, answer.headers.get("retry-after")].filter(Boolean).join(" ");
    };
    for (const each of [anna, ben]) await until(async () => (await ask(each)) === "200", "the member is served");
    return {
      ...{ team, front, server, anna, ben, ask },
      async [Symbol.asyncDispose]() {
        await team[Symbol.asyncDispose]();
        await front[Symbol.asyncDispose]();
      },
    };
  }

  test("waits for it once for its key, which then counts for a second, and once where a budget limits it", async () => {
    await using opened = await world();
    const { front, server, anna, ask } = opened;
    const far = 300;
    /** How often a request after a pause waits, and one right after it. The least of some: a statement's first use on a connection waits twice. */
    const waits = async () => {
      const found: number[][] = [];
      for (let turn = 0; turn < 8; turn += 1) {
        await Bun.sleep(1_100);
        front.delay(far);
        found.push([await took(() => ask(anna)), await took(() => ask(anna))]);
        front.delay(0);
      }
      return [0, 1].map((place) => Math.floor(Math.min(...found.map((pair) => pair[place]!)) / far));
    };
    expect(await waits()).toEqual([1, 0]);
    await server.admin("/budgets", { name: "each", unit: "requests", limit: 1e6, per: "month", each: "member" });
    expect(await waits()).toEqual([2, 1]);
  }, 60_000);

  test("of a key of the last minute is served, however late the database answers; another is told when to come again", async () => {
    await using opened = await world();
    const { team, front, anna, ben, ask } = opened;
    const { cleo } = await team.addMembers({ cleo: ["cleo-hub"] });
    front.delay(5_000);
    await Bun.sleep(1_100);
    const answers = new Map([anna, ben, cleo].map(({ name }) => [name, new Set<string>()]));
    let longest = 0;
    const end = performance.now() + 20_000;
    const askOn = async (member: TestMember) => {
      for (; performance.now() < end; await Bun.sleep(100))
        longest = Math.max(longest, await took(async () => answers.get(member.name)!.add(await ask(member))));
    };
    await Promise.all([anna, ben, cleo].map(askOn));
    expect([...answers].map(([name, found]) => [name, [...found]])).toEqual([
      ["anna", ["200"]],
      ["ben", ["200"]],
      ["cleo", ["503 database_away 5"]],
    ]);
    // Five seconds for the answer, and one to find out whether anything is answered.
    expect(longest).toBeLessThan(6_500);
  }, 60_000);
});
