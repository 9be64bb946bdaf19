/**
 * Requests as they run and end: `event: snapshot`, then `running` and `finished`, batched for 200 ms with one event per
 * request. A reader that is too slow misses events and gets another snapshot with `missed` set.
 */
import type { App } from "../../app";
import type { InFlightEvent } from "../../history/in-flight";
import type { AdminSession } from "../../keys/page-sessions";
import { type ShownEntry, type ShownRunning, showEntry, showRunning } from "./requests";

/** The data of `event: snapshot`. */
export interface Snapshot {
  now_ms: number;
  running: ShownRunning[];
  /** Events may have been lost since the last one. */
  missed: boolean;
}

/** Milliseconds. */
const batchMs = 200;
const heartbeatMs = 15_000;
/** Requests queued at most for a slow reader. */
const maxQueued = 500;

/**
 * Ends when the reader leaves, when the session that authorized it ends, or when the process stops.
 * @throws ProxyError `rate_limit` when there are too many readers.
 */
export function liveEvents({ inFlight: live, stopping }: App, session?: AdminSession): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const waiting = new Map<string, { event: "running" | "finished"; data: ShownRunning | ShownEntry }>();
  let controller: ReadableStreamDefaultController<Uint8Array>;
  let missed = false;
  let gathering: Timer | undefined;
  let beating: Timer | undefined;
  let unwatch = () => {};
  let ended = false;

  const write = (text: string) => controller.enqueue(encoder.encode(text));
  const say = (event: string, data: unknown) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
  const snapshot = (): Snapshot => ({ now_ms: Date.now(), running: live.running().map(showRunning), missed });

  const onEvent = (event: InFlightEvent) => {
    if (event.type === "closed") end();
    else if (event.type === "running")
      wait(event.running.request_id, { event: "running", data: showRunning(event.running) });
    else wait(event.entry.request_id, { event: "finished", data: showEntry(event.entry) });
  };

  const wait = (requestId: string, item: { event: "running" | "finished"; data: ShownRunning | ShownEntry }) => {
    if (waiting.size < maxQueued || waiting.has(requestId)) waiting.set(requestId, item);
    else missed = true;
    gathering ??= setTimeout(flush, batchMs);
  };

  const flush = () => {
    gathering = undefined;
    if (session && !session.holds) return end();
    // The reader has not taken the previous batch; `pull` runs when it has.
    if ((controller.desiredSize ?? 0) <= 0) return;
    const lines = [...waiting.values()].map(({ event, data }) => say(event, data));
    if (missed) lines.push(say("snapshot", snapshot()));
    if (lines.length > 0) write(lines.join(""));
    missed = false;
    waiting.clear();
  };

  const leave = () => {
    ended = true;
    unwatch();
    clearTimeout(gathering);
    clearInterval(beating);
    stopping.removeEventListener("abort", end);
    session?.ended.removeEventListener("abort", end);
  };
  const end = () => {
    if (ended) return;
    leave();
    controller.close();
  };

  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
      write(say("snapshot", snapshot()));
    },
    pull() {
      if (waiting.size > 0 || missed) gathering ??= setTimeout(flush, batchMs);
    },
    cancel: leave,
  });
  unwatch = live.watch(onEvent);
  if (ended) return body;
  stopping.addEventListener("abort", end, { once: true });
  session?.ended.addEventListener("abort", end, { once: true });
  beating = setInterval(() => {
    if (session && !session.holds) return end();
    if ((controller.desiredSize ?? 0) > 0) write(":\n\n");
  }, heartbeatMs);
  return body;
}
