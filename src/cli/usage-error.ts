import { ProxyError } from "../errors";

/** A mistake in the command line or the environment, explained in a sentence; exit code 2. */
export class UsageError extends Error {}

/** @throws UsageError in place of a ProxyError of what was given */
export function asUsage<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (thrown) {
    throw thrown instanceof ProxyError ? new UsageError(thrown.message) : thrown;
  }
}
