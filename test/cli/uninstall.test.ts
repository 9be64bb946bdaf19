/** Scenario: `dragoman uninstall`, beyond `fixtures/sessions/uninstall.txt`: with a service, at a terminal, as an executable. */
import { expect, test } from "bun:test";
import { chmodSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../support/free-port";
import { inProcess } from "../support/in-process";
import { atTerminal } from "../support/terminal";
import { type Github, scriptedGithub } from "./bench";

const source = join(import.meta.dir, "../../src");

/** The PATH with managers of services that do this. */
function managedBy({ home }: Github, script: string): string {
  const bin = join(home, "bin");
  mkdirSync(bin);
  for (const name of ["systemctl", "systemd-run"])
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return `${bin}:${process.env.PATH}`;
}
const install = () => ["service", "install", "--yes", "--port", String(freePort())];

test("a service that its manager does not start leaves no files behind", async () => {
  if (process.platform !== "linux") return;
  await using github = scriptedGithub();
  const PATH = managedBy(github, 'case "$*" in *enable*) echo refused >&2; exit 1;; esac');
  const { code, stderr } = await inProcess(install(), { ...github.env, PATH });
  expect([code, stderr]).toEqual([1, expect.stringMatching(/refused\. No service was installed\./)]);
  expect(existsSync(join(github.home, ".config"))).toBe(false);
});

test("a service that gets no variables any more leaves none behind, and another server keeps the data", async () => {
  if (process.platform !== "linux") return;
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  using _ = github.serve();
  const unit = join(github.home, ".config/systemd/user/dragoman.service");
  const variables = join(github.data, "service.env");
  await Bun.write(unit, "[Unit]\n");
  await Bun.write(variables, "ADMIN_TOKEN=secret\n");
  const env = { PATH: managedBy(github, "exit 0"), HOME: github.home, DRAGOMAN_HOME: "" };
  expect((await inProcess(install(), env)).code).toBe(0);
  expect([existsSync(unit), existsSync(variables)]).toEqual([true, false]);
  const { code, stderr } = await inProcess(["uninstall", "--yes", "--purge"], env);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/A dragoman server runs at .* Stop it first\./)]);
  expect([existsSync(unit), github.logins()]).toEqual([false, ["octo-demo"]]);
});

test("nothing is removed if nobody agrees", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  await using terminal = atTerminal(["uninstall", "--purge"], github.env, github.home);
  await terminal.shows("[y/N]");
  terminal.type("\n");
  expect(await terminal.exited).toBe(1);
  expect(terminal.screen()).toContain("Nothing was removed.");
  expect(github.logins()).toEqual(["octo-demo"]);
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
