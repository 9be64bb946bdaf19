/**
 * `bun pm pack` calls it: `prepack` makes dist/, where everything is inside, and puts the published package.json in place of
 * ours, which names the packages that the source needs and nobody else; `postpack` puts ours back.
 * `platforms <folder>` then packs the executables that `build --all` made, each as a package of its own.
 * `publish <folder> <options of npm publish>` publishes all of them, and last the one that asks for them.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { name as main, version } from "../../package.json";
import { licencesIn } from "./licences";
import { repositoryOfBuild, stampOptions } from "./stamp";
import { entries, fileName, packageFor, type Target, targets } from "./targets";

const root = join(import.meta.dir, "../..");
const dist = join(root, "dist");
const ours = join(root, "package.json");
const launcher = join(root, "src/deploy/launcher.ts");
/** Where ours waits meanwhile. */
const kept = join(dist, "package.json.ours");

/** What of our package.json is for those who install it. */
const published = ["name", "version", "description", "license", "type", "bin", "files", "engines"];

/** @throws Error when an earlier one was broken off: what is kept would be lost. */
async function prepack(): Promise<void> {
  if (existsSync(kept)) throw new Error(`${kept} is left of a pack that was broken off: put it back, or remove it.`);
  mkdirSync(dist, { recursive: true });
  // What an earlier build left there would be packed too.
  for (const file of new Bun.Glob("*.js").scanSync(dist)) rmSync(join(dist, file));
  rmSync(join(dist, "static"), { recursive: true, force: true });
  const metafile = join(dist, "build.json");
  const options = ["--production", "--splitting", "--entry-naming", "[name].[ext]", "--outdir", dist];
  await run(process.execPath, [
    "build",
    "--target=bun",
    ...options,
    ...entries,
    `--metafile=${metafile}`,
    ...stampOptions(),
  ]);
  await run(process.execPath, [
    "build",
    "--target=node",
    "--production",
    "--outfile",
    join(dist, "dragoman.js"),
    launcher,
  ]);
  cpSync(join(root, "src/admin/pages/static"), join(dist, "static"), { recursive: true });
  writeFileSync(join(dist, "LICENSES.txt"), licencesIn(JSON.parse(readFileSync(metafile, "utf8")), root));

  const manifest = JSON.parse(readFileSync(ours, "utf8")) as Record<string, unknown>;
  const clean = {
    ...Object.fromEntries(published.map((key) => [key, manifest[key]])),
    ...repository(),
    optionalDependencies: Object.fromEntries(targets.map((target) => [packageFor(target).name, version])),
  };
  renameSync(ours, kept);
  writeFileSync(ours, `${JSON.stringify(clean, null, 2)}\n`);
}

/** Known to the release workflow alone; npm compares it with where the package was really built. */
function repository(): { repository?: { type: string; url: string } } {
  const url = repositoryOfBuild();
  return url ? { repository: { type: "git", url: `git+${url}.git` } } : {};
}

/** Packs what `dist/` has for a target. @throws Error if that has not been made */
async function packPlatform(target: Target, folder: string): Promise<void> {
  const { name, file, os, cpu, libc } = packageFor(target);
  const { description, license } = JSON.parse(readFileSync(ours, "utf8")) as Record<string, string>;
  const about = { name, version, description, license, ...repository(), preferUnplugged: true };
  const made = mkdtempSync(join(tmpdir(), "dragoman-platform-"));
  try {
    cpSync(join(dist, fileName(target)), join(made, file));
    for (const text of [join(root, "LICENSE"), join(dist, "LICENSES.txt")])
      cpSync(text, join(made, text.split("/").at(-1)!));
    writeFileSync(
      join(made, "README.md"),
      `The executable of [${main}](https://www.npmjs.com/package/${main}) for ${target.name}.\n`,
    );
    const fits = { os: [os], cpu: [cpu], ...(libc && { libc: [libc] }) };
    writeFileSync(join(made, "package.json"), `${JSON.stringify({ ...about, ...fits }, null, 2)}\n`);
    await run(process.execPath, ["pm", "pack", "--quiet", "--destination", resolve(folder)], made);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

/** Those that are published already are left: a run that was broken off can be repeated. */
async function publish(folder: string, options: string[]): Promise<void> {
  const files = [...new Bun.Glob("*.tgz").scanSync({ cwd: folder, absolute: true })];
  const read = async (file: string) => ({
    file,
    name: JSON.parse(await run("tar", ["xzOf", file, "package/package.json"])).name as string,
  });
  const packages = await Promise.all(files.map(read));
  for (const { file, name } of packages.sort((one, other) => Number(one.name === main) - Number(other.name === main))) {
    const isThere = await run("npm", ["view", `${name}@${version}`, "version"]).catch(() => "");
    if (isThere.trim() !== "") console.log(`${name}@${version} is published already.`);
    else console.log(await run("npm", ["publish", file, ...options]));
  }
}

/** @returns What it prints. @throws Error */
async function run(program: string, args: string[], cwd = root): Promise<string> {
  const child = Bun.spawn([program, ...args], { cwd, stdin: "ignore", stderr: "inherit", timeout: 300_000 });
  const printed = await child.stdout.text();
  if ((await child.exited) !== 0) throw new Error(`${program} ${args[0]} failed.`);
  return printed;
}

const [what, folder = dist, ...options] = process.argv.slice(2);
if (what === "prepack") await prepack();
else if (what === "postpack") renameSync(kept, ours);
else if (what === "platforms") for (const target of targets) await packPlatform(target, folder);
else if (what === "publish") await publish(folder, options);
else throw new Error(`There is no ${what}: prepack, postpack, platforms, publish.`);
