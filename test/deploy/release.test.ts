/** Rows: the workflows: readable, least allowed, and naming only what exists. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { engines, scripts, version } from "../../package.json";
import { checkTag, notesFor } from "../../src/deploy/release";
import { repositoryOfBuild, stampOptions } from "../../src/deploy/stamp";
import { packageFor, targetHere, targets } from "../../src/deploy/targets";

const root = join(import.meta.dir, "../..");

interface Step {
  run?: string;
  uses?: string;
}

interface Workflow {
  permissions: Record<string, string>;
  jobs: Record<
    string,
    {
      needs?: string | string[];
      "timeout-minutes": number;
      permissions?: Record<string, string>;
      strategy?: { matrix: { include: { target: string }[] } };
      steps: Step[];
    }
  >;
}

const folder = join(root, ".github/workflows");
const names = [...new Bun.Glob("*.yml").scanSync(folder)].sort();
const workflows = await Promise.all(
  names.map(async (name) => Bun.YAML.parse(await Bun.file(join(folder, name)).text()) as Workflow),
);

describe.each(names.map((name, index) => [name, workflows[index]!] as const))("%s", (_, { permissions, jobs }) => {
  const steps = Object.values(jobs).flatMap((job) => job.steps);
  const commands = steps.map(({ run = "" }) => run).join("\n");

  test("names scripts and files that exist, and the Bun we are made for", () => {
    for (const [, script] of commands.matchAll(/bun run ([\w:]+)/g)) expect(Object.keys(scripts)).toContain(script!);
    for (const [, file] of commands.matchAll(/\b(?:bun|bash) ((?:src\/|test\/|\.ci\/)\S+)/g))
      expect(existsSync(join(root, file!))).toBe(true);
    for (const [, bun] of commands.matchAll(/bun@(\S+)/g)) expect(`>=${bun}`).toBe(engines.bun);
    for (const { uses } of steps) if (uses) expect(uses).toMatch(/^actions\/[\w-]+@v\d+$/);
    for (const { run, uses } of steps) expect([run, uses].filter(Boolean)).toHaveLength(1);
  });

  test("may read and no more, but for the jobs that must", () => {
    expect(permissions).toEqual({ contents: "read" });
    const writing = Object.entries(jobs).flatMap(([name, job]) =>
      Object.entries(job.permissions ?? {}).flatMap(([right, how]) => (how === "write" ? [`${name}: ${right}`] : [])),
    );
    const needed = ["build: id-token", "build: attestations", "publish: contents", "npm: id-token", "image: packages"];
    expect(writing.filter((right) => !needed.includes(right))).toEqual([]);
  });

  test("ends, and waits only for jobs there are", () => {
    for (const job of Object.values(jobs)) {
      expect(job["timeout-minutes"]).toBeLessThanOrEqual(90);
      for (const other of [job.needs ?? []].flat()) expect(Object.keys(jobs)).toContain(other);
    }
  });
});

test("a release's executables are attested by the job that builds them, and its packages and image have their provenance", () => {
  const { jobs } = workflows[names.indexOf("release.yml")]!;
  const lines = (name: string) => jobs[name]!.steps.flatMap(({ run, uses }) => [run ?? "", uses ?? ""]);
  expect(jobs.build!.permissions).toMatchObject({ attestations: "write", "id-token": "write" });
  const [built, attested] = [/^bun run release /, /^actions\/attest-build-provenance@/].map((line) =>
    lines("build").findIndex((each) => line.test(each)),
  ) as [number, number];
  expect(built).toBeGreaterThan(-1);
  expect(attested).toBeGreaterThan(built);
  expect(lines("npm").join("\n")).toMatch(/package\.ts publish \S+ --provenance/);
  expect(lines("image").join("\n")).toContain("--provenance=mode=max");
});

test("a release is tried on every system there is a runner for, before anything is published", () => {
  const { jobs } = workflows[names.indexOf("release.yml")]!;
  const tried = jobs.try!.strategy!.matrix.include.map(({ target }) => target);
  const untried = targets.map(({ name }) => name).filter((name) => !tried.includes(name));
  expect(untried).toEqual(["linux-arm64-musl"]);
  for (const job of ["publish", "npm", "image"]) expect(jobs[job]!.needs).toContain("try");
});

test("what a release uploads is made by one command, which anybody can run", () => {
  const { jobs } = workflows[names.indexOf("release.yml")]!;
  const commands = Object.values(jobs).flatMap(({ steps }) => steps.map(({ run = "" }) => run));
  expect(commands.filter((each) => each.startsWith("bun run release "))).toHaveLength(1);
  expect(
    commands.filter((each) => /bun run build|bun pm|install-scripts|platforms|release\.ts notes/.test(each)),
  ).toEqual([]);
});

test("the tag is the version's, which stands in package.json alone", async () => {
  expect(() => checkTag(`v${version}`)).not.toThrow();
  expect(() => checkTag("v999.0.0")).toThrow(`The tag is v999.0.0, but package.json says ${version}.`);
  expect(() => checkTag(version)).toThrow();
  const files = [...new Bun.Glob("{src,.github,.ci}/**/*").scanSync({ cwd: root, dot: true }), "README.md"];
  const texts = await Promise.all(files.map((file) => Bun.file(join(root, file)).text()));
  expect(files.length).toBeGreaterThan(100);
  expect(`>=${/bun@([\d.]+\d)/.exec(texts[files.indexOf(".ci/run")]!)![1]}`).toBe(engines.bun);
  const named = new RegExp(`(?:dragoman|version)\\W{1,4}${RegExp.escape(version)}\\b`, "i");
  const others = files.filter((file) => file !== ".github/CHANGELOG.md");
  expect(others.filter((file) => named.test(texts[files.indexOf(file)]!))).toEqual([]);
});

test("a build of the workflow knows its repository; another knows none", () => {
  const repository = "https://github.com/someone/dragoman";
  const workflow = { GITHUB_SERVER_URL: "https://github.com", GITHUB_REPOSITORY: "someone/dragoman" };
  expect(repositoryOfBuild(workflow)).toBe(repository);
  expect(repositoryOfBuild({})).toBeUndefined();
  expect(stampOptions(repository)).toEqual(["--define", `process.env.DRAGOMAN_BUILD_REPOSITORY="${repository}"`]);
});

describe("the notes of a release", () => {
  const text =
    "# Changes\n\n## 1.10.0\n\nNew.\n\n## 1.1.0 (not released yet)\n\n### Fixed\n\n[It](../README.md#it), [safe](SECURITY.md), [there](https://x.example/a).\n";
  const notes = (tag: string) => notesFor(tag, text, "https://github.com/someone/dragoman");

  test("are its section of the changelog, with links that lead to the files of the tag", () => {
    const files = "https://github.com/someone/dragoman/blob/v1.1.0";
    expect(notes("v1.1.0")).toBe(
      `### Fixed\n\n[It](${files}/README.md#it), [safe](${files}/.github/SECURITY.md), [there](https://x.example/a).\n`,
    );
    expect(notes("v1.10.0-rc.1")).toBe("New.\n");
    expect(() => notes("v1.0.0")).toThrow("says nothing of 1.0.0");
  });

  test("fit the page of a release", async () => {
    const changelog = await Bun.file(join(root, ".github/CHANGELOG.md")).text();
    const [, newest] = /^## (\S+)/m.exec(changelog)!;
    expect(notesFor(`v${newest}`, changelog, "https://github.com/someone/dragoman").length).toBeLessThan(125_000);
  });
});

test("this machine has an executable of its own", () => {
  expect(packageFor(targetHere())).toMatchObject({ os: process.platform, cpu: process.arch });
});
