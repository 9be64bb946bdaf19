/**
 * `bun run release <owner>/<name>`: makes everything that a release of that repository uploads, in `dist/release`, and tries it
 * as a person who installs it here: from npm, whose registry is one on loopback, by install.sh, and as an image where Docker is.
 */
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { version } from "../../package.json";
import { readSums, shellInstaller } from "./install-scripts";
import { NpmRegistry } from "./npm-registry";
import { drive } from "./smoke";
import { fileName, packageFor, targetHere, targets } from "./targets";

const root = join(import.meta.dir, "../..");
const dist = join(root, "dist");
const folder = join(dist, "release");
const packages = join(folder, "npm");
const tag = `v${version}`;

type Environment = Record<string, string | undefined>;

/** @returns What it prints on stdout. @throws Error */
async function run(command: string[], env: Environment, input?: string): Promise<string> {
  const stdin = input === undefined ? "ignore" : Buffer.from(input);
  const child = Bun.spawn(command, { cwd: root, env, stdin, stdout: "pipe", stderr: "inherit", timeout: 900_000 });
  const printed = await child.stdout.text();
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")} failed.\n${printed}`);
  return printed;
}

/** The executables, the npm packages, checksums, licences, notes and install scripts. */
async function make(repository: string, env: Environment): Promise<void> {
  const bun = (...args: string[]) => run([process.execPath, ...args], env);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(packages, { recursive: true });
  const notes = await bun("src/deploy/release.ts", "notes", tag);
  console.log((await bun("src/deploy/build.ts", "--all", "--check")).trimEnd());
  await bun("pm", "pack", "--quiet", "--destination", packages);
  await bun("src/deploy/package.ts", "platforms", packages);
  for (const name of [...targets.map(fileName), "SHA256SUMS"]) renameSync(join(dist, name), join(folder, name));
  cpSync(join(dist, "LICENSES.txt"), join(folder, "LICENSES.txt"));
  writeFileSync(join(folder, "notes.md"), notes);
  await bun("src/deploy/install-scripts.ts", tag, repository, folder);
}

/** @param place An empty folder. */
async function tryPackages(place: string, env: Environment): Promise<void> {
  const own = join(place, "npm");
  mkdirSync(own);
  const here = packageFor(targetHere());
  // Those of other machines are asked for, and may be missing.
  for (const name of ["dragoman", here.name.replace("@", "").replace("/", "-")])
    cpSync(join(packages, `${name}-${version}.tgz`), join(own, `${name}-${version}.tgz`));
  using registry = new NpmRegistry();
  const there = { ...env, npm_config_registry: registry.url, npm_config_update_notifier: "false" };
  const publish = ["src/deploy/package.ts", "publish", own, "--access", "public", ...registry.options];
  await run([process.execPath, ...publish], there);
  await run(["npm", "install", "--prefix", join(place, "tried"), "dragoman"], there);
  const modules = join(place, "tried/node_modules");
  // Without it Bun would run the bundle, and all would seem well.
  if (!existsSync(join(modules, here.name, here.file))) throw new Error(`npm did not install ${here.name}.`);
  await drive(["node", join(modules, "dragoman/dist/dragoman.js")], { env });
  console.log("npm install dragoman: ok");
}

/** @param place An empty folder. */
async function tryScript(place: string, env: Environment): Promise<void> {
  using host = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) => new Response(Bun.file(join(folder, url.split("/").at(-1)!))),
  });
  const sums = readSums(await Bun.file(join(folder, "SHA256SUMS")).text());
  const script = shellInstaller({ version, repository: `${host.url}owner/dragoman`, sums });
  // GitHub attests what its workflow has built, and nothing else.
  const tools = join(place, "tools");
  mkdirSync(tools);
  writeFileSync(join(tools, "gh"), "#!/bin/sh\nexit 1\n");
  chmodSync(join(tools, "gh"), 0o755);
  const [bin, path] = [join(place, "bin"), [tools, env.PATH].join(delimiter)];
  await run(["sh"], { ...env, PATH: path, DRAGOMAN_INSTALL_DIR: bin }, script);
  await drive([join(bin, "dragoman")], { env });
  console.log("install.sh: ok");
}

async function tryImage(env: Environment): Promise<void> {
  const look = () => Bun.spawnSync(["docker", "info"], { env, stdout: "ignore", stderr: "ignore" });
  if (!Bun.which("docker") || !look().success) return console.log("The image was not tried: no Docker runs here.");
  await run(["docker", "build", "--file", "src/deploy/Dockerfile", "--tag", "dragoman", "."], env);
  await run([process.execPath, "src/deploy/image-smoke.ts", "dragoman"], env);
  console.log("image: ok");
}

const [name = ""] = process.argv.slice(2);
if (!/^[\w.-]+\/[\w.-]+$/.test(name)) throw new Error("Of which repository? bun run release <owner>/<name>");
const server = process.env.GITHUB_SERVER_URL ?? "https://github.com";
await make(`${server}/${name}`, { ...process.env, GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name });
const place = mkdtempSync(join(tmpdir(), "dragoman-release-"));
try {
  const env = { ...process.env, HOME: place, DRAGOMAN_HOME: join(place, "data") };
  await tryPackages(place, env);
  if (process.platform !== "win32") await tryScript(place, env);
  await tryImage(process.env);
} finally {
  rmSync(place, { recursive: true, force: true });
}
console.log(`${folder} has what release ${tag} uploads.`);
