/**
 * Runs work whose length a stranger's text or pattern decides. Worker threads do it, so that it holds up no other request,
 * and give it up after a time limit. The threads know no request: all apps of a process share them.
 */
import { Turns } from "../turns";
import type { TaskAnswer, TextTasks } from "./text-tasks";

export class TextWorkError extends Error {}

/** Milliseconds of one task. */
const defaultLimit = 5_000;
/** Milliseconds without a task after which a thread is ended. */
const idleLimit = 60_000;
/** How many tasks run at the same time; further ones wait. */
const mostThreads = 4;

interface Thread {
  worker: Worker;
  idle?: Timer;
}

const free: Thread[] = [];
const turns = new Turns(mostThreads);

type Input<Task extends keyof TextTasks> = Parameters<TextTasks[Task]>[0];
type Output<Task extends keyof TextTasks> = Awaited<ReturnType<TextTasks[Task]>>;

/** @throws TextWorkError if the task took too long or failed. */
export const runTextTask = <Task extends keyof TextTasks>(
  task: Task,
  input: Input<Task>,
  limitMs = defaultLimit,
): Promise<Output<Task>> => turns.run(() => runOnThread({ task, input }, limitMs)) as Promise<Output<Task>>;

async function runOnThread(message: object, limitMs: number): Promise<unknown> {
  const thread = free.pop() ?? { worker: new Worker(new URL("./text-worker.js", import.meta.url).href) };
  clearTimeout(thread.idle);
  const { worker } = thread;
  const { promise, resolve, reject } = Promise.withResolvers<TaskAnswer>();
  worker.onmessage = ({ data }: MessageEvent<TaskAnswer>) => resolve(data);
  worker.onerror = (event) => {
    event.preventDefault();
    reject(new TextWorkError(`The thread failed: ${event.message}`));
  };
  const limit = setTimeout(() => reject(new TextWorkError("The text took too long.")), limitMs);
  worker.ref();
  worker.postMessage(message);
  try {
    const answer = await promise;
    rest(thread);
    if ("failure" in answer) throw new TextWorkError(`The task failed: ${answer.failure}`);
    return answer.value;
  } catch (thrown) {
    if (!free.includes(thread)) worker.terminate();
    throw thrown;
  } finally {
    clearTimeout(limit);
  }
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
