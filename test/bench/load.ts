/** The clients, in a process of their own: does one job, given as JSON, and prints its result. */
import { connect } from "node:net";
import { quantile, workIn } from "./statistics";

export type Job = {
  url: string;
  body: string;
  /** Beside the type of the body. */
  headers?: Record<string, string> | undefined;
} /** Requests by a number of connections; a full answer each. */ & (
  | { kind: "requests"; connections: number; count: number }
  /** Requests at a fixed rate, whether the earlier ones are answered or not. Their times begin when they were due. */
  | { kind: "rate"; perSecond: number; count: number }
  /** Streams one after another, up to their first bytes. */
  | { kind: "first"; count: number }
  /** Streams at once, so many times. */
  | { kind: "streams"; streams: number; times: number }
  /** Streams that begin one after the other, a thousand in a second, up to the first bytes of all. */
  | { kind: "starts"; count: number; pid: number }
  /** One stream, and what is asked beside it each time a while has passed. */
  | { kind: "gaps"; beside: Beside[] }
  /** A client that stops reading, and hangs up when so many milliseconds have passed. */
  | { kind: "stall"; after: number }
);

/** Without a body it is a GET. */
interface Beside {
  url: string;
  body?: string;
}

export interface Times {
  p50: number;
  p99: number;
}

export interface StreamsResult {
  finished: number;
  /** Milliseconds. */
  slowestFirst: number;
  seconds: number;
}

type JobOf<Kind> = Extract<Job, { kind: Kind }>;
const kinds: { [Kind in Job["kind"]]: (job: JobOf<Kind>) => Promise<unknown> } = {
  ...{ requests, rate, first, streams, starts, gaps, stall },
};

const job = JSON.parse(await Bun.stdin.text()) as Job;
console.log(JSON.stringify(await (kinds[job.kind] as (job: Job) => Promise<unknown>)(job)));
process.exit(0);

function timesOf(times: number[]): Times {
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99) };
}

async function post(url = job.url, body = job.body): Promise<Response> {
  const headers = { "content-type": "application/json", ...job.headers };
  const response = await fetch(url, { method: "POST", body, headers });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return response;
}

async function requests({ connections, count }: JobOf<"requests">): Promise<Times> {
  const times: number[] = [];
  let left = count;
  const client = async () => {
    while (left-- > 0) {
      const begun = performance.now();
      await (await post()).text();
      times.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: connections }, client));
  return timesOf(times);
}

/** @param one Is given when it was due. */
async function inTime(perSecond: number, count: number, one: (due: number) => Promise<void>): Promise<void> {
  const running: Promise<void>[] = [];
  const begun = performance.now();
  for (let at = 0; at < count; at++) {
    const due = begun + (at * 1000) / perSecond;
    // Timers are a millisecond late at times: what has become due meanwhile is sent at once.
    while (performance.now() < due) await Bun.sleep(1);
    running.push(one(due));
  }
  await Promise.all(running);
}

async function rate({ perSecond, count }: JobOf<"rate">): Promise<Times> {
  const times: number[] = [];
  await inTime(perSecond, count, async (due) => {
    await (await post()).text();
    times.push(performance.now() - due);
  });
  return timesOf(times);
}

async function first({ count }: JobOf<"first">): Promise<Times> {
  const times: number[] = [];
  for (let at = 0; at < count; at++) {
    const begun = performance.now();
    const reader = (await post()).body!.getReader();
    await reader.read();
    times.push(performance.now() - begun);
    while (!(await reader.read()).done);
  }
  return timesOf(times);
}

async function streams({ streams: count, times }: JobOf<"streams">): Promise<StreamsResult> {
  const begun = performance.now();
  let finished = 0;
  let slowestFirst = 0;
  const one = async () => {
    const started = performance.now();
    const reader = (await post()).body!.getReader();
    let last: Uint8Array = new Uint8Array(0);
    for (let first = true; ; first = false) {
      const { done, value } = await reader.read();
      if (first) slowestFirst = Math.max(slowestFirst, performance.now() - started);
      if (done) break;
      last = value;
    }
    const tail = Buffer.from(last.subarray(-2000)).toString();
    if (/\[DONE\]|message_stop|response\.completed/.test(tail)) finished++;
  };
  for (let time = 0; time < times; time++) await Promise.all(Array.from({ length: count }, one));
  return { finished, slowestFirst, seconds: (performance.now() - begun) / 1000 };
}

export interface StartsResult {
  /** Seconds of CPU of the process that was asked. */
  cpu: number;
  /** Milliseconds. */
  slowestFirst: number;
}

async function starts({ count, pid }: JobOf<"starts">): Promise<StartsResult> {
  let slowestFirst = 0;
  const one = async (due: number) => {
    await (await post()).body!.getReader().read();
    slowestFirst = Math.max(slowestFirst, performance.now() - due);
  };
  const cpu = await workIn(pid, () => inTime(1000, count, one));
  return { cpu, slowestFirst };
}

/** The longest time without a byte, undisturbed and then after each thing that is asked. */
async function gaps({ beside }: JobOf<"gaps">): Promise<number[]> {
  const reader = (await post()).body!.getReader();
  const longest = [0];
  let heard = performance.now();
  let open = true;
  const listen = async () => {
    while (open && !(await reader.read()).done) {
      const now = performance.now();
      longest[longest.length - 1] = Math.max(longest.at(-1)!, now - heard);
      heard = now;
    }
  };
  void listen();
  await Bun.sleep(500);
  for (const { url, body } of beside) {
    longest.push(0);
    await (await (body === undefined ? fetch(url) : post(url, body))).text();
    await Bun.sleep(200);
  }
  open = false;
  return longest;
}

/** @returns When it hung up: Unix time in ms. */
async function stall({ after }: JobOf<"stall">): Promise<number> {
  const { hostname, port, pathname } = new URL(job.url);
  const socket = connect(Number(port), hostname);
  await new Promise((connected) => socket.once("connect", connected));
  const headers = {
    host: `${hostname}:${port}`,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(job.body),
    ...job.headers,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST ${pathname} HTTP/1.1\r\n${lines.join("")}\r\n${job.body}`);
  await new Promise((begun) => socket.once("data", begun));
  socket.pause();
  await Bun.sleep(after);
  const at = Date.now();
  socket.resetAndDestroy();
  await Bun.sleep(100);
  return at;
}
