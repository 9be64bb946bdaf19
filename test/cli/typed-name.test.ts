/**
 * Scenario: how this copy was installed, and what a message tells a person to type: what works where it was started
 * from.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { installationOf, typedName } from "../../src/cli/installation";
import { run, source } from "../support/command";
import { temporaryFolder } from "../support/temporary-folder";
import { usedDemo } from "../support/used-demo";

const folder = temporaryFolder(afterAll);
const place = (path: string, name: string) => {
  mkdirSync(join(folder, path), { recursive: true });
  writeFileSync(join(folder, path, name), "#!/bin/sh\n", { mode: 0o755 });
  return join(folder, path);
};
const withBun = place("bun", "bun");
const withDragoman = place("installed", "dragoman");
/** What npx and bunx put there for as long as they run. */
const passing = place("x/node_modules/.bin", "dragoman");

const root = join(folder, "clone");
const inClone = { main: join(root, "src/main.ts"), cwd: root };
const nameOf = (path: string[], running: Partial<Parameters<typeof typedName>[0] & object>) =>
  typedName({
    execPath: "/usr/bin/bun",
    execArgv: [],
    main: "",
    isExecutable: false,
    cwd: folder,
    env: { PATH: path.join(delimiter) },
    ...running,
  });

describe.skipIf(process.platform === "win32")("a command is named", () => {
  // biome-ignore format: a table is read by its rows
  test.each([
    ["dragoman, where the PATH has it", [withDragoman], inClone, "dragoman"],
    ["by the file of a clone", [withBun], inClone, "bun ./src/main.ts"],
    ["by the file of a clone, from another folder", [withBun], { main: inClone.main }, "bun ./clone/src/main.ts"],
    ["by npx in a clone without Bun", [passing], inClone, `npx --yes --allow-scripts=bun bun@${Bun.version} ./src/main.ts`],
    ["by bunx", [passing], { main: "/tmp/bunx-0-dragoman/node_modules/dragoman/dist/main.js" }, "bunx dragoman"],
    ["by npx", [passing], { isExecutable: true, execPath: "/home/x/.npm/_npx/1/node_modules/@dragoman/linux-x64/dragoman" }, "npx dragoman"],
    ["by npx in a project that has it", [], { isExecutable: true, execPath: "/project/node_modules/@dragoman/linux-x64/dragoman" }, "npx dragoman"],
    ["by the path of an executable", [], { isExecutable: true, execPath: join(root, "dist/dragoman") }, "./clone/dist/dragoman"],
    ["by a path in quotes if it has a space", [], { isExecutable: true, execPath: "/My files/dragoman" }, '"/My files/dragoman"'],
  ] as const)("%s", (_, path, running, name) => expect(nameOf([...path], running)).toBe(name));

  test("so in what the program says, and nowhere in what programs read", async () => {
    await using usage = run(["usage"], { env: { PATH: withBun }, instead: source });
    expect(await usage.exited).toBe(0);
    expect(usage.stderr()).toMatch(/Run `bun \S*src\/main\.ts auth` to sign in\./);
    await using doctor = run(["doctor", "--json"], { env: { PATH: withBun }, instead: source });
    await doctor.exited;
    expect(doctor.stdout()).toContain("`dragoman auth`");
  });

  test("so on the pages too, with a name that holds in every folder", async () => {
    const start = ["start", "--demo", "--json", "--port", "0"];
    const env = { PATH: withBun, DRAGOMAN_HOME: usedDemo(join(folder, "data")) };
    await using server = run(start, { env, instead: source, cwd: join(import.meta.dir, "../..") });
    const { url } = await server.ready();
    const text = await (await fetch(`${url}/admin/connect`)).text();
    expect(text).toMatch(/<code>bun [~/]\S*\/src\/main\.ts connect claude-code --write<\/code>/);
    expect(text).not.toContain("<code>dragoman ");
  });
});

test("each way to install is known by its folder", () => {
  const of = (running: Partial<Parameters<typeof installationOf>[0]>) =>
    installationOf({
      execPath: "/usr/bin/bun",
      execArgv: ["--x"],
      main: "",
      isExecutable: false,
      env: {},
      cwd: "/",
      ...running,
    });
  const executable = (execPath: string, env = {}) => of({ execPath, isExecutable: true, env }).kind;
  expect(executable("/home/x/bin/dragoman")).toBe("executable");
  expect(executable("/dragoman", { DRAGOMAN_IMAGE: "1" })).toBe("container");
  expect(executable("/usr/lib/node_modules/@dragoman/linux-x64/dragoman")).toBe("npm");
  expect(executable("/tmp/bunx-0-dragoman@latest/node_modules/@dragoman/linux-x64/dragoman")).toBe("bunx");
  const script = (main: string) => of({ main }).kind;
  expect(script("/usr/lib/node_modules/dragoman/dist/main.js")).toBe("npm");
  expect(script("/home/x/.bun/install/global/node_modules/dragoman/dist/main.js")).toBe("bun");
  expect(script("/tmp/bunx-1000-dragoman@latest/node_modules/dragoman/dist/main.js")).toBe("bunx");
  expect(script("/home/x/.npm/_npx/1f/node_modules/dragoman/dist/main.js")).toBe("npx");
  expect(script("/home/x/.local/share/pnpm/global/5/.pnpm/dragoman@1/node_modules/dragoman/dist/main.js")).toBe("pnpm");
  writeFileSync(join(folder, "package.json"), "{}");
  expect(script(join(folder, "node_modules/dragoman/dist/main.js"))).toBe("project");
  expect(executable(join(folder, "node_modules/.pnpm/a@1/node_modules/@dragoman/linux-x64/dragoman"))).toBe("project");
  expect(of({ main: "/src/main.ts" })).toEqual({ kind: "source", command: ["/usr/bin/bun", "--x", "/src/main.ts"] });
  // A package manager's own path names the version, which an update removes; the link on the PATH stays.
  const [own, link] = [join(folder, "dragoman-1.2.3"), join(folder, "links", "dragoman")];
  writeFileSync(own, "", { mode: 0o755 });
  mkdirSync(join(folder, "links"));
  symlinkSync(own, link);
  const commandWith = (PATH: string) => of({ execPath: own, isExecutable: true, env: { PATH } }).command;
  expect([commandWith(join(folder, "links")), commandWith("")]).toEqual([[link], [own]]);
});
