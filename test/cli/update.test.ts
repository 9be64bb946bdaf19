/** `dragoman update` against a host of releases on loopback, and the daily line that says that there is a newer version. */
import { afterAll, afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { TrustedRoot } from "@sigstore/protobuf-specs";
import { installationKinds } from "../../src/cli/installation";
import { lookOnce, mayLook } from "../../src/cli/update/notice";
import { releaseSource } from "../../src/cli/update/releases";
import { knownTrust } from "../../src/cli/update/sigstore-root";
import { type UpdateOptions, update } from "../../src/cli/update/update";
import { readEnvironment } from "../../src/config/environment";
import { stampOptions } from "../../src/deploy/stamp";
import { entries } from "../../src/deploy/targets";
import { run, source } from "../support/command";
import { freePort } from "../support/free-port";
import { startProxy } from "../support/proxy";
import { type ReleaseHost, repository, startReleaseHost } from "../support/release-host";
import { describeWith } from "../support/sandbox";
import { startUserManager } from "../support/systemd";
import { until } from "../support/until";

/** A program that says this version, and serves nothing. */
const script = (version: string) => `#!/bin/sh\n[ "$1" = --version ] && echo ${version} && exit 0\nexit 1\n`;
const file = "dragoman-9.0.0-linux-x64";

let home: string;
let host: ReleaseHost;
let path: string;
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "dragoman-update-"));
  path = join(home, "bin/dragoman");
  mkdirSync(dirname(path));
  writeFileSync(path, script("1.0.0"));
  chmodSync(path, 0o755);
  host = await startReleaseHost();
  await host.publish(file, script("9.0.0"));
});
afterEach(async () => {
  await host[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

const said = spyOn(console, "log");
const printed = spyOn(process.stderr, "write");
afterAll(() => {
  said.mockRestore();
  printed.mockRestore();
});

async function updated(more: Partial<UpdateOptions> = {}) {
  said.mockImplementation(() => {}).mockClear();
  printed.mockImplementation(() => true).mockClear();
  const done = update({
    version: "1.0.0",
    environment: readEnvironment({ HOME: home, DRAGOMAN_HOME: join(home, "data") }),
    check: false,
    yes: true,
    installation: { kind: "executable", command: [path] },
    source: host.source,
    target: "linux-x64",
    trust: async () => TrustedRoot.fromJSON(host.trustedRoot),
    ...more,
  });
  const outcome = await done.then(
    (code) => ({ code, fault: "" }),
    (thrown) => ({ code: -1, fault: String(thrown.message) }),
  );
  const text = [...said.mock.calls, ...printed.mock.calls].map(([line]) => String(line)).join("\n");
  return { ...outcome, text };
}

const versionOf = (program: string) => Bun.spawnSync([program, "--version"]).stdout.toString().trim();
const unchanged = () => {
  expect(versionOf(path)).toBe("1.0.0");
  expect(readdirSync(dirname(path))).toEqual(["dragoman"]);
};

describe("an executable", () => {
  test("an executable is replaced by the newest one, with its mode, and nothing else is left", async () => {
    chmodSync(path, 0o750);
    const { code, text } = await updated();
    expect([code, versionOf(path)]).toEqual([0, "9.0.0"]);
    expect(readdirSync(dirname(path))).toEqual(["dragoman"]);
    expect(statSync(path).mode & 0o777).toBe(0o750);
    for (const line of ["dragoman 9.0.0 is available; this is 1.0.0.", "checksum is right", "Restart a running server"])
      expect(text).toContain(line);
    expect([...host.agents]).toEqual(["dragoman/1.0.0"]);
  });

  test("an executable behind a link is replaced where it is; the link stays", async () => {
    const link = join(home, "dragoman");
    symlinkSync(path, link);
    expect((await updated({ installation: { kind: "executable", command: [link] } })).code).toBe(0);
    expect([versionOf(link), versionOf(path)]).toEqual(["9.0.0", "9.0.0"]);
    expect(statSync(link).ino).toBe(statSync(path).ino);
  });

  test("that is the newest, or newer, stays; --check only tells", async () => {
    expect(await updated({ version: "9.0.0" })).toMatchObject({
      code: 0,
      text: "dragoman 9.0.0 is the newest version.",
    });
    expect((await updated({ version: "10.0.0" })).text).toContain("newest");
    expect(await updated({ check: true })).toMatchObject({
      code: 0,
      text: expect.stringContaining("9.0.0 is available"),
    });
    unchanged();
    expect(host.seen.every((each) => each === "/api/releases/latest")).toBe(true);
  });

  test("an executable is not replaced without consent", async () => {
    expect((await updated({ yes: false })).fault).toContain("Add --yes");
    unchanged();
  });

  const wrong: [string, RegExp, (sha256: string) => unknown][] = [
    [
      "a file that is not the one of the checksums",
      /checksum of .* is wrong/,
      () => host.files.set(file, script("9.0.1")),
    ],
    ["no checksum", /has no checksum for/, () => host.files.set("SHA256SUMS", "")],
    ["no file for this system", /has no file dragoman-9/, () => host.files.delete(file)],
    ["no attestation", /there is none|does not have this/, (sum) => host.attestations.set(sum, [])],
    ["an attestation that GitHub does not know", /does not have this/, (sum) => host.attestations.delete(sum)],
    [
      "an attestation of another repository",
      /made by https:\/\/github.com\/evil\/dragoman/,
      async (sum) => attest(sum, { repository: "evil/dragoman" }),
    ],
    [
      "an attestation of another workflow",
      /made by .*other.yml/,
      (sum) => attest(sum, { workflow: ".github/workflows/other.yml" }),
    ],
    ["an attestation of another tag", /made by .*v8.0.0/, (sum) => attest(sum, { ref: "refs/tags/v8.0.0" })],
    ["an attestation of a branch", /made by .*heads\/main/, (sum) => attest(sum, { ref: "refs/heads/main" })],
    ["an attestation by another issuer", /does not verify/, (sum) => attest(sum, { issuer: "https://evil.test" })],
    ["an attestation of another file", /about another file/, (sum) => attest(sum, { sha256: "00".repeat(32) })],
    [
      "an attestation of another name",
      /about another file/,
      (sum) => attest(sum, { name: "dragoman-9.0.0-linux-arm64" }),
    ],
    [
      "a statement that is no provenance",
      /says nothing of a build/,
      (sum) => attest(sum, { predicateType: "https://evil.test/v1" }),
    ],
    [
      "a bundle of nobody who is trusted",
      /does not verify/,
      async (sum) => {
        await using other = await startReleaseHost();
        await other.publish(file, script("9.0.0"));
        host.attestations.set(sum, other.attestations.get(sum)!);
      },
    ],
    [
      "a bundle whose signature was changed",
      /does not verify/,
      (sum) => {
        const [bundle] = host.attestations.get(sum) as { dsseEnvelope: { payload: string } }[];
        const payload = Buffer.from(bundle!.dsseEnvelope.payload, "base64").toString().replace(sum, "00".repeat(32));
        bundle!.dsseEnvelope.payload = Buffer.from(payload).toString("base64");
      },
    ],
    ["what is no bundle", /does not verify/, (sum) => host.attestations.set(sum, [{ evil: true }, null, "x"])],
    ["an executable that does not start", /does not run on this system/, () => republish("#!/bin/sh\nexit 1\n")],
    ["an executable of another version", /does not run on this system/, () => republish(script("8.0.0"))],
    [
      "an answer that is no release",
      /not valid/,
      () => {
        host.instead = () => Response.json({ tag_name: "latest", assets: [] });
      },
    ],
    [
      "a host that is busy",
      /no more calls/,
      () => {
        host.instead = () => new Response("", { status: 403 });
      },
    ],
    [
      "an address without https",
      /without https/,
      () => {
        host.moved = () => "http://203.0.113.1/x";
      },
    ],
    [
      "a circle of redirects",
      /in a circle/,
      () => {
        host.moved = (there) => there.replace("moved", "file");
      },
    ],
    [
      "a download that breaks off",
      /./,
      () => {
        host.instead = (there) =>
          there.startsWith("/moved/dragoman")
            ? new Response(
                new ReadableStream({
                  start(controller) {
                    controller.enqueue(Buffer.from("#!"));
                    controller.error(new Error("cut"));
                  },
                }),
              )
            : undefined;
      },
    ],
  ];
  const attest = async (sha256: string, more: object) =>
    host.attestations.set(sha256, [
      await host.attest({ name: file, sha256, repository, ref: "refs/tags/v9.0.0", ...more }),
    ]);
  const republish = async (content: string) => {
    host.files.clear();
    await host.publish(file, content);
  };
  test.each(wrong)("an executable is not replaced by %s", async (_, why, spoil) => {
    await spoil([...host.attestations.keys()][0]!);
    const { code, fault } = await updated();
    expect([code, fault]).toEqual([-1, expect.stringMatching(why)]);
    unchanged();
  });

  test("one good attestation among others is enough", async () => {
    const [sum] = [...host.attestations.keys()];
    host.attestations.get(sum!)!.unshift({ evil: true });
    expect((await updated()).code).toBe(0);
  });

  test("an executable of one's own build is updated from its source", async () => {
    expect((await updated({ source: undefined })).fault).toContain("This is a local build.");
  });
});

test("every other installation is told its own command, and is left alone", async () => {
  for (const kind of installationKinds.filter((each) => each !== "executable")) {
    const { code, text } = await updated({ installation: { kind, command: [path] } });
    expect([kind, code]).toEqual([kind, 0]);
    expect(text).toMatch(
      /brew upgrade|scoop update|winget upgrade|new image|npm install -g|bun add -g|bunx dragoman@latest|git pull/,
    );
    unchanged();
  }
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

test("what this build knows of Sigstore is readable", () => {
  expect(knownTrust().certificateAuthorities.length).toBeGreaterThan(0);
  expect(knownTrust().tlogs.length).toBeGreaterThan(0);
});

describe("the notice", () => {
  const lines = (proxy: Awaited<ReturnType<typeof startProxy>>) =>
    proxy.lines.filter((line) => line.includes("is available"));

  test("the notice of a new version is one line a day, whatever the number of looks and servers", async () => {
    let now = Date.now();
    await using proxy = await startProxy({ clock: { now: () => now } });
    const look = () => lookOnce(proxy.app, host.source, "executable");
    await look();
    await look();
    expect(lines(proxy)).toEqual([
      expect.stringContaining("dragoman 9.0.0 is available; this is 0.0.0-test. Run `dragoman update`."),
    ]);
    expect(host.seen).toEqual(["/api/releases/latest"]);
    now += 25 * 3_600_000;
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
    await lookOnce(proxy.app, host.source, "executable");
    await using same = await startProxy();
    const { config, environment, logger, now, stopping } = same.app;
    host.instead = undefined;
    await lookOnce({ config, environment, logger, now, stopping, version: "9.0.0" }, host.source, "container");
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
    for (const [args, more] of [
      [["--no-update-notice"], {}],
      [[], { CI: "1" }],
      [["--json"], {}],
    ] as const) {
      await using silent = run(["start", "--port", "0", ...args], { env: { ...env, ...more }, instead: source });
      await until(
        () => (silent.stderr() + silent.stdout()).includes(args[0] === "--json" ? '"ready"' : "  Data "),
        "it is ready",
      );
      silent.process.kill();
      await silent.exited;
    }
    expect(host.seen).toHaveLength(looks);
  });
});

test("compiled, it asks Sigstore whom to trust, and refuses an attestation of nobody that is", async () => {
  const root = join(import.meta.dir, "../..");
  const binary = join(home, "bin/compiled");
  const options = ["--compile", "--production", "--splitting", "--format=esm", "--bytecode", "--outfile", binary];
  const stamp = stampOptions({ name: "linux-x64" }, `https://github.com/${repository}`);
  const build = Bun.spawnSync([process.execPath, "build", ...options, ...stamp, ...entries], { cwd: root });
  expect([build.exitCode, build.exitCode === 0 ? "" : String(build.stderr)]).toEqual([0, ""]);
  // No call leaves this machine: Sigstore's repository is asked through a proxy that refuses.
  let connected = "";
  using proxy = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket, bytes) {
        connected += bytes.toString();
        socket.end("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
      },
    },
  });
  const child = Bun.spawn([binary, "update", "--yes"], {
    env: { HOME: home, DRAGOMAN_RELEASES_URL: host.source.api, HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` },
    stderr: "pipe",
  });
  expect(await child.stderr.text()).toContain(
    "does not prove that https://github.com/owner/dragoman has built it: it does not verify: Failed to verify certificate chain",
  );
  expect(await child.exited).toBe(1);
  expect(connected).toStartWith("CONNECT tuf-repo-cdn.sigstore.dev:443 ");
});

describeWith("systemd", "with a service", () => {
  test("a new version that does not serve is taken back, and the service runs the old one again", async () => {
    await using manager = await startUserManager();
    const bun = process.execPath;
    const main = join(import.meta.dir, "../../src/main.ts");
    const program = join(manager.home, "dragoman");
    writeFileSync(
      program,
      `#!/bin/sh\n[ "$1" = --version ] && echo 1.0.0 && exit 0\nexec ${bun} --no-env-file ${main} "$@"\n`,
    );
    chmodSync(program, 0o755);
    const owner = statSync(manager.home);
    Bun.spawnSync(["chown", `${owner.uid}:${owner.gid}`, program]);
    const port = freePort();
    const unit = join(manager.home, ".config/systemd/user/dragoman.service");
    await manager.run(["mkdir", "-p", dirname(unit), join(manager.home, ".local/share/dragoman")]);
    const start = `ExecStart=${program} start --demo --port ${port}`;
    writeFileSync(unit, `[Service]\nType=exec\n${start}\nRestart=always\nRestartSec=300ms\n`);
    await manager.run(["systemctl", "--user", "daemon-reload"]);
    expect((await manager.run(["systemctl", "--user", "start", "dragoman"])).code).toBe(0);
    const trust = join(manager.home, "trust.json");
    writeFileSync(trust, JSON.stringify(host.trustedRoot));
    const worker = join(manager.home, "update.ts");
    writeFileSync(
      worker,
      `
      import { TrustedRoot } from ${JSON.stringify(Bun.resolveSync("@sigstore/protobuf-specs", import.meta.dir))};
      import { update } from ${JSON.stringify(join(import.meta.dir, "../../src/cli/update/update.ts"))};
      import { readEnvironment } from ${JSON.stringify(join(import.meta.dir, "../../src/config/environment.ts"))};
      const trust = async () => TrustedRoot.fromJSON(await Bun.file(${JSON.stringify(trust)}).json());
      await update({ version: "1.0.0", environment: readEnvironment(process.env), check: false, yes: true, readyMs: 2000, target: "linux-x64",
        installation: { kind: "executable", command: [${JSON.stringify(program)}] }, source: ${JSON.stringify(host.source)}, trust });
    `,
    );
    const { code, stderr } = await manager.run([bun, worker]);
    expect(stderr).toContain("dragoman 1.0.0 is back in its place.");
    expect([code, stderr]).toEqual([1, expect.stringMatching(/not ready with version 9|did not start with version 9/)]);
    expect(readFileSync(program, "utf8")).toContain("exec ");
    const ready = async () => (await manager.run([program, "health"])).code === 0;
    await until(ready, "the old version serves");
  });
});
