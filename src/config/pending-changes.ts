/** Config changes that wait for confirmation. They stay on the server, so that no secret is sent back to the browser. */
import type { Awaitable } from "../awaitable";
import { BoundedMap } from "../bounded-map";
import type { Stored } from "./patch";

export interface PendingChange {
  patch: Stored;
  /** Revision of the config that the change was made for. */
  revision: string;
  /** The submitted form. */
  form: URLSearchParams;
}

export interface PendingChanges {
  /** @returns The id of the pending change. */
  put(change: PendingChange): Awaitable<string>;
  get(id: string | null): Awaitable<PendingChange | undefined>;
  drop(id: string): Awaitable<void>;
}

/** Milliseconds. */
export const pendingChangeMs = 30 * 60_000;
/** A new change beyond this limit replaces the oldest. */
export const maxPendingChanges = 16;

export const newPendingId = (): string => crypto.getRandomValues(Buffer.alloc(18)).toString("base64url");

/** For one process. @param now Wall clock, ms. */
export function openMemoryPendingChanges(now: () => number): PendingChanges {
  const waiting = new BoundedMap<string, { change: PendingChange; until: number }>(maxPendingChanges);
  return {
    put(change) {
      const id = newPendingId();
      waiting.set(id, { change, until: now() + pendingChangeMs });
      return id;
    },
    get(id) {
      const found = waiting.get(id ?? "");
      return found && found.until > now() ? found.change : undefined;
    },
    drop: (id) => void waiting.delete(id),
  };
}
