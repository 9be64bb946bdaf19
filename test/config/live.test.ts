/** Scenario: the config's file is edited by hand while the program runs. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync, renameSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type RunningProxy, startProxy } from "../support/proxy";
import { until } from "../support/until";

describe("a hand edit", () => {
  let proxy: RunningProxy;
  let file: string;
  beforeEach(async () => {
    proxy = await startProxy({ config: { logLevel: "info", auth: { apiKeys: ["k-old-0123456789"] } } });
    file = join(proxy.home, "config.json");
  });
  afterEach(async () => await proxy[Symbol.asyncDispose]());
  const current = () => proxy.app.config.current;
  const edit = (text: string | object) => writeFileSync(file, typeof text === "string" ? text : JSON.stringify(text));

  test("a hand edit by an editor that writes another file and renames it, or that shortens and fills it, applies too", async () => {
    writeFileSync(`${file}.new`, '{"maxRows": 5}');
    renameSync(`${file}.new`, file);
    await until(() => current().maxRows === 5, "the new cap is in use");
    truncateSync(file);
    await Bun.sleep(100);
    writeFileSync(file, '{"maxRows": 6}');
    await until(() => current().maxRows === 6, "the last cap is in use");
    expect(proxy.lines.join("")).not.toContain("not valid JSON");
  });

  test("a hand edit in the same moment as a change is not lost", async () => {
    for (let time = 1; time <= 20; time++) {
      const changing = proxy.post("/api/admin/config", { maxRows: time });
      const stored = JSON.parse(readFileSync(file, "utf8"));
      edit({ ...stored, retentionDays: time });
      expect((await changing).status).toBe(200);
      await Bun.sleep(1);
      expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ maxRows: time, retentionDays: time });
    }
  });
});
