/** The documents as a site: each link leads somewhere, search finds what the documents say, and agents get the same texts. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import MiniSearch from "minisearch";
import { buildSite, type Section } from "../../src/deploy/site/build";
import { sitePages } from "../../src/deploy/site/pages";
import { documents, textOfDocument } from "../support/docs";
import { temporaryFolder } from "../support/temporary-folder";

describe("the site of the documents", () => {
  const folder = temporaryFolder(afterAll);
  const read = (name: string) => readFileSync(join(folder, name), "utf8");
  beforeAll(() => buildSite(folder, "someone/dragoman"));

  test("the site of the documents has a page for each document that a user needs", () => {
    const left = documents.filter((document) => !sitePages.some((page) => page.document === document));
    // Translations, and what only those read who change the code.
    expect(left.filter((document) => !document.includes(".zh-CN."))).toEqual([
      "src/server-tools/README.md",
      "src/team/README.md",
      "src/tokens/README.md",
      "test/README.md",
      "test/clients/README.md",
    ]);
  });

  test("the site of the documents has no link that leads nowhere", () => {
    for (const { name } of sitePages)
      for (const [, address] of read(`${name}.html`).matchAll(/(?:href|src)="([^"]+)"/g)) {
        if (/^https?:/.test(address!)) continue;
        const [file, anchor] = address!.split("#");
        const target = file === "" ? `${name}.html` : file!;
        expect([name, address, existsSync(join(folder, target))]).toEqual([name, address, true]);
        if (anchor) expect([name, address, read(target).includes(`id="${anchor}"`)]).toEqual([name, address, true]);
      }
  });

  test("the site of the documents shows the whole text without a script, and leads to source files in the repository", () => {
    expect(read("config.html")).toContain('<h1 id="config">Config</h1>');
    expect(read("index.html").includes('href="https://github.com/someone/dragoman/blob/main/LICENSE"')).toBe(true);
    expect(read("index.html")).not.toContain("<!-- clients -->");
    for (const { name } of sitePages) expect(read(`${name}.html`)).not.toMatch(/<script(?! type="module" src=")/);
  });

  test("the site of the documents finds a section by words of its text", () => {
    const search = new MiniSearch({ fields: ["heading", "text"], storeFields: ["page"] });
    search.addAll(JSON.parse(read("search.json")) as Section[]);
    expect(search.search("suspended account")[0]!.id).toStartWith("terms.html#");
    expect(search.search("whenLimited wait").map(({ id }) => id.split("#")[0])).toContain("config.html");
  });

  test("the site of the documents gives agents a list of the documents and each of them as Markdown", () => {
    const list = read("llms.txt");
    expect(list).toStartWith("# dragoman\n\n> dragoman is a local proxy for GitHub Copilot.");
    for (const { name, document } of sitePages) {
      expect(list).toContain(`](${name}.md)`);
      expect(read("llms-full.txt")).toContain(textOfDocument(document).split("\n")[0]!);
      expect(readdirSync(folder)).toContain(`${name}.md`);
    }
  });
});
