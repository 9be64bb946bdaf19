/** Plays a team's servers: how many of them carry its streams, and how long requests wait. */

interface Traffic {
  /** Of the whole team. */
  requestsPerSecond: number;
  answerSeconds: number;
  eventsPerSecond: number;
  /** CPU of a small request without its stream, in microseconds. */
  requestCpu: number;
}

/** Milliseconds of CPU for an event that comes in its own packet: README, "Limits". */
const eventCpuMs = 0.048;
/** Of a core: above it, answers wait for each other. */
const maxLoad = 0.7;

/** The smallest number of servers, two at least, on which no core is overloaded. */
export function smallestTeam(traffic: Traffic): Played & { servers: number } {
  const { requestsPerSecond, answerSeconds, eventsPerSecond, requestCpu } = traffic;
  const requestMs = requestCpu / 1_000 + answerSeconds * eventsPerSecond * eventCpuMs;
  const needed = (requestsPerSecond * requestMs) / 1_000 / maxLoad;
  for (let servers = Math.max(2, Math.ceil(needed)); ; servers += 1) {
    const result = playMinutes(traffic, servers);
    if (result.load <= maxLoad) return { servers, ...result };
  }
}

interface Played {
  /** Of a core of each server. */
  load: number;
  /** Milliseconds that 99 % of requests wait at most. */
  waitMs: number;
}

/**
 * Plays some minutes of one server, to which every n-th request of the team comes at random: each request takes its CPU, and its
 * stream takes a slice of CPU for each tenth of a second.
 */
function playMinutes(traffic: Traffic, servers: number): Played {
  const { answerSeconds, eventsPerSecond } = traffic;
  const rate = traffic.requestsPerSecond / servers;
  const requestMs = traffic.requestCpu / 1_000;
  const random = randomFrom(4_711);
  const until = Math.min(600, Math.max(120, 3_000 / Math.max(rate, 0.01)));
  const slice = 0.1;
  const streamSliceMs = eventsPerSecond * slice * eventCpuMs;
  const ends: number[] = [];
  const waits: number[] = [];
  let [busyUntil, busyMs, next] = [0, 0, 0];
  for (let now = 0; now < until; now += slice) {
    while (ends.length > 0 && ends[0]! <= now) ends.shift();
    const work = ends.length * streamSliceMs;
    busyUntil = Math.max(busyUntil, now) + work / 1_000;
    busyMs += work;
    for (; next < now + slice; next += -Math.log(1 - random()) / rate) {
      waits.push(Math.max(0, busyUntil - next) * 1_000);
      busyUntil = Math.max(busyUntil, next) + requestMs / 1_000;
      busyMs += requestMs;
      ends.push(next + answerSeconds);
    }
  }
  waits.sort((one, other) => one - other);
  return {
    load: busyMs / 1_000 / until,
    waitMs: waits[Math.floor(waits.length * 0.99)] ?? 0,
  };
}

/** Numbers from 0 to 1, the same ones each time. */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
