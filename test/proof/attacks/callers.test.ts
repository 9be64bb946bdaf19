/** Scenario: many callers who get nothing: they slow nobody down, and leave no row and no memory. */
import { expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { run } from "../../support/command";
import { startProxy } from "../../support/proxy";
import { memoryOf } from "../../support/sandbox";

const key = "k-alpha-0123456789";

test("a thousand idle connections slow nobody down", async () => {
  await using open = await startProxy();
  const { port } = new URL(open.url);
  const sockets = await Promise.all(
    Array.from(
      { length: 1000 },
      () =>
        new Promise<Socket>((resolve, reject) => {
          const socket = connect(Number(port), "127.0.0.1", () => resolve(socket));
          socket.on("error", reject);
        }),
    ),
  );
  await (await fetch(`${open.url}/health`)).text();
  const waits: number[] = [];
  for (let turn = 0; turn < 5; turn++) {
    const startedAt = performance.now();
    expect((await fetch(`${open.url}/v1/models`)).status).toBe(200);
    waits.push(performance.now() - startedAt);
  }
  expect(Math.min(...waits), "ms, the best of five").toBeLessThan(100);
  for (const socket of sockets) socket.destroy();
});

test("5,000 wrong keys leave no row and no memory, and the right one is served", async () => {
  await using command = run(["start", "--demo", "--json", "--port", "0"], { env: { DRAGOMAN_API_KEY: key } });
  const { url, pid } = await command.ready();
  const guess = async (with_: string) => {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "x-api-key": with_, "content-type": "application/json" },
      body: JSON.stringify({ model: exampleModels.flash, messages: [{ role: "user", content: "Hello" }] }),
    });
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
