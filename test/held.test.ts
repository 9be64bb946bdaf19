/**
 * Nothing that a stranger sends holds the thread that serves everybody. What is measured is the thread's own work, so that a
 * busy machine does not count; 50 ms is the limit for 1 MB.
 */
import { describe, expect, test } from "bun:test";
import { createLogger } from "../src/logger";
import { hostileTexts, mostHeldMs, workOf } from "./support/held";

const mebibyte = 1024 * 1024;
const texts = Object.entries(hostileTexts).map(([name, make]) => [name, make(mebibyte)] as const);

/** Each place that reads a stranger's text at once, and how. */
const places: Record<string, (text: string) => unknown> = {
  "a line of the log": (text) => quiet.info(text),
  "an error without secrets": (text) => quiet.withoutSecrets(text),
};

const quiet = createLogger(
  () => "info",
  () => {},
);

describe.each(Object.entries(places))("%s", (_place, read) => {
  test.each(texts)("is made at once of 1 MB of %s", (_name, text) => {
    expect(workOf(() => read(text))).toBeLessThan(mostHeldMs);
  });
});
