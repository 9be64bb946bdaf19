/**
 * The items that clients of the Responses API were given in the last hour. A client that does not say `store: false` sends
 * only their ids in its next turn, as OpenAI keeps them (@ai-sdk/openai 4.0). They stay in this process's memory alone.
 */
import type { JsonObject } from "../dialects/hub/conversation";

/** Milliseconds. */
const keptFor = 60 * 60_000;
/** Bytes of all items. */
const maxBytes = 32 * 1024 * 1024;
/** Bytes of one item; a larger one is not kept. */
const maxItemBytes = 4 * 1024 * 1024;

interface KeptItem {
  json: string;
  bytes: number;
  /** Timestamp. */
  at: number;
}

export class RecentItems {
  /** The oldest first. */
  readonly #items = new Map<string, KeptItem>();
  #bytes = 0;

  /** @param now Wall clock, ms. */
  constructor(private readonly now: () => number) {}

  /** @param owner Whose requests may name it: a client key. @param item As the client was given it. */
  keep(owner: string, item: JsonObject): void {
    const { id } = item;
    if (typeof id !== "string" || id === "") return;
    const json = JSON.stringify(item);
    const bytes = Buffer.byteLength(json);
    const key = keyOf(owner, id);
    this.#forget(key);
    if (bytes > maxItemBytes) return;
    this.#items.set(key, { json, bytes, at: this.now() });
    this.#bytes += bytes;
    for (const [oldest, { at }] of this.#items) {
      if (this.#bytes <= maxBytes && this.now() - at <= keptFor) break;
      this.#forget(oldest);
    }
  }

  /** The item as the owner was given it; undefined if it is not kept. */
  find(owner: string, id: string): JsonObject | undefined {
    const kept = this.#items.get(keyOf(owner, id));
    return kept && this.now() - kept.at <= keptFor ? JSON.parse(kept.json) : undefined;
  }

  #forget(key: string): void {
    this.#bytes -= this.#items.get(key)?.bytes ?? 0;
    this.#items.delete(key);
  }
}

const keyOf = (owner: string, id: string): string => `${owner}\0${id}`;
