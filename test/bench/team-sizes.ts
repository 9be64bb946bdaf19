/**
 * What a team of a size asks of its servers and its Postgres, by the measured costs: the table of src/deploy/TEAMS.md.
 * `bun test/bench/scale.ts` measures the costs on this machine and prints the table that follows from them.
 */
import { randomFrom, smallestTeam } from "./simulation";
import { quantile } from "./statistics";

/** CPU is that of Postgres unless it is said otherwise, in microseconds. Made by `scale.ts` and `team-costs.ts`. */
export interface Costs {
  /** CPU of a server for a small request, without its stream. */
  requestCpu: number;
  /** A member with a key and an account that is not in use there, in the memory of each server. */
  memberBytes: number;
  /** That a starting server reads in a second. */
  membersPerSecond: number;
  /** A row of the history, inserted with a hundred others. */
  rowCpu: number;
  rowsPerSecond: number;
  /** On the disk, with indexes. */
  rowBytes: number;
  /** Rows that a question reads in a second if it asks for names that the rollup does not have together. */
  statisticsRowsPerSecond: number;
  /** Rows that the leader adds up by hour and day in a second. */
  addedUpPerSecond: number;
  /** Reserving and settling in a budget that is not busy. */
  budgetCpu: number;
  /** Requests a second that share one budget: its row is locked twice for each, until the disk has it. */
  oneBudgetPerSecond: number;
  /** Numbering and announcing a change, one after the other: each locks the table's revision. */
  announceCpu: number;
  announcesPerSecond: number;
  /** A query that finds nothing new. */
  queryCpu: number;
  /** What a server found out about an account, stored with that of others. */
  stateStoreCpu: number;
  /** The same, read by one server. */
  stateReadCpu: number;
}

/** On two cores of a busy AMD EPYC, Postgres 18.4 with fsync, Bun 1.4.5, 22 November 2026; adding up on the 23rd. */
const measured: Costs = {
  requestCpu: 200,
  memberBytes: 6_133,
  membersPerSecond: 41_186,
  rowCpu: 45,
  rowsPerSecond: 30_767,
  rowBytes: 679,
  statisticsRowsPerSecond: 392_739,
  addedUpPerSecond: 28_000,
  budgetCpu: 495,
  oneBudgetPerSecond: 986,
  announceCpu: 373,
  announcesPerSecond: 2_643,
  queryCpu: 105,
  stateStoreCpu: 61,
  stateReadCpu: 6,
};

/** What is assumed of the members. */
const assumed = {
  /** Members whose client is being answered, in the busiest minute. */
  streaming: 1 / 3,
  /** Seconds that an answer takes. */
  answerSeconds: 12,
  /** Seconds of a day at the busiest minute's rate, if the day's requests were all made at it. */
  busySeconds: 4 * 3_600,
  /** Of each stream, each in its own packet. */
  eventsPerSecond: 60,
  /** `retentionDays` of the config. */
  days: 14,
  /** Seconds until a Copilot token is exchanged anew. */
  tokenSeconds: 1_500,
} as const;

/** How the servers work; `src/team/` has these numbers. Seconds. */
const servers = {
  connections: 10,
  direct: 2,
  quotasEvery: 10,
  quotasPerSecond: 100,
} as const;

/** What one Postgres is taken to bear: its default connections, 16 cores, 1 TB; and the limits of the code. */
const limits = {
  connections: 97,
  cores: 16,
  terabytes: 1,
  statisticsSeconds: 30,
  startSeconds: 5,
  memberGigabytes: 1,
} as const;

interface Needs {
  members: number;
  /** Of servers. */
  count: number;
  /** Of a server's core. */
  load: number;
  /** Milliseconds that 99 % of requests wait at most for their server. */
  waitMs: number;
  streams: number;
  requestsPerSecond: number;
  connections: number;
  /** With PgBouncer: only `LISTEN` and locks need connections of their own. */
  connectionsPooled: number;
  rowsPerDay: number;
  partitions: number;
  terabytes: number;
  announcesPerSecond: number;
  /** Notifications that all servers together receive in a second. */
  heardPerSecond: number;
  /** States of accounts that all servers together read in a second. */
  statesReadPerSecond: number;
  /** Cores of Postgres that are busy. */
  cores: number;
  /** Of all days, of names that the rollup does not have together. */
  statisticsSeconds: number;
  startSeconds: number;
  /** In the memory of each server. */
  memberGigabytes: number;
  /** Milliseconds that 99 % of requests wait at most for a budget that all share; Infinity if the queue only grows. */
  sharedBudgetWait: number;
  /** Parts of what can be borne, the worst first; above 1 it breaks. */
  loads: { name: string; share: number }[];
}

export function needsOf(members: number, costs: Costs = measured): Needs {
  const streams = members * assumed.streaming;
  const requestsPerSecond = streams / assumed.answerSeconds;
  const {
    servers: count,
    load,
    waitMs,
  } = smallestTeam({ ...assumed, requestsPerSecond, requestCpu: costs.requestCpu });
  const rowsPerDay = requestsPerSecond * assumed.busySeconds;
  const rowsKept = rowsPerDay * assumed.days;
  // Each token that was exchanged is announced, and so is what changes whether an account serves, which is rare.
  const announcesPerSecond = streams / assumed.tokenSeconds;
  const statesReadPerSecond = count * quotasRead(requestsPerSecond, streams);
  const microseconds =
    requestsPerSecond * (costs.rowCpu + costs.budgetCpu) +
    announcesPerSecond * costs.announceCpu +
    (count / servers.quotasEvery) * costs.queryCpu +
    requestsPerSecond * costs.stateStoreCpu +
    statesReadPerSecond * costs.stateReadCpu;
  const scale = {
    members,
    count,
    load,
    waitMs,
    streams,
    requestsPerSecond,
    connections: count * servers.connections,
    connectionsPooled: count * servers.direct,
    rowsPerDay,
    // Today's, tomorrow's, and those that are kept.
    partitions: assumed.days + 2,
    terabytes: (rowsKept * costs.rowBytes) / 1e12,
    announcesPerSecond,
    heardPerSecond: announcesPerSecond * count,
    statesReadPerSecond,
    cores: requestsPerSecond / costs.addedUpPerSecond + microseconds / 1e6,
    statisticsSeconds: rowsKept / costs.statisticsRowsPerSecond,
    startSeconds: members / costs.membersPerSecond,
    memberGigabytes: (members * costs.memberBytes) / 1e9,
    sharedBudgetWait: waitFor(requestsPerSecond, 1 / costs.oneBudgetPerSecond),
  };
  return { ...scale, loads: loadsOf(scale, costs) };
}

/**
 * Quotas that a server reads in a second. Of an account that several requests changed meanwhile one is read.
 * @param requests A second. @param accounts That are in use.
 */
function quotasRead(requests: number, accounts: number): number {
  const changedIn = (seconds: number) => accounts * (1 - Math.exp((-requests * seconds) / accounts));
  let pause: number = servers.quotasEvery;
  for (let round = 0; round < 50; round += 1)
    pause = Math.max(servers.quotasEvery, changedIn(pause) / servers.quotasPerSecond);
  return changedIn(pause) / pause;
}

function loadsOf(scale: Omit<Needs, "loads">, costs: Costs): Needs["loads"] {
  const shares = {
    "connections without PgBouncer": scale.connections / limits.connections,
    "a budget that all share": scale.requestsPerSecond / costs.oneBudgetPerSecond,
    "statistics read from the rows": scale.statisticsSeconds / limits.statisticsSeconds,
    "CPU of Postgres": scale.cores / limits.cores,
    "announced changes": scale.announcesPerSecond / costs.announcesPerSecond,
    "reading all members at the start": scale.startSeconds / limits.startSeconds,
    "members in each server's memory": scale.memberGigabytes / limits.memberGigabytes,
    "disk for the history": scale.terabytes / limits.terabytes,
    "history rows": scale.requestsPerSecond / costs.rowsPerSecond,
  };
  return Object.entries(shares)
    .map(([name, share]) => ({ name, share }))
    .sort((one, other) => other.share - one.share);
}

/**
 * Simulates requests that come at random and hold one row, one after the other.
 * @param rate Requests a second. @param seconds How long each holds the row.
 * @returns Milliseconds that 99 % wait at most.
 */
export function waitFor(rate: number, seconds: number): number {
  if (rate * seconds >= 1) return Number.POSITIVE_INFINITY;
  const random = randomFrom(1);
  const waits: number[] = [];
  let [now, free] = [0, 0];
  for (let request = 0; request < 50_000; request += 1) {
    now -= Math.log(1 - random()) / rate;
    free = Math.max(free, now) + seconds;
    waits.push((free - seconds - now) * 1_000);
  }
  return quantile(waits, 0.99);
}

const sizes = [10, 1_000, 10_000, 100_000];

/** The table of src/deploy/TEAMS.md. */
export function teamSizesRows(costs: Costs = measured): string[][] {
  const scales = sizes.map((members) => needsOf(members, costs));
  const row = (name: string, cell: (scale: Needs) => string) => [name, ...scales.map(cell)];
  return [
    row("streams at once", ({ streams }) => number(streams)),
    row("servers; busy", ({ count, load }) => `${number(count)}; ${number(load * 100)} % of a core each`),
    row("… 99 % of requests wait for theirs", ({ waitMs }) => `${number(waitMs)} ms`),
    row("requests a second", ({ requestsPerSecond }) => number(requestsPerSecond)),
    row("connections; with PgBouncer", (scale) => `${number(scale.connections)}; ${number(scale.connectionsPooled)}`),
    row("history: rows a day", ({ rowsPerDay }) => number(rowsPerDay)),
    row("… partitions; on the disk", (scale) => `${scale.partitions}; ${number(scale.terabytes * 1_000)} GB`),
    row("… statistics of all days, read from the rows", (scale) => `${number(scale.statisticsSeconds)} s`),
    row(
      "changes announced a second; heard",
      (scale) => `${number(scale.announcesPerSecond)}; ${number(scale.heardPerSecond)}`,
    ),
    row("quotas read a second", ({ statesReadPerSecond }) => number(statesReadPerSecond)),
    row(
      "all members, in each server: to read; memory",
      ({ startSeconds, memberGigabytes }) => `${number(startSeconds)} s; ${number(memberGigabytes * 1_000)} MB`,
    ),
    row("a budget that all share: 99 % wait", ({ sharedBudgetWait }) =>
      Number.isFinite(sharedBudgetWait) ? `${number(sharedBudgetWait)} ms` : "ever longer",
    ),
    row("busy cores of Postgres", ({ cores }) => number(cores)),
    row("nearest to its limit", ({ loads: [worst] }) => `${worst!.name}: ${number(worst!.share * 100)} %`),
    row("beyond their limits", ({ loads }) => {
      const broken = loads.filter(({ share }) => share > 1);
      return broken.length === 0 ? "nothing" : broken.map(({ name }) => name).join(", ");
    }),
  ];
}

export const teamSizesHead = ["members", ...sizes.map((members) => members.toLocaleString("en"))];

const number = (value: number) =>
  value.toLocaleString("en", value < 100 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: 0 });
