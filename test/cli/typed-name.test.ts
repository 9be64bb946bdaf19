/**
 * Scenario: how this copy was installed, and what a message tells a person to type: what works where it was started
 * from.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { installationOf, typedName } from "../../src/cli/installation";
import { run, source } from "../support/command";
import { temporaryFolder } from "../support/temporary-folder";
import { usedDemo } from "../support/used-demo";

const isWindows = process.platform === "win32";
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

// biome-ignore format: a table is read by its rows
test.skipIf(isWindows).each([
    ["dragoman, where the PATH has it", [withDragoman], inClone, "dragoman"],
    ["by the file of a clone", [withBun], inClone, "bun ./src/main.ts"],
    ["by the file of a clone, from another folder", [withBun], { main: inClone.main }, "bun ./clone/src/main.ts"],
    ["by npx in a clone without Bun", [passing], inClone, `npx --yes --allow-scripts=bun bun@${Bun.version} ./src/main.ts`],
    ["by bunx", [passing], { main: "/tmp/bunx-0-dragoman/node_modules/dragoman/dist/main.js" }, "bunx dragoman"],
    ["by npx", [passing], { isExecutable: true, execPath: "/home/x/.npm/_npx/1/node_modules/@dragoman/linux-x64/dragoman" }, "npx dragoman"],
    ["by npx in a project that has it", [], { isExecutable: true, execPath: "/project/node_modules/@dragoman/linux-x64/dragoman" }, "npx dragoman"],
    ["by the path of an executable", [], { isExecutable: true, execPath: join(root, "dist/dragoman") }, "./clone/dist/dragoman"],
    ["by a path in quotes if it has a space", [], { isExecutable: true, execPath: "/My files/dragoman" }, '"/My files/dragoman"'],
  ] as const)("a command is named %s", (_, path, running, name) => expect(nameOf([...path], running)).toBe(name));

test.skipIf(isWindows)(
  "a command is named so in what the program says, and nowhere in what programs read",
  async () => {
    await using usage = run(["usage"], { env: { PATH: withBun }, instead: source });
    expect(await usage.exited).toBe(0);
    expect(usage.stderr()).toMatch(/Run `bun \S*src\/main\.ts auth` to sign in\./);
    await using doctor = run(["doctor", "--json"], { env: { PATH: withBun }, instead: source });
    await doctor.exited;
    expect(doctor.stdout()).toContain("`dragoman auth`");
  },
);

test.skipIf(isWindows)("a command is named so on the pages too, with a name that holds in every folder", async () => {
  const start = ["start", "--demo", "--json", "--port", "0"];
  const env = { PATH: withBun, DRAGOMAN_HOME: usedDemo(join(folder, "data")) };
  await using server = run(start, { env, instead: source, cwd: join(import.meta.dir, "../..") });
  const { url } = await server.ready();
  const text = await (await fetch(`${url}/admin/connect`)).text();
  expect(text).toMatch(/<code>bun [~/]\S*\/src\/main\.ts connect claude-code --write<\/code>/);
  expect(text).not.toContain("<code>dragoman ");
});

test("a project's own package is known, and what starts a versioned one is the link on the PATH", () => {
  const of = (running: object) =>
    installationOf({ execPath: "", execArgv: [], main: "", isExecutable: false, env: {}, cwd: "/", ...running });
  writeFileSync(join(folder, "package.json"), "{}");
  const execPath = join(folder, "node_modules/.pnpm/a@1/node_modules/@dragoman/linux-x64/dragoman");
  expect(of({ main: join(folder, "node_modules/dragoman/dist/main.js") }).kind).toBe("project");
  expect(of({ execPath, isExecutable: true }).kind).toBe("project");
  // A package manager's own path names the version, which an update removes.
  const [own, link] = [join(folder, "dragoman-1.2.3"), join(folder, "links", "dragoman")];
  writeFileSync(own, "", { mode: 0o755 });
  mkdirSync(join(folder, "links"));
  symlinkSync(own, link);
  const commandWith = (PATH: string) => of({ execPath: own, isExecutable: true, env: { PATH } }).command;
  expect([commandWith(join(folder, "links")), commandWith("")]).toEqual([[link], [own]]);
});
