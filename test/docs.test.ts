/**
 * Rows: the documents: generated passages are current, links lead somewhere, and the paths and commands they name
 * exist.
 */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import manifest from "../package.json";
import { columnNames } from "../src/books/history/entry";
import { isOwnName } from "../src/config/home-names";
import { documents, passages, refresh, textOfDocument } from "../src/deploy/documents/documents";

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

/** Of each document with promises: what `promises.txt` has of it, line by line. */
const promised = new Map(
  readFileSync(join(import.meta.dir, "promises.txt"), "utf8")
    .split(/^# /m)
    .slice(1)
    .map((part): [string, string[]] => {
      const [document = "", ...lines] = part.split("\n");
      return [document, lines.filter((line) => line !== "")];
    }),
);

test.each([...promised])("each sentence of %s has a line of its own in promises.txt", (document, lines) => {
  const beginnings = lines.map((line) => line.replace(/^- (.*)$|^(.*?) [→≠] .*$/, "$1$2"));
  const text = texts.get(document)!;
  const sentences = sentencesOf(text.match(/^### What is promised\n[\s\S]*?(?=^#)/m)?.[0] ?? text);
  expect(sentences.length).toBeGreaterThan(10);
  const without = sentences.filter((sentence) => !beginnings.some((beginning) => sentence.startsWith(beginning)));
  const ofAnother = beginnings.filter((line) => sentences.filter((sentence) => sentence.startsWith(line)).length !== 1);
  expect({ without, ofAnother }).toEqual({ without: [], ofAnother: [] });
});

const scenes = [...new Bun.Glob("fixtures/scenes/*.txt").scanSync(import.meta.dir)];

test("each key and variable of the config is named by a test of what it does", async () => {
  const ofTables = ["config/schema.test.ts", "config/environment.test.ts", "docs.test.ts"];
  const files = [...new Bun.Glob("**/*.{ts,tsx}").scanSync(import.meta.dir), ...scenes].filter(
    (file) => !ofTables.includes(file),
  );
  const texts = files.map((file) => readFileSync(join(import.meta.dir, file), "utf8"));
  // What is typed there: a help names all of them.
  const sessions = [...new Bun.Glob("fixtures/sessions/*.txt").scanSync(import.meta.dir)].flatMap(
    (file) => readFileSync(join(import.meta.dir, file), "utf8").match(/^[$:] .*/gm)!,
  );
  const words = new Set([...texts, ...sessions].flatMap((text) => text.match(/\w+/g) ?? []));
  const names = ["config", "environment"].flatMap((passage) =>
    [...passages[passage]!().matchAll(/^\| `(?:[^`]*\.)?(\w+)`/gm)].map(([, name]) => name!),
  );
  expect(names.length).toBeGreaterThan(60);
  expect(names.filter((name) => !words.has(name))).toEqual([]);
});

test("SECURITY.md names each file of the data folder, and no other", () => {
  const [, rows = ""] = texts.get(".github/SECURITY.md")!.split("## What is stored");
  const cells = [...rows.matchAll(/^\| (`.*?) \|/gm)].map(([, cell]) => cell!);
  const named = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!.replace(/\/$/, "")));
  const table = readFileSync(join(root, "src/config/home-names.ts"), "utf8");
  const kept = [...table.matchAll(/^ {2}\w+: "([^"]+)",$/gm)].map(([, name]) => name!);
  expect(kept.length).toBeGreaterThan(10);
  const isNamed = (name: string) => named.some((each) => new Bun.Glob(each).match(name));
  expect(kept.filter((name) => !isNamed(name))).toEqual([]);
  expect(named.filter((name) => !isOwnName(name.replace("*", "log")))).toEqual([]);
});

test("each test that promises.txt names is there by that title", async () => {
  const files = ["**/*.test.{ts,tsx}", "fixtures/pairs/*/*.txt", "fixtures/{books,scenes,sessions}/*.txt"].flatMap(
    (of) => [...new Bun.Glob(`test/${of}`).scanSync(root)],
  );
  const tests = (await Promise.all(files.map((file) => Bun.file(join(root, file)).text()))).join("\n\n");
  const titles = [...promised.values()]
    .flat()
    .flatMap((line) => (line.startsWith("- ") ? [] : (line.split(" → ")[1]?.split(" | ") ?? [])));
  expect(titles.length).toBeGreaterThan(300);
  const isThere = (title: string) =>
    [JSON.stringify(title), `\`${title}\``, `\n${title}\n`].some((written) => tests.includes(written));
  expect(titles.filter((title) => !isThere(title))).toEqual([]);
});

/**
 * Of paragraphs, lists and rows of tables, without markup. A row is a sentence whose cells stand behind colons. Generated passages
 * and rows that lead to other documents are left out: other tests hold them.
 */
function sentencesOf(text: string): string[] {
  return withoutBlocks(text)
    .replace(/<!-- ([\w-]+) -->[\s\S]*?<!-- \/\1 -->/g, "")
    .replace(/^\|.*\n\| ---.*|^(?:#|!\[|\| \[).*/gm, "")
    .split("\n")
    .flatMap((line) =>
      line
        .replace(/^(?:\d+\.|-) (?:\*\*[^*]*\.\*\* )?|^\*\*[^*]*\.\*\* /, "")
        .replace(/^\|\s*|\s*\|\s*$/g, "")
        .replace(/\s*(?<!\\)\|\s*/g, ": ")
        .replace(/\]\([^)]*\)|\*\*|[`[]/g, "")
        .split(/(?<=[.?!][)”"]?) (?=\p{Lu}|\d|dragoman )/u),
    )
    .filter((sentence) => sentence.trim() !== "");
}

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
