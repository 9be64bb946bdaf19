/**
 * `bun run build`: the executable of this machine, `dist/dragoman`. `--all`: one for each target, and their checksums.
 * `--check`, with it: looks into each that was made, and makes it a second time to see the same bytes.
 * `--target <name> --output <file>`: the executable of one target.
 */
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { duration, size } from "../lib/format";
import { anatomyOf } from "./binary-layout";
import { signAdHoc, signatureOf } from "./mach-o";
import { stampOptions } from "./stamp";
import { embedded, entries, fileName, type Target, targets } from "./targets";

const root = join(import.meta.dir, "../..");
const dist = join(root, "dist");

/** Everything is inside, and nothing is read from the folder it is started in. */
const options = [
  ["--compile", "--production", "--splitting", "--format=esm", "--bytecode"],
  ["--no-compile-autoload-dotenv", "--no-compile-autoload-bunfig"],
  ["--no-compile-autoload-tsconfig", "--no-compile-autoload-package-json"],
  ["--entry-naming", "[name].[ext]", "--asset", "src/admin/pages/static"],
  entries,
].flat();

/** @param target This machine's own when missing. @throws Error with what Bun said. */
async function build(file: string, target?: Target): Promise<void> {
  mkdirSync(dirname(file), { recursive: true });
  // Inside, the program bears the name of the file: the same for all.
  const folder = mkdtempSync(join(dirname(file), ".build-"));
  try {
    const made = join(folder, target?.format === "pe" ? "dragoman.exe" : "dragoman");
    const bun = Bun.spawn(
      [
        process.execPath,
        "build",
        ...options,
        ...stampOptions(),
        ...(target ? [`--target=${target.bun}`] : []),
        "--outfile",
        made,
      ],
      { cwd: root, stdin: "ignore", stdout: "ignore", stderr: "pipe", timeout: 300_000 },
    );
    const said = await bun.stderr.text();
    if ((await bun.exited) !== 0) throw new Error(`bun build failed for ${basename(file)}:\n${said}`);
    if (target?.signature) await signIfBroken(made);
    chmodSync(made, 0o755);
    renameSync(made, file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function signIfBroken(file: string): Promise<void> {
  const bytes = await Bun.file(file).bytes();
  if (signatureOf(bytes) === "broken") await Bun.write(file, signAdHoc(bytes, "dragoman"));
}

/** What is wrong with an executable, in sentences. */
export function faultsIn(bytes: Uint8Array, { format, machine, loader, signature }: Target): string[] {
  const found = anatomyOf(bytes);
  const wanted = { format, machine, loader, signature };
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return [
    ...(Object.keys(wanted) as (keyof typeof wanted)[])
      .filter((part) => found[part] !== wanted[part])
      .map((part) => `its ${part} is ${found[part]}, not ${wanted[part]}`),
    ...embedded.filter((name) => !buffer.includes(name)).map((name) => `${name} is not inside`),
  ];
}

async function buildAll(check: boolean): Promise<boolean> {
  const sums: string[] = [];
  let sound = true;
  for (const target of targets) {
    const file = join(dist, fileName(target));
    const begun = performance.now();
    await build(file, target);
    const took = duration(performance.now() - begun);
    const bytes = await Bun.file(file).bytes();
    const sum = Bun.SHA256.hash(bytes, "hex");
    const faults = check ? faultsIn(bytes, target) : [];
    if (check) {
      await build(`${file}.again`, target);
      if (Bun.SHA256.hash(await Bun.file(`${file}.again`).bytes(), "hex") !== sum)
        faults.push("built a second time, it has other bytes");
      rmSync(`${file}.again`);
    }
    if (faults.length > 0) sound = false;
    sums.push(`${sum}  ${basename(file)}\n`);
    const verdict = faults.length > 0 ? `FAILED: ${faults.join("; ")}` : check ? "ok" : "";
    console.log([basename(file).padEnd(40), size(bytes.length), took, verdict].join("  ").trim());
  }
  await Bun.write(join(dist, "SHA256SUMS"), sums.join(""));
  return sound;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      all: { type: "boolean" },
      check: { type: "boolean" },
      target: { type: "string" },
      output: { type: "string" },
    },
  });
  if (values.check && !values.all) throw new Error("--check goes with --all.");
  if (values.all) return (await buildAll(values.check === true)) ? 0 : 1;
  const target = values.target === undefined ? undefined : targets.find(({ name }) => name === values.target);
  if (values.target !== undefined && !target)
    throw new Error(`There is no target ${values.target}: ${targets.map(({ name }) => name).join(", ")}.`);
  const isWindows = target ? target.format === "pe" : process.platform === "win32";
  const file = resolve(values.output ?? join(dist, isWindows ? "dragoman.exe" : "dragoman"));
  console.log(`Building ${file} …`);
  const begun = performance.now();
  await build(file, target);
  console.log(`${size(Bun.file(file).size)} in ${duration(performance.now() - begun)}. Run it: ${file} --help`);
  return 0;
}

if (import.meta.main) process.exitCode = await main();
