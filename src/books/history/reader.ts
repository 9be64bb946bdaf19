/**
 * Answers questions about the history in a worker thread, which reads the file by a connection of its own: adding up
 * thousands of rows must not hold up a stream. The thread starts with the first question and ends after a while.
 */
import { requireFilesForThread } from "../../lib/free-files";
import type { Input, Output, ReaderAnswer, ReaderQuestion, ReaderTasks } from "./reader-tasks";

/** Milliseconds without a question after which the thread is ended. */
const idleLimit = 60_000;

interface Waiting {
  parts: unknown[];
  resolve(value: unknown): void;
  reject(reason: Error): void;
}

export class HistoryReader {
  #worker: Worker | undefined;
  #idle: Timer | undefined;
  #asked = 0;
  #isClosed = false;
  readonly #waiting = new Map<number, Waiting>();

  /**
   * @param file The file as it is now.
   * @throws SQLite's error, or the system's where no thread can be started, with its code.
   */
  ask<Name extends keyof ReaderTasks>(
    file: { path: string; identity: string },
    task: Name,
    ...input: Input<Name>
  ): Output<Name> {
    if (this.#isClosed) return Promise.reject(new Error("the history is closed")) as Output<Name>;
    clearTimeout(this.#idle);
    try {
      this.#worker ??= this.#start();
    } catch (thrown) {
      return Promise.reject(thrown) as Output<Name>;
    }
    this.#worker.ref();
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const id = ++this.#asked;
    this.#waiting.set(id, { parts: [], resolve, reject });
    this.#worker.postMessage({ id, ...file, task, input } satisfies ReaderQuestion);
    return promise as Output<Name>;
  }

  close(): void {
    this.#isClosed = true;
    this.#stop(new Error("the history is closed"));
  }

  #start(): Worker {
    requireFilesForThread();
    const worker = new Worker(new URL("./reader-worker.js", import.meta.url).href);
    worker.onmessage = ({ data }: MessageEvent<ReaderAnswer>) => this.#take(data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.#stop(new Error(`the thread that reads it failed: ${event.message}`));
    };
    return worker;
  }

  #take(answer: ReaderAnswer): void {
    const waiting = this.#waiting.get(answer.id);
    if (!waiting) return;
    if ("more" in answer) {
      waiting.parts.push(...JSON.parse(answer.more));
      return;
    }
    this.#waiting.delete(answer.id);
    if (this.#waiting.size === 0) this.#rest();
    if ("failure" in answer) {
      waiting.reject(Object.assign(new Error(answer.failure), { code: answer.code }));
      return;
    }
    const value = JSON.parse(answer.value);
    waiting.resolve(waiting.parts.length > 0 ? { ...value, groups: waiting.parts } : value);
  }

  #rest(): void {
    this.#worker?.unref();
    this.#idle = setTimeout(() => this.#stop(new Error("the thread was idle")), idleLimit);
    this.#idle.unref();
  }

  /** The thread closes its connections itself: one that is ended in a transaction would keep the file locked. */
  #stop(reason: Error): void {
    clearTimeout(this.#idle);
    this.#worker?.postMessage("close");
    this.#worker?.unref();
    this.#worker = undefined;
    for (const { reject } of this.#waiting.values()) reject(reason);
    this.#waiting.clear();
  }
}
