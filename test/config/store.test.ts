/** Scenario: the config's file: read, changed while others change it, and kept where it does not read. */
import { beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findJsonError, positionOf } from "../../src/config/json-position";
import { patched } from "../../src/config/patch";
import { parseConfig } from "../../src/config/schema";
import { masked } from "../../src/config/secrets";
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

test("a file written on Windows, with a byte order mark and CRLF, is read", () => {
  writeFileSync(path, '\ufeff{\r\n  "logLevel": "debug"\r\n}\r\n');
  expect(openConfig(path)).toMatchObject({
    current: { logLevel: "debug", retentionDays: 14 },
    stored: { logLevel: "debug" },
  });
});

test("the last value counts of a config key written twice", () => {
  writeFileSync(path, '{"logLevel":"debug","logLevel":"error"}');
  expect(openConfig(path).current.logLevel).toBe("error");
});

test.each([
  ["{", 1, 2],
  ["", 1, 1],
  ['{\n  "logLevel": "debug",\n}\n', 3, 1],
  ['{\r\n  "logLevel": debug\r\n}', 2, 15],
  ["{\n  'logLevel': 1 }", 2, 3],
])("a broken file is named with line and column, and stays as it is: %j", (text, line, column) => {
  writeFileSync(path, text);
  expect(refusalOf(() => openConfig(path)).message).toBe(
    `${path} is not valid JSON at line ${line}, column ${column}.`,
  );
  expect(readFileSync(path, "utf8")).toBe(text);
});

test.each([
  ['{"foo":1}', " at line 1, column 2: foo: not a known key", "foo"],
  ['{"auth":{"apiKeys":[1]}}', " at line 1, column 21: auth.apiKeys[0]: expected string", "auth.apiKeys[0]"],
  ["[]", ": expected object", undefined],
  ["null", ": expected object", undefined],
])("a file that says something we do not know is refused by its path: %s", (text, said, param) => {
  writeFileSync(path, text);
  const { message, details } = refusalOf(() => openConfig(path));
  expect(message).toStartWith(`${path} was not accepted${said}`);
  expect(details.param).toBe(param);
});

test("a folder or a giant in the file's place is refused at once", () => {
  mkdirSync(path);
  expect(refusalOf(() => openConfig(path)).message).toContain("is not a file");
  rmSync(path, { recursive: true });
  writeFileSync(path, " ".repeat(5_000_000));
  expect(refusalOf(() => openConfig(path)).message).toContain("is larger than");
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

describe("what is put into what is stored", () => {
  const stored = {
    logLevel: "warn",
    vendorxApiKey: "sk-ant-0123456789",
    auth: { apiKeys: ["k-one-0123456789", "k-two-0123456789", "short"] },
    providers: { a: { type: "vendorx", baseUrl: "https://a.example/x/", apiKey: "k-prov-0123456789" } },
  };

  test("what holds already stays as it was written, defaults stay unwritten", () => {
    const shown = masked(parseConfig(stored));
    expect(shown).toMatchObject({
      anthropicApiKey: "…6789",
      auth: { apiKeys: ["…6789", "…6789", "…"] },
      providers: { a: { type: "anthropic", baseUrl: "https://a.example/x", apiKey: "…6789" } },
    });
    expect(patched(stored, shown)).toEqual(stored);
    expect(patched({}, masked(parseConfig({})))).toEqual({});
  });

  test("null takes a key back to its default, in either spelling; another value takes the place of both", () => {
    expect(patched(stored, { logLevel: null, anthropicApiKey: null })).toEqual({
      auth: stored.auth,
      providers: stored.providers,
    });
    expect(patched({ vendorxApiKey: "old" }, { anthropicApiKey: "new" })).toEqual({ anthropicApiKey: "new" });
    expect(refusalOf(() => patched({}, { foo: null })).details.param).toBe("foo");
    expect(refusalOf(() => patched({}, JSON.parse('{"__proto__":null}'))).details.param).toBe("__proto__");
  });

  test("masks stand for their secrets in their order, or are refused", () => {
    const [one, two] = stored.auth.apiKeys as [string, string];
    const keys = (...apiKeys: string[]) => patched(stored, { auth: { apiKeys } }).auth;
    expect(keys("…6789", "…6789", "k-new")).toEqual({ apiKeys: [one, two, "k-new"] });
    expect(keys("…", "k-new")).toEqual({ apiKeys: ["short", "k-new"] });
    for (const wrong of [["…6789"], ["k-new", "…0000"], ["…", "…"], ["…6789", "…6789", "…6789"]])
      expect(refusalOf(() => keys(...wrong)).details.param).toMatch(/^auth\.apiKeys\[\d\]$/);
  });

  test("a provider keeps its key while it stays where it is", () => {
    const to = (provider: object) =>
      patched(stored, { providers: { a: { type: "anthropic", ...provider } } }).providers;
    expect(to({ baseUrl: "https://a.example/y" })).toMatchObject({ a: { apiKey: "k-prov-0123456789" } });
    for (const key of [{}, { apiKey: "…6789" }])
      for (const baseUrl of ["https://b.example/x", "https://a.example:8443/x", "http://127.0.0.1:1"])
        expect(refusalOf(() => to({ baseUrl, ...key })).details.param).toBe("providers.a.apiKey");
    expect(to({ baseUrl: "https://b.example", apiKey: "k-new" })).toMatchObject({ a: { apiKey: "k-new" } });
    expect(patched(stored, { providers: {} }).providers).toEqual({});
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
