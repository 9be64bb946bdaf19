/**
 * Rows: client keys that somebody writes into the config file hold from the next start; those that a call sets hold at
 * once.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ConfigStore, openConfig } from "../../src/config/store";
import { temporaryFolder } from "../support/temporary-folder";

const [first, second, third] = ["k-first-0123456789", "k-second-0123456789", "k-third-0123456789"];
const keys = (...apiKeys: (string | undefined)[]) => ({ auth: { apiKeys } });

let home: string;
let path: string;
let one: ConfigStore;
/** Of another process on the same folder. */
let other: ConfigStore;
/** What the other one was told. */
let told: [string[], boolean][];
beforeEach(() => {
  home = temporaryFolder();
  path = join(home, "config.json");
  writeFileSync(path, JSON.stringify(keys(first)));
  [one, other] = [openConfig(path), openConfig(path)];
  told = [];
  other.follow({ changed: (members, edited) => void told.push([members, edited]), refused() {}, noted() {} });
});
afterEach(() => {
  for (const store of [one, other]) store.close();
});

const edit = (config: object) => writeFileSync(path, JSON.stringify(config));
const heldBy = (store: ConfigStore) => store.current.auth.apiKeys;

test("a key that a call sets holds at once, in another process too, whatever is edited by hand meanwhile", async () => {
  await one.change(keys(second));
  expect([heldBy(one), one.waiting]).toEqual([[second!], []]);
  other.reload();
  expect([heldBy(other), other.waiting, told]).toEqual([[second!], [], [[["auth"], false]]]);
  await one.change(keys(third));
  edit({ ...keys(third), maxRows: 7 });
  other.reload();
  expect([heldBy(other), other.current.maxRows]).toEqual([[third!], 7]);
  expect(readdirSync(home).sort()).toEqual(["config.json", "config.json.keys", "config.json.lock"]);
});

test("one that somebody writes into the file holds from the next start, whatever else a call changes meanwhile", async () => {
  edit(keys(second));
  one.reload();
  expect([heldBy(one), one.waiting]).toEqual([[first!], ["auth.apiKeys"]]);
  await one.change({ maxRows: 5 });
  expect([heldBy(one), one.waiting, one.current.maxRows]).toEqual([[first!], ["auth.apiKeys"], 5]);
  expect(heldBy(openConfig(path))).toEqual([second!]);
});

test("a call that sets what the file has already makes it hold", async () => {
  edit(keys(second));
  one.reload();
  other.reload();
  expect(other.waiting).toEqual(["auth.apiKeys"]);
  await one.change(keys(second));
  expect([heldBy(one), one.waiting]).toEqual([[second!], []]);
  other.reload();
  expect([heldBy(other), other.waiting]).toEqual([[second!], []]);
});

test("a file that is as it was before waits for nothing", async () => {
  edit(keys(second));
  one.reload();
  edit(keys(first));
  one.reload();
  expect([heldBy(one), one.waiting]).toEqual([[first!], []]);
  await one.change(keys(third));
  expect(heldBy(one)).toEqual([third!]);
});

test("what a call set before the last start waits too, where somebody writes it into the file again", async () => {
  await one.change(keys(second));
  edit(keys(first));
  const later = openConfig(path);
  edit(keys(second));
  later.reload();
  expect([heldBy(later), later.waiting]).toEqual([[first!], ["auth.apiKeys"]]);
  await one.change(keys(second));
  later.reload();
  expect([heldBy(later), later.waiting]).toEqual([[second!], []]);
});
