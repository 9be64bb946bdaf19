/** Scenario: the example for editors in src/cli/README.md, run by Node as it stands there. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { program } from "../../support/command";
import { until } from "../../support/until";

// Each test starts processes, and the machine may be busy.
const folder = mkdtempSync(join(tmpdir(), "dragoman-editor-"));
const document = await Bun.file(join(import.meta.dir, "../../../src/cli/README.md")).text();
const example = /<!-- editor -->\n```js\n([\s\S]*?)```\n<!-- \/editor -->/.exec(document)![1]!;

/** A folder with a `dragoman` in it, for the path. */
function installed(name: string, script: string): string {
  const bin = join(folder, name);
  mkdirSync(bin);
  writeFileSync(join(bin, "dragoman"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return bin;
}

const quoted = program.map((word) => `'${word}'`).join(" ");
let demo: string;

function runExample(bin: string) {
  return Bun.spawn(["node", join(folder, "example.mjs")], {
    cwd: folder,
    env: { PATH: `${bin}:${process.env.PATH}`, HOME: folder, DRAGOMAN_HOME: join(folder, "data") },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: 30_000,
  });
}

beforeAll(() => {
  writeFileSync(join(folder, "example.mjs"), example);
  demo = installed("demo", `echo $$ >> '${folder}/pids'\nexec ${quoted} "$@" --demo`);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const isThere = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe.if(process.platform !== "win32")("the example", () => {
  test("starts, asks, stops, and leaves nothing behind", async () => {
    const node = runExample(demo);
    expect(await node.stdout.text()).toContain("DEMO");
    expect(await node.exited).toBe(0);
    expect(await node.stderr.text()).toContain("nothing leaves this machine");
    const [pid] = (await Bun.file(join(folder, "pids")).text()).trim().split("\n").map(Number);
    await until(() => !isThere(pid!), "the process has ended");
  });

  test("the example says so when dragoman does not start, and shows its sentence", async () => {
    const node = runExample(installed("broken", `exec ${quoted} "$@" --host 999.1.1.1`));
    expect(await node.exited).toBe(1);
    const said = await node.stderr.text();
    expect(said).toContain("--host must be an address or a name of this machine");
    expect(said).toContain("code: 'usage'");
  });

  test("the example says so when there is no dragoman", async () => {
    const node = Bun.spawn([Bun.which("node")!, join(folder, "example.mjs")], {
      env: { PATH: join(folder, "none") },
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
      timeout: 30_000,
    });
    expect(await node.exited).toBe(1);
    expect(await node.stderr.text()).toContain("ENOENT");
  });
});
