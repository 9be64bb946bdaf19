/** The newest clients of the npm registry, in a folder of their own that is kept from run to run. */
import { lstatSync, mkdirSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";

/** Milliseconds. */
const within = 600_000;

export interface Installed {
  /** The program behind a command's name. */
  program(name: string): string;
  version(npm: string): Promise<string>;
}

/** @throws Error when npm does not succeed. */
export async function install(packages: string[]): Promise<Installed> {
  const folder = join(tmpdir(), `dragoman-clients-${userInfo().uid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // What lies in a shared folder will be run: it must be ours.
  const found = lstatSync(folder);
  if (!found.isDirectory() || found.uid !== userInfo().uid)
    throw new Error(`${folder} belongs to somebody else: remove it.`);
  await Bun.write(
    join(folder, "package.json"),
    JSON.stringify({ private: true, allowScripts: Object.fromEntries(packages.map((name) => [name, true])) }),
  );
  // Without a tag, npm takes the newest version that says it supports the Node at hand, which may be years old.
  const tagged = packages.map((name) => `${name}@latest`);
  const npm = Bun.spawn(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", ...tagged], {
    cwd: folder,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "inherit",
    timeout: within,
  });
  if ((await npm.exited) !== 0) throw new Error(`npm install failed in ${folder}.`);
  const modules = join(folder, "node_modules");
  return {
    program: (name) => join(modules, ".bin", name),
    version: async (name) => (await Bun.file(join(modules, name, "package.json")).json()).version,
  };
}
