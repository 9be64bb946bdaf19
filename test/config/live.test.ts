/**
 * Scenario: the config while the program runs: edited by hand, changed by several processes, and killed in the middle
 * of it.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exampleModels } from "../../src/proxy/upstream/models/known-models";
import { type Command, run } from "../support/command";
import { proof } from "../support/proof";
import { type RunningProxy, startProxy } from "../support/proxy";
import { quickest } from "../support/quickest";
import { openChance } from "../support/random";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

const chance = openChance("config/live");

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

describe("several processes with one data folder", () => {
  // Two would do for the lock; with four, one that was too late meets a third that was not.
  const count = proof ? 8 : 4;
  const rounds = proof ? 6 : 3;
  let home: string;
  let commands: Command[];
  let urls: string[];
  beforeAll(async () => {
    home = mkdtempSync(join(quickest(), "dragoman-"));
    const start = ["start", "--demo", "--json", "--port", "0"];
    commands = Array.from({ length: count }, () => run(start, { env: { DRAGOMAN_HOME: home } }));
    urls = (await Promise.all(commands.map((command) => command.ready()))).map(({ url }) => url);
  });
  afterAll(async () => {
    for (const command of commands) await command[Symbol.asyncDispose]();
    rmSync(home, { recursive: true, force: true });
  });
  const stored = () => JSON.parse(readFileSync(join(home, "demo/config.json"), "utf8"));

  const post = (url: string, body: object) =>
    fetch(`${url}/api/admin/config`, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    });
  const show = async (url: string) =>
    (await (await fetch(`${url}/api/admin/config`)).json()) as { config: { modelAliases: object }; revision: string };

  test("processes that add to one key at once lose nothing: each gets a conflict if it was too late", async () => {
    let late = 0;
    const add = async (url: string, name: string) => {
      for (;;) {
        const { config, revision } = await show(url);
        const { status } = await post(url, {
          modelAliases: { ...config.modelAliases, [name]: "gpt-5-mini" },
          revision,
        });
        if (status === 200) return;
        expect(status).toBe(409);
        late++;
        await Bun.sleep(chance.next() * 20);
      }
    };
    await Promise.all(
      urls.map(async (url, process) => {
        for (let round = 0; round < rounds; round++) await add(url, `p${process}-${round}`);
      }),
    );
    expect(Object.keys(stored().modelAliases)).toHaveLength(count * rounds);
    expect(late).toBeGreaterThan(0);
    await until(
      () => readdirSync(join(home, "demo")).every((name) => !name.includes(".tmp-")),
      "no temporary file is left",
    );
  });

  test("each of them changing a key of its own loses nothing, without any revision", async () => {
    const own = ["maxRows", "retentionDays", "tokenEstimateMultiplier"];
    for (let round = 1; round <= 4; round++) {
      const answers = await Promise.all(own.map((key, process) => post(urls[process]!, { [key]: round })));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(stored()).toMatchObject({ maxRows: round, retentionDays: round, tokenEstimateMultiplier: round });
    }
    expect(Object.keys(stored().modelAliases)).toHaveLength(count * rounds);
  });

  test("what one process changes holds for all that share the data folder", async () => {
    await post(urls[0]!, { modelAliases: { everywhere: exampleModels.small } });
    const ask = (url: string) =>
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        body: JSON.stringify({ model: "everywhere", messages: [{ role: "user", content: "Hello" }] }),
      }).then(({ status }) => status);
    for (const url of urls) await until(async () => (await ask(url)) === 200, "the alias is known");
  });
});

test(
  "kill -9 in the middle of a change leaves a file that reads every time, with the last change that was answered",
  async () => {
    // What a round can find is decided at its kill; the changes before only say how long one takes. Eight kills, spread over
    // that time, meet the temporary file, the rename and the answer. The proof goes on to a thousand changes.
    const killRounds = proof ? 40 : 8;
    const changesBefore = proof ? 25 : 4;
    const home = temporaryFolder();
    const folder = join(home, "demo");
    const headers = { "content-type": "application/json" };
    let sent = 0;
    let interrupted = 0;
    for (let round = 0; round < killRounds; round++) {
      await using command = run(["start", "--demo", "--json", "--port", "0"], { env: { DRAGOMAN_HOME: home } });
      const { url } = await command.ready();
      let answered = sent;
      const change = async () => {
        const value = ++sent;
        const body = JSON.stringify({ maxRows: value, modelAliases: { filler: "x".repeat(value % 200 || 1) } });
        const answer = await fetch(`${url}/api/admin/config`, { method: "POST", body, headers }).catch(() => undefined);
        if (answer?.status === 200) answered = value;
        return answer !== undefined;
      };
      let tookMs = 0;
      for (let at = 0; at < changesBefore; at++) {
        const startedAt = performance.now();
        expect(await change()).toBe(true);
        tookMs = performance.now() - startedAt;
      }
      setTimeout(() => command.process.kill("SIGKILL"), chance.next() * tookMs);
      await change();
      if (answered < sent) interrupted++;
      await command.exited;
      const { maxRows } = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
      expect(maxRows).toBeWithin(answered, sent + 1);
    }
    expect(interrupted).toBeGreaterThan(0);
    await using last = run(["start", "--demo", "--json", "--port", "0"], { env: { DRAGOMAN_HOME: home } });
    await last.ready();
    expect(readdirSync(folder).filter((name) => name.includes(".tmp-"))).toEqual([]);
  },
  proof ? 300_000 : undefined,
);
