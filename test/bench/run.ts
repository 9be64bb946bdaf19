/**
 * `bun run bench`: dragoman beside the upstream itself and beside the least that a proxy can be, in one run, as ratios.
 * `--quick` takes a minute or two instead of five, `--json` prints JSON, `--only small,paced` measures some parts. No
 * figure fails. DRAGOMAN_BINARY names an executable whose start and memory are measured too.
 */
import { join } from "node:path";
import { openHistory } from "../../src/history/history";
import { copilotStreams, type FormName } from "../support/copilot-streams";
import { entry } from "../support/history-rows";
import { clientPath, type Dialect, dialects, modelOf, requestBody, upstreamPath } from "./dialects";
import type { StreamsResult, Times } from "./load";
import {
  load,
  newFolder,
  type Running,
  type Started,
  startDragoman,
  startFloor,
  startUpstream,
  subjects,
} from "./processes";
import { cpuOf, growthOf, machine, quantile, rssOf } from "./statistics";
import type { Script } from "./upstream";

interface Row {
  figure: string;
  /** What is wanted of dragoman, in words. */
  goal?: string;
  met?: boolean;
  values: Record<string, number>;
}

const quick = process.argv.includes("--quick");
const asJson = process.argv.includes("--json");
const only = process.argv.includes("--only") ? process.argv[process.argv.indexOf("--only") + 1] : undefined;
const rows: Row[] = [];
const say = (text: string) => process.stderr.write(`${text}\n`);

const upstream = await startUpstream();
const floors = {
  bun: await startFloor("bun", upstream),
  elysia: await startFloor("elysia", upstream),
  translate: await startFloor("translate", upstream),
};
const proxies: Record<string, Started> = {};
proxies.dragoman = await startDragoman(subjects.dragoman!, upstream);

const begun = performance.now();
const parts: [string, () => Promise<void>][] = [
  ["start", measureStart],
  ["small", measureSmall],
  ["first", measureFirst],
  ["saturated", measureSaturated],
  ["paced", measurePaced],
  ["prompts", measurePrompts],
  ["thousand", measureThousand],
  ["stall", measureStall],
  ["count", measureCount],
  ["history", measureHistory],
];
try {
  for (const [name, measure] of parts) if (only === undefined || only.split(",").includes(name)) await measure();
} finally {
  await Promise.all([upstream, ...Object.values(floors), ...Object.values(proxies)].map((each) => each.stop()));
}
const took = `${machine()}; ${new Date().toISOString().slice(0, 10)}; ${Math.round((performance.now() - begun) / 1000)} s`;
if (asJson) console.log(JSON.stringify({ machine: took, rows }, null, 2));
else console.log(`${table(rows)}\n\n${took}`);

// ── What is measured ──

async function measureStart(): Promise<void> {
  const started: Record<string, number> = {};
  const idle: Record<string, number> = {};
  for (const [name, command] of Object.entries(subjects)) {
    const times: number[] = [];
    for (let time = 0; time < (quick ? 2 : 5); time++) {
      const proxy = await startDragoman(command, upstream);
      times.push(proxy.startMs);
      await Bun.sleep(500);
      idle[name] = rssOf(proxy.pid);
      await proxy.stop();
    }
    started[name] = quantile(times, 0.5);
  }
  const best = "executable" in started ? "executable" : "dragoman";
  add({ figure: "start to first answer, ms", values: started }, "executable ≤ 60", started[best]! <= 60);
  add({ figure: "idle RSS, MiB", values: idle }, "executable ≤ 70", idle[best]! <= 70);
}

async function measureSmall(): Promise<void> {
  const body = requestBody("chat", modelOf("chat"), false);
  const count = quick ? 4_000 : 12_000;
  const cpu: Record<string, number> = {};
  const one: Record<string, Times> = {};
  for (const [name, { url, pid }] of everyone()) {
    const job = { kind: "requests", url, body } as const;
    await load({ ...job, connections: 64, count: 3_000 });
    cpu[name] = ((await cpuIn(pid, () => load({ ...job, connections: 64, count }))) / count) * 1e6;
    one[name] = await load<Times>({ ...job, connections: 1, count: quick ? 500 : 2_000 });
  }
  ratioRow("small request, CPU µs each at 64 connections", without(cpu, "direct"), "elysia", 2);
  add({ figure: "small request alone, added p50, µs", values: added(one, "p50", 1000) });
  add({ figure: "small request alone, added p99, µs", values: added(one, "p99", 1000) });
}

async function measureFirst(): Promise<void> {
  const times: Record<string, Times> = {};
  await play({ events: 3, perRead: 1, every: 2 });
  for (const [name, { url }] of everyone()) {
    const job = { kind: "first", url, body: requestBody("chat", modelOf("chat"), true) } as const;
    await load({ ...job, count: 50 });
    times[name] = await load<Times>({ ...job, count: quick ? 200 : 500 });
  }
  const values = added(times, "p50", 1000);
  add(
    { figure: "first event of a stream, added p50, µs", values },
    "≤ 2 × elysia",
    values.dragoman! <= 2 * values.elysia!,
  );
}

async function measureSaturated(): Promise<void> {
  const script = { events: 200_000, perRead: 500, every: 0 };
  await measureStreams("saturated", script, 1, quick ? 4 : 10, 1, { same: 4, other: 2.5 });
}

async function measurePaced(): Promise<void> {
  const script = { events: quick ? 200 : 350, perRead: 1, every: 10 };
  await measureStreams("paced", script, 100, 1, 1, { same: 1.5, other: 1.3 });
}

/** CPU of streams in each pair of dialects: passed on beside the floor of Elysia, translated beside the floor of translation. */
async function measureStreams(
  how: string,
  script: Script,
  streams: number,
  times: number,
  warmUps: number,
  goals: { same: number; other: number },
): Promise<void> {
  const millions = (script.events * streams * times) / 1e6;
  const measure = async ({ pid }: Running, url: string, body: string) => {
    const job = { kind: "streams", url, body, streams } as const;
    await load({ ...job, times: warmUps });
    return (await cpuIn(pid, () => load({ ...job, times }))) / millions;
  };
  for (const [form, { dialect }] of Object.entries(copilotStreams(""))) {
    await play({ ...script, form: form as FormName });
    const body = requestBody(dialect, modelOf(dialect), true);
    const values: Record<string, number> = {};
    for (const [name, proxy] of Object.entries({ elysia: floors.elysia, ...proxies }))
      values[name] = await measure(proxy, proxy.url + clientPath[dialect], body);
    ratioRow(`${form}: passed on, ${how}, CPU s per 1M events`, values, "elysia", goals.same);
  }
  await play(script);
  const { url } = floors.translate;
  const floor = await measure(
    floors.translate,
    url + clientPath.messages,
    requestBody("messages", modelOf("chat"), true),
  );
  for (const client of dialects)
    for (const served of dialects) {
      if (client === served) continue;
      const values: Record<string, number> = { translate: floor };
      for (const [name, proxy] of Object.entries(proxies))
        values[name] = await measure(proxy, proxy.url + clientPath[client], requestBody(client, modelOf(served), true));
      ratioRow(`${client} ← ${served}, ${how}, CPU s per 1M events`, values, "translate", goals.other);
    }
}

async function measurePrompts(): Promise<void> {
  for (const megabytes of [1, 10]) {
    const count = (quick ? 4 : 8) * (megabytes === 1 ? 3 : 1);
    const pairs: [Dialect, Dialect, number][] = [
      ["chat", "chat", 60],
      ["messages", "messages", 60],
      ["messages", "chat", 150],
    ];
    for (const [client, served, max] of pairs) {
      const body = requestBody(client, modelOf(served), false, megabytes * 1e6);
      const same = client === served;
      const times: Record<string, Times> = {};
      const grown: Record<string, number> = {};
      for (const [name, { url, pid }] of everyone(client, same ? undefined : served)) {
        const job = { kind: "requests", url, body, connections: 1 } as const;
        await load({ ...job, count: 2 });
        const { result, growth } = await growthOf(pid, () => load<Times>({ ...job, count }));
        times[name] = result;
        grown[name] = growth;
      }
      const values = added(times, "p50", 1);
      const what = `${megabytes} MB ${client} request, ${same ? "passed on" : `to ${served}`}`;
      const met = megabytes === 10 ? values.dragoman! <= max : undefined;
      add({ figure: `${what}, added p50, ms`, values }, met === undefined ? undefined : `≤ ${max}`, met);
      const wanted = 8 * megabytes;
      if (megabytes === 10)
        add(
          { figure: "… RSS growth, MiB", values: without(grown, "direct") },
          `≤ ${wanted}`,
          grown.dragoman! <= wanted,
        );
    }
  }
}

async function measureThousand(): Promise<void> {
  const seconds = quick ? 4 : 20;
  await play({ events: seconds, perRead: 1, every: 1000 });
  const finished: Record<string, number> = {};
  const first: Record<string, number> = {};
  const grown: Record<string, number> = {};
  for (const [name, { url, pid }] of everyone("chat").filter(([name]) => name !== "direct" && name !== "bun")) {
    const job = { kind: "streams", url, body: requestBody("chat", modelOf("chat"), true), streams: 1000 } as const;
    const { result, growth } = await growthOf(pid, () => load<StreamsResult>({ ...job, times: 1 }));
    finished[name] = result.finished;
    first[name] = result.slowestFirst;
    grown[name] = growth;
  }
  add({ figure: `1,000 streams of ${seconds} s, finished`, values: finished }, "1,000", finished.dragoman === 1000);
  add({ figure: "… RSS growth, MiB", values: grown }, "≤ 60", grown.dragoman! <= 60);
  ratioRow("… first event of the slowest, ms", first, "elysia", 5);
}

async function measureStall(): Promise<void> {
  await play({ events: 800_000, perRead: 200, every: 0 });
  const grown: Record<string, number> = {};
  const closed: Record<string, number> = {};
  for (const [name, { url, pid }] of everyone("chat").filter(([name]) => name !== "direct")) {
    const job = { kind: "stall", url, body: requestBody("chat", modelOf("chat"), true), after: 3000 } as const;
    const { result, growth } = await growthOf(pid, () => load<number>(job));
    await Bun.sleep(300);
    const cancelledAt = (await (await fetch(`${upstream.url}/cancelled`)).json()) as number;
    grown[name] = growth;
    closed[name] = cancelledAt < result ? Number.POSITIVE_INFINITY : cancelledAt - result;
  }
  add({ figure: "client stops reading 200 MB, RSS growth, MiB", values: grown }, "≤ 20", grown.dragoman! <= 20);
  add({ figure: "… and hangs up, upstream closed after, ms", values: closed }, "≤ 100", closed.dragoman! <= 100);
}

async function measureCount(): Promise<void> {
  await play({ events: 1000, perRead: 1, every: 10 });
  const body = requestBody("messages", modelOf("messages"), false, 100_000);
  for (const [name, command] of Object.entries(subjects)) {
    const proxy = await startDragoman(command, upstream);
    const chat = { url: proxy.url + clientPath.chat, body: requestBody("chat", modelOf("chat"), true) };
    await load({ ...chat, kind: "first", count: 1 });
    const beside = Array.from({ length: 5 }, () => ({ url: `${proxy.url}/v1/messages/count_tokens`, body }));
    const [alone, first, ...later] = await load<number[]>({ ...chat, kind: "gaps", beside });
    await proxy.stop();
    const values = { alone: alone!, first: first!, later: Math.max(...later) };
    const met = values.first <= 25 && values.later <= 12;
    add(
      { figure: `${name}: longest gap of a 10 ms stream beside count_tokens of 100 kB, ms`, values },
      "≤ 25, later ≤ 12",
      met,
    );
  }
}

async function measureHistory(): Promise<void> {
  const count = quick ? 50_000 : 200_000;
  const home = newFolder();
  const history = openHistory(join(home, "admin.sqlite"), {
    retentionDays: () => 14,
    maxRows: () => 1e6,
    warn: say,
  });
  const now = Date.now();
  for (let at = 0; at < count; at++) {
    history.add(entry({ started_at_ms: now - (count - at) * 10, account_id: at % 3 ? "ada" : "bob" }));
    if (at % 5000 === 4999) history.flush();
  }
  history.close();
  const proxy = await startDragoman(subjects.dragoman!, upstream, home);
  const page = async (path: string, times = 20) => {
    const taken: number[] = [];
    for (let time = 0; time < times; time++) {
      const begun = performance.now();
      const response = await fetch(proxy.url + path);
      await response.text();
      if (!response.ok) throw new Error(`${path} answered ${response.status}`);
      taken.push(performance.now() - begun);
    }
    return quantile(taken, 0.5);
  };
  const values = {
    list: await page("/api/admin/requests?limit=50"),
    filtered: await page("/api/admin/requests?limit=50&account_id=bob"),
    totals: await page("/api/admin/totals", 5),
  };
  await proxy.stop();
  add({
    figure: `history of ${count.toLocaleString("en")} rows: a page, one of an account, all totals, p50, ms`,
    values,
  });
}

// ── How ──

async function play(script: Script): Promise<void> {
  await fetch(`${upstream.url}/script`, { method: "POST", body: JSON.stringify(script) });
}

/** All who can answer, with the address of the path: the upstream itself, the floors, dragoman. */
function everyone(client: Dialect = "chat", served?: Dialect): [string, { url: string; pid: number }][] {
  const at = ({ pid, url }: Running, path: string) => ({ pid, url: url + path });
  const least = served === undefined ? without(floors, "translate") : {};
  return [
    ["direct", at(upstream, upstreamPath[served ?? client])],
    ...Object.entries({ ...least, ...proxies }).map(
      ([name, proxy]) => [name, at(proxy, clientPath[client])] as [string, { url: string; pid: number }],
    ),
  ];
}

async function cpuIn(pid: number, work: () => Promise<unknown>): Promise<number> {
  const before = cpuOf(pid);
  await work();
  return cpuOf(pid) - before;
}

function added(times: Record<string, Times>, which: keyof Times, unit: number): Record<string, number> {
  const { direct, ...others } = times;
  return Object.fromEntries(
    Object.entries(others).map(([name, time]) => [name, (time[which] - direct![which]) * unit]),
  );
}

function without<T>(values: Record<string, T>, name: string): Record<string, T> {
  const { [name]: _, ...others } = values;
  return others;
}

function ratioRow(figure: string, values: Record<string, number>, floor: string, max: number): void {
  add({ figure, values }, `≤ ${max} × ${floor}`, values.dragoman! <= max * values[floor]!);
}

function add(row: Row, goal?: string, met?: boolean): void {
  rows.push({ ...row, goal, met });
  say(line(rows.at(-1)!));
}

// ── How it is shown ──

function table(all: Row[]): string {
  return [
    "| figure | floors and others | dragoman | goal | |",
    "| --- | --- | --: | --- | --- |",
    ...all.map(line),
  ].join("\n");
}

function line({ figure, values, goal = "", met }: Row): string {
  const { dragoman, ...others } = values;
  const told = Object.entries(others).map(([name, value]) => `${name} ${shown(value)}`);
  const floor = /× (\w+)/.exec(goal)?.[1];
  const ratio = floor && dragoman !== undefined ? ` (${shown(dragoman / values[floor]!)} ×)` : "";
  const verdict = met === undefined ? "" : met ? "met" : "not met";
  return `| ${figure} | ${told.join(", ")} | ${dragoman === undefined ? "" : shown(dragoman)}${ratio} | ${goal} | ${verdict} |`;
}

function shown(value: number): string {
  if (!Number.isFinite(value)) return "never";
  return Math.abs(value) >= 10 ? Math.round(value).toLocaleString("en") : value.toFixed(2);
}
