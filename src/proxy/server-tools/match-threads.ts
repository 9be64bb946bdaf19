/**
 * Searches of tools in worker threads. A client's pattern decides how long a search takes, so that it must hold up no other
 * request, and is given up after a time limit. The threads know no request: all apps of a process share them.
 */
import { requireFilesForThread } from "../../lib/free-files";
import { Turns } from "../../lib/turns";
import type { MatchAnswer } from "./match-worker";
import type { ToolQuery } from "./tool-match";

/** Milliseconds of one search, from when it is asked for. */
const defaultLimit = 5_000;
/** Milliseconds without a search after which a thread is ended. */
const idleLimit = 60_000;
/** How many searches run at the same time. */
const mostThreads = 4;
/** How many wait for a thread; a further one fails at once. */
const mostWaiting = 60;

interface Thread {
  worker: Worker;
  idle?: Timer;
}

const free: Thread[] = [];
const turns = new Turns(mostThreads);

/**
 * The names of the tools that fit best, as {@link matchTools} finds them.
 * @param signal Aborts when the client has left: the search then keeps neither its place among those that wait nor its thread.
 * @throws Error if it took too long, too many wait, or the thread failed; the signal's reason.
 */
export async function matchInThread(
  query: ToolQuery,
  signal: AbortSignal,
  limitMs = defaultLimit,
): Promise<string[] | undefined> {
  if (turns.waiting >= mostWaiting) throw new Error("Too many searches wait for a thread.");
  const over = new AbortController();
  const leave = () => over.abort(signal.reason);
  if (signal.aborted) leave();
  else signal.addEventListener("abort", leave, { once: true });
  const limit = setTimeout(() => over.abort(new Error("The search took too long.")), limitMs);
  try {
    return await turns.run(() => runOnThread(query, over.signal), over.signal);
  } finally {
    clearTimeout(limit);
    signal.removeEventListener("abort", leave);
  }
}

async function runOnThread(query: ToolQuery, over: AbortSignal): Promise<string[] | undefined> {
  over.throwIfAborted();
  const thread = free.pop() ?? { worker: startWorker() };
  clearTimeout(thread.idle);
  const { worker } = thread;
  const { promise, resolve, reject } = Promise.withResolvers<MatchAnswer>();
  worker.onmessage = ({ data }: MessageEvent<MatchAnswer>) => resolve(data);
  worker.onerror = (event) => {
    event.preventDefault();
    reject(new Error(`The thread failed: ${event.message}`));
  };
  const giveUp = () => reject(over.reason);
  over.addEventListener("abort", giveUp, { once: true });
  worker.ref();
  worker.postMessage(query);
  let answer: MatchAnswer;
  try {
    answer = await promise;
  } catch (thrown) {
    worker.terminate();
    throw thrown;
  } finally {
    over.removeEventListener("abort", giveUp);
  }
  rest(thread);
  if ("failure" in answer) throw new Error(`The search failed: ${answer.failure}`);
  return answer.names;
}

function startWorker(): Worker {
  requireFilesForThread();
  return new Worker(new URL("./match-worker.js", import.meta.url).href);
}

function rest(thread: Thread): void {
  free.push(thread);
  thread.worker.unref();
  thread.idle = setTimeout(() => {
    free.splice(free.indexOf(thread), 1);
    thread.worker.terminate();
  }, idleLimit);
  thread.idle.unref();
}
