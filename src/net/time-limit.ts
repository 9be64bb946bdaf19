/** The one promise with a time limit. Calls out have limits of their own: `clock.ts`. */

/**
 * What `work` settles with; after `timeoutMs` milliseconds what `late` returns, or throws. `work` itself goes on.
 * @param timeoutMs As long as it takes when missing.
 */
export async function withTimeLimit<Result, Late>(
  work: Promise<Result>,
  timeoutMs: number | undefined,
  late: () => Late,
): Promise<Result | Late> {
  if (timeoutMs === undefined) return work;
  const limit = Promise.withResolvers<void>();
  const timer = setTimeout(limit.resolve, timeoutMs);
  try {
    return await Promise.race([work, limit.promise.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}
