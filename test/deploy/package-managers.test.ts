/** The formula and the manifests of a release: complete, and about the files of the release. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formula, readSums, wingetManifests } from "../../src/deploy/package-managers";
import { repositoryOfBuild, stampOptions } from "../../src/deploy/stamp";
import { targets } from "../../src/deploy/targets";
import { temporaryFolder } from "../support/temporary-folder";

const repository = "https://github.com/someone/dragoman";
const endings: Record<string, string> = { pe: ".exe" };
const names = targets.map(({ name, format }) => `dragoman-1.2.3-${name}${endings[format] ?? ""}`);
const sumOf = (name: string) => Bun.SHA256.hash(name, "hex");
const sums = names.map((name) => `${sumOf(name)}  ${name}\n`).join("");
const facts = { version: "1.2.3", repository, sums: readSums(sums) };

describe("the formula", () => {
  const text = formula(facts);

  test("Homebrew's formula has each file of macOS and Linux with its checksum, where Homebrew looks for it", () => {
    for (const name of names.filter((each) => /darwin|linux-\w+64$/.test(each)))
      expect(text).toContain(`url "${repository}/releases/download/v1.2.3/${name}"\n      sha256 "${sumOf(name)}"`);
    expect(text.match(/^ +url /gm)).toHaveLength(4);
    const blocks = [...text.matchAll(/on_(\w+) do\n {6}url "\S+-(\w+-\w+)"/g)].map(([, cpu, target]) => [cpu, target]);
    expect(blocks).toEqual([
      ["arm", "darwin-arm64"],
      ["intel", "darwin-x64"],
      ["arm", "linux-arm64"],
      ["intel", "linux-x64"],
    ]);
  });

  test("Homebrew's formula is Ruby, with balanced blocks and what an audit asks for", () => {
    const opened = text.match(/^\s*(?:class|def)\b|\bdo$/gm)!.length;
    expect(text.match(/^\s*end$/gm)).toHaveLength(opened);
    expect(/desc "([^"]+)"/.exec(text)![1]!.length).toBeLessThan(80);
    expect(/desc "([^"]+)"/.exec(text)![1]).not.toMatch(/^(?:a|an|the|dragoman) |\.$/i);
    for (const part of ["homepage", "license", "version", "test do", "service do"]) expect(text).toContain(`  ${part}`);
    const ruby = Bun.which("ruby");
    if (ruby) expect(Bun.spawnSync([ruby, "-c"], { stdin: Buffer.from(text) }).exitCode).toBe(0);
  });
});

describe("winget's manifests", () => {
  const manifests = Object.entries(wingetManifests(facts)).map(
    ([name, text]) => [name, text, Bun.YAML.parse(text) as Record<string, unknown>] as const,
  );

  test("are three, of one package and version, each with what its kind requires", () => {
    // As in the schemas of version 1.6.0.
    const required: Record<string, string[]> = {
      version: ["DefaultLocale"],
      installer: ["Installers"],
      defaultLocale: ["PackageLocale", "Publisher", "PackageName", "License", "ShortDescription"],
    };
    expect(manifests.map(([name]) => name)).toEqual([
      "someone.dragoman.yaml",
      "someone.dragoman.installer.yaml",
      "someone.dragoman.locale.en-US.yaml",
    ]);
    expect(manifests.map(([, , { ManifestType }]) => String(ManifestType))).toEqual(Object.keys(required));
    for (const [, text, manifest] of manifests) {
      const kind = String(manifest.ManifestType);
      expect(manifest).toMatchObject({
        PackageIdentifier: "someone.dragoman",
        PackageVersion: "1.2.3",
        ManifestVersion: "1.6.0",
      });
      expect(Object.keys(manifest)).toEqual(expect.arrayContaining(required[kind]!));
      expect(text).toStartWith(
        `# yaml-language-server: $schema=https://aka.ms/winget-manifest.${kind}.1.6.0.schema.json\n`,
      );
    }
  });

  test("install the executable of Windows under its name", () => {
    const [, , { Installers, InstallerType, Commands }] = manifests[1]!;
    const name = "dragoman-1.2.3-windows-x64.exe";
    const url = `${repository}/releases/download/v1.2.3/${name}`;
    expect([InstallerType, Commands]).toEqual(["portable", ["dragoman"]]);
    expect(Installers).toEqual([
      { Architecture: "x64", InstallerUrl: url, InstallerSha256: sumOf(name).toUpperCase() },
    ]);
  });
});

describe("the release workflow's step", () => {
  const folder = temporaryFolder(afterAll);
  beforeAll(() => writeFileSync(join(folder, "SHA256SUMS"), sums));
  const write = (...args: string[]) =>
    Bun.spawnSync([process.execPath, join(import.meta.dir, "../../src/deploy/package-managers.ts"), ...args]);

  test("writes all of them beside the files", () => {
    expect(write("v1.2.3", repository, folder).exitCode).toBe(0);
    expect(readdirSync(folder).sort()).toEqual(
      [
        "SHA256SUMS",
        "dragoman.rb",
        "dragoman.json",
        "install.sh",
        "install.ps1",
        ...Object.keys(wingetManifests(facts)),
      ].sort(),
    );
    expect(readFileSync(join(folder, "dragoman.rb"), "utf8")).toBe(formula(facts));
  });

  test("fails where a file has no checksum", () => {
    const { exitCode, stderr } = write("v9.9.9", repository, folder);
    expect([exitCode, stderr.toString()]).toEqual([1, expect.stringContaining("SHA256SUMS has no dragoman-9.9.9")]);
  });
});

test("a build of the workflow knows its repository and target; another knows neither", () => {
  const workflow = { GITHUB_SERVER_URL: "https://github.com", GITHUB_REPOSITORY: "someone/dragoman" };
  expect(repositoryOfBuild(workflow)).toBe(repository);
  expect(repositoryOfBuild({})).toBeUndefined();
  expect(stampOptions({ name: "linux-x64" }, repository)).toEqual([
    ...["--define", `process.env.DRAGOMAN_BUILD_REPOSITORY="${repository}"`],
    ...["--define", 'process.env.DRAGOMAN_BUILD_TARGET="linux-x64"'],
  ]);
});
