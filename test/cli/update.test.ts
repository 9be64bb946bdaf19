/** Scenario: what `dragoman update` says to type, where a shell reads it, and the daily line that says that there is a newer version. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bunName } from "../../src/cli/installation";
import { lookOnce, mayLook } from "../../src/cli/update/notice";
import { releaseSource } from "../../src/cli/update/releases";
import { ways } from "../../src/cli/update/update";
import { run, source } from "../support/command";
import { startProxy } from "../support/proxy";
import { type ReleaseHost, repository, startReleaseHost } from "../support/release-host";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

let home: string;
let host: ReleaseHost;
beforeEach(() => {
  home = temporaryFolder();
  host = startReleaseHost();
});
afterEach(() => host[Symbol.asyncDispose]());

const own = { repository: undefined, home: "/home/x", platform: "linux", bun: "bun" } as const;
const released = { ...own, repository: "https://github.com/Owner/dragoman" };

test("what to type begins with the Bun that a person finds, or with npx, which brings one", () => {
  const bin = (path: string) => {
    mkdirSync(join(home, path), { recursive: true });
    writeFileSync(join(home, path, "bun"), "#!/bin/sh\n", { mode: 0o755 });
    return { PATH: join(home, path) };
  };
  expect(bunName(bin("bin"))).toBe("bun");
  // As `npx bun` sets it for itself.
  expect(bunName(bin("node_modules/.bin"))).toBe(`npx --yes --allow-scripts=bun bun@${Bun.version}`);
});

test.skipIf(process.platform === "win32")("what to type runs in a shell, whatever the path has in it", () => {
  const folder = join(home, `a "b" 'c' $d \`e\``);
  mkdirSync(folder);
  const [line] = ways.executable({ ...released, path: join(folder, "dragoman") }).commands;
  // The script is replaced by one that says where it would install.
  const script = line!.replace(/^curl \S+ \S+/, `echo 'echo "$DRAGOMAN_INSTALL_DIR"'`);
  expect(Bun.spawnSync(["sh", "-c", script]).stdout.toString()).toBe(`${folder}\n`);
});

test.skipIf(process.platform === "win32")(
  "what to type for one's own build replaces the program, also while it runs",
  () => {
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
  },
);

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
