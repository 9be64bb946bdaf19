/**
 * A stream is a fold: items are pushed through stages, each a closure whose memory is its local variables.
 * Stages are synchronous and call the next one directly, so an event costs no Promise and no generator.
 */
export interface Sink<T> {
  push(item: T): void;
  /** The source ended, well or badly; called once, after the last `push`. */
  end(): void;
}

/** One step of a stream: given where its results go, it says where its input comes in. */
export type Stage<In, Out> = (next: Sink<Out>) => Sink<In>;

/** Two stages as one. */
export function pipe<A, B, C>(first: Stage<A, B>, second: Stage<B, C>): Stage<A, C> {
  return (next) => first(second(next));
}

/** Everything a stage makes of the given items, at once. */
export function run<In, Out>(stage: Stage<In, Out>, items: Iterable<In>): Out[] {
  const results: Out[] = [];
  const sink = stage(collect(results));
  for (const item of items) sink.push(item);
  sink.end();
  return results;
}

/** A sink that keeps what it is given. */
export function collect<T>(into: T[]): Sink<T> {
  return { push: (item) => void into.push(item), end() {} };
}
