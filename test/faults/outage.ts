/**
 * `bun run test:outage [seconds] [rounds]`: three servers under load lose their Postgres for so long, by turns because it is
 * killed and because it hangs, and get it back; prints figures. 30 seconds and 2 rounds unless told. Ends with 1 when a
 * request failed, was sent twice or has no row, when a stream was cut, or when a budget did not end exactly.
 */
import { SQL } from "bun";
import { untilKnown } from "../support/members";
import { startPostgres, type TestPostgres } from "../support/postgres";
import { startTeam, type Team, type TeamServer } from "../support/teams";
import { until } from "../support/until";

const seconds = Number(process.argv[2] ?? 30);
const rounds = Number(process.argv[3] ?? 2);
/** Milliseconds that one request may take at most, and that the rows may take after the database is back. */
const [longestRequest, longestReplay] = [4_000, 30_000];
/** Of a budget in requests. Ben's stops, so he is refused while the database is away; Anna's only warns. */
const limits = { anna: 1_000_000, ben: 400 };

interface Sent {
  id: string;
  key: string;
  status: number;
  isWhole: boolean;
  ms: number;
  /** Of an answer that is an error. */
  error?: string;
}

const kinds = {
  short: { text: "Hello", stream: false },
  stream: { text: "[demo: long 40] Tell me a story.", stream: true },
  /** From before the outage until after it. */
  long: { text: `[demo: long ${(seconds + 10) * 100}] Tell me a story.`, stream: true },
};

async function send(server: TeamServer, key: string, kind: keyof typeof kinds): Promise<Sent> {
  const { text, stream } = kinds[kind];
  const begun = performance.now();
  const body = { model: "gpt-5-mini", messages: [{ role: "user", content: text }], stream };
  const response = await server.post("/v1/chat/completions", body, { authorization: `Bearer ${key}` });
  const headersAt = performance.now();
  const answer = await response.text();
  return {
    id: response.headers.get("x-request-id") ?? "",
    key,
    status: response.status,
    isWhole: stream ? answer.trimEnd().endsWith("[DONE]") : answer.includes('"choices"'),
    ms: headersAt - begun,
    ...(!response.ok && { error: answer }),
  };
}

async function prepare(team: Team): Promise<{ servers: TeamServer[]; keys: Record<keyof typeof limits, string> }> {
  // For longer than the database is away, keys are known without it: otherwise the last requests would be refused.
  const env = { DRAGOMAN_DATABASE_GRACE: String(2 * seconds) };
  const servers = await Promise.all(Array.from({ length: 3 }, () => team.process({ env })));
  const keys = { anna: "", ben: "" };
  for (const [name, limit] of Object.entries(limits) as [keyof typeof limits, number][]) {
    ({ key: keys[name] } = await servers[0]!.admin("/keys", { name }));
    await untilKnown(servers, [{ key: keys[name] }]);
    await servers[0]!.admin("/budgets", {
      name,
      unit: "requests",
      limit,
      per: "month",
      scope: { key: name },
      then: name === "anna" ? "warn" : "stop",
    });
  }
  await until(async () => {
    const lists = await Promise.all(servers.map((server) => server.admin("/budgets")));
    return lists.every(({ items }) => items.length === 2);
  }, "every server knows both budgets");
  return { servers, keys };
}

async function round(postgres: TestPostgres, way: "killed" | "hangs"): Promise<string[]> {
  await using team = await startTeam(postgres, { pace: 10 });
  const { servers, keys } = await prepare(team);
  const done: Sent[] = [];
  const failures: string[] = [];
  let stop = false;
  const load = async (at: number, key: string, kind: keyof typeof kinds, pause: number) => {
    for (; !stop; await Bun.sleep(pause)) done.push(await send(servers[at % 3]!, key, kind));
  };
  const long = servers.map((server) => send(server, keys.anna, "long"));
  const loads = [
    ...Array.from({ length: 6 }, (_, at) => load(at, keys.anna, "short", 30)),
    ...Array.from({ length: 3 }, (_, at) => load(at, keys.anna, "stream", 30)),
    ...Array.from({ length: 3 }, (_, at) => load(at, keys.ben, "short", 1_000)),
  ];
  await Bun.sleep(3_000);
  if (way === "killed") await postgres.stop();
  else postgres.pause();
  const awayAt = performance.now();
  const before = done.length;
  await Bun.sleep((seconds * 1_000) / 2);
  // A token that is refused now is exchanged by each server alone.
  team.demo.expireTokens();
  await Bun.sleep((seconds * 1_000) / 2);
  const during = done.length - before;
  if (way === "killed") await postgres.start();
  else postgres.resume();
  const backAt = performance.now();
  await Bun.sleep(5_000);
  stop = true;
  await Promise.all(loads);
  done.push(...(await Promise.all(long)));
  // The rest of the budget, by all servers at once.
  await until(async () => (await servers[0]!.admin("/budgets")).items !== undefined, "the database is back");
  const rest = Array.from({ length: limits.ben }, (_, at) => send(servers[at % 3]!, keys.ben, "short"));
  done.push(...(await Promise.all(rest)));

  const served = done.filter(({ status }) => status === 200);
  const ofBen = served.filter(({ key }) => key === keys.ben);
  const refused = done.filter(({ status, key }) => status !== 200 && key === keys.anna);
  if (refused.length > 0) {
    const reasons = new Set(refused.map(({ status, error }) => `${status} ${error}`));
    failures.push(`${refused.length} requests were refused: ${[...reasons].join("; ")}`);
  }
  if (served.some(({ isWhole }) => !isWhole)) failures.push("an answer was cut");
  if (ofBen.length !== limits.ben) failures.push(`a budget of ${limits.ben} requests let ${ofBen.length} through`);
  const slowest = Math.max(...done.map(({ ms }) => ms));
  if (slowest > longestRequest) failures.push(`a request waited for ${Math.round(slowest)} ms`);

  const sql = new SQL(team.env.DRAGOMAN_DATABASE_URL!, { max: 1 });
  const ids = async () =>
    new Set((await sql`SELECT request_id FROM dragoman.requests`).map((row: { request_id: string }) => row.request_id));
  let rows = await ids();
  while (!done.every(({ id }) => rows.has(id)) && performance.now() < backAt + longestReplay) {
    await Bun.sleep(50);
    rows = await ids();
  }
  const missing = done.filter(({ id }) => !rows.has(id)).length;
  if (missing > 0) failures.push(`${missing} rows are missing`);
  const calls = team.demo.journal.filter(({ path, status }) => path === "/chat/completions" && status === 200).length;
  if (calls !== served.length) failures.push(`${served.length} requests were sent ${calls} times`);
  const counts = await sql`SELECT budget, used::int AS used, reserved::int AS reserved FROM dragoman.ledger`;
  const used = counts.reduce((sum: number, row: { used: number }) => sum + row.used, 0);
  if (used !== served.length) failures.push(`the budgets count ${used} of ${served.length} requests`);
  await sql.close();
  console.log(
    `Postgres ${way} for ${((backAt - awayAt) / 1_000).toFixed(1)} s: ${done.length} requests, ${during} of them meanwhile; ` +
      `the slowest began after ${Math.round(slowest)} ms; ${rows.size} rows, ${missing} missing; sent ${calls} times for ${served.length} answers; ` +
      `the budget of ${limits.ben} let ${ofBen.length} through; the ledger counts ${used}`,
  );
  return failures;
}

await using postgres = await startPostgres();
let failed = false;
for (let count = 0; count < rounds; count += 1)
  for (const failure of await round(postgres, count % 2 === 0 ? "killed" : "hangs")) {
    failed = true;
    console.error(`  ${failure}`);
  }
process.exitCode = failed ? 1 : 0;
