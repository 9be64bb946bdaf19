/** Which notices were sent, so that each is sent once in its period, also after a restart. */
import { z } from "zod";
import type { Awaitable } from "../awaitable";
import { readPrivate, writePrivate } from "../config/files";
import { dayMs } from "../format";
import { parseJson } from "../json";
import { lazy } from "../lazy";

export interface SentNotices {
  /** Notes these ids. @returns Those that were not noted before, by whatever server. */
  claim(ids: readonly string[]): Awaitable<readonly string[]>;
  all(): Awaitable<readonly string[]>;
}

/** Milliseconds that an id is remembered: longer than any period. */
export const rememberSentFor = 40 * dayMs;
const maxBytes = 1024 * 1024;

const sentSchema = lazy(() => z.record(z.string(), z.number()));

/** In a file. A missing or damaged one: a notice may be sent twice. */
export function openSentNotices(
  path: string,
  { now, warn }: { now(): number; warn(sentence: string, cause: unknown): void },
): SentNotices {
  let known: Map<string, number> | undefined;
  const noted = () => {
    known ??= readSent(path);
    return known;
  };
  return {
    all: () => [...noted().keys()],
    claim(ids) {
      const sent = noted();
      const fresh = ids.filter((id) => !sent.has(id));
      if (fresh.length === 0) return [];
      for (const [id, at] of sent) if (Math.abs(now() - at) > rememberSentFor) sent.delete(id);
      for (const id of fresh) sent.set(id, now());
      try {
        writePrivate(path, JSON.stringify(Object.fromEntries(sent)));
      } catch (thrown) {
        warn("The notices that were sent could not be saved, so they may be sent again after a restart.", thrown);
      }
      return fresh;
    },
  };
}

function readSent(path: string): Map<string, number> {
  const read = sentSchema().safeParse(parseJson(readPrivate(path, maxBytes) ?? "{}"));
  return new Map(read.success ? Object.entries(read.data) : []);
}
