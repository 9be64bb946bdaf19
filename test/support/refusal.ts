import { ProxyError } from "../../src/lib/errors";

/** The error with which this is refused; it must be. */
export function refusalOf(act: () => unknown): ProxyError {
  try {
    act();
  } catch (thrown) {
    if (thrown instanceof ProxyError) return thrown;
    throw thrown;
  }
  throw new Error("It was not refused.");
}

/** The error a promise ends with; it must end with one. */
export async function failureOf(promise: Promise<unknown>): Promise<ProxyError> {
  const thrown = await promise.catch((thrown) => thrown);
  if (!(thrown instanceof ProxyError)) throw new Error(`expected a ProxyError, got ${String(thrown)}`);
  return thrown;
}
