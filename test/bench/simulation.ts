/** A team's busiest hour: how many servers and connections it needs, what the database has to do, and what breaks first. */

/** As measured. */
export interface Costs {
  /** Of a small request, without its stream. */
  requestCpuMs: number;
  /** By one server. */
  rowsPerSecond: number;
  bytesPerRow: number;
  statisticsMsPerRow: number;
  /** Requests that reserve and settle, on one budget of all, and on one for each member. */
  budgetsPerSecond: number;
  ownBudgetsPerSecond: number;
  notifyPerSecond: number;
  accountStartMs: number;
  accountBytes: number;
}

/** What a developer with an agent does, by the hour in which most work. */
const behaviour = {
  /** Share of the members who work at the same time. */
  active: 1 / 3,
  /** Of an active member. */
  requestsPerMinute: 2,
  requestsPerDay: 300,
  answerSeconds: 20,
  eventsPerSecond: 60,
};

/** Milliseconds of CPU for an event that comes in its own packet: README, "Limits". */
const eventCpuMs = 0.048;
/** Of a core: above it, answers wait for each other. */
const maxLoad = 0.7;
/** As in `storage/postgres/connection.ts`. */
const [pooled, direct] = [8, 2];
/** Postgres' own default is 100; a machine for many hundreds is large. */
const maxConnections = 300;
const quotaPublishSeconds = 10;
const exchangeSeconds = 1_500;
const retentionDays = 14;
/** Postgres may do this share of what it did in the measurement before requests wait for it. */
const maxDatabaseLoad = 0.5;
/** A page is given up after 30 s. */
const maxStatisticsMs = 10_000;
const maxAccountBytes = 1024 ** 3;

const shown = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(2)));

export function simulate({ members, costs }: { members: number; costs: Costs }): { needs: string[]; breaks: string[] } {
  const { servers, load, waitMs, streams } = smallestTeam(members, costs);
  const requests = requestRate(members);
  const connections = servers * (pooled + direct);
  const exchanges = (members * behaviour.active) / exchangeSeconds;
  const rowsPerDay = members * behaviour.requestsPerDay;
  const bytes = rowsPerDay * retentionDays * costs.bytesPerRow;
  const statisticsMs = rowsPerDay * retentionDays * costs.statisticsMsPerRow;
  // Each server announces the quotas that it learned, and each reads what all others have announced.
  const announcements = Math.min(servers / quotaPublishSeconds, requests) + exchanges;
  const statesRead = Math.min(requests, (members * behaviour.active) / quotaPublishSeconds) * servers;
  const accountBytes = members * costs.accountBytes;
  const needs = [
    `${shown(requests)} requests a second, ${shown(streams)} streams at once`,
    `${servers} servers, at ${Math.round(load * 100)} % of a core each; a request waits ${shown(waitMs)} ms for its server (p99)`,
    `${connections} connections to Postgres; ${shown(exchanges)} token exchanges a second`,
    `${shown(requests)} rows a second (${shown((requests / costs.rowsPerSecond) * 100)} % of what one server can write), ${shown(bytes / 1024 ** 3)} GiB in ${retentionDays} daily partitions`,
    `${shown(announcements)} announcements a second, ${shown(statesRead)} states of accounts read a second by all servers`,
    `statistics over ${retentionDays} days: ${shown(statisticsMs)} ms; a server starts in ${shown(costs.accountStartMs * members + 500)} ms and has ${shown(accountBytes / 1024 ** 2)} MiB of accounts`,
  ];
  const limits: [breaks: boolean, sentence: string][] = [
    [
      requests > costs.budgetsPerSecond * maxDatabaseLoad,
      `one budget of all members: ${shown(requests)} reservations a second, of ${shown(costs.budgetsPerSecond)}`,
    ],
    [
      requests > costs.ownBudgetsPerSecond * maxDatabaseLoad,
      `a budget for each member: ${shown(requests)} reservations a second, of ${shown(costs.ownBudgetsPerSecond)}`,
    ],
    [connections > maxConnections, `connections: ${connections}`],
    [statesRead > costs.rowsPerSecond, `states of accounts that every server reads: ${shown(statesRead)} a second`],
    [
      statisticsMs > maxStatisticsMs,
      `statistics of all members over ${retentionDays} days: ${shown(statisticsMs / 1_000)} s`,
    ],
    [accountBytes > maxAccountBytes, `accounts in the memory of every server: ${shown(accountBytes / 1024 ** 3)} GiB`],
  ];
  return { needs, breaks: limits.filter(([breaks]) => breaks).map(([, sentence]) => sentence) };
}

const requestRate = (members: number) => (members * behaviour.active * behaviour.requestsPerMinute) / 60;

/** The smallest number of servers, two at least, on which no core is overloaded. */
function smallestTeam(members: number, costs: Costs) {
  const requestMs = costs.requestCpuMs + behaviour.answerSeconds * behaviour.eventsPerSecond * eventCpuMs;
  const needed = (requestRate(members) * requestMs) / 1_000 / maxLoad;
  for (let servers = Math.max(2, Math.ceil(needed)); ; servers += 1) {
    const result = playMinutes(members, servers, costs);
    if (result.load <= maxLoad) return { servers, ...result };
  }
}

/**
 * Plays some minutes of one server, to which every n-th request of the team comes at random: each request takes its CPU, and its
 * stream takes a slice of CPU for each tenth of a second.
 */
function playMinutes(members: number, servers: number, costs: Costs) {
  const rate = requestRate(members) / servers;
  const random = randomFrom(4_711);
  const until = Math.min(600, Math.max(120, 3_000 / Math.max(rate, 0.01)));
  const slice = 0.1;
  const streamSliceMs = behaviour.eventsPerSecond * slice * eventCpuMs;
  const ends: number[] = [];
  const waits: number[] = [];
  let [busyUntil, busyMs, next, most] = [0, 0, 0, 0];
  for (let now = 0; now < until; now += slice) {
    while (ends.length > 0 && ends[0]! <= now) ends.shift();
    const work = ends.length * streamSliceMs;
    busyUntil = Math.max(busyUntil, now) + work / 1_000;
    busyMs += work;
    for (; next < now + slice; next += -Math.log(1 - random()) / rate) {
      waits.push(Math.max(0, busyUntil - next) * 1_000);
      busyUntil = Math.max(busyUntil, next) + costs.requestCpuMs / 1_000;
      busyMs += costs.requestCpuMs;
      ends.push(next + behaviour.answerSeconds);
    }
    most = Math.max(most, ends.length);
  }
  waits.sort((one, other) => one - other);
  return {
    load: busyMs / 1_000 / until,
    waitMs: waits[Math.floor(waits.length * 0.99)] ?? 0,
    streams: most * servers,
  };
}

/** Numbers from 0 to 1, the same ones each time. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
