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
