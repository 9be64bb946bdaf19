/** Scenario: Ctrl-C in a client before the first byte: the upstream is let go, and the log has one line that says so. */
import { expect, test } from "bun:test";
import { startProxy } from "../support/proxy";
import { until } from "../support/until";

test("a client that leaves while the model is silent is no failure of ours", async () => {
  await using proxy = await startProxy();
  const controller = new AbortController();
  const answer = proxy.post(
    "/v1/messages?beta=true",
    {
      model: "claude-sonnet-4.6",
      max_tokens: 32_000,
      stream: true,
      messages: [{ role: "user", content: "[demo: slow-headers 20] Hello" }],
    },
    { signal: controller.signal },
  );
  await until(() => proxy.demo.open === 1, "the upstream is asked");
  controller.abort();
  expect(await answer.catch((error: Error) => error.name)).toBe("AbortError");
  await until(() => proxy.rows().length === 1, "the row is written");
  const [row] = proxy.rows();
  expect(row).toMatchObject({ http_status: 499, error_type: "client_closed" });
  expect(JSON.parse(row!.attempts)).toMatchObject([{ error: "client_closed" }]);
  await until(() => proxy.lines.some((line) => line.includes("hung up")), "it is in the log");
  expect(proxy.lines.filter((line) => /error/.test(line))).toEqual([]);
  expect(proxy.lines.filter((line) => /hung up/.test(line))).toHaveLength(1);
});
