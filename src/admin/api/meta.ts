/** Facts about the program itself and its history. */
import type { z } from "zod";
import { databaseName } from "../../config/environment";
import type { Awaitable } from "../../lib/awaitable";
import type { App } from "../../parts/app";
import { factsOf } from "../../parts/facts";
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
  const [row_count, oldest_row_at_ms] = await Promise.all([
    orNull(() => app.history.count()),
    orNull(() => app.history.oldest()),
  ]);
  return {
    dbPath: databaseUrl === undefined ? historyFile : databaseName(databaseUrl),
    retentionDays,
    maxRows,
    version: app.version,
    demo: app.demo,
    started_at_ms: Math.round(performance.timeOrigin),
    history: app.history.degraded ? "degraded" : "ok",
    row_count,
    oldest_row_at_ms,
    running_count: app.running.list().length,
    time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    facts: factsOf(app),
  };
}
