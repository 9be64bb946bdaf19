/** Limits how often wrong secrets may be sent. */
import { BoundedMap } from "../../bounded-map";
import { ProxyError } from "../../errors";
import { minuteMs } from "../../format";
import { sha256 } from "./credentials";

/** Counts wrong tries by who makes them. */
export interface FailedTries {
  /** @throws ProxyError `rate_limit` if there were too many. */
  refuse(who: string): void;
  count(who: string): void;
}

/** Counts wrong tries of secrets that nobody can guess, by network and secret: an old one is no reason to refuse a good one from there. */
export interface SecretTries {
  /** @throws ProxyError `rate_limit` if this one was tried too often from the network, or too many different ones were. */
  refuse(network: string, secret: string): void;
  count(network: string, secret: string): void;
}

/** A counter for each kind of secret, so that wrong ones of one kind hold nobody up at another. */
export interface WrongSecrets {
  /** By network: a person chose them, so they can be guessed. */
  adminTokens: FailedTries;
  metricsTokens: FailedTries;
  /** By member: short, because a person types them. */
  userCodes: FailedTries;
  /** Codes that GitHub's pages hand out: each wrong one is a call to GitHub. */
  githubCodes: FailedTries;
  invitations: SecretTries;
  deviceTokens: SecretTries;
  /** Those that nobody has, or nobody any more. */
  clientKeys: SecretTries;
}

/** @param monotonic Milliseconds. */
export const countWrongSecrets = (monotonic: () => number): WrongSecrets => ({
  adminTokens: failedTries(monotonic),
  metricsTokens: failedTries(monotonic),
  userCodes: failedTries(monotonic),
  githubCodes: failedTries(monotonic),
  invitations: secretTries(monotonic),
  deviceTokens: secretTries(monotonic),
  clientKeys: secretTries(monotonic),
});

/** Wrong tries per minute. */
const maxTries = 10;
/** Wrong tries of different secrets from a network, per minute. Each is a question to the database, and all tools of an office that were signed out ask less often. */
const maxDifferent = 300;
/** Another one beyond this limit replaces the oldest. */
const maxKnown = 1_024;

function secretTries(monotonic: () => number): SecretTries {
  const [ofEach, ofAll] = [failedTries(monotonic), failedTries(monotonic, maxDifferent)];
  const named = (network: string, secret: string) => `${network} ${sha256(secret).toHex()}`;
  return {
    refuse(network, secret) {
      ofAll.refuse(network);
      ofEach.refuse(named(network, secret));
    },
    count(network, secret) {
      ofAll.count(network);
      ofEach.count(named(network, secret));
    },
  };
}

function failedTries(monotonic: () => number, most = maxTries): FailedTries {
  const known = new BoundedMap<string, { count: number; until: number }>(maxKnown);
  const recent = (who: string) => {
    const tries = known.get(who);
    if (tries && tries.until > monotonic()) return tries;
    known.delete(who);
    return undefined;
  };
  return {
    refuse(who: string): void {
      const tries = recent(who);
      if (!tries || tries.count < most) return;
      const seconds = Math.max(1, Math.ceil((tries.until - monotonic()) / 1000));
      throw new ProxyError("rate_limit", `Too many wrong keys, tokens or codes. Try again in ${seconds} s.`, {
        headers: { "retry-after": String(seconds) },
      });
    },
    count(who: string): void {
      const tries = recent(who) ?? { count: 0, until: monotonic() + minuteMs };
      known.set(who, { ...tries, count: tries.count + 1 });
    },
  };
}
