/** Keys that one process's call has set and another process holds too, while what a hand edits counts from the next start. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ConfigStore, openConfig } from "../../src/config/store";
import { run } from "../support/command";
import { until } from "../support/until";

const [first, second, third] = ["k-first-0123456789", "k-second-0123456789", "k-third-0123456789"];
const keys = (...apiKeys: (string | undefined)[]) => ({ auth: { apiKeys } });

describe("two stores of one file", () => {
  let home: string;
  let path: string;
  let one: ConfigStore;
  let other: ConfigStore;
  /** What the second one was told. */
  let told: [string[], boolean][];
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "dragoman-"));
    path = join(home, "config.json");
    writeFileSync(path, JSON.stringify(keys(first)));
    [one, other] = [openConfig(path), openConfig(path)];
    told = [];
    other.follow({ changed: (members, edited) => void told.push([members, edited]), refused: () => {} });
  });
  afterEach(() => {
    for (const store of [one, other]) store.close();
    rmSync(home, { recursive: true, force: true });
  });
  const edit = (config: object) => writeFileSync(path, JSON.stringify(config));
  const heldBy = (store: ConfigStore) => store.current.auth.apiKeys;

  test("a key that a call sets at the one holds at the other, and is called no edit", async () => {
    await one.change(keys(second));
    other.reload();
    expect([heldBy(other), other.waiting, told]).toEqual([[second!], [], [[["auth"], false]]]);
  });

  test("one that a hand sets holds at neither until the next start", async () => {
    await one.change(keys(second));
    other.reload();
    edit(keys(third));
    for (const store of [one, other]) {
      store.reload();
      expect([heldBy(store), store.waiting]).toEqual([[second!], ["auth.apiKeys"]]);
    }
    expect(told.at(-1)).toEqual([[], true]);
    // A change of something else carries it along in the file, and does not make it hold.
    await one.change({ maxRows: 5 });
    other.reload();
    expect([heldBy(one), heldBy(other), other.current.maxRows]).toEqual([[second!], [second!], 5]);
    expect(heldBy(openConfig(path))).toEqual([third!]);
  });

  test("a call that sets what a hand has written already makes it hold everywhere", async () => {
    edit(keys(second));
    for (const store of [one, other]) store.reload();
    await one.change(keys(second));
    other.reload();
    expect([heldBy(one), heldBy(other), other.waiting]).toEqual([[second!], [second!], []]);
  });

  test("one that has not looked yet takes it up with a change of its own, and after other calls", async () => {
    await one.change(keys(second));
    await one.change({ maxRows: 5 });
    await other.change({ retentionDays: 3 });
    expect(heldBy(other)).toEqual([second!]);
    await other.change(keys(third));
    one.reload();
    expect([heldBy(one), one.current.retentionDays]).toEqual([[third!], 3]);
  });

  test("a hand that came after the call has the last word, from the next start", async () => {
    await one.change(keys(second));
    edit(keys(third));
    other.reload();
    expect([heldBy(other), other.waiting]).toEqual([[first!], ["auth.apiKeys"]]);
  });

  test("what is noted beside the config is private, has no key in it, and may be lost", async () => {
    await one.change(keys(second));
    const note = `${path}.applied`;
    expect(readFileSync(note, "utf8")).not.toContain("k-");
    if (process.platform !== "win32") expect(statSync(note).mode & 0o777).toBe(0o600);
    other.reload();
    for (const broken of ["", "{", "null", '{"salt": 1}']) {
      writeFileSync(note, broken);
      other.reload();
      expect(heldBy(other)).toEqual([second!]);
    }
    await one.change(keys(third));
    other.reload();
    expect(heldBy(other)).toEqual([third!]);
  });
});

test("two servers, one data folder: a leaked key that is replaced at the one is refused by the other at once", async () => {
  const home = mkdtempSync(join(tmpdir(), "dragoman-"));
  const start = () => run(["start", "--demo", "--json", "--port", "0"], { env: { DRAGOMAN_HOME: home } });
  await using one = start();
  const { url } = await one.ready();
  const post = (body: object) =>
    fetch(`${url}/api/admin/config`, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    });
  try {
    expect((await post(keys(first))).status).toBe(200);
    await using other = start();
    const there = (await other.ready()).url;
    const status = async (key: string) => (await fetch(`${there}/v1/models`, { headers: { "x-api-key": key } })).status;
    const statuses = () => Promise.all([first, second].map((key) => status(key!)));
    expect(await statuses()).toEqual([200, 401]);
    expect((await post(keys(second))).status).toBe(200);
    await until(() => other.stderr().includes("The config was changed: auth."), "the other server has the change");
    expect(await statuses()).toEqual([401, 200]);
    expect(other.stderr()).not.toContain("takes effect at the next start");
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
