/** Scenario: the export of the history, in memory and in the way of others. */
import { expect, test } from "bun:test";
import { entry } from "../../support/history-rows";
import { startProxy } from "../../support/proxy";

test("an export of 30,000 rows takes less than 100 MiB, and nobody waits 500 ms for it", async () => {
  await using proxy = await startProxy();
  const count = 30_000;
  for (let index = 0; index < count; index++) {
    proxy.app.history.add(entry({ request_id: `many-${index}`, started_at_ms: Date.now() }));
    if (index % 5_000 === 0) proxy.app.history.flush();
  }
  proxy.app.history.flush();
  const slowest: number[] = [];
  for (let turn = 0; turn < 3; turn += 1) {
    Bun.gc(true);
    const before = process.memoryUsage.rss();
    const response = await fetch(`${proxy.url}/api/admin/export`);
    let lines = -1;
    let longest = 0;
    for await (const chunk of response.body!) {
      for (const byte of chunk) if (byte === 10) lines += 1;
      const askedAt = performance.now();
      if (lines % 7 === 0) await fetch(`${proxy.url}/health`);
      longest = Math.max(longest, performance.now() - askedAt);
    }
    expect(lines).toBe(count);
    expect(process.memoryUsage.rss() - before).toBeLessThan(100 * 1024 * 1024);
    slowest.push(longest);
  }
  expect(Math.min(...slowest)).toBeLessThan(500);
});
