/** Scenario: the install scripts of a release: `install.sh` is run against a release on loopback. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
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
import { delimiter, join } from "node:path";
import { powershellInstaller, readSums, shellInstaller } from "../../src/deploy/install-scripts";
import { targets } from "../../src/deploy/targets";

const program = "#!/bin/sh\necho 1.2.3\n";
let served = program;
let asked: string[] = [];
let folder: string;
const host = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    asked.push(new URL(request.url).pathname);
    return new Response(served);
  },
});
afterAll(() => host.stop(true));
beforeEach(() => {
  served = program;
  asked = [];
  // Not in memory: its programs are run.
  folder = mkdtempSync(join(tmpdir(), "dragoman-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const sum = Bun.SHA256.hash(program, "hex");
const facts = () => ({
  version: "1.2.3",
  repository: `http://127.0.0.1:${host.port}/someone/dragoman`,
  sums: new Map(
    targets.map(({ name, format }) => [`dragoman-1.2.3-${name}${format === "pe" ? ".exe" : ""}`, sum] as const),
  ),
});

/** As `curl … | sh` runs it. @param tools Programs that stand in front of the others on the PATH. */
async function install(script: string, tools: Record<string, string> = {}) {
  const bin = join(folder, "tools");
  mkdirSync(bin);
  for (const [name, text] of Object.entries(tools)) writeFileSync(join(bin, name), text, { mode: 0o755 });
  const child = Bun.spawn(["sh"], {
    stdin: Buffer.from(script),
    stdout: "pipe",
    stderr: "pipe",
    env: { HOME: folder, PATH: [bin, process.env.PATH].join(delimiter) },
  });
  const [code, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code, stdout, stderr };
}

const installed = () => join(folder, ".local/bin/dragoman");
const noGh = { gh: "#!/bin/sh\nexit 1\n" };

describe.skipIf(process.platform === "win32")("install.sh", () => {
  test("puts the verified file into the person's own folder, and says what it did and what comes next", async () => {
    const { code, stdout, stderr } = await install(shellInstaller(facts()), noGh);
    expect([code, stderr]).toEqual([0, ""]);
    expect([readFileSync(installed(), "utf8"), statSync(installed()).mode & 0o777]).toEqual([program, 0o755]);
    expect(readdirSync(join(folder, ".local/bin"))).toEqual(["dragoman"]);
    for (const part of ["checksum is right", "attestation was not verified", installed(), "PATH", "dragoman auth"])
      expect(stdout).toContain(part);
  });

  test.skipIf(process.platform !== "linux").each([
    ["musl", "/lib/ld-musl-x86_64.so.1 (0x7f0000000000)"],
    ["glibc", "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6"],
  ])("takes the file for the C library of the system's own programs: %s", async (library, linked) => {
    const ldd = `#!/bin/sh\ncat <<'END'\n\t${linked}\nEND\n`;
    const { code, stderr } = await install(shellInstaller(facts()), { ...noGh, ldd });
    expect([code, stderr]).toEqual([0, ""]);
    expect(asked).toHaveLength(1);
    expect(asked[0]!.endsWith("-musl")).toBe(library === "musl");
  });

  test("leaves nothing behind if the checksum is wrong, or the script ends too early", async () => {
    served = "something else";
    const script = shellInstaller(facts());
    const { code, stderr } = await install(script, noGh);
    expect([code, stderr]).toEqual([1, expect.stringContaining("checksum of the file is wrong")]);
    expect(readdirSync(join(folder, ".local/bin"))).toEqual([]);
    rmSync(join(folder, "tools"), { recursive: true });
    served = program;
    expect((await install(script.slice(0, script.lastIndexOf("main")), noGh)).stdout).toBe("");
    expect(existsSync(installed())).toBe(false);
  });

  test.each([
    [0, 0, "Its checksum and its attestation are right."],
    [1, 1, "its attestation is wrong"],
  ])("asks gh for the attestation where it is signed in (it ends with %d)", async (verdict, code, said) => {
    const gh = `#!/bin/sh\n[ "$1" = auth ] && exit 0\n[ "$1 $2 $4 $5" = "attestation verify --repo someone/dragoman" ] || exit 9\nexit ${verdict}\n`;
    const ended = await install(shellInstaller(facts()), { gh });
    expect([ended.code, ended.stdout + ended.stderr, existsSync(installed())]).toEqual([
      code,
      expect.stringContaining(said),
      code === 0,
    ]);
  });

  test("knows each system that has an executable, and passes the checks of the tools that are here", () => {
    const script = shellInstaller(facts());
    for (const { name } of targets)
      expect([name, script.includes(`${name}) `)]).toEqual([name, !name.startsWith("win")]);
    for (const [tool, ...args] of [
      ["dash", "-n"],
      ["bash", "--posix", "-n"],
      ["shellcheck", "-"],
    ] as const)
      if (Bun.which(tool))
        expect([tool, Bun.spawnSync([tool, ...args], { stdin: Buffer.from(script) }).exitCode]).toEqual([tool, 0]);
  });
});

test("install.ps1 verifies the file of Windows before it is moved, leaves nothing else behind, and is PowerShell", () => {
  const script = powershellInstaller(facts());
  const url = `${facts().repository}/releases/download/v1.2.3/dragoman-1.2.3-windows-x64.exe`;
  const remove = "} finally {\n    Remove-Item -Force -ErrorAction SilentlyContinue -Path $fresh\n";
  const parts = [url, sum.toUpperCase(), "attestation verify", "Move-Item", remove];
  const order = parts.map((part) => script.indexOf(part));
  expect(order).toEqual(order.toSorted((one, other) => one - other));
  expect(order[0]).toBeGreaterThan(0);
  for (const path of ["'Programs\\dragoman'", "$folder\\dragoman.exe"]) expect(script).toContain(path);
  const pwsh = Bun.which("pwsh");
  const read = "[void][scriptblock]::Create([Console]::In.ReadToEnd())";
  if (pwsh) expect(Bun.spawnSync([pwsh, "-c", read], { stdin: Buffer.from(script) }).exitCode).toBe(0);
});

describe("the release workflow's step", () => {
  const names = [...facts().sums.keys()];
  const sums = names.map((name) => `${Bun.SHA256.hash(name, "hex")}  ${name}\n`).join("");
  const release = { ...facts(), sums: readSums(sums) };
  const write = (tag: string) => {
    const script = join(import.meta.dir, "../../src/deploy/install-scripts.ts");
    writeFileSync(join(folder, "SHA256SUMS"), sums);
    return Bun.spawnSync([process.execPath, script, tag, release.repository, folder]);
  };

  test("writes both scripts beside the files, each with the checksums of its own", () => {
    expect(write("v1.2.3").exitCode).toBe(0);
    expect(readdirSync(folder).sort()).toEqual(["SHA256SUMS", "install.ps1", "install.sh"]);
    const [shell, powershell] = ["install.sh", "install.ps1"].map((name) => readFileSync(join(folder, name), "utf8"));
    expect([shell, powershell]).toEqual([shellInstaller(release), powershellInstaller(release)]);
    for (const name of names) {
      const hash = Bun.SHA256.hash(name, "hex");
      expect(name.endsWith(".exe") ? powershell : shell).toContain(name.endsWith(".exe") ? hash.toUpperCase() : hash);
    }
  });

  test("fails where a file has no checksum", () => {
    const { exitCode, stderr } = write("v9.9.9");
    expect([exitCode, stderr.toString()]).toEqual([1, expect.stringContaining("SHA256SUMS has no dragoman-9.9.9")]);
  });
});
