/** Rows: `dragoman connect`: each tool in each state of its file, and the way back to the byte. */
import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import type { SettingsFormat } from "../../src/clients/formats";
import { type ClientId, clientIds, clientOf } from "../../src/clients/index";
import { exampleModels } from "../../src/proxy/upstream/models/known-models";
import { run } from "../support/command";
import { inProcess } from "../support/in-process";
import { quickest } from "../support/quickest";
import { drawn } from "../support/random";
import { personsAt, settings } from "./person";

const key = "a-client-key-of-the-owner-7f3a";
const server = run(["start", "--demo", "--json", "--port", "0"], { env: { DRAGOMAN_API_KEY: key } });
const { url } = await server.ready();
afterAll(() => server[Symbol.asyncDispose]());

const { note, person } = personsAt(url, server.process.pid, key);
type Person = ReturnType<typeof person>;
const withFile = clientIds.filter((id) => clientOf(id).file);
const text = (path: string) => readFileSync(path, "utf8");

const done = async (own: Person, ...args: string[]) => {
  const { code, stderr } = await own.connect(...args);
  expect([code, stderr]).toEqual([0, expect.any(String)]);
};

/** As another program puts a setting of its own in, and nothing else. */
const putIn: Record<SettingsFormat, (text: string) => string> = {
  json: (now) => now.replace("{", '{ "theirs": { "own": ["stays"] },'),
  "json-list": (now) => now.replace("[", '[ { "name": "theirs" },'),
  toml: (now) => `theirs = 1\n${now}`,
  env: (now) => `THEIRS=1\n${now}`,
};

/** `connect` from another data folder of the same person, for a server at another address. @returns What it said. */
function beside({ env }: Person) {
  const folder = mkdtempSync(join(quickest(), "dragoman-other-"));
  note(folder, url.replace("127.0.0.1", "localhost"));
  const connect = async (...args: string[]) => {
    const { code, stderr } = await inProcess(["connect", ...args], { ...env, DRAGOMAN_HOME: folder });
    expect([code, stderr]).toEqual([0, expect.any(String)]);
    return stderr;
  };
  return Object.assign(connect, { [Symbol.dispose]: () => rmSync(folder, { recursive: true }) });
}

const broken: Record<SettingsFormat, string> = { json: '{ "a": ', "json-list": "[{", toml: "a = 1\n[x\n", env: "" };

/** Each begins with the person's file and its bytes, and ends with what is there after the way back. */
const modes: Record<string, (own: Person, id: ClientId, path: string, before: string) => Promise<string>> = {
  "linked by a dotfile manager": async (own, id, path, before) => {
    adopt(path);
    await done(own, id, "--write");
    await done(own, id, "--undo");
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    return before;
  },
  "adopted by a dotfile manager between two writes": async (own, id, path, before) => {
    await done(own, id, "--write");
    adopt(path);
    await done(own, id, "--write", "--model", exampleModels.gpt);
    await done(own, id, "--undo");
    expect([lstatSync(path).isSymbolicLink(), own.backups(id)]).toEqual([true, []]);
    return before;
  },
  "adopted by a dotfile manager after the write": async (own, id, path, before) => {
    await done(own, id, "--write");
    adopt(path);
    await done(own, id, "--undo");
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    return before;
  },
  "changed by another program since": async (own, id, path, before) => {
    const put = putIn[clientOf(id).file!.format];
    await done(own, id, "--write");
    writeFileSync(path, put(text(path)));
    await done(own, id, "--undo");
    return put(before);
  },
  "changed by another program between two writes": async (own, id, path, before) => {
    const put = putIn[clientOf(id).file!.format];
    await done(own, id, "--write");
    writeFileSync(path, put(text(path)));
    await done(own, id, "--write", "--model", exampleModels.gpt);
    await done(own, id, "--undo");
    return put(before);
  },
  "written from another data folder too": async (own, id, path, before) => {
    using other = beside(own);
    await done(own, id, "--write");
    await other(id, "--write");
    const written = text(path);
    // The later one is undone first.
    const early = await own.connect(id, "--undo");
    expect([early.code, early.stderr]).toEqual([1, expect.stringContaining("another data folder")]);
    expect(text(path)).toBe(written);
    await other(id, "--undo");
    await done(own, id, "--undo");
    return before;
  },
  "written from another data folder too, and the first undone by force": async (own, id, _, before) => {
    using other = beside(own);
    await done(own, id, "--write");
    await other(id, "--write");
    await done(own, id, "--undo", "--force");
    expect(await other(id, "--undo")).toContain("is already without");
    return before;
  },
  "written from another data folder too, the first undone by force, and the other written again": async (
    own,
    id,
    _,
    before,
  ) => {
    using other = beside(own);
    await done(own, id, "--write");
    await other(id, "--write");
    await done(own, id, "--undo", "--force");
    await other(id, "--write");
    await other(id, "--undo");
    return before;
  },
  "read-only": async (own, id, path, before) => {
    chmodSync(path, 0o444);
    const { code, stderr } = await own.connect(id, "--write");
    expect([code, stderr]).toEqual([1, expect.stringContaining("is read-only")]);
    chmodSync(path, 0o640);
    return before;
  },
  broken: async (own, id, path) => {
    const half = broken[clientOf(id).file!.format];
    writeFileSync(path, half);
    const { code, stderr } = await own.connect(id, "--write");
    expect([code, stderr]).toEqual([1, expect.stringContaining("is not valid")]);
    return half;
  },
};

/** Moves the file elsewhere, with a link in its place. */
function adopt(path: string): void {
  const dotfiles = join(dirname(path), "..", "dotfiles");
  mkdirSync(dotfiles, { recursive: true });
  renameSync(path, join(dotfiles, basename(path)));
  symlinkSync(join("..", "dotfiles", basename(path)), path);
}

describe.each(withFile)("%s", (id) => {
  test.concurrent.each(drawn(id, Object.keys(modes)))(
    "%s",
    async (mode) => {
      using own = person();
      const path = own.settle(id, settings[id]!, 0o640);
      const after = await modes[mode]!(own, id, path, settings[id]!);
      expect(text(path)).toBe(after);
      expect(statSync(path).mode & 0o777).toBe(0o640);
      // A forced undo keeps a copy of what it changed.
      expect(own.backups(id).filter((name) => name.endsWith(".json"))).toEqual([]);
    },
    60_000,
  );
});
