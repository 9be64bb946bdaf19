/**
 * A stream is a fold: items are pushed through stages, each a closure whose memory is its local variables.
 * Stages are synchronous and call the next one directly, so an event costs no Promise and no generator.
 */
export interface Sink<T> {
  push(item: T): void;
  /** Called once, after the last `push`, whether the source is complete or broke off. */
  end(): void;
}

/** One step of a stream: from the sink for its results it makes the sink for its input. */
export type Stage<In, Out> = (next: Sink<Out>) => Sink<In>;

/** Joins two stages into one. */
export function pipe<A, B, C>(first: Stage<A, B>, second: Stage<B, C>): Stage<A, C> {
  return (next) => first(second(next));
}

/** The same for stages that may be missing: undefined if both are. */
export function joined<T>(first: Stage<T, T> | undefined, second: Stage<T, T> | undefined): Stage<T, T> | undefined {
  return first && second ? pipe(first, second) : (first ?? second);
}

/** All results that a stage makes of the given items. */
export function run<In, Out>(stage: Stage<In, Out>, items: Iterable<In>): Out[] {
  const results: Out[] = [];
  const sink = stage(collectInto(results));
  for (const item of items) sink.push(item);
  sink.end();
  return results;
}

/** A sink that appends its items to an array. */
export function collectInto<T>(items: T[]): Sink<T> {
  return { push: (item) => void items.push(item), end() {} };
}
