/** One line a day that says that a newer version exists. */
import { z } from "zod";
import type { Environment } from "../../config/environment";
import { readPrivate, writePrivate } from "../../config/files";
import { inHome } from "../../config/home-names";
import type { ConfigStore } from "../../config/store";
import { dayMs } from "../../lib/format";
import { lazy } from "../../lib/lazy";
import type { Logger } from "../../lib/logger";
import { typedName } from "../installation";
import { latestRelease, type ReleaseSource } from "./releases";

const fileSchema = lazy(() => z.object({ checked_at_ms: z.number() }));

/** When releases were looked up last, for all servers of the data folder. */
const fileIn = (home: string) => inHome(home, "updateCheck");

/** Variables by which automatic systems make themselves known. */
const automatic = ["CI", "BUILD_NUMBER", "RUN_ID", "KUBERNETES_SERVICE_HOST"] as const;

/** Whether a person may read the line, and wants to. */
export function mayLook(
  env: Readonly<Record<string, string | undefined>>,
  flags: { isChild: boolean; noNotice: boolean; demo: boolean },
): boolean {
  return !flags.isChild && !flags.noNotice && !flags.demo && !automatic.some((name) => env[name]);
}

interface Parts {
  version: string;
  config: ConfigStore;
  environment: Environment;
  logger: Logger;
  now(): number;
  stopping: AbortSignal;
}

/** Looks now and then every hour, and asks once a day. Never throws; without network it asks again a day later. */
export function followReleases(app: Parts, source: ReleaseSource): void {
  void lookOnce(app, source);
  const timer = setInterval(() => void lookOnce(app, source), dayMs / 24);
  timer.unref();
  app.stopping.addEventListener("abort", () => clearInterval(timer));
}

export async function lookOnce(app: Parts, source: ReleaseSource): Promise<void> {
  const { config, environment, logger, now, version } = app;
  const path = fileIn(environment.home);
  if (!config.current.updateNotice || Math.abs(now() - lastCheck(path)) < dayMs) return;
  try {
    // Before the call: several servers of a data folder ask once.
    writePrivate(path, `${JSON.stringify({ checked_at_ms: now() })}\n`);
    const newest = await latestRelease(source, version);
    if (Bun.semver.order(newest, version) <= 0) return;
    logger.info(`dragoman ${newest} is available; this is ${version}. \`${typedName()} update\` says how to get it.`);
  } catch (thrown) {
    logger.debug("Whether there is a newer version is not known.", thrown);
  }
}

function lastCheck(path: string): number {
  try {
    return fileSchema().parse(JSON.parse(readPrivate(path, 4096) ?? "")).checked_at_ms;
  } catch {
    return Number.NEGATIVE_INFINITY; // never, or the file is not valid
  }
}
