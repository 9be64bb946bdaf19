/**
 * `bun run bench`: dragoman beside the upstream itself, beside the least that a proxy can be, and beside other proxies, in
 * one run. `--quick` takes five to eight minutes, `--json` prints JSON, `--only small,"chat, GPT"` measures some parts or
 * rows, `--no-peers` installs nothing. No figure fails; a part that cannot be measured is told, and the others go on.
 * DRAGOMAN_BINARY names an executable and DRAGOMAN_BUNDLE a bundle whose start and memory are measured too. `--profile`
 * prints where the CPU of one exchange goes instead, which lines it runs and which objects it makes.
 */
import { copilotReplies, copilotStreams } from "../support/copilot-forms";
import {
  clientPath,
  type Dialect,
  dialects,
  modelOf,
  requestBody,
  upstreamPath,
  usualForm,
  usualReply,
} from "./dialects";
import { fillHistory } from "./full-history";
import type { StartsResult, StreamsResult, Times } from "./load";
import { installPeers, type Peer } from "./peers";
import {
  load,
  newFolder,
  type Running,
  type Started,
  startCollector,
  startDragoman,
  startFloor,
  startUpstream,
  subjects,
} from "./processes";
import { profileOf } from "./profile";
import { linesOfRequests, nameOf, tableOfLines } from "./request-lines";
import { type Made, objectsOfRequest, tableOfObjects } from "./request-objects";
import { isAsked, isPartAsked, judged, kinds, line, type Row, type RowKind, replyRows, table } from "./rows";
import { growthOf, machine, quantile, rssOf, workIn } from "./statistics";
import type { Script } from "./upstream";
import { warmUp } from "./warm-up";

const option = (name: string) => process.argv[process.argv.indexOf(name) + 1];
const quick = process.argv.includes("--quick");
const asJson = process.argv.includes("--json");
// Names of forms have a comma and a space: `chat, GPT` is one row.
const only = process.argv.includes("--only") ? (option("--only") ?? "").split(/,(?! )/) : [];
const rows: Row[] = [];
const say = (text: string) => process.stderr.write(`${text}\n`);

const historyPaths = [
  "/api/admin/requests?limit=50",
  "/api/admin/requests?limit=50&account_id=bob",
  "/api/admin/requests?limit=50&client_name=nobody",
  "/api/admin/totals",
  "/api/admin/statistics?by=day,model",
];

/** Measured only where `--only` names them. */
const notOfCopilot: ReadonlySet<string> = new Set([
  "chat, OpenAI's own form",
  "chat, Gemini thinking",
  "responses",
  "messages",
]);

/** As many events as the compiler needs. */
const manyPerRead: Script = { events: 200_000, perRead: 500, every: 0 };
/** Milliseconds that a model thinks where the time of an answer is measured: what is done meanwhile makes nobody wait. */
const thinks = 150;
const begun = performance.now();
/** Of one part alone: stopped with all others, also when the part fails. */
const own: Running[] = [];
const upstream = await startUpstream();
const floors = {
  bun: await startFloor("bun", upstream),
  elysia: await startFloor("elysia", upstream),
  pull: await startFloor("pull", upstream),
  parse: await startFloor("parse", upstream),
  translate: await startFloor("translate", upstream),
};
const dragoman: Started = await startDragoman(subjects.source, upstream);
const installed = process.argv.includes("--no-peers") ? undefined : await installPeers(upstream, say);
const peers: Record<string, Peer> = (await installed?.start(upstream)) ?? {};

const parts: [string, () => Promise<void>][] = [
  ["start", measureStart],
  ["small", measureSmall],
  ["first", measureFirst],
  ["starts", measureStarts],
  ["saturated", measureSaturated],
  ["paced", measurePaced],
  ["prompts", measurePrompts],
  ["thousand", measureThousand],
  ["traced", measureTraced],
  ["stall", measureStall],
  ["count", measureCount],
  ["history", measureHistory],
];
try {
  if (process.argv.includes("--profile")) await printProfiles();
  else for (const [name, measure] of parts) if (isPartAsked(name, only)) await attempt(name, measure);
} finally {
  await Promise.all(
    [upstream, dragoman, ...own, ...Object.values(floors), ...Object.values(peers)].map((each) => each.stop()),
  );
  installed?.remove();
}
const took = `${machine()}; ${new Date().toISOString().slice(0, 10)}; ${Math.round((performance.now() - begun) / 1000)} s`;
if (rows.length === 0) console.log(took);
else if (asJson) console.log(JSON.stringify({ machine: took, rows }, null, 2));
else console.log(`${table(rows)}\n\n${took}`);

/** A part that fails ends neither the others nor the processes that they share. */
async function attempt(name: string, measure: () => Promise<void>): Promise<void> {
  const started = performance.now();
  try {
    await measure();
    say(`${name}: ${Math.round((performance.now() - started) / 1000)} s`);
  } catch (error) {
    process.exitCode = 1;
    say(`${name} failed: ${error instanceof Error ? error.stack : String(error)}`);
  }
  await Promise.all(own.splice(0).map((each) => each.stop()));
}

// ── What is measured ──

async function printProfiles(): Promise<void> {
  for (const dialect of dialects)
    for (const connections of dialect === "chat" ? [1, 64] : [64])
      console.log(`${await profileOf(upstream, dialect, connections, quick ? 4_000 : 12_000)}\n`);
  const asked = dialects.flatMap((dialect) => [false, true].map((stream) => ({ dialect, stream })));
  console.log(`${tableOfLines(asked, await linesOfRequests(asked))}\n`);
  const made: Made[] = [];
  for (const { dialect, stream } of asked) made.push(await objectsOfRequest(upstream, dialect, stream));
  console.log(`${tableOfObjects(asked.map(nameOf), made)}\n`);
}

async function measureStart(): Promise<void> {
  const of = (read: (peer: Peer) => number) =>
    Object.fromEntries(Object.entries(peers).map(([name, peer]) => [name, read(peer)]));
  const cpu = of(({ startCpuMs }) => startCpuMs);
  const idle = of(({ pid }) => rssOf(pid));
  const kindOf = { source: kinds.startSource, bundle: kinds.startBundle, executable: kinds.startExecutable };
  for (const [name, command] of present(subjects)) {
    const times: Started[] = [];
    for (let time = 0; time < (quick ? 3 : 7); time++) {
      const proxy = await startDragoman(command, upstream);
      times.push(proxy);
      await Bun.sleep(500);
      idle[name] = rssOf(proxy.pid);
      await proxy.stop();
    }
    const middle = (read: (started: Started) => number) => quantile(times.map(read), 0.5);
    add(kindOf[name], { ...of(({ startMs }) => startMs), dragoman: middle(({ startMs }) => startMs) });
    cpu[name] = middle(({ startCpuMs }) => startCpuMs);
  }
  add(kinds.startCpu, cpu);
  add(kinds.idle, idle);
}

function present(commands: typeof subjects) {
  return Object.entries(commands).filter((each): each is [keyof typeof subjects, string[]] => each[1] !== undefined);
}

/** The first window after a start, and those when the compiler is done: turn by turn, so that the machine is the same to all. */
async function measureSmall(): Promise<void> {
  const fresh = await startDragoman(subjects.source, upstream);
  const elysia = await startFloor("elysia", upstream);
  const guarantees = await startFloor("guarantees", upstream);
  own.push(fresh, elysia, guarantees);
  const asked = { elysia, guarantees, ...peers, dragoman: fresh };
  const window =
    (dialect: Dialect, connections: number, count: number) =>
    async ({ url, headers, pid }: Running) => {
      const body = requestBody(dialect, modelOf(dialect), false);
      const job = { kind: "requests", url: url + clientPath[dialect], headers, body, connections, count } as const;
      return ((await workIn(pid, () => load<Times>(job))) / count) * 1e6;
    };
  const first: Record<string, number> = {};
  await eachOf(asked, async (running, name) => {
    await window("chat", 64, 3_000)(running);
    first[name] = await window("chat", 64, quick ? 6_000 : 12_000)(running);
  });
  add(kinds.smallFirst, first);

  const body = requestBody("chat", modelOf("chat"), false);
  const atRate = ({ url, headers }: Running) =>
    load<Times>({
      kind: "rate",
      url: url + clientPath.chat,
      headers,
      body,
      perSecond: 500,
      count: quick ? 1_000 : 2_000,
    });
  for (const [form, { dialect }] of Object.entries(copilotReplies(""))) {
    const isUsual = usualReply[dialect] === form;
    if ((quick && !isUsual) || !replyRows.some((kind) => isAsked(kind, form, only))) continue;
    await play({ events: 10, perRead: 1, every: 0, reply: form });
    const served = Object.fromEntries(
      Object.entries(asked).filter(([name]) => !(name in peers) || (isUsual && peers[name]!.serves(dialect, dialect))),
    );
    await eachOf(served, (running) => warmUp(running.pid, () => window(dialect, 64, 4_000)(running), quick ? 4 : 8));
    const times = quick ? 3 : 5;
    const steady = await inTurns(served, times, window(dialect, 64, quick ? 3_000 : 4_000));
    const one = await inTurns(served, times, window(dialect, 1, quick ? 700 : 1_500));
    for (const [kind, turns] of [
      [kinds.smallSteady, steady],
      [kinds.smallOne, one],
    ] as const)
      addMedian(kind, turns, (cpu) => cpu, form);
    if (dialect !== "chat" || !isUsual) continue;
    addMedian(kinds.smallRate, await inTurns(served, quick ? 2 : 5, atRate), ({ p99 }) => p99, form);
  }

  await play({ events: 10, perRead: 1, every: 0, thinks });
  const direct: Running = { ...upstream, url: upstream.url };
  const alone = await inTurns({ direct, ...asked }, quick ? 2 : 3, (running) => {
    const url = running === direct ? upstream.url + upstreamPath.chat : running.url + clientPath.chat;
    return load<Times>({
      kind: "requests",
      url,
      headers: running.headers,
      body,
      connections: 1,
      count: quick ? 15 : 30,
    });
  });
  add(kinds.alone, added(median(alone, ({ p50 }) => p50 * 1000)));
}

async function measureFirst(): Promise<void> {
  const script = { events: 3, perRead: 1, every: 2 };
  await play(script);
  const body = requestBody("chat", modelOf("chat"), true);
  const asked = everyone();
  // After 50 streams the compiler has not begun: a first event then takes twice as long as after 1,000.
  await eachOf(asked, ({ url, headers }) => load({ kind: "first", url, headers, body, count: 300 }));
  await play({ ...script, thinks });
  const turns = await inTurns(asked, quick ? 2 : 4, ({ url, headers }) =>
    load<Times>({ kind: "first", url, headers, body, count: quick ? 15 : 30 }),
  );
  add(kinds.first, added(median(turns, ({ p50 }) => p50 * 1000)));
}

/** The first streams after a start, of several processes; and those of one that has served a few thousand. */
async function measureStarts(): Promise<void> {
  await play({ events: 2, perRead: 1, every: 60_000 });
  const body = requestBody("chat", modelOf("chat"), true);
  const starts = async ({ url, pid }: Running) => {
    const result = await load<StartsResult>({ kind: "starts", url: url + clientPath.chat, body, pid, count: 1000 });
    // The clients have hung up.
    await Bun.sleep(500);
    return result;
  };
  const fresh = async () => ({
    elysia: await startFloor("elysia", upstream),
    dragoman: await startDragoman(subjects.source, upstream),
  });
  const cold: Record<string, StartsResult[]> = { elysia: [], dragoman: [] };
  const times = quick ? 3 : 5;
  let asked: Record<string, Running> = {};
  for (let time = 0; time < times; time++) {
    asked = await fresh();
    own.push(...Object.values(asked));
    for (const [name, running] of Object.entries(asked)) cold[name]!.push(await starts(running));
  }
  addMedian(kinds.startCold, cold, ({ cpu }) => cpu * 1000);
  await inTurns(asked, 3, starts);
  const warm = await inTurns(asked, times, starts);
  addMedian(kinds.startWarm, warm, ({ cpu }) => cpu * 1000);
  addMedian(kinds.startFirst, warm, ({ slowestFirst }) => slowestFirst);
}

async function measureSaturated(): Promise<void> {
  await measureStreams(manyPerRead, 1, kinds.passedSaturated, kinds.translatedSaturated);
}

async function measurePaced(): Promise<void> {
  const script = { events: 200, perRead: 1, every: 10 };
  await measureStreams(script, 100, kinds.passedPaced, kinds.translatedPaced);
}

/**
 * CPU of streams: each vendor's form passed on beside the floors, each pair of dialects translated beside the translation by
 * hand. Windows have a number of events, in turns, and begin after as many events as the compiler needs.
 */
async function measureStreams(script: Script, streams: number, passed: RowKind, translated: RowKind): Promise<void> {
  const byHand = requestBody("messages", modelOf("chat"), true);
  const measure = async (form: string | undefined, body: string, { direct: _, ...asked }: Record<string, Running>) => {
    const window = ({ url, headers, pid }: Running, count: number) => {
      const asks = pid === floors.translate.pid ? byHand : body;
      return load({ kind: "streams", url, headers, body: asks, streams: count, times: 1 });
    };
    await play({ ...manyPerRead, form });
    await eachOf(asked, (running) => warmUp(running.pid, () => window(running, 1), quick ? 2 : 4));
    await play({ ...script, form });
    // A packet of one event goes another way through the same code, which the compiler has not seen by then.
    if (streams > 1) await eachOf(asked, (running) => warmUp(running.pid, () => window(running, streams), 3));
    const cpu = await inTurns(asked, quick ? 3 : 4, (running) => workIn(running.pid, () => window(running, streams)));
    return median(cpu, (seconds) => (seconds / (script.events * streams)) * 1e6);
  };
  for (const [form, { dialect }] of Object.entries(copilotStreams(""))) {
    const isUsual = usualForm[dialect] === form;
    if (!isAsked(passed, form, only) || (quick && !isUsual) || (only.length === 0 && notOfCopilot.has(form))) continue;
    const floor = passed.goal!.times as "pull" | "parse";
    const all = everyone(dialect, dialect, ["elysia", floor]);
    // Elysia and other proxies stand beside one form of each dialect.
    const asked = isUsual ? all : { [floor]: all[floor]!, dragoman: all.dragoman! };
    add(passed, await measure(form, requestBody(dialect, modelOf(dialect), true), asked), form);
  }
  const pairs = dialects
    .flatMap((client) => dialects.map((served) => [client, served] as const))
    .filter(([client, served]) => client !== served && isAsked(translated, `${client} ← ${served}`, only))
    // A quick run has the pair that has a peer, and one of the newer API.
    .filter(([client, served]) => !quick || (client === "messages" && served !== "messages"));
  for (const [client, served] of pairs) {
    const body = requestBody(client, modelOf(served), true);
    add(translated, await measure(undefined, body, everyone(client, served)), `${client} ← ${served}`);
  }
}

async function measurePrompts(): Promise<void> {
  await play({ events: 10, perRead: 1, every: 0, thinks });
  const pairs: [number, Dialect, Dialect, RowKind, RowKind][] = [
    [1, "chat", "chat", kinds.prompt1, kinds.prompt1Cpu],
    [10, "chat", "chat", kinds.passedPrompt, kinds.passedPromptMemory],
    [10, "messages", "messages", kinds.passedPrompt, kinds.passedPromptMemory],
    [10, "messages", "chat", kinds.translatedPrompt, kinds.translatedPromptMemory],
  ];
  for (const [megabytes, client, served, time, other] of pairs) {
    const count = quick ? 3 : megabytes === 1 ? 12 : 5;
    const body = requestBody(client, modelOf(served), false, megabytes * 1e6);
    const asked = everyone(client, served);
    const job = { kind: "requests", body, connections: 1 } as const;
    await eachOf(asked, ({ url, headers, pid }) => warmUp(pid, () => load({ ...job, url, headers, count: 2 }), 4));
    const turns = await inTurns(asked, quick ? 1 : 3, async ({ url, headers, pid }) => {
      let [p50, growth] = [0, 0];
      const seconds = await workIn(pid, async () => {
        const grown = await growthOf(pid, () => load<Times>({ ...job, url, headers, count }));
        [p50, growth] = [grown.result.p50, grown.growth];
      });
      return { p50, growth, cpu: (seconds / count) * 1000 };
    });
    const variant = client === served ? client : `${client} ← ${served}`;
    const proxies = without(turns, "direct");
    add(time, added(median(turns, ({ p50 }) => p50)), variant);
    const figure = other === kinds.prompt1Cpu ? "cpu" : "growth";
    addMedian(other, proxies, (taken) => taken[figure], variant);
  }
}

async function measureThousand(): Promise<void> {
  const seconds = quick ? 3 : 20;
  await play({ events: seconds, perRead: 1, every: 1000 });
  const unfinished: Record<string, number> = {};
  const grown: Record<string, number> = {};
  const body = requestBody("chat", modelOf("chat"), true);
  await eachOf(without(without(everyone(), "direct"), "bun"), async ({ url, headers, pid }, name) => {
    const job = { kind: "streams", url, headers, body, streams: 1000, times: 1 } as const;
    const { result, growth } = await growthOf(pid, () => load<StreamsResult>(job));
    unfinished[name] = 1000 - result.finished;
    grown[name] = growth;
  });
  add(kinds.thousand, unfinished);
  add(kinds.thousandMemory, grown);
}

/** With a collector and without one, turn by turn. */
async function measureTraced(): Promise<void> {
  const collector = await startCollector();
  own.push(collector);
  const exporting = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const asked = {
    untraced: await startDragoman(subjects.source, upstream),
    dragoman: await startDragoman(subjects.source, upstream, newFolder(), exporting),
  };
  own.push(...Object.values(asked));
  const count = quick ? 3_000 : 6_000;
  const small = requestBody("chat", modelOf("chat"), false);
  const requests = ({ url }: Running) =>
    load<Times>({ kind: "requests", url: url + clientPath.chat, body: small, connections: 64, count });
  for (const running of Object.values(asked)) await warmUp(running.pid, () => requests(running), quick ? 4 : 12);
  const times = quick ? 3 : 7;
  const costs = await inTurns(asked, times, (running) => workIn(running.pid, () => requests(running)));
  addMedian(kinds.tracedSmall, costs, (seconds) => (seconds / count) * 1e6);
  await play({ events: 20, perRead: 1, every: 50 });
  const streamed = requestBody("chat", modelOf("chat"), true);
  const streams = ({ url }: Running) =>
    load<StreamsResult>({ kind: "streams", url: url + clientPath.chat, body: streamed, streams: 1000, times: 1 });
  for (const running of Object.values(asked)) await streams(running);
  const ofStreams = await inTurns(asked, times, (running) => workIn(running.pid, () => streams(running)));
  addMedian(kinds.tracedStreams, ofStreams, (seconds) => seconds);
  const bytes = (await (await fetch(collector.url)).json()) as number;
  if (bytes < 1000 * times) throw new Error(`The collector got ${bytes} bytes of traces.`);
}

async function measureStall(): Promise<void> {
  await play({ events: 800_000, perRead: 200, every: 0 });
  const fresh = await startDragoman(subjects.source, upstream);
  own.push(fresh);
  const grown: Record<string, number>[] = [{}, {}, {}];
  const closed: Record<string, number> = {};
  const asked = {
    ...without(without(everyone(), "direct"), "bun"),
    dragoman: { ...fresh, url: fresh.url + clientPath.chat },
  };
  await eachOf(asked, async ({ url, headers, pid }, name) => {
    for (const growths of grown) {
      const body = requestBody("chat", modelOf("chat"), true);
      const job = { kind: "stall", url, headers, body, after: quick ? 1000 : 3000 } as const;
      const { result, growth } = await growthOf(pid, () => load<number>(job));
      await Bun.sleep(300);
      const cancelledAt = (await (await fetch(`${upstream.url}/cancelled`)).json()) as number;
      growths[name] = growth;
      closed[name] = cancelledAt < result ? Number.POSITIVE_INFINITY : cancelledAt - result;
    }
  });
  add(kinds.stall, grown[0]!);
  add(kinds.stallLater, grown[2]!);
  add(kinds.hangUp, closed);
}

async function measureCount(): Promise<void> {
  await play({ events: 1000, perRead: 1, every: 10 });
  const body = requestBody("messages", modelOf("messages"), false, 100_000);
  const firsts: Record<string, number> = {};
  const laters: Record<string, number> = {};
  for (const [subject, command] of present(subjects)) {
    const name = subject === "source" ? "dragoman" : subject;
    const proxy = await startDragoman(command, upstream);
    own.push(proxy);
    const chat = { url: proxy.url + clientPath.chat, body: requestBody("chat", modelOf("chat"), true) };
    await load({ ...chat, kind: "first", count: 1 });
    const beside = Array.from({ length: 5 }, () => ({ url: `${proxy.url}/v1/messages/count_tokens`, body }));
    const [alone, first, ...later] = await load<number[]>({ ...chat, kind: "gaps", beside });
    await proxy.stop();
    Object.assign(firsts, { alone: alone!, [name]: first! - alone! });
    Object.assign(laters, { alone: alone!, [name]: Math.max(...later) - alone! });
  }
  add(kinds.countFirst, firsts);
  add(kinds.countLater, laters);
}

async function measureHistory(): Promise<void> {
  const home = newFolder();
  await fillHistory(home, quick ? 50_000 : 200_000);
  const proxy = await startDragoman(subjects.source, upstream, home);
  own.push(proxy);
  const slowest: Record<string, number> = {};
  for (const path of historyPaths) {
    const url = proxy.url + path;
    await (await fetch(url)).text();
    const taken: number[] = [];
    for (let time = 0; time < (quick ? 5 : 20); time++) {
      const begun = performance.now();
      const response = await fetch(url);
      await response.text();
      if (!response.ok) throw new Error(`${path} answered ${response.status}`);
      taken.push(performance.now() - begun);
    }
    slowest[path] = quantile(taken, 0.5);
  }
  add(kinds.history, { dragoman: Math.max(...Object.values(slowest)) });
  await play({ events: 1000, perRead: 1, every: 10 });
  const chat = { url: proxy.url + clientPath.chat, body: requestBody("chat", modelOf("chat"), true) };
  await load({ ...chat, kind: "first", count: 1 });
  const beside = historyPaths.map((path) => ({ url: proxy.url + path }));
  const [alone, ...gaps] = await load<number[]>({ ...chat, kind: "gaps", beside });
  add(kinds.historyGap, { alone: alone!, dragoman: Math.max(...gaps) - alone! });
}

// ── How ──

async function play(script: Script): Promise<void> {
  await fetch(`${upstream.url}/script`, { method: "POST", body: JSON.stringify(script) });
}

/** All who can answer, with the address of the path: the upstream itself, some floors, other proxies, dragoman. */
function everyone(
  client: Dialect = "chat",
  served: Dialect = client,
  passing: (keyof typeof floors)[] = ["bun", "elysia"],
): Record<string, Running> {
  const names = client === served ? passing : (["translate"] as const);
  const floor: Record<string, Running> = Object.fromEntries(names.map((name) => [name, floors[name]]));
  const proxies: Record<string, Running> = { ...floor, ...peersFor(client, served), dragoman };
  const at = ([name, running]: [string, Running]) => {
    // By hand, messages are made of chat, whoever is compared with that.
    const path = clientPath[name === "translate" ? "messages" : client];
    return [name, { ...running, url: running.url + path }];
  };
  return {
    direct: { ...upstream, url: upstream.url + upstreamPath[served] },
    ...Object.fromEntries(Object.entries(proxies).map(at)),
  };
}

function peersFor(client: Dialect, served: Dialect): Record<string, Peer> {
  return Object.fromEntries(Object.entries(peers).filter(([, peer]) => peer.serves(client, served)));
}

/** Each in its turn, so many times. */
async function inTurns<T>(
  asked: Record<string, Running>,
  times: number,
  measure: (running: Running) => Promise<T>,
): Promise<Record<string, T[]>> {
  const taken: Record<string, T[]> = {};
  for (let time = 0; time < times; time++)
    await eachOf(asked, async (running, name) => {
      taken[name] ??= [];
      taken[name].push(await measure(running));
    });
  return taken;
}

/** Another proxy that fails is taken out of `asked`. */
async function eachOf(
  asked: Record<string, Running>,
  work: (running: Running, name: string) => Promise<unknown>,
): Promise<void> {
  for (const [name, running] of Object.entries(asked))
    try {
      await work(running, name);
    } catch (error) {
      if (!(name in peers)) throw error;
      say(`${name} is left out of a row: ${String(error)}`);
      delete asked[name];
    }
}

function median<T>(turns: Record<string, T[]>, of: (taken: T) => number): Record<string, number> {
  return Object.fromEntries(Object.entries(turns).map(([name, all]) => [name, quantile(all.map(of), 0.5)]));
}

/** Beyond what the upstream takes by itself. */
function added({ direct, ...others }: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(others).map(([name, value]) => [name, value - direct!]));
}

function without<T>(values: Record<string, T>, name: string): Record<string, T> {
  const { [name]: _, ...others } = values;
  return others;
}

function addMedian<T>(kind: RowKind, turns: Record<string, T[]>, of: (taken: T) => number, variant?: string): void {
  add(kind, median(turns, of), variant);
}

function add(kind: RowKind, values: Record<string, number>, variant?: string): void {
  if (!isAsked(kind, variant, only)) return;
  rows.push(judged(kind, variant, values));
  say(line(rows.at(-1)!));
}
