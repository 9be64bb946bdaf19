/**
 * The items that clients of the Responses API were given in the last hour. A client that does not say `store: false` sends
 * only their ids in its next turn, as OpenAI keeps them (@ai-sdk/openai 4.0). They stay in this process's memory alone.
 */
import type { JsonObject } from "../dialects/hub/conversation";
import { minuteMs } from "../lib/format";

/** Milliseconds. */
const keptFor = 60 * 60_000;
/** Bytes of memory that all items take. */
const maxBytes = 32 * 1024 * 1024;
/** Bytes of one item; a larger one is not kept. */
const maxItemBytes = 4 * 1024 * 1024;

/** Bytes that an item takes beside its JSON and its key: its place in the map. */
const bytesBeside = 250;

/** Bytes of the items that are forgotten together, and how long they are added to. */
const [shelfBytes, shelfMs] = [1024 * 1024, 5 * minuteMs];

/** Items that came one after the other. A buffer for each of them takes twice as much of the process's memory. */
class Shelf {
  /** In UTF-8: as a string, a single emoji would double its size. */
  readonly #json: Buffer;
  readonly #places = new Map<string, { start: number; end: number; at: number }>();
  #length = 0;
  /** Also what is beside the items' JSON. */
  bytes = 0;
  /** Timestamp. */
  lastAt = 0;

  constructor(
    size: number,
    readonly firstAt: number,
  ) {
    this.#json = Buffer.allocUnsafeSlow(size);
  }

  takes(length: number, at: number): boolean {
    return this.#length + length <= this.#json.length && at - this.firstAt <= shelfMs;
  }

  put(key: string, json: string, at: number): void {
    const start = this.#length;
    this.#length += this.#json.write(json, start);
    this.#places.set(key, { start, end: this.#length, at });
    this.bytes += this.#length - start + key.length + bytesBeside;
    this.lastAt = at;
  }

  find(key: string, since: number): string | undefined {
    const place = this.#places.get(key);
    return place && place.at >= since ? this.#json.toString("utf8", place.start, place.end) : undefined;
  }

  forget(key: string): void {
    this.#places.delete(key);
  }
}

export class RecentItems {
  /** The newest first. */
  #shelves: Shelf[] = [];

  /** @param now Wall clock, ms. */
  constructor(private readonly now: () => number) {}

  /** @param owner Whose requests may name it: a client key. @param item As the client was given it. */
  keep(owner: string, item: JsonObject): void {
    const { id } = item;
    if (typeof id !== "string" || id === "") return;
    const [key, json, at] = [keyOf(owner, id), JSON.stringify(item), this.now()];
    for (const shelf of this.#shelves) shelf.forget(key);
    const length = Buffer.byteLength(json);
    if (length > maxItemBytes) return;
    if (!this.#shelves[0]?.takes(length, at)) this.#shelves.unshift(new Shelf(Math.max(length, shelfBytes), at));
    this.#shelves[0]!.put(key, json, at);
    this.#removeOldest(at);
  }

  /** Also those whose hour is over. */
  #removeOldest(now: number): void {
    let bytes = 0;
    for (const shelf of this.#shelves) bytes += shelf.bytes;
    for (let oldest = this.#shelves.at(-1); oldest; oldest = this.#shelves.at(-1)) {
      if (bytes <= maxBytes && now - oldest.lastAt <= keptFor) break;
      this.#shelves.pop();
      bytes -= oldest.bytes;
    }
  }

  /** The item as the owner was given it; undefined if it is not kept. */
  find(owner: string, id: string): JsonObject | undefined {
    const [key, since] = [keyOf(owner, id), this.now() - keptFor];
    for (const shelf of this.#shelves) {
      const json = shelf.find(key, since);
      if (json !== undefined) return JSON.parse(json);
    }
    return undefined;
  }
}

const keyOf = (owner: string, id: string): string => `${owner}\0${id}`;
