/** The newest clients of the npm registry, in folders of their own that are kept from run to run. */
import { existsSync, lstatSync, mkdirSync } from "node:fs";
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
  // Each has a folder of its own: together, npm moves their dependencies about while the scripts of these run.
  const placeOf = (name: string) => join(folder, name.replaceAll("/", "-"));
  for (const name of packages) await installIn(placeOf(name), name);
  return {
    program: (command) =>
      packages.map((name) => join(placeOf(name), "node_modules", ".bin", command)).find((file) => existsSync(file))!,
    version: async (name) => (await Bun.file(join(placeOf(name), "node_modules", name, "package.json")).json()).version,
  };
}

async function installIn(folder: string, name: string): Promise<void> {
  await Bun.write(join(folder, "package.json"), JSON.stringify({ private: true, allowScripts: { [name]: true } }));
  // Without a tag, npm takes the newest version that says it supports the Node at hand, which may be years old.
  const npm = Bun.spawn(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", `${name}@latest`], {
    cwd: folder,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "inherit",
    timeout: within,
  });
  if ((await npm.exited) !== 0) throw new Error(`npm install ${name} failed in ${folder}.`);
}
