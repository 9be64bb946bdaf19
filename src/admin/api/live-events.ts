/**
 * Requests as they run and end: `event: snapshot`, then `running` and `finished`, batched for 200 ms with one event per
 * request. A reader that is too slow misses events and gets another snapshot with `missed` set. `accounts` has all accounts, at
 * the beginning and when one of them has changed.
 */
import type { z } from "zod";
import type { RunningEvent } from "../../books/live/running-requests";
import type { Scope } from "../../parts/app";
import type { Permit } from "../access/authorize";
import { knownAccounts } from "./accounts";
import { type ShownEntry, type ShownRunning, showEntry, showRunning } from "./requests";
import type { snapshotSchema } from "./schemas";

/** Milliseconds. */
const batchMs = 200;
const heartbeatMs = 15_000;
/** Between two looks at the accounts, whose states may end by time. */
const accountsMs = 2_000;
/** Between two looks whether the reader may still read. */
const permitMs = 500;
/** Requests queued at most for a slow reader. */
const maxQueued = 500;

/**
 * Ends when the reader leaves, when the permit does not hold any more, or when the process stops.
 * @param permit What authorizes the reader; missing for one who needs nothing.
 * @throws ProxyError `rate_limit` when there are too many readers.
 */
export function answerLive(app: Scope, { method }: Request, permit?: Permit): Response {
  const headers = { "content-type": "text/event-stream; charset=utf-8" };
  return new Response(method === "HEAD" ? null : liveEvents(app, permit), { headers });
}

function liveEvents(app: Scope, permit?: Permit): ReadableStream<Uint8Array> {
  const reader = new LiveReader(app, permit);
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => reader.start(controller),
    pull: () => reader.pull(),
    cancel: () => reader.leave(),
  });
  reader.watch();
  return body;
}

type Waiting = { event: "running"; data: ShownRunning } | { event: "finished"; data: ShownEntry };

class LiveReader {
  readonly #app: Scope;
  readonly #permit: Permit | undefined;
  readonly #encoder = new TextEncoder();
  /** The next batch, by request. */
  readonly #waiting = new Map<string, Waiting>();
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #missed = false;
  /** The event of the accounts that the reader has. */
  #told = "";
  #gathering: Timer | undefined;
  #heartbeat: Timer | undefined;
  #checking: Timer | undefined;
  #looking: Timer | undefined;
  #unwatch = () => {};
  #ended = false;

  constructor(app: Scope, permit: Permit | undefined) {
    this.#app = app;
    this.#permit = permit;
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller;
    this.#write(eventOf("snapshot", this.#snapshot()) + this.#changedAccounts());
  }

  /** The reader has taken what was written. */
  pull(): void {
    if (this.#waiting.size > 0 || this.#missed) this.#gather();
  }

  /** @throws ProxyError `rate_limit` */
  watch(): void {
    const { running, stopping } = this.#app;
    this.#unwatch = running.watch((event) => this.#take(event));
    // A feed that has closed says so at once.
    if (this.#ended) {
      this.#unwatch();
      return;
    }
    stopping.addEventListener("abort", this.#end, { once: true });
    if (this.#permit) this.#checking = setInterval(() => !this.#permit?.holds && this.#end(), permitMs);
    this.#looking = setInterval(() => this.#flush(), accountsMs);
    this.#heartbeat = setInterval(() => {
      if ((this.#controller.desiredSize ?? 0) > 0) this.#write(":\n\n");
    }, heartbeatMs);
  }

  leave(): void {
    this.#ended = true;
    this.#unwatch();
    clearTimeout(this.#gathering);
    clearInterval(this.#heartbeat);
    clearInterval(this.#checking);
    clearInterval(this.#looking);
    this.#app.stopping.removeEventListener("abort", this.#end);
  }

  readonly #end = (): void => {
    if (this.#ended) return;
    this.leave();
    this.#controller.close();
  };

  #take(event: RunningEvent): void {
    if (event.type === "closed") this.#end();
    else if (event.type === "running")
      this.#wait(event.running.request_id, { event: "running", data: showRunning(event.running) });
    else this.#wait(event.entry.request_id, { event: "finished", data: showEntry(event.entry) });
  }

  #wait(requestId: string, item: Waiting): void {
    if (this.#waiting.size < maxQueued || this.#waiting.has(requestId)) this.#waiting.set(requestId, item);
    else this.#missed = true;
    this.#gather();
  }

  #gather(): void {
    this.#gathering ??= setTimeout(() => this.#flush(), batchMs);
  }

  #flush(): void {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    if (this.#permit && !this.#permit.holds) {
      this.#end();
      return;
    }
    // The reader has not taken the previous batch; `pull` runs when it has.
    if ((this.#controller.desiredSize ?? 0) <= 0) return;
    const lines = [...this.#waiting.values()].map(({ event, data }) => eventOf(event, data));
    if (this.#missed) lines.push(eventOf("snapshot", this.#snapshot()));
    const text = lines.join("") + this.#changedAccounts();
    if (text !== "") this.#write(text);
    this.#missed = false;
    this.#waiting.clear();
  }

  /** The event of the accounts, if one of them has changed since the last one. */
  #changedAccounts(): string {
    const text = eventOf("accounts", { accounts: knownAccounts(this.#app) });
    if (text === this.#told) return "";
    this.#told = text;
    return text;
  }

  #snapshot(): z.infer<typeof snapshotSchema> {
    const { running } = this.#app;
    return {
      now_ms: Date.now(),
      running: running.list().map(showRunning),
      missed: this.#missed,
      elsewhere: running.elsewhere,
    };
  }

  #write(text: string): void {
    this.#controller.enqueue(this.#encoder.encode(text));
  }
}

const eventOf = (event: string, data: unknown) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
