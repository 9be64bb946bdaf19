import { onTestFinished } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { quickest } from "./quickest";

/** A new folder that is gone after the test that asks for it, or whose `beforeEach` does; outside of both, give `afterAll`. */
export function temporaryFolder(whenDone: (remove: () => void) => void = onTestFinished): string {
  const folder = mkdtempSync(join(quickest(), "dragoman-"));
  whenDone(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
