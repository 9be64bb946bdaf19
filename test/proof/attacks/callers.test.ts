/** Scenario: many callers who get nothing: they leave no row and no memory. */
import { expect, test } from "bun:test";
import { askChat, run } from "../../support/command";
import { memoryOf } from "../../support/sandbox";

const key = "k-alpha-0123456789";

test("5,000 wrong keys leave no row and no memory, and the right one is served", async () => {
  await using command = run(["start", "--demo", "--json", "--port", "0"], { env: { DRAGOMAN_API_KEY: key } });
  const { url, pid } = await command.ready();
  const guess = async (with_: string) => {
    const response = await askChat(url, "Hello", { headers: { "x-api-key": with_ } });
    await response.arrayBuffer();
    return response.status;
  };
  const round = async (name: string) => {
    const statuses = new Set<number>();
    for (let turn = 0; turn < 50; turn++)
      for (const status of await Promise.all(Array.from({ length: 100 }, (_, at) => guess(`${name}-${turn}-${at}`))))
        statuses.add(status);
    return [...statuses];
  };
  const begun = Date.now();
  expect(await guess(key)).toBe(200);
  expect(await round("warm")).toEqual([401]);
  const before = memoryOf(pid);
  expect(await round("wrong")).toEqual([401]);
  expect(memoryOf(pid) - before).toBeLessThan(10);
  expect(await guess(key)).toBe(200);
  const { items } = (await (await fetch(`${url}/api/admin/requests?from_ms=${begun}`)).json()) as { items: object[] };
  expect(items).toHaveLength(2);
  expect(command.stderr()).not.toContain("wrong-");
});
