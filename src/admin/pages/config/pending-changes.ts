/** Config changes that wait for confirmation. They stay on the server, so that no secret is sent back to the browser. */
import { randomBytes } from "node:crypto";
import { BoundedMap } from "../../../bounded-map";
import type { Stored } from "../../../config/patch";

export interface PendingChange {
  patch: Stored;
  /** Revision of the config that the change was made for. */
  revision: string;
  /** The submitted form. */
  form: URLSearchParams;
}

export interface PendingChanges {
  /** @returns The ID of the pending change. */
  put(change: PendingChange): string;
  get(id: string | null): PendingChange | undefined;
  drop(id: string): void;
}

const waitMs = 30 * 60_000;
/** A new change beyond this limit replaces the oldest. */
const max = 16;

export function openPendingChanges(now: () => number): PendingChanges {
  const waiting = new BoundedMap<string, { change: PendingChange; until: number }>(max);
  return {
    put(change) {
      const id = randomBytes(18).toString("base64url");
      waiting.set(id, { change, until: now() + waitMs });
      return id;
    },
    get(id) {
      const found = waiting.get(id ?? "");
      return found && found.until > now() ? found.change : undefined;
    },
    drop: (id) => void waiting.delete(id),
  };
}
