/**
 * `bun run docs:site [folder]`: writes the documents as a static site, by default to `dist/site`. Every page is complete
 * without a script; search needs one. `GITHUB_REPOSITORY` (`owner/name`) makes links to source files work.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { type SitePage, sitePages } from "./pages";

const root = join(import.meta.dir, "../../..");

/** A part of a page under one heading, as `search.json` has it. */
export interface Section {
  id: string;
  page: string;
  heading: string;
  text: string;
}

/** @param repository `owner/name` at GitHub; without it, links to source files become plain text. */
export function buildSite(folder: string, repository?: string): void {
  mkdirSync(join(folder, "assets"), { recursive: true });
  const sections: Section[] = [];
  for (const page of sitePages) {
    const markdown = textOf(page);
    const html = withLinks(Bun.markdown.html(markdown, { headings: { ids: true } }), page, folder, repository);
    writeFileSync(join(folder, `${page.name}.html`), documentOf(page, html));
    writeFileSync(join(folder, `${page.name}.md`), markdown);
    sections.push(...sectionsOf(page, html));
  }
  writeFileSync(join(folder, "search.json"), JSON.stringify(sections));
  writeFileSync(join(folder, "llms.txt"), overview());
  writeFileSync(join(folder, "llms-full.txt"), sitePages.map(textOf).join("\n\n---\n\n"));
  for (const name of ["site.css", "search.js"]) cpSync(join(import.meta.dir, name), join(folder, "assets", name));
  cpSync(join(root, "node_modules/minisearch/dist/es/index.js"), join(folder, "assets/minisearch.js"));
}

/** The marks of generated passages are for the repository only. */
const textOf = ({ document }: SitePage): string =>
  readFileSync(join(root, document), "utf8").replace(/^<!-- \/?[\w-]+ -->\n/gm, "");

/** Leads links to the pages of the site, and copies images. */
function withLinks(html: string, page: SitePage, folder: string, repository: string | undefined): string {
  const pathOf = (address: string) => relative(root, join(root, dirname(page.document), address));
  return html
    .replace(/<img src="([^":]+)"/g, (_, address: string) => {
      cpSync(join(root, pathOf(address)), join(folder, "assets", basename(address)));
      return `<img src="assets/${basename(address)}"`;
    })
    .replace(/<a href="([^"#:]+)(#[^"]*)?">([\s\S]*?)<\/a>/g, (_, address: string, anchor = "", label: string) => {
      const path = pathOf(address).replace(/\/$/, "");
      const target = sitePages.find(({ document }) => document === path || document === `${path}/README.md`);
      if (target) return `<a href="${target.name}.html${anchor}">${label}</a>`;
      return repository ? `<a href="https://github.com/${repository}/blob/main/${path}${anchor}">${label}</a>` : label;
    });
}

const heading = /<h([1-3]) id="([^"]*)">([\s\S]*?)<\/h\1>/g;

function sectionsOf(page: SitePage, html: string): Section[] {
  const found = [...html.matchAll(heading)];
  return found.map((match, at) => ({
    id: `${page.name}.html#${match[2]}`,
    page: page.title,
    heading: plain(match[3]!),
    text: plain(html.slice(match.index + match[0].length, found[at + 1]?.index)),
  }));
}

const plain = (html: string) =>
  html
    .replace(/<[^>]+>/g, " ")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&amp;/g, "&")
    .replace(/\s+/g, " ")
    .trim();

const overview = (): string => `# dragoman

> ${textOf(sitePages[0]!)
  .split("\n\n")
  .find((text) => text.startsWith("dragoman is"))}

## Documents

${sitePages.map(({ name, title, about }) => `- [${title}](${name}.md): ${about}`).join("\n")}

## All in one file

- [Everything](llms-full.txt): all documents above, one after the other.
`;

function documentOf(page: SitePage, html: string): string {
  const contents = [...html.matchAll(heading)].filter(([, level]) => level === "2");
  const title = page.name === "index" ? "dragoman" : `${page.title} · dragoman`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="${page.about.replaceAll('"', "&quot;")}">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="stylesheet" href="assets/site.css">
<link rel="alternate" type="text/markdown" href="${page.name}.md">
<script type="module" src="assets/search.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
<header>
<a class="name" href="index.html">dragoman</a>
<search hidden>
<label for="words">Search</label>
<input id="words" type="search" autocomplete="off" placeholder="Search (/)">
<ol id="found" aria-live="polite"></ol>
</search>
</header>
<nav aria-label="Documents"><ul>
${sitePages.map((each) => `<li><a href="${each.name}.html"${each === page ? ' aria-current="page"' : ""}>${each.title}</a></li>`).join("\n")}
</ul></nav>
<main id="content">
${html.replaceAll("<table>", '<div class="wide" tabindex="0"><table>').replaceAll("</table>", "</table></div>").replaceAll("<pre>", '<pre tabindex="0">')}
</main>
<aside aria-label="On this page"><ul>
${contents.map(([, , id, label]) => `<li><a href="#${id}">${plain(label!)}</a></li>`).join("\n")}
</ul></aside>
</body>
</html>
`;
}

if (import.meta.main) {
  const folder = process.argv[2] ?? join(root, "dist/site");
  buildSite(folder, process.env.GITHUB_REPOSITORY);
  console.log(`${sitePages.length} pages in ${folder}`);
}
