/** Scenario: the config's file is edited by hand while the program runs. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
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

  test("a hand edit applies, and says so", async () => {
    edit({ logLevel: "debug", modelAliases: { fast: "gpt-5-mini" }, auth: { apiKeys: ["k-old-0123456789"] } });
    await until(() => current().logLevel === "debug", "the new level is in use");
    expect(current().modelAliases).toEqual({ fast: "gpt-5-mini" });
    expect(proxy.lines.join("")).toContain("The config file was edited: logLevel, modelAliases.");
  });

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

  test.each([
    ["half a text", '{\n  "logLevel": "debug",\n  "max', "not valid JSON at line 3, column 3"],
    ["nothing", "", "not valid JSON at line 1, column 1"],
    [
      "an unknown key",
      '{\n  "logLevel": "debug",\n  "foo": 1\n}',
      "not accepted at line 3, column 3: foo: not a known key",
    ],
    ["a wrong value", '{"logLevel": "debug", "maxRows": 0}', "not accepted at line 1, column 23: maxRows: "],
  ])("that leaves %s is refused with its place, once, and what held goes on", async (_what, text, said) => {
    edit(text);
    await until(() => proxy.lines.some((line) => line.includes(said)), "it is said in the log");
    expect(current().logLevel).toBe("info");
    edit({ logLevel: "warn" });
    await until(() => current().logLevel === "warn", "the new level is in use");
    expect(proxy.lines.filter((line) => line.includes(" error "))).toHaveLength(1);
    expect(proxy.app.config.fault).toBeUndefined();
  });

  test("a hand edit of the client keys counts from the next start, and says so", async () => {
    const status = (key: string) =>
      fetch(`${proxy.url}/v1/models`, { headers: { "x-api-key": key } }).then((it) => it.status);
    edit({ logLevel: "warn", auth: { apiKeys: ["k-new-0123456789"] } });
    await until(() => current().logLevel === "warn", "the new level is in use");
    expect([await status("k-old-0123456789"), await status("k-new-0123456789")]).toEqual([200, 401]);
    expect(proxy.lines.join("")).toContain("auth.apiKeys in the config file takes effect at the next start.");
    const shown = await (await fetch(`${proxy.url}/api/admin/config`)).json();
    expect(shown).toMatchObject({ waiting: ["auth.apiKeys"], config: { auth: { apiKeys: ["…6789"] } } });
    expect((await proxy.post("/api/admin/config", { maxRows: 9 })).status).toBe(200);
    expect([await status("k-old-0123456789"), await status("k-new-0123456789")]).toEqual([200, 401]);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({
      logLevel: "warn",
      auth: { apiKeys: ["k-new-0123456789"] },
      maxRows: 9,
    });
    proxy.app.logger.warn("k-new-0123456789");
    expect(proxy.lines.at(-1)).toContain("[secret]");
  });

  test("that removes the file changes nothing; the next change writes it anew", async () => {
    rmSync(file);
    await proxy.app.config.reload();
    expect(current().auth.apiKeys).toEqual(["k-old-0123456789"]);
    expect((await proxy.post("/api/admin/config", { maxRows: 9 })).status).toBe(200);
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({
      auth: { apiKeys: ["k-old-0123456789"] },
      maxRows: 9,
    });
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
