/**
 * `bun pm pack` calls it: `prepack` makes dist/, where everything is inside, and puts the published package.json in place of
 * ours, which names the packages that the source needs and nobody else; `postpack` puts ours back.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { licencesIn } from "./licences";
import { repositoryOfBuild, stampOptions } from "./stamp";
import { entries } from "./targets";

const root = join(import.meta.dir, "../..");
const dist = join(root, "dist");
const ours = join(root, "package.json");
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
  const bundler = Bun.spawn(
    [
      ...[process.execPath, "build", "--target=bun", "--production", "--splitting", "--entry-naming", "[name].[ext]"],
      ...entries,
      "--outdir",
      dist,
      `--metafile=${metafile}`,
      ...stampOptions(),
    ],
    { cwd: root, stdin: "ignore", stdout: "ignore", stderr: "inherit", timeout: 300_000 },
  );
  if ((await bundler.exited) !== 0) throw new Error("bun build failed.");
  cpSync(join(root, "src/admin/pages/static"), join(dist, "static"), { recursive: true });
  writeFileSync(join(dist, "LICENSES.txt"), licencesIn(JSON.parse(readFileSync(metafile, "utf8")), root));

  const manifest = JSON.parse(readFileSync(ours, "utf8")) as Record<string, unknown>;
  const clean = { ...Object.fromEntries(published.map((key) => [key, manifest[key]])), ...repository() };
  renameSync(ours, kept);
  writeFileSync(ours, `${JSON.stringify(clean, null, 2)}\n`);
}

/** Known to the release workflow alone; npm compares it with where the package was really built. */
function repository(): { repository?: { type: string; url: string } } {
  const url = repositoryOfBuild();
  return url ? { repository: { type: "git", url: `git+${url}.git` } } : {};
}

if (process.argv[2] === "postpack") renameSync(kept, ours);
else await prepack();
