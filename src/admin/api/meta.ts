/** What the owner may know of the program itself and its history. */
import type { App } from "../../app";

export interface Meta {
  dbPath: string;
  retentionDays: number;
  maxRows: number;
  version: string;
  demo: boolean;
  /** When the process started. */
  started_at_ms: number;
  /** `degraded`: rows wait for the disk, or none are kept. */
  history: "ok" | "degraded";
  /** Null when the history cannot be read. */
  row_count: number | null;
  oldest_row_at_ms: number | null;
  /** Exchanges that run now. */
  running_count: number;
  /** The zone of the hours and days of statistics. */
  time_zone: string;
}

export function describeInstance(app: App): Meta {
  const { retentionDays, maxRows } = app.config.current;
  const known = <T>(question: () => T | undefined): T | null => {
    try {
      return question() ?? null;
    } catch {
      return null; // the history has said so in the log
    }
  };
  return {
    dbPath: app.environment.historyFile,
    retentionDays,
    maxRows,
    version: app.version,
    demo: app.demo,
    started_at_ms: Math.round(performance.timeOrigin),
    history: app.history.degraded ? "degraded" : "ok",
    row_count: known(() => app.history.count()),
    oldest_row_at_ms: known(() => app.history.oldest()),
    running_count: app.inFlight.count,
    time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  };
}
