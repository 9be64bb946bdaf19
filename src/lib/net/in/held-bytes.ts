/** How many bytes of request bodies one person may have in memory at a time: those being read, and those of requests that run. */
import { ProxyError } from "../../errors";

/** What one request holds. */
export interface HeldBytes extends Disposable {
  /** @throws ProxyError `rate_limit` if the person would hold too much. */
  add(bytes: number): void;
  /** Gives back everything; what is added later is not counted. */
  [Symbol.dispose](): void;
}

export interface HeldBodies {
  /** @param member The id; null for the owner, who has no limit. */
  of(member: string | null): HeldBytes;
}

/** Bytes: four of the largest bodies. */
const maxBytes = 128 * 1024 * 1024;

export function openHeldBodies(): HeldBodies {
  const held = new Map<string, number>();
  return {
    of: (member) => (member === null ? unlimited : limited(held, member)),
  };
}

function limited(held: Map<string, number>, member: string): HeldBytes {
  let own = 0;
  let isReleased = false;
  const change = (bytes: number) => {
    own += bytes;
    const sum = (held.get(member) ?? 0) + bytes;
    if (sum > 0) held.set(member, sum);
    else held.delete(member);
  };
  return {
    add(bytes) {
      if (isReleased) return;
      if ((held.get(member) ?? 0) + bytes > maxBytes) throw tooMuch();
      change(bytes);
    },
    [Symbol.dispose]() {
      isReleased = true;
      change(-own);
    },
  };
}

const unlimited: HeldBytes = { add() {}, [Symbol.dispose]() {} };

const tooMuch = () =>
  new ProxyError(
    "rate_limit",
    `The bodies of your running requests have ${maxBytes / 1024 / 1024} MiB at this server already, which is the most; try again when one has ended.`,
    { code: "too_many_running", headers: { connection: "close", "retry-after": "1" } },
  );
