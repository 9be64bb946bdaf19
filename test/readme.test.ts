import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { version } from "../package.json";
import { passages, readmePath, refresh } from "./support/readme";

const text = await Bun.file(readmePath).text();

test("the generated passages are what the code says; `bun run docs` rewrites them", () => {
  for (const name of Object.keys(passages)) expect(text).toContain(`<!-- ${name} -->`);
  expect(refresh(text)).toBe(text);
});

test("the commands it names exist, and the Bun it names is the one we are run by", async () => {
  const { scripts, engines } = (await Bun.file(new URL("../package.json", import.meta.url)).json()) as {
    scripts: Record<string, string>;
    engines: { bun: string };
  };
  for (const [, script] of text.matchAll(/bun run (\w+)/g)) expect(Object.keys(scripts)).toContain(script!);
  for (const [, named] of text.matchAll(/bun@(\d+\.\d+\.\d+)/g)) expect(engines.bun).toBe(`>=${named}`);
  expect(version).toMatch(/^\d+\.\d+\.\d+$/);
});

test("its links lead somewhere, and what it says to open is there", () => {
  const anchors = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading!));
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, to]) => to!).filter((to) => !/^https:/.test(to));
  expect(links.length).toBeGreaterThan(10);
  const root = join(readmePath, "..");
  expect(links.filter((to) => (to[0] === "#" ? !anchors.includes(to.slice(1)) : !existsSync(join(root, to))))).toEqual(
    [],
  );
  const [rows] = /\| I want to … [\s\S]*?\n\n/.exec(text)!;
  const paths = [...rows.matchAll(/`([\w-]+\/[^` ]+)`/g)].map(([, path]) => path!.replace(/\*.*$/, ""));
  expect(paths.length).toBeGreaterThan(10);
  expect(paths.filter((path) => !existsSync(join(root, path.startsWith("test/") ? "" : "src", path)))).toEqual([]);
});

/** As GitHub makes it of a heading. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\w -]/g, "")
    .replaceAll(" ", "-");
