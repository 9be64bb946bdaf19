/** Facts about the program itself and its history. */
import type { z } from "zod";
import type { App } from "../../app";
import type { Awaitable } from "../../awaitable";
import { databaseName } from "../../config/environment";
import type { metaSchema } from "./schemas";

export type Meta = z.infer<typeof metaSchema>;

export async function describeInstance(app: App): Promise<Meta> {
  const { retentionDays, maxRows } = app.config.current;
  const { databaseUrl, historyFile } = app.environment;
  const orNull = async <T>(question: () => Awaitable<T | undefined>): Promise<T | null> => {
    try {
      return (await question()) ?? null;
    } catch {
      return null; // the history has logged why
    }
  };
  return {
    dbPath: databaseUrl === undefined ? historyFile : databaseName(databaseUrl),
    retentionDays,
    maxRows,
    version: app.version,
    demo: app.demo,
    started_at_ms: Math.round(performance.timeOrigin),
    history: app.history.degraded ? "degraded" : "ok",
    row_count: await orNull(() => app.history.count()),
    oldest_row_at_ms: await orNull(() => app.history.oldest()),
    running_count: (await app.running.count()).count,
    time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  };
}
