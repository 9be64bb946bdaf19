/** Hears what the other servers send of their requests. It is listened to only while somebody watches here. */
import { databaseAway } from "../away";
import type { Postgres } from "../connection";
import { type RunningMessage, readRunningMessage, runningChannel } from "./messages";

export interface RunningChannel {
  /** Settles when it is listened to. @throws ProxyError if the database is away. */
  open(): Promise<void>;
  close(): void;
}

interface ChannelListener {
  heard(message: RunningMessage): void;
  /** The connection was lost and is back: what was sent meanwhile is lost. */
  again(): void;
}

/** Milliseconds. */
const patienceMs = 5_000;

export function openRunningChannel(postgres: Postgres, { heard, again }: ChannelListener): RunningChannel {
  let listening: ReturnType<Postgres["listen"]> | undefined;
  let isOpen = false;
  const read = (payload: string) => {
    const message = readRunningMessage(payload);
    if (message) heard(message);
  };
  return {
    async open() {
      if (isOpen) return;
      listening ??= postgres.listen(runningChannel, read, () => isOpen && again());
      try {
        await within(patienceMs, listening);
        isOpen = true;
      } catch (thrown) {
        listening = undefined;
        throw thrown;
      }
    },
    close() {
      listening?.then((end) => end()).catch(() => {}); // it has not begun
      listening = undefined;
      isOpen = false;
    },
  };
}

/** A connection that hangs does not reject by itself. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const limit = setTimeout(() => reject(databaseAway(undefined, false)), ms);
  try {
    await Promise.race([work, promise]);
  } finally {
    clearTimeout(limit);
  }
}
