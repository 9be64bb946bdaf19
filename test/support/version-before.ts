/** The version before this one, from the history of the repository. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { quickest } from "./quickest";

const root = join(import.meta.dir, "../..");
/** Until there is a release: main at the end of 22 November 2026. */
const beforeAnyRelease = "b7947109bb34bd0403be6be79d65e88aa6186e0a";

const git = (...args: string[]) => spawnSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 28 });

/** The newest tag of another commit than the present one; undefined in a copy without history, such as a shallow clone. */
export function versionBefore(): string | undefined {
  const present = git("rev-parse", "HEAD").stdout?.trim();
  const tags = git("tag", "--list", "v*", "--sort=-version:refname").stdout?.split("\n").filter(Boolean) ?? [];
  const commits = [...tags, beforeAnyRelease].map((name) => git("rev-parse", "--verify", "-q", `${name}^{commit}`));
  return commits.map(({ stdout }) => stdout?.trim()).find((commit) => commit && commit !== present);
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
