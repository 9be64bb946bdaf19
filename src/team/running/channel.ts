/** Hears what the other servers send of their requests. It is listened to only while somebody watches here. */

import type { Postgres } from "../connection";
import { withinTime } from "../line";
import type { StoreParts } from "../parts";
import { type RunningMessage, readRunningMessage, runningChannel } from "./messages";
import { openMessage } from "./sealed";

export interface RunningChannel {
  /** Settles when it is listened to. @throws An error that `isAwayError` knows if the database is away. */
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

export function openRunningChannel(
  { postgres, seals }: Pick<StoreParts, "postgres" | "seals">,
  { heard, again }: ChannelListener,
): RunningChannel {
  let listening: ReturnType<Postgres["listen"]> | undefined;
  let isOpen = false;
  const read = (payload: string) => {
    const text = openMessage(seals, payload);
    const message = text === undefined ? undefined : readRunningMessage(text);
    if (message) heard(message);
  };
  return {
    async open() {
      if (isOpen) return;
      listening ??= postgres.listen(runningChannel, read, () => isOpen && again());
      try {
        await withinTime(listening, patienceMs);
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
