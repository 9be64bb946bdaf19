/**
 * Scenario: the program of the npm package: it becomes the executable beside it, and passes on whatever an editor does
 * to it.
 */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { packageFor, targets } from "../../src/deploy/targets";

const fits = targets.map(packageFor).filter(({ os, cpu }) => os === process.platform && cpu === process.arch);
const [first] = fits;
const nodes = { node: Bun.which("node"), bun: process.execPath };

const built = await Bun.build({
  entrypoints: [join(import.meta.dir, "../../src/deploy/launcher.ts")],
  target: "node",
  minify: true,
});
const code = await built.outputs[0]!.text();
const folder = mkdtempSync(join(tmpdir(), "dragoman-launcher-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const place = (path: string, text: string) => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text, { mode: 0o755 });
};
const install = ({ name, file }: (typeof fits)[number], script: string) =>
  place(`node_modules/${name}/${file}`, `#!/bin/sh\n${script}\n`);

beforeEach(() => {
  rmSync(join(folder, "node_modules"), { recursive: true, force: true });
  rmSync(join(folder, "bin"), { recursive: true, force: true });
  place("node_modules/dragoman/dist/dragoman.js", code);
  mkdirSync(join(folder, "bin"));
  for (const program of ["sh", "cat"]) symlinkSync(Bun.which(program)!, join(folder, "bin", program));
});

const launch = (runtime: string, ...args: string[]) =>
  Bun.spawn([runtime, join(folder, "node_modules/dragoman/dist/dragoman.js"), ...args], {
    cwd: folder,
    env: { PATH: join(folder, "bin") },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
    timeout: 30_000,
  });

test("the launcher says what it is run by, in its first line, and is one small file", () => {
  expect(code).toStartWith("#!/usr/bin/env node\n");
  expect(code.length).toBeLessThan(5_000);
});

describe.skipIf(process.platform === "win32" || !first || !nodes.node)("with an executable, the launcher", () => {
  describe.each(Object.entries(nodes))("run by %s", (_, runtime) => {
    test("passes on arguments, both streams and the exit code, and the end of stdin", async () => {
      install(first!, 'echo "$@"; cat; echo gone >&2; exit 7');
      const child = launch(runtime!, "start", "--port", "a b");
      child.stdin.write("said\n");
      child.stdin.end();
      expect([await child.stdout.text(), await child.stderr.text(), await child.exited]).toEqual([
        "start --port a b\nsaid\n",
        "gone\n",
        7,
      ]);
    });

    test("the launcher passes each signal on to the executable", async () => {
      const signals = ["SIGHUP", "SIGINT", "SIGTERM"] as const;
      // A shell may miss a signal that comes just before it waits.
      const waits = `for (const each of ${JSON.stringify(signals)}) process.on(each, () => { console.log(each); if (each === "SIGTERM") process.exit(3); }); console.log("ready"); setInterval(() => {}, 1000)`;
      install(first!, `exec '${process.execPath}' -e '${waits}'`);
      const child = launch(runtime!);
      const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
      expect((await lines.read()).value).toBe("ready\n");
      for (const signal of signals) {
        child.kill(signal);
        expect((await lines.read()).value).toBe(`${signal}\n`);
      }
      expect([(await lines.read()).done, await child.exited]).toEqual([true, 3]);
    });

    test("ends by the signal that ended the executable", async () => {
      install(first!, "kill -TERM $$");
      const child = launch(runtime!);
      await child.exited;
      expect(child.signalCode).toBe("SIGTERM");
    });
  });

  test("takes that of this C library where npm has installed both", async () => {
    for (const each of fits) install(each, `echo ${each.libc}`);
    const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
    const libc = fits.length > 1 ? (header.glibcVersionRuntime ? "glibc" : "musl") : "undefined";
    expect(await launch(nodes.node!).stdout.text()).toBe(`${libc}\n`);
  });
});

describe.skipIf(process.platform === "win32" || !nodes.node)("without an executable, the launcher", () => {
  test("the launcher lets this Bun run the bundle where no executable is installed", async () => {
    place("node_modules/dragoman/dist/main.js", "console.log(process.argv.slice(2).join())");
    expect(await launch(nodes.bun, "a", "b").stdout.text()).toBe("a,b\n");
  });

  test("lets the Bun of the PATH run it, if that is new enough", async () => {
    place("bin/bun", '#!/bin/sh\n[ "$1" = --version ] && echo 1.10.0 || echo "$@"');
    const said = await launch(nodes.node!, "start").stdout.text();
    expect(said).toMatch(/^--no-env-file --config=\S+ --tsconfig-override=\S+ \/\S+\/dist\/main\.js start\n$/);
    place("bin/bun", "#!/bin/sh\necho 1.4.4");
    expect(await launch(nodes.node!).exited).toBe(1);
  });

  test("says which package is missing, and what to do", async () => {
    const child = launch(nodes.node!, "start");
    const said = await child.stderr.text();
    expect(said).toMatch(/^dragoman: .*\n$/);
    for (const part of [...fits.map(({ name }) => name), "--omit=optional", "https://bun.com"])
      expect(said).toContain(part);
    expect(await child.exited).toBe(1);
  });
});

test("each target has a package of its own, which npm installs on such a machine alone", () => {
  const packages = targets.map(packageFor);
  const machines = packages.map(({ os, cpu, libc }) => [os, cpu, libc].join());
  expect(new Set(machines).size).toBe(targets.length);
  // With one C library named and the other not, npm installs none of the two.
  for (const { os, libc } of packages) expect(libc !== undefined).toBe(os === "linux");
});
