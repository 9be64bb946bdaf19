/** 200 requests that wait at two servers of a team: that none is lost or sent twice, their memory, and `kill -9`. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { withTeamStores } from "../../support/members";
import { describeWithOwnPostgres } from "../../support/shared-postgres";
import { individuals, startTeam, type Team, type TeamProcess } from "../../support/teams";
import { until } from "../../support/until";

const count = 200;
/** Requests of a line that both servers may have let out at a time. */
const mostOut = 2 * 32;
/** Characters of a prompt. */
const size = 100_000;

const nameOf = (at: number) => `waiting-${String(at).padStart(3, "0")}`;
const bodyOf = (at: number) => ({
  model: "gpt-4.1",
  messages: [{ role: "user", content: `${"x ".repeat(size / 2)} ${nameOf(at)}` }],
});

/** The names of the requests that the upstream got, in their order. */
const sentTo = ({ demo }: Team) =>
  demo.journal
    .filter(({ path }) => path.endsWith("/chat/completions"))
    .flatMap(({ bytes }) => /waiting-\d+/.exec(Buffer.from(bytes.subarray(-200)).toString()) ?? [])
    .map(String);

const residentMiB = ({ command }: TeamProcess) =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${command.process.pid}/status`, "utf8"))![1]) / 1024;

describeWithOwnPostgres("requests that wait at two servers", (postgres) => {
  async function start() {
    const team = await startTeam(postgres, { accounts: individuals("octo-demo") });
    await withTeamStores(team, (stores) => stores.config.change({ whenLimited: "wait" }));
    const servers = [await team.process(), await team.process()] as const;
    for (const server of servers)
      await (await server.post("/v1/chat/completions", { ...bodyOf(0), stream: true })).text();
    team.demo.journal.length = 0;
    return { team, servers };
  }
  /** Limits the account for both servers. */
  async function limit(servers: readonly TeamProcess[], seconds: number) {
    const messages = [{ role: "user", content: `[demo: 429 ${seconds} once]` }];
    const refused = servers[0]!.post("/v1/chat/completions", { model: "gpt-4.1", messages });
    // The other one knows it too.
    const isLimited = async ({ url }: TeamProcess) =>
      ((await (await fetch(`${url}/wait?model=gpt-4.1&seconds=0`)).json()) as { ready: boolean }).ready === false;
    for (const server of servers) await until(() => isLimited(server), "both know the limit");
    // Not the promise itself, which would be awaited.
    return { refused };
  }
  /** How many wait at both, as the live page of one of them says. */
  const waiting = async (server: TeamProcess) => (await server.admin("/meta")).running_count as number;

  test("each goes once, and what waits takes little memory", async () => {
    const { team, servers } = await start();
    await using _ = team;
    const before = servers.map(residentMiB);
    const { refused } = await limit(servers, 45);
    const answers = Array.from({ length: count }, (_, at) => at).map(async (at) => {
      await Bun.sleep(at * 20);
      return servers[at % 2]!.post("/v1/chat/completions", bodyOf(at));
    });
    const inLine = () =>
      postgres.administer("SELECT request_id FROM dragoman.waiting ORDER BY joined_at", team.env.DRAGOMAN_DATABASE_URL);
    await until(async () => (await inLine()).length === count + 1, "all of them wait");
    const joined = (await inLine()).map((row) => (row as { request_id: string }).request_id);
    expect(sentTo(team)).toEqual([]);
    for (const [at, server] of servers.entries()) expect(residentMiB(server) - before[at]!).toBeLessThan(100);
    const places = new Map<string, number>();
    for (const [at, answer] of (await Promise.all(answers)).entries()) {
      expect(answer.status).toBe(200);
      places.set(nameOf(at), joined.indexOf(answer.headers.get("x-request-id")!));
      await answer.text();
    }
    await (await refused).text();
    const sent = sentTo(team);
    expect(sent.toSorted()).toEqual(Array.from({ length: count }, (_, at) => nameOf(at)));
    // Both servers let out the oldest of both, more at a time with each that was served: nobody is overtaken by more.
    const overtaken = sent.map((name, place) => place - places.get(name)!);
    expect(Math.max(...overtaken)).toBeLessThanOrEqual(mostOut);
  }, 120_000);

  test("after a kill -9 of one server the other one's requests go on, and none of the lost ones is sent", async () => {
    const { team, servers } = await start();
    await using _ = team;
    const { refused } = await limit(servers, 30);
    const answers = Array.from({ length: count }, (_, at) => at).map(async (at) => {
      await Bun.sleep(at * 20);
      return servers[at % 2]!.post("/v1/chat/completions", bodyOf(at)).then(
        async (answer) => {
          await answer.text();
          return answer.status;
        },
        () => "lost",
      );
    });
    await until(async () => (await waiting(servers[0])) > count, "all of them wait");
    servers[1].command.process.kill("SIGKILL");
    const ends = await Promise.all(answers);
    await (await refused).text();
    expect(ends.filter((_, at) => at % 2 === 0)).toEqual(Array(count / 2).fill(200));
    expect(ends.filter((_, at) => at % 2 === 1)).toEqual(Array(count / 2).fill("lost"));
    expect(sentTo(team).toSorted()).toEqual(Array.from({ length: count / 2 }, (_, at) => nameOf(2 * at)));
  }, 120_000);
});
