/** A value, or the promise of one that is kept on another machine. Who asks on a hot path waits only for a promise. */
export type Awaitable<T> = T | Promise<T>;

/** Calls `next` at once with a value, and later with the value of a promise. */
export function whenKnown<T, U>(value: Awaitable<T>, next: (known: T) => Awaitable<U>): Awaitable<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}
