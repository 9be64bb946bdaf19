/** Scenario: the process and its load: many at once, killed, stopped, starved of files. */

import { Database } from "bun:sqlite";
import { describe, expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { failureCount } from "../../../src/cli/start/start";
import { createLogger } from "../../../src/lib/logger";
import { askChat, run } from "../../support/command";
import { entry } from "../../support/history-rows";
import { startProxy } from "../../support/proxy";
import { until } from "../../support/until";

const demo = ["start", "--demo", "--json", "--port", "0"];

function rowsOnDisk(home: string): number {
  using database = new Database(join(home, "demo", "admin.sqlite"), { readonly: true });
  return database.query<{ rows: number }, []>("SELECT count(*) AS rows FROM requests").get()!.rows;
}

test("killed under load and started again: sound, quick, and no finished row is lost", async () => {
  let home = "";
  let known = 0;
  const starts: number[] = [];
  await using first = run(demo);
  home = join(first.home, "data");
  for (let round = 0; round < 3; round++) {
    const startedAt = performance.now();
    const command = round === 0 ? first : run(demo, { env: { DRAGOMAN_HOME: home } });
    try {
      const { url } = await command.ready();
      if (round > 0) starts.push(performance.now() - startedAt);
      // A lock that the killed one left would hold this up.
      const configured = await fetch(`${url}/api/admin/config`, {
        method: "POST",
        body: JSON.stringify({ maxRows: 100_000 + round }),
        headers: { "content-type": "application/json" },
      });
      expect(configured.status).toBe(200);
      let served = 0;
      const senders = Array.from({ length: 20 }, async () => {
        for (;;) {
          try {
            const response = await askChat(url);
            await response.arrayBuffer();
            served++;
          } catch {
            return;
          }
        }
      });
      await Bun.sleep(600);
      // What is finished is soon on disk, while others go on.
      const finished = served;
      await until(() => rowsOnDisk(home) - known >= finished, "the finished rows are on the disk");
      command.process.kill("SIGKILL");
      await Promise.all(senders);
      await command.process.exited;
      const rows = rowsOnDisk(home);
      const database = new Database(join(home, "demo", "admin.sqlite"));
      expect(database.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
      database.close();
      expect(rows - known).toBeGreaterThanOrEqual(finished);
      known = rows;
    } finally {
      if (round > 0) await command[Symbol.asyncDispose]();
    }
  }
  // A start that finds no lock in its way takes a fraction of that.
  expect(Math.min(...starts)).toBeLessThan(5000);
});

describe("unexpected errors", () => {
  test("in a request is 500 in words, redacted, and the next one is served", async () => {
    await using proxy = await startProxy({ demo: { generation: "C" } });
    const models = spyOn(proxy.app.catalogue, "models").mockImplementationOnce(() => {
      throw Object.assign(new TypeError("canary of the inside"), { request: "canary" });
    });
    const response = await askChat(proxy.url);
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("canary");
    models.mockRestore();
    expect((await askChat(proxy.url)).status).toBe(200);
  });

  test("outside of one is survived ten times a minute, and then the process ends to be started anew", () => {
    const lines: string[] = [];
    let ended = 0;
    const failed = failureCount(
      createLogger(
        () => "info",
        (line) => void lines.push(line),
      ),
      () => void ended++,
    );
    for (let turn = 0; turn < 10; turn++) failed(new Error("no"));
    expect(ended).toBe(0);
    failed(new Error("no"));
    expect(ended).toBe(1);
    expect(lines.at(-1)).toContain("start it again");
  });
});

test.each(["Pacific/Kiritimati", "America/St_Johns", "right/UTC"])(
  "in the zone %s, among people who write it otherwise, moments are the same milliseconds",
  async (zone) => {
    await using command = run(demo, { env: { TZ: zone, LANG: "ar_EG.UTF-8", LC_ALL: "ar_EG.UTF-8" } });
    const { url } = await command.ready();
    const before = Date.now();
    for (let turn = 0; turn < 3; turn++) await (await askChat(url)).text();
    const { items } = (await (
      await fetch(`${url}/api/admin/requests?from_ms=${before}&to_ms=${Date.now() + 1}`)
    ).json()) as {
      items: { id: number; started_at_ms: number }[];
    };
    // Newest first; the demo made up what came before.
    expect(items.map(({ id }) => id - items[2]!.id)).toEqual([2, 1, 0]);
    for (const { started_at_ms } of items) expect(started_at_ms).toBeWithin(before, Date.now() + 1);
    expect(command.stderr()).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]{12}Z info/m);
  },
);

test("years after 2038, and a second that is counted twice, change nothing", async () => {
  let now = Date.parse("2038-01-19T03:14:06Z");
  await using proxy = await startProxy({ clock: { now: () => now }, demo: { generation: "C" } });
  const moments: number[] = [];
  for (let turn = 0; turn < 4; turn++, now += turn === 2 ? -1000 : 1000) {
    expect((await askChat(proxy.url)).status).toBe(200);
    proxy.app.history.add(entry({ request_id: `late-${turn}`, started_at_ms: now }));
    moments.push(now);
  }
  proxy.rows();
  const from = Date.parse("2038-01-01T00:00:00Z");
  const { items } = (await (await fetch(`${proxy.url}/api/admin/requests?from_ms=${from}`)).json()) as {
    items: { request_id: string; started_at_ms: number }[];
  };
  const added = items.filter(({ request_id }) => request_id.startsWith("late-"));
  expect(added.map(({ request_id }) => request_id)).toEqual(["late-3", "late-2", "late-1", "late-0"]);
  // Each was added after a request of the same moment.
  const twice = moments.reverse().flatMap((moment) => [moment, moment]);
  expect(items.map(({ started_at_ms }) => started_at_ms)).toEqual(twice);
});

test("the error for a port in use has its number, its owner, and what to do", async () => {
  using holder = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  await using command = run(["start", "--demo", "--json", "--port", String(holder.port)]);
  expect(await command.exited).toBe(1);
  expect(JSON.parse(command.stdout())).toMatchObject({ event: "failed", code: "port_in_use" });
  expect(command.stderr()).toContain(`Port ${holder.port} is in use`);
  expect(command.stderr()).toContain("--port");
  if (process.platform === "linux") expect(command.stderr()).toContain(String(process.pid));
  expect(command.stderr()).not.toMatch(/\n\s+at /);
});
