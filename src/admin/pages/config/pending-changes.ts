/** Changes that were shown and wait for a yes. They stay here, so that no secret in them ever travels back to a browser. */
import { randomBytes } from "node:crypto";
import type { Stored } from "../../../config/patch";

export interface PendingChange {
  patch: Stored;
  /** Of the config it was made for. */
  revision: string;
  /** The form as it was filled in. */
  form: URLSearchParams;
}

export interface PendingChanges {
  /** @returns By what it is asked for again. */
  put(change: PendingChange): string;
  get(id: string | null): PendingChange | undefined;
  drop(id: string): void;
}

const waitMs = 30 * 60_000;
/** The oldest is forgotten for a new one. */
const max = 16;

export function openPendingChanges(now: () => number): PendingChanges {
  const waiting = new Map<string, { change: PendingChange; until: number }>();
  return {
    put(change) {
      if (waiting.size >= max) waiting.delete(waiting.keys().next().value!);
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
