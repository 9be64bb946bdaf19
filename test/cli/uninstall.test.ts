/** Scenario: `dragoman uninstall`: undoes what dragoman wrote elsewhere, and removes nothing that it has not named. */
import { expect, test } from "bun:test";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../support/command";
import { freePort } from "../support/free-port";
import { inProcess } from "../support/in-process";
import { atTerminal } from "../support/terminal";
import { type Github, scriptedGithub } from "./bench";

const source = join(import.meta.dir, "../../src");

/** Two tools are set up: one had a file before, one had none. */
async function connected(github: Github): Promise<{ claude: string; codex: string }> {
  github.signIn("octo-demo");
  const [claude, codex] = [join(github.home, ".claude", "settings.json"), join(github.home, ".codex", "config.toml")];
  mkdirSync(join(github.home, ".claude"));
  writeFileSync(claude, '{\n  "theme": "dark"\n}\n');
  using _ = github.serve();
  for (const tool of ["claude-code", "codex"])
    expect((await inProcess(["connect", tool, "--write"], github.env)).code).toBe(0);
  expect([readFileSync(claude, "utf8").includes("ANTHROPIC_BASE_URL"), existsSync(codex)]).toEqual([true, true]);
  return { claude, codex };
}

test("the settings of every tool are as before, the accounts stay, and the output names both", async () => {
  await using github = scriptedGithub();
  const { claude, codex } = await connected(github);
  const { code, stderr } = await inProcess(["uninstall", "--yes"], github.env);
  expect([code, readFileSync(claude, "utf8"), existsSync(codex)]).toEqual([0, '{\n  "theme": "dark"\n}\n', false]);
  expect(github.logins()).toEqual(["octo-demo"]);
  for (const part of ["~/.claude/settings.json", "~/.codex/config.toml", "This stays:", "--purge", "GitHub's settings"])
    expect(stderr).toContain(part);
});

test("nothing is removed while one of the settings cannot be undone, or the data folder holds something else", async () => {
  await using github = scriptedGithub();
  const { claude, codex } = await connected(github);
  const [mine, ours] = [readFileSync(claude, "utf8"), readFileSync(codex, "utf8")];
  writeFileSync(join(github.data, "notes.txt"), "mine");
  expect((await inProcess(["uninstall", "--yes", "--purge"], github.env)).code).toBe(1);
  expect([readFileSync(claude, "utf8"), readFileSync(codex, "utf8")]).toEqual([mine, ours]);
  writeFileSync(codex, ours.replace('model_provider = "dragoman"', 'model_provider = "x"'));
  const { code, stderr } = await inProcess(["uninstall", "--yes"], github.env);
  expect([code, stderr]).toEqual([1, expect.stringContaining("Nothing was removed.")]);
  expect(readFileSync(claude, "utf8")).toBe(mine);
});

test("a service that its manager does not start leaves no files behind", async () => {
  if (process.platform !== "linux") return;
  await using github = scriptedGithub();
  const bin = join(github.home, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "systemctl"), '#!/bin/sh\ncase "$*" in *enable*) echo refused >&2; exit 1;; esac\n', {
    mode: 0o755,
  });
  const env = { ...github.env, PATH: `${bin}:${process.env.PATH}` };
  const { code, stderr } = await inProcess(["service", "install", "--yes", "--port", String(freePort())], env);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/refused\. No service was installed\./)]);
  expect(existsSync(join(github.home, ".config"))).toBe(false);
});

test("a service that gets no variables any more leaves none behind, and another server keeps the data", async () => {
  if (process.platform !== "linux") return;
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  await using server = run(["start", "--json", "--port", "0"], { env: github.env });
  await server.ready();
  const bin = join(github.home, "bin");
  const unit = join(github.home, ".config/systemd/user/dragoman.service");
  const variables = join(github.data, "service.env");
  await Bun.write(unit, "[Unit]\n");
  await Bun.write(variables, "ADMIN_TOKEN=secret\n");
  mkdirSync(bin);
  for (const name of ["systemctl", "systemd-run"])
    writeFileSync(join(bin, name), "#!/bin/sh\nexit 0\n", { mode: 0o755 });
  const env = { PATH: `${bin}:${process.env.PATH}`, HOME: github.home, DRAGOMAN_HOME: "" };
  expect((await inProcess(["service", "install", "--yes", "--port", String(freePort())], env)).code).toBe(0);
  expect([existsSync(unit), existsSync(variables)]).toEqual([true, false]);
  const { code, stderr } = await inProcess(["uninstall", "--yes", "--purge"], env);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/A dragoman server runs at .* Stop it first\./)]);
  expect([existsSync(unit), github.logins()]).toEqual([false, ["octo-demo"]]);
});

test("--purge removes the data folder, but none that holds something of somebody else", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  const other = join(github.data, "notes.txt");
  writeFileSync(other, "mine");
  const refused = await inProcess(["uninstall", "--yes", "--purge"], github.env);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("notes.txt")]);
  expect([github.logins(), existsSync(other)]).toEqual([["octo-demo"], true]);
  await Bun.file(other).delete();
  expect((await inProcess(["uninstall", "--yes", "--purge"], github.env)).code).toBe(0);
  expect(existsSync(github.data)).toBe(false);
});

test.each([[[]], [["--purge"]]])(
  "the key that is kept for a tool is forgotten with the tool's settings, with %j",
  async (options) => {
    await using github = scriptedGithub();
    github.signIn("octo-demo");
    await Bun.write(join(github.data, "config.json"), '{"auth":{"apiKeys":["a-key-of-the-owner-0001"]}}');
    const server = github.serve();
    const connect = await inProcess(["connect", "claude-code", "--write", "--key-helper"], github.env);
    expect([connect.code, existsSync(join(github.data, "kept-keys.json"))]).toEqual([0, true]);
    server[Symbol.dispose]();
    expect((await inProcess(["uninstall", "--yes", ...options], github.env)).code).toBe(0);
    expect(existsSync(join(github.data, "kept-keys.json"))).toBe(false);
    expect(existsSync(github.data)).toBe(options.length === 0);
  },
);

test("settings that were changed since stay, with the data, until they are undone", async () => {
  await using github = scriptedGithub();
  const { claude, codex } = await connected(github);
  const changed = readFileSync(claude, "utf8").replace(
    /"ANTHROPIC_AUTH_TOKEN": "[^"]*"/,
    '"ANTHROPIC_AUTH_TOKEN": "x"',
  );
  writeFileSync(claude, changed);
  const { code, stderr } = await inProcess(["uninstall", "--yes", "--purge"], github.env);
  expect([code, stderr]).toEqual([1, expect.stringContaining("dragoman connect claude-code --undo --force")]);
  expect([readFileSync(claude, "utf8"), existsSync(codex), existsSync(github.data)]).toEqual([changed, true, true]);
});

test("nothing is removed while a server runs, nor if nobody agrees", async () => {
  await using github = scriptedGithub();
  const { claude } = await connected(github);
  const before = readFileSync(claude, "utf8");
  expect(await inProcess(["uninstall"], github.env)).toMatchObject({ code: 2 });
  {
    await using terminal = atTerminal(["uninstall"], github.env, github.home);
    await terminal.shows("[y/N]");
    terminal.type("\n");
    expect(await terminal.exited).toBe(1);
    expect(terminal.screen()).toContain("Nothing was removed.");
  }
  using _ = github.serve();
  expect((await inProcess(["uninstall", "--yes"], github.env)).stderr).toContain("Stop it first.");
  expect(readFileSync(claude, "utf8")).toBe(before);
});

test.skipIf(process.platform === "win32")("an executable of its own is deleted", async () => {
  await using github = scriptedGithub();
  const program = join(github.home, "dragoman");
  copyFileSync("/bin/sh", program);
  chmodSync(program, 0o755);
  // In a process of its own: with the home folder of whoever runs this, their own service would be removed.
  const script = `
    const { uninstall } = await import(${JSON.stringify(join(source, "cli/uninstall.ts"))});
    const { readEnvironment } = await import(${JSON.stringify(join(source, "config/environment.ts"))});
    const installation = { kind: "executable", command: [${JSON.stringify(program)}] };
    process.exit(await uninstall({ environment: readEnvironment(process.env), yes: true, purge: false, installation }));`;
  const env = { ...github.env, PATH: process.env.PATH };
  const ended = Bun.spawnSync([process.execPath, "-e", script], { env, stderr: "pipe" });
  expect([ended.exitCode, ended.stderr.toString()]).toEqual([0, expect.stringContaining("~/dragoman is removed.")]);
  expect(existsSync(program)).toBe(false);
});
