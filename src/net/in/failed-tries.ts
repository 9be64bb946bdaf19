/** Limits how often wrong admin tokens may be sent. */
import { BoundedMap } from "../../bounded-map";
import { ProxyError } from "../../errors";
import { minuteMs } from "../../format";

export interface FailedTries {
  /** @throws ProxyError `rate_limit` if the network has sent too many wrong tokens. */
  refuse(network: string): void;
  count(network: string): void;
}

/** Wrong tokens from one network per minute. */
const maxTries = 10;
/** A new network beyond this limit replaces the oldest. */
const maxNetworks = 1_024;

/** Counts the wrong tokens of each network, so that a token cannot be guessed. @param monotonic Milliseconds. */
export function failedTries(monotonic: () => number): FailedTries {
  const known = new BoundedMap<string, { count: number; until: number }>(maxNetworks);
  const recent = (network: string) => {
    const tries = known.get(network);
    if (tries && tries.until > monotonic()) return tries;
    known.delete(network);
    return undefined;
  };
  return {
    refuse(network: string): void {
      const tries = recent(network);
      if (!tries || tries.count < maxTries) return;
      const seconds = Math.max(1, Math.ceil((tries.until - monotonic()) / 1000));
      throw new ProxyError("rate_limit", `Too many wrong tokens or codes. Try again in ${seconds} s.`, {
        headers: { "retry-after": String(seconds) },
      });
    },
    count(network: string): void {
      const tries = recent(network) ?? { count: 0, until: monotonic() + minuteMs };
      known.set(network, { ...tries, count: tries.count + 1 });
    },
  };
}
