/**
 * `bun run test:soak [minutes] [rounds]`: mixed load with faults on 200 connections, then `kill -9` under load; prints
 * figures. 20 minutes and 25 rounds unless told. Ends with 1 when a request or a row was lost.
 */
import { Database } from "bun:sqlite";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { exampleModels } from "../../src/proxy/upstream/models/known-models";
import { run } from "../support/command";
import { postJson } from "../support/post-json";

const minutes = Number(process.argv[2] ?? 20);
const rounds = Number(process.argv[3] ?? 25);
const streams = 200;
const demo = ["start", "--demo", "--json", "--port", "0"];
/** By this name the rows are told from those that the demo makes up. */
const client = "dragoman-soak";
const headers = { "content-type": "application/json", "user-agent": `${client}/1` };
const faults = [
  "",
  "",
  "",
  "",
  "[demo: cut 3]",
  "[demo: end 4]",
  "[demo: bad-json]",
  "[demo: error-event]",
  "[demo: reset]",
  "[demo: 500]",
  "[demo: 422]",
  "[demo: html]",
  "[demo: chop 5]",
  "[demo: crlf]",
  "[demo: long 60]",
  "[demo: silence 2]",
];

const calls = [
  (prompt: string, stream: boolean) => [
    "/v1/chat/completions",
    { model: exampleModels.flash, stream, messages: [{ role: "user", content: prompt }] },
  ],
  (prompt: string, stream: boolean) => [
    "/v1/messages",
    { model: exampleModels.small, max_tokens: 500, stream, messages: [{ role: "user", content: prompt }] },
  ],
  (prompt: string, stream: boolean) => ["/v1/responses", { model: exampleModels.small, stream, input: prompt }],
] satisfies ((prompt: string, stream: boolean) => [path: string, body: object])[];

/** Ended in its right terminal event, or in an error of its dialect. */
function isTruthful(path: string, stream: boolean, status: number, text: string): boolean {
  if (status !== 200) return text.includes('"error"');
  if (!stream) return text.startsWith("{");
  const last =
    text
      .trimEnd()
      .split(/\r?\n\r?\n/)
      .at(-1) ?? "";
  if (path.endsWith("completions")) return last === "data: [DONE]" || last.includes('"error"');
  if (path.endsWith("messages")) return last.includes('"message_stop"') || last.includes('"type":"error"');
  return /"type":"(?:response\.(?:completed|incomplete|failed)|error)"/.test(last);
}

const rss = (pid: number) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024;
const files = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;
const rowsIn = (home: string) => {
  const database = new Database(join(home, "data", "demo", "admin.sqlite"));
  const { rows } = database
    .query<{ rows: number }, [string]>("SELECT count(*) AS rows FROM requests WHERE client_name LIKE ? || '%'")
    .get(client)!;
  const sound = JSON.stringify(database.query("PRAGMA integrity_check").get()).includes('"ok"');
  database.close();
  return { rows, sound };
};

let failed = false;
if (minutes > 0) {
  await using command = run(demo);
  const { url, pid } = await command.ready();
  // In an hour there are more of them than the history keeps by itself.
  await postJson(`${url}/api/admin/config`, { maxRows: 10_000_000 });
  const until = performance.now() + minutes * 60_000;
  let sent = 0;
  let left = 0;
  const lost: string[] = [];
  const samples: { at: number; rss: number; files: number }[] = [];
  const sampling = setInterval(() => samples.push({ at: performance.now(), rss: rss(pid), files: files(pid) }), 2000);
  await Promise.all(
    Array.from({ length: streams }, async (_, worker) => {
      for (let turn = worker; performance.now() < until; turn++) {
        const fault = faults[turn % faults.length]!;
        const stream = turn % 5 !== 0;
        const [path, body] = calls[turn % calls.length]!(`${fault} Tell me of ${worker}-${turn}`, stream);
        const leaving = turn % 23 === 0 ? AbortSignal.timeout(100) : undefined;
        const signal = leaving ?? AbortSignal.timeout(60_000);
        sent++;
        try {
          const response = await fetch(url + path, {
            method: "POST",
            body: JSON.stringify(body),
            signal,
            headers,
          });
          const text = await response.text();
          if (!isTruthful(path, stream, response.status, text))
            lost.push(`${path} ${fault} ${response.status} ${text.slice(-120)}`);
        } catch (thrown) {
          if (leaving?.aborted) left++;
          else lost.push(`${path} ${fault} ${thrown}`);
        }
        await Bun.sleep(200);
      }
    }),
  );
  clearInterval(sampling);
  await Bun.sleep(1000);
  const end = { rss: rss(pid), files: files(pid) };
  command.process.kill("SIGTERM");
  await command.exited;
  const { rows, sound } = rowsIn(command.home);
  // The items of the last hour, which clients may name, have filled their 32 MiB by then.
  const later = samples.slice(Math.floor((samples.length * 2) / 3));
  console.log(`load: ${minutes} min, ${streams} at a time, ${sent} requests, ${left} left by their clients`);
  console.log(`lost: ${lost.length}`);
  for (const one of lost.slice(0, 10)) console.log(`  ${one}`);
  // A client that leaves before its request has been read is no exchange.
  console.log(
    `rows: ${rows} of ${sent}, missing ${Math.max(0, sent - left - rows)}, database ${sound ? "sound" : "DAMAGED"}`,
  );
  console.log(
    `RSS MiB: after two thirds ${later[0]?.rss.toFixed(0)}, at the end ${later.at(-1)?.rss.toFixed(0)}, slope ${slope(later).toFixed(2)} a minute, idle again ${end.rss.toFixed(0)}`,
  );
  console.log(`files: after two thirds ${later[0]?.files}, at the end ${later.at(-1)?.files}, idle again ${end.files}`);
  failed ||= lost.length > 0 || rows < sent - left || !sound;
}

if (rounds > 0) {
  await using first = run(demo);
  let known = 0;
  let missing = 0;
  let slowest = 0;
  let unsound = 0;
  let total = 0;
  for (let round = 0; round < rounds; round++) {
    const startedAt = performance.now();
    const command = round === 0 ? first : run(demo, { env: { DRAGOMAN_HOME: join(first.home, "data") } });
    const { url } = await command.ready();
    slowest = Math.max(slowest, performance.now() - startedAt);
    let served = 0;
    const senders = Array.from({ length: 32 }, async () => {
      for (;;) {
        try {
          const body = JSON.stringify({ model: exampleModels.flash, messages: [{ role: "user", content: "Hello" }] });
          await (await fetch(`${url}/v1/chat/completions`, { method: "POST", body, headers })).arrayBuffer();
          served++;
        } catch {
          return;
        }
      }
    });
    await Bun.sleep(500 + Math.random() * 500);
    const finished = served;
    // Rows of a busy time are written 50 ms apart: those of the last tenth of a second are not yet acknowledged.
    await Bun.sleep(100);
    command.process.kill("SIGKILL");
    await Promise.all(senders);
    await command.process.exited;
    const { rows, sound } = rowsIn(first.home);
    missing += Math.max(0, finished - (rows - known));
    if (!sound) unsound++;
    total += served;
    known = rows;
    if (round > 0) await command[Symbol.asyncDispose]();
  }
  console.log(
    `kill -9: ${rounds} rounds, ${total} served, rows missing ${missing}, damaged ${unsound}, slowest start ${Math.round(slowest)} ms`,
  );
  failed ||= missing > 0 || unsound > 0;
}
process.exit(failed ? 1 : 0);

/** MiB a minute, by least squares. */
function slope(points: { at: number; rss: number }[]): number {
  const mean = (of: (point: { at: number; rss: number }) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [at, size] = [mean((point) => point.at), mean((point) => point.rss)];
  const [over, under] = points.reduce(
    ([o, u], point) => [o + (point.at - at) * (point.rss - size), u + (point.at - at) ** 2],
    [0, 0],
  );
  return under === 0 ? 0 : (over / under) * 60_000;
}
