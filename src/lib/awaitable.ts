/** A value, or the promise of one that is kept on another machine. Who asks on a hot path waits only for a promise. */
export type Awaitable<T> = T | Promise<T>;

/** Calls `next` at once with a value, and later with the value of a promise. */
export function whenKnown<T, U>(value: Awaitable<T>, next: (known: T) => Awaitable<U>): Awaitable<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** What `work` gives; or, where it throws or its promise is rejected, what `failed` makes of that. */
export function orElse<T>(work: () => Awaitable<T>, failed: (thrown: unknown) => Awaitable<T>): Awaitable<T> {
  try {
    const value = work();
    return value instanceof Promise ? value.catch(failed) : value;
  } catch (thrown) {
    return failed(thrown);
  }
}

/** Work of which one run is under way at a time. Whoever asks gets a run that begins from now on, and shares it with who asks meanwhile. */
export class FreshRuns<T> {
  readonly #work: () => Promise<T>;
  #running: Promise<T> | undefined;
  #next: Promise<T> | undefined;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(work: () => Promise<T>) {
    this.#work = work;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  run(): Promise<T> {
    if (!this.#running && !this.#next) return this.#begin();
    this.#next ??= this.#running!.catch(() => {}).then(() => {
      this.#next = undefined;
      return this.#begin();
    });
    return this.#next;
  }

  /** Runs after so many ms, or as soon as an earlier call of this asked for. It keeps no process alive. */
  runWithin(ms: number): void {
    if (!this.#isStopped)
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined;
        void this.run();
      }, ms).unref();
  }

  /** From now on nothing runs by a timer. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #begin(): Promise<T> {
    this.#running = this.#work().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }
}
