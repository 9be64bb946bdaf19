/**
 * Rows: what a small request costs beside time: each line that it runs is one that a newcomer follows, and each object
 * that it makes has to be collected. The limits are what was reached in November 2026 and a little more.
 */
import { expect, test } from "bun:test";
import { startUpstream } from "../bench/processes";
import { linesOfRequests, nameOf, sumOf } from "../bench/request-lines";
import { objectsOfRequest, totalOf } from "../bench/request-objects";

/** Before its way was made light it was 2,099, 2,316, 2,095, 2,478, 2,293 and 2,524. */
const mostLines = [
  [{ dialect: "chat", stream: false }, 1_940],
  [{ dialect: "chat", stream: true }, 2_190],
  [{ dialect: "responses", stream: false }, 1_910],
  [{ dialect: "responses", stream: true }, 2_340],
  [{ dialect: "messages", stream: false }, 1_870],
  [{ dialect: "messages", stream: true }, 2_190],
] as const;

test("a small request runs few lines of src", async () => {
  const found = await linesOfRequests(mostLines.map(([asked]) => asked));
  for (const [at, [asked, limit]] of mostLines.entries()) expect(sumOf(found[at]!), nameOf(asked)).toBeLessThan(limit);
}, 60_000);

test.each(["chat", "responses", "messages"] as const)(
  "a small request for %s makes few objects",
  async (dialect) => {
    const upstream = await startUpstream();
    try {
      expect(totalOf(await objectsOfRequest(upstream, dialect, false))).toBeLessThan(450);
    } finally {
      await upstream.stop();
    }
  },
  60_000,
);
