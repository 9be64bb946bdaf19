/**
 * Scenario: the npm package, as it is packed and installed: everything inside, nothing else taken up, in a hostile
 * folder too.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "../../../package.json";
import { NpmRegistry } from "../../../src/deploy/npm-registry";
import { drive } from "../../../src/deploy/smoke";
import { fileName, packageFor, targetHere, targets } from "../../../src/deploy/targets";

const root = join(import.meta.dir, "../../..");
let folder: string;
let tarball: string;
let listing: string[];
const registry = new NpmRegistry();
const own = targetHere();

/** Nothing may be fetched from elsewhere. */
const environment = (): Record<string, string> => ({
  PATH: process.env.PATH ?? "",
  HOME: join(folder, "home"),
  TMPDIR: join(folder, "tmp"),
  DRAGOMAN_HOME: join(folder, "data"),
  BUN_INSTALL: join(folder, "bun"),
  BUN_CONFIG_REGISTRY: registry.url,
  npm_config_registry: registry.url,
  npm_config_update_notifier: "false",
});

async function done(command: string[], cwd: string, env = environment()): Promise<string> {
  const child = Bun.spawn(command, {
    cwd,
    env,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: 120_000,
  });
  const [said, complained] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${complained}`);
  return said;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "dragoman-package-"));
  for (const name of ["home", "tmp", "data"]) mkdirSync(join(folder, name), { mode: 0o700 });
  // Packing changes package.json for a moment: not in the tree that others read.
  const tree = join(folder, "tree");
  mkdirSync(tree);
  for (const name of ["package.json", "tsconfig.json", "bunfig.toml", "README.md", "LICENSE", "src"])
    cpSync(join(root, name), join(tree, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(tree, "node_modules"));
  mkdirSync(join(tree, "dist"));
  writeFileSync(join(tree, "dist/left-over.js"), "an earlier build");
  const before = readFileSync(join(tree, "package.json"), "utf8");
  const left = join(tree, "dist/package.json.ours");
  writeFileSync(left, "of a pack that was broken off");
  await expect(done([process.execPath, "pm", "pack", "--quiet"], tree)).rejects.toThrow("put it back, or remove it");
  expect([readFileSync(join(tree, "package.json"), "utf8"), readFileSync(left, "utf8")]).toEqual([
    before,
    "of a pack that was broken off",
  ]);
  rmSync(left);
  await done([process.execPath, "pm", "pack", "--quiet"], tree);
  expect(readFileSync(join(tree, "package.json"), "utf8")).toBe(before);
  tarball = join(tree, `dragoman-${version}.tgz`);
  listing = (await done(["tar", "tzf", tarball], tree)).trim().split("\n").sort();
  await publishAll(tree);
}, 300_000);

afterAll(() => {
  registry[Symbol.dispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** As the release workflow does, but that the executables of other machines are empty. */
async function publishAll(tree: string): Promise<void> {
  const bun = (...args: string[]) => done([process.execPath, ...args], tree);
  for (const target of targets) writeFileSync(join(tree, "dist", fileName(target)), "");
  await bun("src/deploy/build.ts", "--target", own.name, "--output", join("dist", fileName(own)));
  await bun("src/deploy/package.ts", "platforms", tree);
  const publish = ["src/deploy/package.ts", "publish", tree, "--access", "public", ...registry.options];
  await bun(...publish);
  expect([...registry.names].sort()).toEqual(["dragoman", ...targets.map((each) => packageFor(each).name)].sort());
  // Who installs it finds all that it asks for.
  expect(registry.names.at(-1)).toBe("dragoman");
  await bun(...publish);
  expect(registry.names).toHaveLength(targets.length + 1);
}

describe("the package", () => {
  test("the package holds the bundle, its static files, README and LICENSE, and is small", () => {
    expect(Bun.file(tarball).size).toBeLessThan(3_000_000);
    const others = listing.filter((name) => !/^package\/dist\/[\w-]+\.js$/.test(name));
    expect(others).toEqual([
      "package/LICENSE",
      "package/README.md",
      "package/dist/LICENSES.txt",
      "package/dist/static/admin.css",
      "package/dist/static/admin.js",
      "package/dist/static/icon.svg",
      "package/dist/static/try.js",
      "package/package.json",
    ]);
    expect(listing).toContain("package/dist/main.js");
    for (const worker of ["tokenizer-worker", "reader-worker", "match-worker"])
      expect(listing).toContain(`package/dist/${worker}.js`);
    expect(listing).not.toContain("package/dist/left-over.js");
  });

  test("hands on the licences of what is in it, and of nothing else", async () => {
    const licences = await done(["tar", "xzOf", tarball, "package/dist/LICENSES.txt"], folder);
    const names = [...licences.matchAll(/^((?:@[\w-]+\/)?[\w-]+) \d+\.\d+\.\d+\n/gm)].map(([, name]) => name);
    for (const name of ["elysia", "zod", "cac", "gpt-tokenizer", "@elysiajs/static", "@kitajs/html"])
      expect(names).toContain(name);
    expect(names).not.toContain("openai");
    expect(licences.match(/^Copyright|^.*MIT License/gm)!.length).toBeGreaterThanOrEqual(names.length);
  });

  test("the package asks for its executables alone, and says nothing but what is for those who install it", async () => {
    const manifest = JSON.parse(await done(["tar", "xzOf", tarball, "package/package.json"], folder));
    expect(Object.keys(manifest)).toEqual([
      "name",
      "version",
      "description",
      "license",
      "type",
      "bin",
      "files",
      "engines",
      "optionalDependencies",
    ]);
    expect(manifest.version).toBe(version);
    const wanted = targets.map((target) => [packageFor(target).name, version]);
    expect(manifest.optionalDependencies).toEqual(Object.fromEntries(wanted));
  });
});

/** A folder in which everything that Bun, npm or Node read from a folder tries to run something. */
function hostileFolder(name: string): { path: string; marker: string } {
  const path = join(folder, name);
  const marker = join(folder, `${name}-marker`);
  const write = (file: string, text: string) => {
    mkdirSync(join(path, file, ".."), { recursive: true });
    writeFileSync(join(path, file), text);
  };
  write("trap.js", `require("node:fs").writeFileSync(${JSON.stringify(marker)}, "ran");`);
  write("bunfig.toml", 'preload = ["./trap.js"]\n[run]\nbun = false\n');
  write(
    ".env",
    "DRAGOMAN_GITHUB_URL=http://evil.example\nDRAGOMAN_API_KEY=k-of-the-folder\nBUN_OPTIONS=--preload=./trap.js\n",
  );
  write("tsconfig.json", '{ "compilerOptions": { "paths": { "*": ["./trap.js"] }, "baseUrl": "." } }');
  write("package.json", '{ "name": "victim", "imports": { "#*": "./trap.js" }, "exports": "./trap.js" }');
  for (const dependency of ["elysia", "zod", "cac", "@elysiajs/static", "@kitajs/html", "gpt-tokenizer"]) {
    write(
      `node_modules/${dependency}/package.json`,
      JSON.stringify({ name: dependency, main: "index.js", version: "9.9.9" }),
    );
    write(`node_modules/${dependency}/index.js`, `require(${JSON.stringify(join(path, "trap.js"))});`);
  }
  return { path, marker };
}

const ways: Record<string, () => Promise<string[]>> = {
  bunx: async () => ["bunx", `dragoman@${version}`],
  npx: async () => ["npx", "--yes", `dragoman@${version}`],
  "bun add -g": async () => {
    await done(["bun", "add", "-g", "dragoman"], folder);
    return [join(folder, "bun/bin/dragoman")];
  },
  "npm install -g": async () => {
    await done(["npm", "install", "-g", "--prefix", join(folder, "npm"), "dragoman"], folder);
    return [join(folder, "npm/bin/dragoman")];
  },
};

test.each(Object.keys(ways))(
  "by %s, in a folder that would steer it",
  async (way) => {
    const { path, marker } = hostileFolder(way.replaceAll(" ", ""));
    const command = await ways[way]!();
    await drive(command, { cwd: path, env: environment() });
    expect(existsSync(marker)).toBe(false);
  },
  90_000,
);

/** An empty folder with the package in it. @returns The names of the executables' packages that are there */
async function installIn(name: string, ...options: string[]) {
  const path = join(folder, name);
  mkdirSync(path);
  writeFileSync(join(path, "package.json"), "{}");
  await done(["npm", "install", ...options, "dragoman"], path);
  const scope = join(path, "node_modules/@dragoman");
  return { path, packages: existsSync(scope) ? readdirSync(scope) : [] };
}

/** A PATH with these programs and no other. */
function pathOf(programs: Record<string, string | null>): string {
  const bin = mkdtempSync(join(folder, "bin-"));
  for (const [name, program] of Object.entries(programs)) symlinkSync(program!, join(bin, name));
  return bin;
}
const found = (...names: string[]) => Object.fromEntries(names.map((name) => [name, Bun.which(name)]));
const onlyNode = () => pathOf(found("node", "npm", "npx", "sh", "env"));
const onlyBun = () => pathOf({ ...found("sh", "env"), bun: process.execPath, bunx: process.execPath });

test("bunx runs it with nothing but Bun", async () => {
  await drive(["bunx", `dragoman@${version}`], { cwd: folder, env: { ...environment(), PATH: onlyBun() } });
}, 90_000);

test("npm installs the executable of this machine alone, and it runs with nothing but Node", async () => {
  const { path, packages } = await installIn("with");
  expect(packages).toEqual([own.name]);
  await drive(["npx", "dragoman"], { cwd: path, env: { ...environment(), PATH: onlyNode() } });
}, 90_000);

test("without its optional packages it says what is missing, and runs where there is Bun", async () => {
  const { path, packages } = await installIn("without", "--omit=optional");
  expect(packages).toEqual([]);
  const command = ["npx", "dragoman"];
  await expect(done([...command, "--version"], path, { ...environment(), PATH: onlyNode() })).rejects.toThrow(
    `@dragoman/${own.name}`,
  );
  await drive(command, { cwd: path, env: environment() });
}, 90_000);

test.each(targets.filter(({ loader }) => loader).map((target) => [target.name, packageFor(target)] as const))(
  "npm on %s installs its executable alone",
  async (name, { os, cpu, libc }) => {
    const { packages } = await installIn(`for-${name}`, `--os=${os}`, `--cpu=${cpu}`, `--libc=${libc}`);
    expect(packages).toEqual([name]);
  },
  90_000,
);
