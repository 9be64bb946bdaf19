/**
 * What runs and what ends, as it happens: `event: snapshot`, then `running` and `finished`, gathered for a fifth of a
 * second and each exchange said once. A reader that is too slow misses events and gets another snapshot that says so.
 */
import type { App } from "../../app";
import type { InFlightEvent } from "../../history/in-flight";
import type { AdminSession } from "../access/session";
import { type ShownEntry, type ShownRunning, showEntry, showRunning } from "./requests";

/** The data of `event: snapshot`. */
export interface Snapshot {
  now_ms: number;
  running: ShownRunning[];
  /** Exchanges may have ended unseen since the last event. */
  missed: boolean;
}

/** Milliseconds. */
const gatherFor = 200;
const heartbeat = 15_000;
/** Exchanges that may wait for a slow reader. */
const maxWaiting = 500;

/**
 * Ends with its reader, with the sign-in that let the reader in, or when the process stops.
 * @throws ProxyError `rate_limit` when too many watch.
 */
export function liveEvents({ inFlight: live, stopping }: App, session?: AdminSession): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const waiting = new Map<string, { event: "running" | "finished"; data: ShownRunning | ShownEntry }>();
  let controller: ReadableStreamDefaultController<Uint8Array>;
  let missed = false;
  let gathering: Timer | undefined;
  let beating: Timer | undefined;
  let unwatch = () => {};
  let over = false;

  const write = (text: string) => controller.enqueue(encoder.encode(text));
  const say = (event: string, data: unknown) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
  const snapshot = (): Snapshot => ({ now_ms: Date.now(), running: live.running().map(showRunning), missed });

  const heard = (told: InFlightEvent) => {
    if (told.type === "closed") end();
    else if (told.type === "running")
      wait(told.running.request_id, { event: "running", data: showRunning(told.running) });
    else wait(told.entry.request_id, { event: "finished", data: showEntry(told.entry) });
  };

  const wait = (requestId: string, told: { event: "running" | "finished"; data: ShownRunning | ShownEntry }) => {
    if (waiting.size < maxWaiting || waiting.has(requestId)) waiting.set(requestId, told);
    else missed = true;
    gathering ??= setTimeout(flush, gatherFor);
  };

  const flush = () => {
    gathering = undefined;
    if (session && !session.holds) return end();
    // The reader has not taken what was said before; `pull` tells when it has.
    if ((controller.desiredSize ?? 0) <= 0) return;
    const lines = [...waiting.values()].map(({ event, data }) => say(event, data));
    if (missed) lines.push(say("snapshot", snapshot()));
    if (lines.length > 0) write(lines.join(""));
    missed = false;
    waiting.clear();
  };

  const leave = () => {
    over = true;
    unwatch();
    clearTimeout(gathering);
    clearInterval(beating);
    stopping.removeEventListener("abort", end);
    session?.ended.removeEventListener("abort", end);
  };
  const end = () => {
    if (over) return;
    leave();
    controller.close();
  };

  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
      write(say("snapshot", snapshot()));
    },
    pull() {
      if (waiting.size > 0 || missed) gathering ??= setTimeout(flush, gatherFor);
    },
    cancel: leave,
  });
  unwatch = live.watch(heard);
  if (over) return body;
  stopping.addEventListener("abort", end, { once: true });
  session?.ended.addEventListener("abort", end, { once: true });
  beating = setInterval(() => {
    if (session && !session.holds) return end();
    if ((controller.desiredSize ?? 0) > 0) write(":\n\n");
  }, heartbeat);
  return body;
}
