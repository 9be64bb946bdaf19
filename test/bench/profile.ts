/**
 * `bun run bench --profile`: where the CPU of one small exchange goes. The kernel says how much each thread took, and samples of
 * the stack say for which of our files the main thread worked: what Bun and the collector do is charged to the file that
 * called them. Sampling itself costs about a tenth.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { clientPath, type Dialect, modelOf, requestBody } from "./dialects";
import { load, newFolder, type Running, startDragoman, subjects } from "./processes";
import { markdown } from "./statistics";
import { warmUp } from "./warm-up";

/** What an exchange comes through, and the files that belong to it; the first one that a path begins with counts. */
const segments: Record<string, string> = {
  "the server, the guard, the route, the key": "server lib/net/in/ routes/ web/ people/keys/ host-name",
  "the record, budgets, traces, requests in flight":
    "proxy/relay/request- people/budgets/ books/live/in-flight books/observe/tracing",
  "the request is read: UTF-8, JSON, facts":
    "proxy/relay/incoming proxy/relay/initiator json lib/net/json/json-skeleton",
  "the target, the chain, tools, limits of prompts":
    "proxy/relay/target proxy/relay/fallback proxy/relay/prompt proxy/relay/cache proxy/upstream/",
  "rules of requests, fixups, the reply":
    "dialects/ lib/net/json/ proxy/relay/passthrough proxy/relay/respond proxy/relay/translation",
  "the account: seats, affinity, session, quota":
    "proxy/relay/account-seats proxy/relay/seats proxy/relay/after proxy/relay/affinity proxy/relay/body-remedies people/accounts/",
  "the call: limits, fetch, the body": "lib/net/",
  "the row and its sums": "books/history/",
  "metrics, traces, the log line": "books/observe/ logger format",
  "the rest of the relay": "proxy/relay/",
  "other files": "",
};

const ways = Object.entries(segments).map(([segment, files]) => [segment, files.split(" ")] as const);

interface Profile {
  nodes: { id: number; callFrame: { url: string }; children?: number[] }[];
  samples: number[];
  /** Microseconds. */
  timeDeltas: number[];
}

/** Microseconds between two samples: with fewer, the sampling takes a core for itself. */
const interval = 1_000;

/** @returns The table as Markdown. */
export async function profileOf(
  upstream: Running,
  dialect: Dialect,
  connections: number,
  count: number,
): Promise<string> {
  const folder = newFolder();
  const [bun, ...words] = subjects.source as [string, ...string[]];
  const options = [
    "--cpu-prof",
    `--cpu-prof-dir=${folder}`,
    "--cpu-prof-name=profile.cpuprofile",
    `--cpu-prof-interval=${interval}`,
  ];
  const begun = performance.now();
  const dragoman = await startDragoman([bun, ...options, ...words], upstream);
  const body = requestBody(dialect, modelOf(dialect), false);
  const job = { kind: "requests", url: dragoman.url + clientPath[dialect], body, connections } as const;
  try {
    await warmUp(dragoman.pid, () => load({ ...job, count: 3_000 }), 6);
    const [before, from] = [cpuOfThreads(dragoman.pid), performance.now() - begun];
    await load({ ...job, count });
    const [after, until] = [cpuOfThreads(dragoman.pid), performance.now() - begun];
    process.kill(dragoman.pid, "SIGTERM");
    const profile = await writtenProfile(join(folder, "profile.cpuprofile"));
    return tableOf({
      threads: Object.fromEntries(
        Object.entries(after).map(([name, seconds]) => [name, ((seconds - (before[name] ?? 0)) / count) * 1e6]),
      ),
      samples: samplesOf(profile, from * 1_000, until * 1_000),
      title: `${dialect}, ${connections} ${connections === 1 ? "connection" : "connections"}, ${count} exchanges`,
    });
  } finally {
    await dragoman.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** It is written when the process ends. */
async function writtenProfile(path: string): Promise<Profile> {
  for (let tries = 0; tries < 200; tries++) {
    await Bun.sleep(100);
    const text = existsSync(path) ? readFileSync(path, "utf8") : "";
    if (text.endsWith("}")) return JSON.parse(text) as Profile;
  }
  throw new Error("The profile was not written within 20 seconds.");
}

/** Seconds of CPU by kind of thread. */
function cpuOfThreads(pid: number): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      const name = readFileSync(`/proc/${pid}/task/${thread}/comm`, "utf8").trim();
      const kind = thread === String(pid) ? "main" : /HTTP/.test(name) ? "http" : "other";
      const nanoseconds = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0];
      sums[kind] = (sums[kind] ?? 0) + Number(nanoseconds) / 1e9;
    } catch {
      // It has just ended.
    }
  }
  return sums;
}

/** How many samples fell into each segment in a window, in microseconds after the start. */
function samplesOf({ nodes, samples, timeDeltas }: Profile, from: number, until: number): Map<string, number> {
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const urls = new Map(nodes.map(({ id, callFrame }) => [id, callFrame.url]));
  const segmentAt = (node: number): string => {
    for (let at: number | undefined = node; at !== undefined; at = parents.get(at)) {
      const [, file] = /\/src\/([^?]*)$/.exec(urls.get(at) ?? "") ?? [];
      if (file !== undefined)
        return ways.find(([, files]) => files.some((beginning) => file.startsWith(beginning)))![0];
    }
    return "Bun without a file of ours: dispatch, microtasks, the collector";
  };
  const counts = new Map<string, number>();
  let time = 0;
  for (const [at, node] of samples.entries()) {
    time += timeDeltas[at] ?? 0;
    if (time < from || time > until) continue;
    const segment = segmentAt(node);
    counts.set(segment, (counts.get(segment) ?? 0) + 1);
  }
  return counts;
}

function tableOf(measured: { title: string; threads: Record<string, number>; samples: Map<string, number> }): string {
  const { title, threads, samples } = measured;
  const { main = 0, http = 0, other = 0 } = threads;
  const all = [...samples.values()].reduce((sum, each) => sum + each, 0);
  const rows = [...samples]
    .toSorted(([, one], [, next]) => next - one)
    .map(([segment, count]): [string, number] => [segment, (count / all) * main]);
  const shown = [
    ...rows,
    ["**main thread**", main],
    ["Bun's HTTP client thread", http],
    ["other threads: compiler, collector", other],
    ["**sum**", main + http + other],
  ] as const;
  const table = markdown(
    [title, "CPU µs"],
    shown.map(([name, micros]) => [name, micros.toFixed(1)]),
  );
  return `${table}\n\n${all} samples of the main thread.`;
}
