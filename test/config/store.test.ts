import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jsonFault } from "../../src/config/json-fault";
import { openConfig } from "../../src/config/store";
import { ProxyError } from "../../src/errors";

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "dragoman-"));
  path = join(folder, "config.json");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function failure(work: () => unknown): ProxyError {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(ProxyError);
    return error as ProxyError;
  }
  throw new Error("It was accepted.");
}

test("without a file the defaults hold, and none is written", () => {
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

test("of a key written twice the last one counts", () => {
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
  expect(failure(() => openConfig(path)).message).toBe(`${path} is not valid JSON at line ${line}, column ${column}.`);
  expect(readFileSync(path, "utf8")).toBe(text);
});

test.each([
  ['{"foo":1}', "foo: not a known key", "foo"],
  ['{"auth":{"apiKeys":[1]}}', "auth.apiKeys[0]: expected string", "auth.apiKeys[0]"],
  ["[]", "expected object", undefined],
  ["null", "expected object", undefined],
])("a file that says something we do not know is refused by its path: %s", (text, said, param) => {
  writeFileSync(path, text);
  const { message, details } = failure(() => openConfig(path));
  expect(message).toStartWith(`${path} was not accepted: ${said}`);
  expect(details.param).toBe(param);
});

test("a folder or a giant in the file's place is refused at once", () => {
  mkdirSync(path);
  expect(failure(() => openConfig(path)).message).toContain("is not a file");
  rmSync(path, { recursive: true });
  writeFileSync(path, " ".repeat(5_000_000));
  expect(failure(() => openConfig(path)).message).toContain("is larger than");
});

describe("saving", () => {
  test("holds at once, and keeps only what the owner set, as it was spelled", () => {
    const store = openConfig(path);
    store.save({ vendorxApiKey: "sk", auth: { apiKeys: ["new"] } });
    expect(store.current).toMatchObject({ anthropicApiKey: "sk", auth: { apiKeys: ["new"] }, logLevel: "info" });
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ vendorxApiKey: "sk", auth: { apiKeys: ["new"] } });
    if (process.platform !== "win32") expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(openConfig(path).current).toEqual(store.current);
  });

  test("a wrong value changes nothing, on disk or here", () => {
    writeFileSync(path, '{"logLevel":"warn"}');
    const store = openConfig(path);
    expect(failure(() => store.save({ logLevel: "debug", foo: 1 })).status).toBe(400);
    expect([store.current.logLevel, store.stored, readFileSync(path, "utf8")]).toEqual([
      "warn",
      { logLevel: "warn" },
      '{"logLevel":"warn"}',
    ]);
  });

  test("onto a disk that takes nothing is said, and what held goes on", () => {
    const store = openConfig(path);
    mkdirSync(path);
    expect(failure(() => store.save({ logLevel: "debug" }))).toMatchObject({
      status: 500,
      details: { code: "config_write_failed" },
    });
    expect(store.current.logLevel).toBe("info");
    expect(readdirSync(folder)).toEqual(["config.json"]);
  });
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
    const { line, column } = jsonFault(broken);
    expect(line).toBe(1);
    // Inside a text an @ is no fault, and inside any other token the token's start is the place.
    if (valid) expect(column).toBe(broken.length + 1);
    else expect(broken.slice(column - 1, end + 1)).toMatch(/^("[^"]*|[\w.-]*)@$/);
  }
  for (const text of ["{}{}", "[1 2]", '{"a" 1}', "[,]", "[1,]", "01", "1.", "+1", "nul", "truex", '"\t"', "{]"])
    expect(jsonFault(text).column).toBeLessThanOrEqual(text.length);
});
