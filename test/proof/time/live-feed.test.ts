/** Scenario: a reader of the running requests that reads more slowly than they come. */
import { test } from "bun:test";
import { entry } from "../../support/history-rows";
import { startProxy } from "../../support/proxy";

test("a slow reader is told that it missed something, and little is queued for it", async () => {
  await using proxy = await startProxy();
  const sample = entry();
  const response = await fetch(`${proxy.url}/api/admin/live`);
  const reader = response.body!.getReader();
  await reader.read();
  // What is gathered is sent five times a second, until the connection takes no more.
  for (let round = 0; round < 60; round += 1) {
    for (let count = 0; count < 100; count += 1)
      proxy.app.inFlight.end({ ...sample, request_id: `${round}-${count}`, error_message: "x".repeat(1_000) });
    if (round % 6 === 0) await Bun.sleep(210);
  }
  for (let count = 0; count < 1_000; count += 1) proxy.app.inFlight.end({ ...sample, request_id: `late-${count}` });
  let text = "";
  while (!text.includes('"missed":true')) text += Buffer.from((await reader.read()).value!).toString();
  await reader.cancel();
});
