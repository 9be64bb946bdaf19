/** Exports traces, if variables ask for it. */

import { readOtelSettings } from "../../books/observe/otel-settings";
import type { App } from "../../parts/app";

export interface RunningTraces {
  /** Where they go, for people. */
  collector: string;
  close(): Promise<void>;
}

/** The packages are loaded only here. Undefined if nothing is exported; the log says what could not be. */
export async function openTraces(app: App): Promise<RunningTraces | undefined> {
  const { traces, fault } = readOtelSettings(process.env);
  if (fault !== undefined) app.logger.warn(fault);
  if (!traces) return undefined;
  return (await import("../../books/observe/trace-export")).startTraces(app, process.env);
}
