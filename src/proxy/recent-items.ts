/**
 * The items that clients of the Responses API were given in the last hour. A client that does not say `store: false` sends
 * only their ids in its next turn, as OpenAI keeps them (@ai-sdk/openai 4.0). They stay in this process's memory alone.
 */
import type { JsonObject } from "../dialects/hub/conversation";
import { afterRemoval } from "../lib/bounded-map";
import { minuteMs } from "../lib/format";

/** Milliseconds. */
const keptFor = 60 * 60_000;
/** Bytes of memory that all items take. */
const maxBytes = 32 * 1024 * 1024;
/** Bytes of one item; a larger one is not kept. */
const maxItemBytes = 4 * 1024 * 1024;

/** Bytes that an item takes beside its JSON: its key, its place in the map. */
const bytesBeside = 400;

interface KeptItem {
  /** In UTF-8: as a string, a single emoji would double its size. */
  json: Buffer;
  /** Timestamp. */
  at: number;
}

export class RecentItems {
  /** The oldest first. */
  readonly #items = new Map<string, KeptItem>();
  #bytes = 0;
  /** Timestamp. */
  #lookedAt = 0;

  /** @param now Wall clock, ms. */
  constructor(private readonly now: () => number) {}

  /** @param owner Whose requests may name it: a client key. @param item As the client was given it. */
  keep(owner: string, item: JsonObject): void {
    const { id } = item;
    if (typeof id !== "string" || id === "") return;
    const json = Buffer.from(JSON.stringify(item));
    const key = keyOf(owner, id);
    this.#forget(key);
    if (json.length > maxItemBytes) return;
    this.#items.set(key, { json, at: this.now() });
    this.#bytes += json.length + bytesBeside;
    if (this.#bytes > maxBytes) this.#removeOldest(afterRemoval(maxBytes));
    else if (this.now() - this.#lookedAt > minuteMs) this.#removeOldest(maxBytes);
  }

  /** Also those whose hour is over. Not with each item, as every walk passes what was removed before it: see `BoundedMap`. */
  #removeOldest(bytes: number): void {
    this.#lookedAt = this.now();
    for (const [oldest, { at }] of this.#items) {
      if (this.#bytes <= bytes && this.now() - at <= keptFor) break;
      this.#forget(oldest);
    }
  }

  /** The item as the owner was given it; undefined if it is not kept. */
  find(owner: string, id: string): JsonObject | undefined {
    const kept = this.#items.get(keyOf(owner, id));
    return kept && this.now() - kept.at <= keptFor ? JSON.parse(kept.json.toString()) : undefined;
  }

  #forget(key: string): void {
    const kept = this.#items.get(key);
    if (!kept) return;
    this.#bytes -= kept.json.length + bytesBeside;
    this.#items.delete(key);
  }
}

const keyOf = (owner: string, id: string): string => `${owner}\0${id}`;
