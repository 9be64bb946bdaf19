/** Which notices were sent, so that each is sent once in its period, also after a restart. */
import { z } from "zod";
import { readPrivate, writePrivate } from "../../config/files";
import type { Awaitable } from "../../lib/awaitable";
import { dayMs, hourMs } from "../../lib/format";
import { parseJson } from "../../lib/json";
import { lazy } from "../../lib/lazy";

/** A notice that is to be sent now. */
export interface Claim {
  id: string;
  /** It was not claimed before, by whatever server. */
  isNew: boolean;
  /** The channels that have it. */
  delivered: readonly string[];
}

/** Which channels have a notice after it was tried. */
interface Delivery {
  id: string;
  delivered: readonly string[];
  /** All of them: it is not claimed again. */
  isDone: boolean;
}

export interface SentNotices {
  /**
   * Claims these notices. @returns Those that nobody has claimed, and those that were claimed within the last hour, that were not
   * sent to every channel, and that nobody has tried for a minute.
   */
  claim(ids: readonly string[]): Awaitable<readonly Claim[]>;
  /** Notes which channels have which notices, by one write. */
  note(deliveries: readonly Delivery[]): Awaitable<void>;
}

/** In a data folder, which a database takes over. */
export interface LocalSentNotices extends SentNotices {
  all(): readonly string[];
}

/** Milliseconds that an id is remembered: longer than any period. */
export const rememberSentFor = 40 * dayMs;
/** Milliseconds that a notice is tried for, and between two tries: a delivery takes less. */
export const [triedFor, triedEvery] = [hourMs, 60_000];
/** A day's thresholds of hundreds of keys, for as long as they are remembered. */
const maxBytes = 32 * 1024 * 1024;

/** When it was sent; or, while a channel does not have it, when it was claimed and tried. */
const notedSchema = lazy(() =>
  z.union([z.number(), z.object({ at: z.number(), tried: z.number(), delivered: z.array(z.string()) })]),
);
type Noted = z.output<ReturnType<typeof notedSchema>>;
const sentSchema = lazy(() => z.record(z.string(), notedSchema()));

/** In a file. A missing, damaged or unreadable one: a notice may be sent twice. */
export function openSentNotices(
  path: string,
  { now, warn }: { now(): number; warn(sentence: string, cause: unknown): void },
): LocalSentNotices {
  let known: Map<string, Noted> | undefined;
  const noted = () => {
    try {
      known ??= readSent(path);
    } catch (thrown) {
      known = new Map();
      warn("The file of the notices that were sent cannot be read, so they may be sent again.", thrown);
    }
    return known;
  };
  const save = () => {
    for (const [id, each] of noted())
      if (Math.abs(now() - (typeof each === "number" ? each : each.at)) > rememberSentFor) noted().delete(id);
    try {
      writePrivate(path, JSON.stringify(Object.fromEntries(noted())));
    } catch (thrown) {
      warn("The notices that were sent could not be saved, so they may be sent again after a restart.", thrown);
    }
  };
  const claimOne = (id: string): Claim[] => {
    const before = noted().get(id);
    if (typeof before === "number") return [];
    if (before && (now() - before.at > triedFor || Math.abs(now() - before.tried) < triedEvery)) return [];
    noted().set(id, { at: before?.at ?? now(), tried: now(), delivered: before?.delivered ?? [] });
    return [{ id, isNew: before === undefined, delivered: before?.delivered ?? [] }];
  };
  return {
    all: () => [...noted().keys()],
    claim(ids) {
      const claims = ids.flatMap(claimOne);
      if (claims.length > 0) save();
      return claims;
    },
    note(deliveries) {
      for (const { id, delivered, isDone } of deliveries) {
        const before = noted().get(id);
        if (typeof before === "object") noted().set(id, isDone ? before.at : { ...before, delivered: [...delivered] });
      }
      if (deliveries.length > 0) save();
    },
  };
}

function readSent(path: string): Map<string, Noted> {
  const read = sentSchema().safeParse(parseJson(readPrivate(path, maxBytes) ?? "{}"));
  return new Map(read.success ? Object.entries(read.data) : []);
}
