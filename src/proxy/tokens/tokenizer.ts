/**
 * Counts tokens of the `o200k_base` vocabulary in a worker thread, because encoding megabytes takes seconds and must not
 * block other requests. The vocabulary (100 MB) is loaded at the first count and unloaded after a while.
 */
import { requireFilesForThread } from "../../lib/free-files";

export interface Tokenizer {
  /** The total tokens of all texts. @throws Error if the worker cannot be run. */
  count(texts: readonly string[]): Promise<number>;
  close(): void;
}

/** Milliseconds without a count after which the vocabulary is unloaded. */
const idleLimit = 5 * 60_000;

export function openTokenizer(): Tokenizer {
  let worker: Worker | undefined;
  let idle: Timer | undefined;
  let sent = 0;
  const waiting = new Map<number, PromiseWithResolvers<number>>();

  const start = (): Worker => {
    requireFilesForThread();
    const started = new Worker(new URL("./tokenizer-worker.js", import.meta.url).href);
    started.unref();
    started.onmessage = ({ data }: MessageEvent<{ id: number; tokens: number }>) => {
      waiting.get(data.id)?.resolve(data.tokens);
      waiting.delete(data.id);
      rest();
    };
    started.onerror = (event) => {
      event.preventDefault();
      stop(new Error(`The tokenizer failed: ${event.message}`));
    };
    return started;
  };
  const rest = () => {
    clearTimeout(idle);
    if (waiting.size > 0) return;
    idle = setTimeout(() => stop(new Error("The tokenizer was closed.")), idleLimit);
    idle.unref();
  };
  const stop = (reason: Error) => {
    clearTimeout(idle);
    worker?.terminate();
    worker = undefined;
    for (const { reject } of waiting.values()) reject(reason);
    waiting.clear();
  };

  return {
    async count(texts) {
      worker ??= start();
      clearTimeout(idle);
      const id = ++sent;
      const answer = Promise.withResolvers<number>();
      waiting.set(id, answer);
      worker.postMessage({ id, texts });
      return await answer.promise;
    },
    close: () => stop(new Error("The tokenizer was closed.")),
  };
}
