/**
 * Scenario: `dragoman update` against a host of releases on loopback, and the daily line that says that there is a
 * newer version.
 */
import { afterAll, afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import fs, { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunName, type Installation } from "../../src/cli/installation";
import { lookOnce, mayLook } from "../../src/cli/update/notice";
import { releaseSource } from "../../src/cli/update/releases";
import { update, ways } from "../../src/cli/update/update";
import { readEnvironment } from "../../src/config/environment";
import { run, source } from "../support/command";
import { startProxy } from "../support/proxy";
import { type ReleaseHost, repository, startReleaseHost } from "../support/release-host";
import { until } from "../support/until";

let home: string;
let host: ReleaseHost;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "dragoman-update-"));
  host = startReleaseHost();
});
afterEach(async () => {
  await host[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

const said = spyOn(fs, "writeSync");
const warned = spyOn(process.stderr, "write");
afterAll(() => {
  said.mockRestore();
  warned.mockRestore();
});

/** @returns The exit code, and the lines on stdout and stderr. */
async function updated(installation: Installation, more: { version?: string; local?: true } = {}) {
  let out = "";
  said.mockImplementation((_file: number, bytes: unknown) => {
    out += String(bytes);
    return Buffer.byteLength(String(bytes));
  });
  warned.mockImplementation(() => true).mockClear();
  const code = await update({
    version: more.version ?? "1.0.0",
    environment: readEnvironment({ HOME: home, DRAGOMAN_HOME: join(home, "data") }),
    installation,
    source: more.local ? undefined : host.source,
  });
  return {
    code,
    lines: out.split("\n").slice(0, -1),
    warning: warned.mock.calls.map(([line]) => String(line)).join(""),
  };
}

const npm: Installation = { kind: "npm", command: ["/usr/bin/dragoman"] };

describe("update", () => {
  test("names the newest version, what to type for this installation, and what to restart", async () => {
    expect(await updated(npm)).toEqual({
      code: 0,
      lines: [
        "dragoman 9.0.0 is available; this is 1.0.0.",
        "npm installed it. Type:",
        "  npm install -g dragoman@latest",
        "Then restart a running server.",
      ],
      warning: "",
    });
    expect([host.seen, [...host.agents]]).toEqual([["/api/releases/latest"], ["dragoman/1.0.0"]]);
  });

  test("says of the newest version, and of one that is newer, that there is nothing to do", async () => {
    for (const version of ["9.0.0", "10.0.0"])
      expect(await updated(npm, { version })).toMatchObject({
        code: 0,
        lines: [`dragoman ${version} is the newest version.`],
      });
  });

  test("of a build that knows no releases asks nobody, and says what to type", async () => {
    const { code, lines } = await updated({ kind: "executable", command: ["/clone/dist/dragoman"] }, { local: true });
    expect([code, lines[0], host.seen]).toEqual([0, expect.stringContaining("a build of your own"), []]);
  });

  test.each([
    ["an answer that is no release", /not valid/, () => Response.json({ tag_name: "latest" })],
    ["an answer that is no JSON", /not valid|JSON/, () => new Response("<html>")],
    ["a host that is busy", /no more calls/, () => new Response("", { status: 403 })],
    ["a host without a release", /has none/, () => new Response("", { status: 404 })],
    ["a host that fails", /status 500/, () => new Response("", { status: 500 })],
    ["a redirect", /redirect/, () => Response.redirect("https://evil.test/", 302)],
  ])("with %s says why it is not known, and what to type all the same", async (_, why, answer) => {
    host.instead = answer;
    const { code, lines, warning } = await updated(npm);
    expect([code, warning]).toEqual([1, expect.stringMatching(why)]);
    expect(lines).toContain("  npm install -g dragoman@latest");
  });
});

describe("what to type", () => {
  const own = { repository: undefined, home: "/home/x", platform: "linux", bun: "bun" } as const;
  const released = { ...own, repository: "https://github.com/Owner/dragoman" };
  const scripts = "https://github.com/Owner/dragoman/releases/latest/download";

  // biome-ignore format: a table is read by its rows
  test.each([
    ["an executable of the install script", ways.executable({ ...released, path: "/home/x/.local/bin/dragoman" }), [`curl -fsSL ${scripts}/install.sh | sh`]],
    [
      "an executable in another folder",
      ways.executable({ ...released, path: "/opt/my tools/dragoman-1.0.0-linux-x64" }),
      [`curl -fsSL ${scripts}/install.sh | DRAGOMAN_INSTALL_DIR='/opt/my tools' sh`],
    ],
    ["an executable of one's own build, in its clone", ways.executable({ ...own, path: "/clone/dist/dragoman" }), ["git pull", "bun install", "bun run build"]],
    [
      "an executable of one's own build, elsewhere and without Bun",
      ways.executable({ ...own, path: "/home/x/bin/dragoman", bun: "npx --yes bun@1" }),
      ["git pull", "npx --yes bun@1 install", "npx --yes bun@1 run build", "mv dist/dragoman /home/x/bin/dragoman"],
    ],
    ["a released image", ways.container({ ...released, path: "" }), ["docker pull ghcr.io/owner/dragoman:latest"]],
    ["an image of one's own", ways.container({ ...own, path: "" }), ["git pull", "docker compose --file src/deploy/compose.yaml up --detach --build"]],
    ["npm", ways.npm({ ...released, path: "" }), ["npm install -g dragoman@latest"]],
    ["pnpm", ways.pnpm({ ...released, path: "" }), ["pnpm add -g dragoman@latest"]],
    ["bun add -g", ways.bun({ ...released, path: "" }), ["bun add -g dragoman@latest"]],
    ["a project's package", ways.project({ ...released, path: "/shop/node_modules/dragoman/dist/main.js" }), ["npm install dragoman@latest"]],
    ["bunx", ways.bunx({ ...released, path: "" }), ["bunx dragoman@latest start"]],
    ["npx", ways.npx({ ...released, path: "" }), ["npx dragoman@latest start"]],
    ["a clone", ways.source({ ...own, path: "/clone/src/main.ts" }), ["git pull", "bun install"]],
  ])("for %s", (_, { how, commands }, expected) => {
    expect([how.at(-1), [...commands]]).toEqual([":", expected]);
  });

  test("names the folder or file that it is about", () => {
    const howOf = (kind: keyof typeof ways, path: string) => ways[kind]({ ...released, path }).how;
    expect(howOf("source", "/clone/src/main.ts")).toContain(" /clone:");
    expect(howOf("project", "/shop/node_modules/.pnpm/dragoman@1.0.0/node_modules/dragoman/x.js")).toContain(" /shop ");
    expect(howOf("executable", "/opt/dragoman-1.0.0-linux-x64")).toContain(" /opt/dragoman:");
  });

  test("on Windows is PowerShell's", () => {
    // Its paths are those of this system here: `node:path` knows no others.
    const { how, commands } = ways.executable({ ...released, platform: "win32", path: "/it's/dragoman.exe" });
    expect([how, commands]).toEqual([
      expect.stringContaining("Stop a running server first. This puts the newest one at /it's/dragoman.exe:"),
      ["$env:DRAGOMAN_INSTALL_DIR = '/it''s'", `irm ${scripts}/install.ps1 | iex`],
    ]);
  });

  test("begins with the Bun that a person finds, or with npx, which brings one", () => {
    const bin = (path: string) => {
      mkdirSync(join(home, path), { recursive: true });
      writeFileSync(join(home, path, "bun"), "#!/bin/sh\n", { mode: 0o755 });
      return { PATH: join(home, path) };
    };
    expect(bunName(bin("bin"))).toBe("bun");
    // As `npx bun` sets it for itself.
    expect(bunName(bin("node_modules/.bin"))).toBe(`npx --yes --allow-scripts=bun bun@${Bun.version}`);
  });

  test.skipIf(process.platform === "win32")("runs in a shell, whatever the path has in it", () => {
    const folder = join(home, `a "b" 'c' $d \`e\``);
    mkdirSync(folder);
    const [line] = ways.executable({ ...released, path: join(folder, "dragoman") }).commands;
    // The script is replaced by one that says where it would install.
    const script = line!.replace(/^curl \S+ \S+/, `echo 'echo "$DRAGOMAN_INSTALL_DIR"'`);
    expect(Bun.spawnSync(["sh", "-c", script]).stdout.toString()).toBe(`${folder}\n`);
  });

  test.skipIf(process.platform === "win32")("for one's own build replaces the program, also while it runs", () => {
    const path = join(home, "my bin/dragoman");
    for (const folder of ["my bin", "clone/dist"]) mkdirSync(join(home, folder), { recursive: true });
    for (const [name, text] of [
      [path, "old"],
      [join(home, "clone/dist/dragoman"), "new"],
    ] as const)
      writeFileSync(name, `#!/bin/sh\necho ${text}\n`, { mode: 0o755 });
    const last = ways.executable({ ...own, path }).commands.at(-1)!;
    expect(Bun.spawnSync(["sh", "-c", last], { cwd: join(home, "clone") }).exitCode).toBe(0);
    expect(Bun.spawnSync([path]).stdout.toString()).toBe("new\n");
  });
});

test("releases are looked up at GitHub, or where the owner says, only of a build that knows its repository", () => {
  expect(releaseSource({}, "https://github.com/o/r")).toEqual({
    api: "https://api.github.com/repos/o/r",
    repository: "https://github.com/o/r",
  });
  expect(releaseSource({ releasesUrl: "https://mirror.test/x" }, "https://github.com/o/r")?.api).toBe(
    "https://mirror.test/x",
  );
  expect(releaseSource({}, undefined)).toBeUndefined();
  expect(releaseSource({}, "https://evil.test/o/r")).toBeUndefined();
});

describe("the notice", () => {
  const lines = (proxy: Awaited<ReturnType<typeof startProxy>>) =>
    proxy.lines.filter((line) => line.includes("is available"));

  test("the notice of a new version is one line a day, whatever the number of looks and servers", async () => {
    let now = Date.now();
    await using proxy = await startProxy({ clock: { now: () => now } });
    const look = () => lookOnce(proxy.app, host.source);
    await look();
    await look();
    expect(lines(proxy)).toEqual([
      expect.stringMatching(/dragoman 9\.0\.0 is available; this is 0\.0\.0-test\. `.+ update` says how to get it\./),
    ]);
    expect(host.seen).toEqual(["/api/releases/latest"]);
    now += 23.9 * 3_600_000;
    await look();
    expect(lines(proxy)).toHaveLength(1);
    now += 0.2 * 3_600_000;
    await look();
    expect(lines(proxy)).toHaveLength(2);
    await proxy.app.config.change({ updateNotice: false });
    now += 25 * 3_600_000;
    await look();
    expect(host.seen).toHaveLength(2);
  });

  test("the notice of a new version is silent about the same version, and when nobody answers", async () => {
    await using proxy = await startProxy();
    host.instead = () => new Response("", { status: 500 });
    await lookOnce(proxy.app, host.source);
    await using same = await startProxy();
    const { config, environment, logger, now, stopping } = same.app;
    host.instead = undefined;
    await lookOnce({ config, environment, logger, now, stopping, version: "9.0.0" }, host.source);
    expect([...lines(proxy), ...lines(same)]).toEqual([]);
    expect([...proxy.lines, ...same.lines].filter((line) => / (?:warn|error) /.test(line))).toEqual([]);
  });

  test("the notice of a new version is for people: not in CI, for a parent program, in the demo, or against their will", () => {
    const usual = { isChild: false, noNotice: false, demo: false };
    expect(mayLook({}, usual)).toBe(true);
    expect(mayLook({ CI: "" }, usual)).toBe(true);
    expect(mayLook({ CI: "true" }, usual)).toBe(false);
    for (const flag of Object.keys(usual)) expect(mayLook({}, { ...usual, [flag]: true })).toBe(false);
  });

  test("the notice of a new version comes from a started server, and not with --no-update-notice", async () => {
    const env = {
      DRAGOMAN_BUILD_REPOSITORY: `https://github.com/${repository}`,
      DRAGOMAN_RELEASES_URL: host.source.api,
    };
    await using command = run(["start", "--port", "0"], { env, instead: source });
    await until(() => command.stderr().includes("dragoman 9.0.0 is available"), "the newer version is named");
    const looks = host.seen.length;
    for (const option of ["--no-update-notice", "--json"]) {
      await using silent = run(["start", "--port", "0", option], { env, instead: source });
      await until(
        () => (silent.stderr() + silent.stdout()).includes(option === "--json" ? '"ready"' : "  Data "),
        "it is ready",
      );
      silent.process.kill();
      await silent.exited;
    }
    expect(host.seen).toHaveLength(looks);
  });
});
