/**
 * Requests as they run and end: `event: snapshot`, then `running` and `finished`, batched for 200 ms with one event per
 * request. A reader that is too slow misses events and gets another snapshot with `missed` set.
 */
import type { z } from "zod";
import type { App } from "../../app";
import type { RunningEvent } from "../../history/running-requests";
import type { Permit } from "../access/authorize";
import { type ShownEntry, type ShownRunning, showEntry, showRunning } from "./requests";
import type { snapshotSchema } from "./schemas";

/** Milliseconds. */
const batchMs = 200;
const heartbeatMs = 15_000;
/** Between two looks whether the reader may still read. */
const permitMs = 500;
/** Requests queued at most for a slow reader. */
const maxQueued = 500;

/**
 * Ends when the reader leaves, when the permit does not hold any more, or when the process stops.
 * @throws ProxyError `rate_limit` when there are too many readers.
 */
export function liveEvents({ running: live, stopping }: App, permit?: Permit): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const waiting = new Map<string, { event: "running" | "finished"; data: ShownRunning | ShownEntry }>();
  let controller: ReadableStreamDefaultController<Uint8Array>;
  let missed = false;
  let renewed = false;
  let gathering: Timer | undefined;
  let beating: Timer | undefined;
  let checking: Timer | undefined;
  let unwatch = () => {};
  let ended = false;

  const write = (text: string) => controller.enqueue(encoder.encode(text));
  const say = (event: string, data: unknown) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
  const snapshot = (): z.infer<typeof snapshotSchema> => {
    const { running, count, gap } = live.known();
    const left = count - running.length;
    return { now_ms: Date.now(), running: running.map(showRunning), missed, ...(left > 0 && { left_out: left }), gap };
  };

  const onEvent = (event: RunningEvent) => {
    if (event.type === "closed") end();
    else if (event.type === "renewed") renew();
    else if (event.type === "missed") {
      missed = true;
      renew();
    } else if (event.type === "running")
      wait(event.running.request_id, { event: "running", data: showRunning(event.running) });
    else wait(event.entry.request_id, { event: "finished", data: showEntry(event.entry) });
  };

  const wait = (requestId: string, item: { event: "running" | "finished"; data: ShownRunning | ShownEntry }) => {
    if (waiting.size < maxQueued || waiting.has(requestId)) waiting.set(requestId, item);
    else missed = true;
    gathering ??= setTimeout(flush, batchMs);
  };

  const renew = () => {
    renewed = true;
    gathering ??= setTimeout(flush, batchMs);
  };

  const flush = () => {
    gathering = undefined;
    if (permit && !permit.holds) return end();
    // The reader has not taken the previous batch; `pull` runs when it has.
    if ((controller.desiredSize ?? 0) <= 0) return;
    const lines = [...waiting.values()].map(({ event, data }) => say(event, data));
    if (missed || renewed) lines.push(say("snapshot", snapshot()));
    if (lines.length > 0) write(lines.join(""));
    missed = false;
    renewed = false;
    waiting.clear();
  };

  const leave = () => {
    ended = true;
    unwatch();
    clearTimeout(gathering);
    clearInterval(beating);
    clearInterval(checking);
    stopping.removeEventListener("abort", end);
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
      if (waiting.size > 0 || missed || renewed) gathering ??= setTimeout(flush, batchMs);
    },
    cancel: leave,
  });
  unwatch = live.watch(onEvent);
  if (ended) {
    unwatch();
    return body;
  }
  stopping.addEventListener("abort", end, { once: true });
  if (permit) checking = setInterval(() => !permit.holds && end(), permitMs);
  beating = setInterval(() => {
    if ((controller.desiredSize ?? 0) > 0) write(":\n\n");
  }, heartbeatMs);
  return body;
}
