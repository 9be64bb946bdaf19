/**
 * Rows: the documents: generated passages are current, links lead somewhere, and the paths and commands they name
 * exist.
 */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import manifest from "../package.json";
import { columnNames } from "../src/books/history/entry";
import { documents, passages, refresh, textOfDocument } from "./support/docs";

const root = join(import.meta.dir, "..");
const texts = new Map(documents.map((document) => [document, textOfDocument(document)]));
const readme = texts.get("README.md")!;

test("each generated passage stands in one document and is current; `bun run docs` rewrites them", () => {
  for (const name of Object.keys(passages)) {
    const holders = documents.filter((document) => texts.get(document)!.includes(`<!-- ${name} -->\n`));
    expect([name, holders.length]).toEqual([name, 1]);
  }
  for (const [document, text] of texts) expect([document, refresh(text)]).toEqual([document, text]);
});

test.each(documents)("the links of %s lead somewhere", (document) => {
  const broken = linksIn(texts.get(document)!).filter((link) => {
    if (/^https?:/.test(link)) return false;
    const [path = "", anchor] = link.split("#");
    const target = path === "" ? document : normalize(join(dirname(document), path));
    if (anchor === undefined) return !existsSync(join(root, target));
    return !anchorsIn(texts.get(target) ?? "").includes(anchor);
  });
  expect(broken).toEqual([]);
});

test.each(documents)("the paths that %s names exist", (document) => {
  const prose = withoutBlocks(texts.get(document)!);
  const named = [...prose.matchAll(/`([\w.-]+(?:\/[\w.<>*-]+)*(?:\.(?:tsx?|json|md|mjs|yml)|\/))`/g)].map(
    ([, path]) => path!,
  );
  const bases = [root, join(root, "src"), join(root, dirname(document))];
  const exists = (path: string) => bases.some((base) => existsSync(join(base, path)));
  const ours = named.filter((path) => path.includes("/") && !/[<>*]/.test(path) && !inDataFolder.has(path));
  expect(ours.filter((path) => !exists(path))).toEqual([]);
});

test.each(documents.filter((document) => document !== "README.md"))("the files that %s names exist", (document) => {
  const named = [...withoutBlocks(texts.get(document)!).matchAll(/`([\w-]+(?:\.test)?\.tsx?)`/g)].map(
    ([, name]) => name!,
  );
  expect(named.filter((name) => !fileNames.has(name))).toEqual([]);
});

const fileNames = new Set([...new Bun.Glob("{src,test}/**/*.{ts,tsx}").scanSync(root)].map((file) => basename(file)));

test("src/README.md explains each column of the history", () => {
  const tour = texts.get("src/README.md")!;
  expect(columnNames.filter((name) => !tour.includes(`\`${name}\``))).toEqual([]);
});

/** Paths of the data folder, not of the repository. */
const inDataFolder = new Set(["accounts/", "connect/", "demo/", "demo-team/"]);

test("the scripts that the documents name exist, and the Bun they name is the one the package needs", () => {
  for (const [document, text] of texts) {
    for (const [, script] of text.matchAll(/bun run ([\w:]+)/g))
      expect([document, Object.keys(manifest.scripts)]).toEqual([document, expect.arrayContaining([script])]);
    for (const [, version] of text.matchAll(/bun@(\d+\.\d+\.\d+)/g)) expect(manifest.engines.bun).toBe(`>=${version}`);
  }
});

test("README, which npm shows too, links to files by paths that npm resolves in the repository", () => {
  for (const link of linksIn(readme)) expect(link).toMatch(/^(?:https:\/\/|#|(?:\.github|src|test)\/|LICENSE$)/);
});

test("the README in Chinese keeps step with the English one: headings, tables, commands, pictures", () => {
  const chinese = texts.get(".github/README.zh-CN.md")!;
  const levels = (text: string) => [...withoutBlocks(text).matchAll(/^(#+) /gm)].map(([, marks]) => marks!);
  expect(levels(chinese)).toEqual(levels(readme));
  // A command is the same; what it says behind `#` is translated.
  const blocks = (text: string) =>
    [...text.matchAll(/^```\w*\n[\s\S]*?^```/gm)].map(([block]) => block.replace(/ *# .*$/gm, ""));
  expect(blocks(chinese)).toEqual(blocks(readme));
  const pictures = (text: string) => [...text.matchAll(/!\[[^\]]*\]\(([^)]+)\)/g)].map(([, path]) => basename(path!));
  expect(pictures(chinese)).toEqual(pictures(readme));
  // Of each table that it has, all rows; what a cell has as code is the same.
  const tables = (text: string) =>
    [...withoutBlocks(text).matchAll(/(?:^\|.*\n)+/gm)].map(([table]) =>
      table
        .trim()
        .split("\n")
        .map((row) => [...row.matchAll(/`[^`]+`/g)].map(([code]) => code)),
    );
  const english = tables(readme).map((table) => JSON.stringify(table));
  const translated = tables(chinese);
  expect(translated.length).toBeGreaterThan(2);
  for (const table of translated) expect(english).toContain(JSON.stringify(table));
  // Where it leaves a table out, it leads to the English one.
  const sections = (text: string) =>
    withoutBlocks(text)
      .split(/^(?=#+ )/m)
      .slice(1);
  for (const [at, section] of sections(readme).entries()) {
    const translation = sections(chinese)[at]!;
    const anchor = `../README.md#${anchorsIn(section)[0]}`;
    if (tables(translation).length < tables(section).length)
      expect([anchor, linksIn(translation)]).toEqual([anchor, expect.arrayContaining([anchor])]);
  }
});

const withoutBlocks = (text: string) => text.replace(/^```[\s\S]*?^```/gm, "");
const linksIn = (text: string) => [...withoutBlocks(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!);
const anchorsIn = (text: string) =>
  [...withoutBlocks(text).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading!));

/** The anchor that GitHub gives a heading. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
