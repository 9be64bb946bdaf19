/** Scenario: `POST /v1/alpha/search`, as Codex' tool `web.run` calls it. */
import { expect, test } from "bun:test";
import { startProxy } from "../support/proxy";
import { testScenes } from "../support/scenes";
import { until } from "../support/until";

testScenes("alpha-search");

test("a client that leaves ends its searches", async () => {
  await using running = await startProxy();
  running.demo.intercept("/responses", () => new Promise<Response>(() => {}));
  const controller = new AbortController();
  const body = { commands: { search_query: [{ q: "red pandas" }] } };
  const answer = running.post("/alpha/search", body, { signal: controller.signal });
  await until(() => running.demo.open === 1, "the upstream is asked");
  controller.abort();
  expect(await answer.catch(({ name }: Error) => name)).toBe("AbortError");
  await until(
    () => running.demo.open === 0 && running.rows().length === 2,
    "the upstream's connection is closed and both rows are written",
  );
  expect(running.rows().map(({ http_status }) => http_status)).toEqual([499, 499]);
});
