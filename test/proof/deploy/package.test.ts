/** The npm package, as it is packed and installed: everything inside, nothing else taken up, in a hostile folder too. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "../../../package.json";
import { drive } from "../../../src/deploy/smoke";

const root = join(import.meta.dir, "../../..");
let folder: string;
let tarball: string;
let listing: string[];

/** Nothing may be fetched: the registry is a port where nobody listens. */
const environment = () => ({
  PATH: process.env.PATH ?? "",
  HOME: join(folder, "home"),
  TMPDIR: join(folder, "tmp"),
  DRAGOMAN_HOME: join(folder, "data"),
  BUN_INSTALL: join(folder, "bun"),
  BUN_CONFIG_REGISTRY: "http://127.0.0.1:1",
  npm_config_registry: "http://127.0.0.1:1",
  npm_config_update_notifier: "false",
});

async function done(command: string[], cwd: string): Promise<string> {
  const child = Bun.spawn(command, {
    cwd,
    env: environment(),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: 60_000,
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
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

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
    for (const worker of ["tokenizer-worker", "reader-worker", "text-worker"])
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

  test("the package asks for no other package, and says nothing but what is for those who install it", async () => {
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
    ]);
    expect(manifest.version).toBe(version);
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
  bunx: async () => ["bunx", "-p", tarball, "dragoman"],
  npx: async () => ["npx", "--yes", "--package", tarball, "dragoman"],
  "bun add -g": async () => {
    await done(["bun", "add", "-g", tarball], folder);
    return [join(folder, "bun/bin/dragoman")];
  },
  "npm install -g": async () => {
    await done(["npm", "install", "-g", "--prefix", join(folder, "npm"), tarball], folder);
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
