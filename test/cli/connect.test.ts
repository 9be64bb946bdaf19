/** Rows: `dragoman connect`: each tool in each state of its file, and the way back to the byte; and what needs a terminal or a process. */
import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
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
import { asProcess, inProcess } from "../support/in-process";
import { startProxy } from "../support/proxy";
import { quickest } from "../support/quickest";
import { drawn } from "../support/random";
import { atTerminal } from "../support/terminal";
import { personsAt, settings } from "./person";

const key = "a-client-key-of-the-owner-7f3a";
const proxy = await startProxy({ config: { auth: { apiKeys: [key] } }, demo: { generation: "C" } });
const { url } = proxy;
afterAll(() => proxy[Symbol.asyncDispose]());

const { note, person } = personsAt(url, process.ppid, key);
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

/** Each begins with the person's file and its bytes, and ends with what is there after the way back. */
const modes: Record<string, (own: Person, id: ClientId, path: string, before: string) => Promise<string>> = {
  "its own, written twice and with another model": async (own, id, path, before) => {
    for (const model of [exampleModels.gpt, "claude-sonnet-4.6"]) {
      await done(own, id, "--write", "--model", model);
      expect(text(path)).toContain(id === "claude-code" ? model.replace(".6", "-6") : model);
    }
    const again = await own.connect(id, "--write", "--model", "claude-sonnet-4.6");
    expect(again.stderr).toContain("already has these settings");
    expect([own.status(id), own.backups(id).length]).toEqual(["here", 1]);
    await done(own, id, "--undo");
    return before;
  },
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
};

/** Moves the file elsewhere, with a link in its place. */
function adopt(path: string): void {
  const dotfiles = join(dirname(path), "..", "dotfiles");
  mkdirSync(dotfiles, { recursive: true });
  renameSync(path, join(dotfiles, basename(path)));
  symlinkSync(join("..", "dotfiles", basename(path)), path);
}

describe.each(withFile)("%s", (id) => {
  test.each(drawn(id, Object.keys(modes), 5))("%s", async (mode) => {
    using own = person();
    const path = own.settle(id, settings[id]!, 0o640);
    const after = await modes[mode]!(own, id, path, settings[id]!);
    expect(text(path)).toBe(after);
    expect(statSync(path).mode & 0o777).toBe(0o640);
    // A forced undo keeps a copy of what it changed.
    expect(own.backups(id).filter((name) => name.endsWith(".json"))).toEqual([]);
  });
});

test("the way back from a connected tool is one way for processes that write at once", async () => {
  using own = person();
  const path = own.settle("codex", settings.codex!);
  const all = await Promise.all(
    [exampleModels.small, exampleModels.gpt, exampleModels.small, exampleModels.gpt].map((model) =>
      asProcess(["connect", "codex", "--write", "--model", model], own.env),
    ),
  );
  // Each may make a key, of another name.
  expect(all.map(({ code, stderr }) => (code === 0 ? code : stderr))).toEqual([0, 0, 0, 0]);
  expect(own.backups("codex")).toHaveLength(1);
  await done(own, "codex", "--undo");
  expect(text(path)).toBe(settings.codex!);
});

test("a printed curl line is answered", async () => {
  using own = person();
  const line = /^curl -N [\s\S]*/m.exec((await own.connect("curl")).stdout)![0];
  const said = await Bun.spawn(["bash", "-c", line], { timeout: 10_000, stderr: "ignore" }).stdout.text();
  expect(said).toContain('"object":"chat.completion.chunk"');
  expect(said).toEndWith("data: [DONE]\n\n");
});

test.each([[["connect", "codex", "--write"]], [["models"]]])(
  "when the server that runs answers otherwise than this version knows: %j",
  async (args) => {
    using own = person();
    using other = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => Response.json({ data: [{ id: exampleModels.gpt, kind: "chat" }] }),
    });
    note(own.env.DRAGOMAN_HOME!, other.url.origin);
    const { code, stderr } = await inProcess(args, own.env);
    expect([code, stderr]).toEqual([1, expect.stringContaining("Restart it with this version")]);
    expect(existsSync(own.path("codex"))).toBe(false);
  },
);

test("at a terminal, `key add` asks whether the connected tools shall get keys, and Enter means yes; `key rm` asks first", async () => {
  await using served = await startProxy({ demo: { generation: "C" } });
  note(served.home, served.url);
  const names = async () => {
    const { items } = (await (await fetch(`${served.url}/api/admin/keys`)).json()) as { items: { name: string }[] };
    return items.map(({ name }) => name);
  };
  using own = person(served.home);
  delete own.env.DRAGOMAN_API_KEY;
  await own.connect("codex", "--write");
  await using adding = atTerminal(["key", "add", "laptop"], own.env);
  await adding.shows("These connected tools need a key now: Codex.");
  await adding.shows("Make a key for each and write it there? [Y/n]");
  adding.type("\r");
  expect(await adding.exited).toBe(0);
  expect(adding.screen()).toContain("Created the client key `codex` and wrote it to ~/.codex/config.toml.");
  for (const [typed, code, said, left] of [
    ["n\r", 1, "Nothing was removed.", ["laptop", "codex"]],
    ["y\r", 0, "The client key laptop was removed.", ["codex"]],
  ] as const) {
    await using removing = atTerminal(["key", "rm", "laptop"], own.env);
    await removing.shows("Remove the client key laptop?");
    await removing.shows("[y/N]");
    removing.type(typed);
    expect(await removing.exited).toBe(code);
    expect(removing.screen()).toContain(said);
    expect(await names()).toEqual([...left]);
  }
});

test("an undo asks at a terminal about the files that dragoman wrote, in lines that break no word, and else says that there is nothing", async () => {
  using own = person();
  for (const [id, columns, question, typed, code] of [
    [
      "gemini-cli",
      120,
      "Restore ~/.gemini/settings.json and ~/.gemini/.env as before dragoman wrote there? [y/N]",
      "\r",
      1,
    ],
    ["claude-code", 50, "Restore ~/.claude/settings.json as before\ndragoman wrote there? [y/N]", "y\r", 0],
  ] as const) {
    await own.connect(id, "--write");
    await using terminal = atTerminal(["connect", id, "--undo"], own.env, undefined, columns);
    await terminal.shows(question);
    terminal.type(typed);
    expect([await terminal.exited, existsSync(own.path(id))]).toEqual([code, code === 1]);
  }
  await using again = atTerminal(["connect", "claude-code", "--undo"], own.env);
  expect(await again.exited).toBe(0);
  expect(again.screen()).toBe("Nothing to undo: dragoman has not written to Claude Code's settings.\n");
});
