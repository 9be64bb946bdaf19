/** Exports traces and metrics, if variables ask for it. */
import type { App } from "../../app";
import { collectorOf, readOtelSettings } from "../../observe/otel-settings";

export interface RunningTelemetry {
  /** What is exported, and where to, for people. */
  summary: string;
  close(): Promise<void>;
}

/** The packages are loaded only here. Undefined if nothing is exported; the log says what could not be. */
export async function openTelemetry(app: App): Promise<RunningTelemetry | undefined> {
  const settings = readOtelSettings(process.env);
  for (const fault of settings.faults) app.logger.warn(fault);
  const exported = Object.keys(settings.exports);
  if (exported.length === 0) return undefined;
  const { startTelemetry } = await import("../../observe/telemetry");
  const { close } = startTelemetry(app, settings, process.env);
  return { summary: `${exported.join(" and ")} to ${collectorOf(process.env)}`, close };
}
