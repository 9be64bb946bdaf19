/** What a small request costs to read: each line that it runs is one that a newcomer follows, and one that takes time. */
import { expect, test } from "bun:test";
import { linesOfRequests, sumOf } from "../bench/request-lines";

/** As many as it was before the way of a small request was made light (November 2026). */
const most = [
  [{ dialect: "chat", stream: false }, 2_099],
  [{ dialect: "chat", stream: true }, 2_316],
  [{ dialect: "responses", stream: false }, 2_095],
  [{ dialect: "responses", stream: true }, 2_478],
  [{ dialect: "messages", stream: false }, 2_293],
  [{ dialect: "messages", stream: true }, 2_524],
] as const;

test("a small request runs no more lines of src than before its way was made light", async () => {
  const found = await linesOfRequests(most.map(([asked]) => asked));
  for (const [at, [, limit]] of most.entries()) expect(sumOf(found[at]!)).toBeLessThan(limit);
}, 60_000);
