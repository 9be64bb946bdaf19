/** What the tests of accounts in traffic share: a proxy whose time is set by hand. */
import { type ProxyOptions, type RunningProxy, startProxy } from "../../support/proxy";

export interface TimedProxy extends RunningProxy {
  now(): number;
  /** Time passes for the proxy and for the upstream. */
  pass(milliseconds: number): void;
}

export async function timed(options: ProxyOptions = {}): Promise<TimedProxy> {
  let ahead = 0;
  const clock = { now: () => Date.now() + ahead, monotonic: () => performance.now() + ahead };
  const proxy = await startProxy({ ...options, clock, demo: { now: clock.now, ...options.demo } });
  return Object.assign(proxy, {
    now: clock.now,
    pass(milliseconds: number) {
      ahead += milliseconds;
    },
  });
}
