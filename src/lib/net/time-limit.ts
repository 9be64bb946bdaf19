/** Promises with a time limit. Outgoing calls have limits of their own: `clock.ts`. */

/**
 * The result of `work`; after `timeoutMs` milliseconds, what `late` returns or throws. `work` itself goes on.
 * @param timeoutMs No limit when missing.
 * @param signal Ends the wait with its reason.
 */
export async function withTimeLimit<Result, Late>(
  work: Promise<Result>,
  timeoutMs: number | undefined,
  late: () => Late | Promise<Late>,
  signal?: AbortSignal,
): Promise<Result | Late> {
  if (timeoutMs === undefined && !signal) return work;
  if (signal?.aborted) {
    work.catch(() => {}); // nobody waits for it
    throw signal.reason;
  }
  const limit = Promise.withResolvers<void>();
  const abort = () => limit.reject(signal?.reason);
  const timer = timeoutMs === undefined ? undefined : setTimeout(limit.resolve, timeoutMs);
  signal?.addEventListener("abort", abort);
  try {
    return await Promise.race([work, limit.promise.then(late)]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}

/**
 * The results of several promises, in their order; undefined for each that is still pending when the time is over.
 * @param limits Milliseconds: for the others after the first that is fulfilled, and for all of them (no limit when missing).
 */
export async function settledInTime<Result>(
  work: readonly Promise<Result>[],
  { others, total }: { others: number; total?: number },
): Promise<(PromiseSettledResult<Result> | undefined)[]> {
  const results: (PromiseSettledResult<Result> | undefined)[] = work.map(() => undefined);
  const all = Promise.all(
    work.map(async (each, at) => {
      [results[at]] = await Promise.allSettled([each]);
    }),
  );
  const pending = () => undefined;
  const enough = Promise.any(work).then(
    () => withTimeLimit(all, others, pending),
    () => all,
  );
  await withTimeLimit(enough, total, pending);
  return [...results];
}
