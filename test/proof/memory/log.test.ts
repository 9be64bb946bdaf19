/** Rows: what the log holds in memory. */
import { expect, test } from "bun:test";
import { createLogger } from "../../../src/lib/logger";

test("150,000 errors in the log take less than 64 MiB", () => {
  const logger = createLogger(
    () => "info",
    () => {},
  );
  const cause = new Error("x".repeat(1_000));
  for (let turn = 0; turn < 50_000; turn += 1) logger.error(`It failed: ${turn}`, cause);
  const before = process.memoryUsage.rss();
  for (let turn = 0; turn < 150_000; turn += 1) logger.error(`It failed: ${turn}`, cause);
  expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 1024 * 1024);
});
