/** How long a request runs: from its first byte until its answer is complete, the client hangs up, or it is stopped. */
import { ProxyError } from "../errors";

export interface RequestLifetime {
  /** Wall clock, ms. */
  readonly startedAtMs: number;
  elapsedMs(): number;
  /** Aborts when the client hangs up or `stop` is called; its reason is the error for the client. */
  readonly signal: AbortSignal;
  readonly clientHungUp: boolean;
  stop(error: ProxyError): void;
}

/** The reason of `signal` when the client hung up. No client receives it. */
export const clientClosed = new ProxyError("upstream", "The client hung up before the reply was complete.", {
  status: 499,
  code: "client_closed",
});

export function openRequestLifetime(request: Request): RequestLifetime {
  const clock = performance.now();
  const controller = new AbortController();
  const hangUp = () => controller.abort(clientClosed);
  if (request.signal.aborted) hangUp();
  else request.signal.addEventListener("abort", hangUp, { once: true });
  return {
    startedAtMs: Date.now(),
    elapsedMs: () => Math.round(performance.now() - clock),
    signal: controller.signal,
    get clientHungUp() {
      return request.signal.aborted;
    },
    stop: (error) => controller.abort(error),
  };
}
