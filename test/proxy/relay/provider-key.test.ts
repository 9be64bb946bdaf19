/**
 * Scenario: a provider that repeats its own key: no row or log line has it, whatever part of an answer it stands in, and no
 * answer with a status of an error or a header of it. A stream that has begun passes as it comes. From
 * `fixtures/scenes/secrets.txt`, and here of lists.
 */
import { expect, test } from "bun:test";
import { startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";

testScenes("secrets");

test.each([200, 429])("a provider's key is hidden in the headers of a list, status %i", async (status) => {
  const apiKey = "provider-key/of+the-owner=0123456789";
  const headers = { "x-ratelimit-limit-requests": `9;key=${apiKey}`, "request-id": apiKey, "retry-after": "1" };
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => Response.json({ data: [] }, { status, headers }),
  });
  const own = { type: "anthropic", baseUrl: `${server.url}v1`, apiKey, models: ["x"] };
  await using proxy = await startProxy({ config: { logLevel: "debug", providers: { own } } });
  const response = await fetch(`${proxy.url}/own/v1/models`);
  expect(response.headers.get("x-ratelimit-limit-requests")).toBe("9;key=[secret]");
  const told = [await response.text(), ...[...response.headers].flat(), ...proxy.lines, JSON.stringify(proxy.rows())];
  expect(told.join("\n")).not.toContain("provider-key");
});
