/** The version before this one, from the history of the repository. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { quickest } from "./quickest";

const root = join(import.meta.dir, "../..");
const gitIn =
  (folder: string) =>
  (...args: string[]) =>
    spawnSync("git", args, { cwd: folder, encoding: "utf8", maxBuffer: 1 << 28 });
const git = gitIn(root);

/**
 * The newest version that was tagged on another commit than the present one; undefined until there is one, and in a copy without
 * tags, such as a shallow clone.
 * @param folder Of a repository.
 */
export function versionBefore(folder = root): string | undefined {
  const ask = gitIn(folder);
  const commitOf = (name: string) => ask("rev-parse", "--verify", "-q", `${name}^{commit}`).stdout?.trim();
  const present = commitOf("HEAD");
  const tags = ask("tag", "--list", "v*", "--sort=-version:refname").stdout?.split("\n").filter(Boolean) ?? [];
  return tags.map(commitOf).find((commit) => commit && commit !== present);
}

/** Its program, which runs from its source with the packages of today. */
export function extracted(commit: string): { program: readonly string[] } & Disposable {
  const folder = mkdtempSync(join(quickest(), "dragoman-before-"));
  const archive = join(folder, "source.tar");
  const steps = [
    git("archive", "--format=tar", "-o", archive, commit, "src", "package.json", "tsconfig.json", "bunfig.toml"),
    spawnSync("tar", ["-xf", archive, "-C", folder], { encoding: "utf8" }),
  ];
  for (const { status, stderr } of steps) if (status !== 0) throw new Error(stderr);
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  return {
    program: [process.execPath, "--no-env-file", join(folder, "src/main.ts")],
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
