/** Scenario: the config's file: read, changed while others change it, and kept where it does not read. */

import { Database } from "bun:sqlite";
import { beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findJsonError, positionOf } from "../../src/config/json-position";
import { withLock } from "../../src/config/lock";
import { openConfig } from "../../src/config/store";
import { formatPath } from "../../src/lib/schema-errors";
import { failureOf, refusalOf } from "../support/refusal";
import { temporaryFolder } from "../support/temporary-folder";

let folder: string;
let path: string;

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder, "config.json");
});

test("the defaults hold without a config file, and none is written", () => {
  expect(openConfig(path).current.logLevel).toBe("info");
  expect(existsSync(path)).toBe(false);
});

test("a folder or a giant in the file's place is refused at once", () => {
  mkdirSync(path);
  expect(refusalOf(() => openConfig(path)).message).toContain("is not a file");
  rmSync(path, { recursive: true });
  writeFileSync(path, "{}".padStart(4 * 1024 ** 2 + 1));
  expect(refusalOf(() => openConfig(path)).message).toContain("is larger than 4194304 bytes");
  writeFileSync(path, "{}".padStart(4 * 1024 ** 2));
  expect(openConfig(path).current.logLevel).toBe("info");
});

describe("a change", () => {
  test("a change of the config holds at once, and keeps only what the owner set, as it was spelled", async () => {
    const store = openConfig(path);
    await store.change({ vendorxApiKey: "sk", auth: { apiKeys: ["new"] } });
    expect(store.current).toMatchObject({ anthropicApiKey: "sk", auth: { apiKeys: ["new"] }, logLevel: "info" });
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ vendorxApiKey: "sk", auth: { apiKeys: ["new"] } });
    if (process.platform !== "win32")
      for (const file of readdirSync(folder)) expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);
    expect(openConfig(path).current).toEqual(store.current);
  });

  test("a change of the config in a read-only folder is an error, and the previous config stays in effect", async () => {
    const store = openConfig(path);
    mkdirSync(`${path}.lock`);
    expect(await failureOf(store.change({ logLevel: "debug" }))).toMatchObject({
      status: 500,
      details: { code: "config_write_failed" },
    });
    expect(store.current.logLevel).toBe("info");
  });

  test("a change of the config in a folder that was removed makes it anew, with what held", async () => {
    writeFileSync(path, '{"logLevel":"warn"}');
    const store = openConfig(path);
    rmSync(folder, { recursive: true });
    await store.change({ maxRows: 7 });
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ logLevel: "warn", maxRows: 7 });
  });

  test("a key that a call sets holds at once, in another process too, whatever is edited by hand meanwhile", async () => {
    const [one, other] = [openConfig(path), openConfig(path)];
    const told: [string[], boolean][] = [];
    other.follow({ changed: (members, edited) => void told.push([members, edited]), refused() {}, noted() {} });
    const keys = (key: string) => ({ auth: { apiKeys: [key] } });
    await one.change(keys("k-first-0123456789"));
    other.reload();
    expect(told).toEqual([[["auth"], false]]);
    await one.change(keys("k-second-0123456789"));
    writeFileSync(path, JSON.stringify({ ...keys("k-second-0123456789"), maxRows: 7 }));
    other.reload();
    expect(other.current).toMatchObject({ ...keys("k-second-0123456789"), maxRows: 7 });
    expect(readdirSync(folder).sort()).toEqual(["config.json", "config.json.keys", "config.json.lock"]);
    other.close();
  });

  test("a change of the config does not wait for a process that died with the lock", async () => {
    const holder = Bun.spawn([
      process.execPath,
      "-e",
      `import { withLock } from ${JSON.stringify(join(import.meta.dir, "../../src/config/lock.ts"))};
       await withLock(${JSON.stringify(`${path}.lock`)}, () => { console.log("held"); Bun.sleepSync(60_000); });`,
    ]);
    await holder.stdout.getReader().read();
    const store = openConfig(path);
    const changed = store.change({ maxRows: 7 });
    await Bun.sleep(50);
    expect(store.current.maxRows).toBe(200_000);
    holder.kill("SIGKILL");
    await changed;
    expect(store.current.maxRows).toBe(7);
  });
});

test("a value that is not accepted is named with its place in the file", () => {
  const text =
    '{\n  "auth": { "apiKeys": ["a", "b",\n     7] },\n  "providers": { "x": { "n": [[1, 2], []] } },\n  "foo": 2,\n  "foo": 3\n}';
  const place = (of: string) => Object.values(positionOf(text, of, formatPath));
  expect(place("auth.apiKeys[2]")).toEqual([3, 6]);
  expect(place("auth.apiKeys[0]")).toEqual([2, 25]);
  expect(place("providers.x.n[0][1]")).toEqual([4, 35]);
  expect(place("providers.x.apiKey")).toEqual([4, 18]);
  expect(place("foo")).toEqual([6, 3]);
  expect(place("logLevel")).toEqual([1, 1]);
  writeFileSync(path, text.replace("7", '"c"').replace('"n": [[1, 2], []]', '"type": "anthropic"'));
  expect(refusalOf(() => openConfig(path)).message).toContain(
    "was not accepted at line 4, column 18: providers.x.baseUrl",
  );
});

test("the place of a fault is found wherever JSON can break", () => {
  const good = '{"a": [1, -2.5e3, true, null, "x\\u00e9\\n", {}, []], "b": {"c": {"d": []}}, "e": ""}';
  for (let end = 0; end < good.length; end += 1) {
    const broken = `${good.slice(0, end)}@${good.slice(end)}`;
    let valid = true;
    try {
      JSON.parse(broken);
    } catch {
      valid = false;
    }
    const { line, column } = findJsonError(broken);
    expect(line).toBe(1);
    // Inside a text an @ is no fault, and inside any other token the token's start is the place.
    if (valid) expect(column).toBe(broken.length + 1);
    else expect(broken.slice(column - 1, end + 1)).toMatch(/^("[^"]*|[\w.-]*)@$/);
  }
  for (const text of ["{}{}", "[1 2]", '{"a" 1}', "[,]", "[1,]", "01", "1.", "+1", "nul", "truex", '"\t"', "{]"])
    expect(findJsonError(text).column).toBeLessThanOrEqual(text.length);
});

test("a lock that another process holds is waited for, in the end in vain; a file that is none is an error", async () => {
  const path = join(temporaryFolder(), "lock");
  const other = new Database(path);
  other.run("BEGIN IMMEDIATE");
  const failure = await failureOf(withLock(path, expect.unreachable, 50));
  expect([failure.status, failure.details.code]).toEqual([409, "config_conflict"]);
  const waiting = withLock(path, () => "done", 5_000);
  other.close();
  expect(await waiting).toBe("done");
  writeFileSync(path, "no database ".repeat(100));
  await expect(withLock(path, expect.unreachable, 50)).rejects.toThrow("not a database");
});
