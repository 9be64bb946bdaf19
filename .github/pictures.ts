/**
 * Makes the pictures of README.md: `bun .github/pictures.ts`. The demo with its two weeks of made-up history, as a person
 * starts it, in Chromium and in a terminal. A palette, as pngquant makes one, keeps the files small.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "../package.json";
import { openBrowser } from "../test/support/browser";
import "../test/support/on-path";
import { atTerminal } from "../test/support/terminal";

const folder = import.meta.dir;
const columns = 84;
/** Lines that one scene shows: the last ones of what was written. */
const rows = 22;
const sceneSeconds = 6;

const { browser, why } = await openBrowser();
if (!browser) throw new Error(why);
const home = mkdtempSync(join(tmpdir(), "dragoman-"));
// It is five in the afternoon somewhere: by then the past of the demo has something of everything.
const west = ((new Date().getUTCHours() - 17 + 36) % 24) - 12;
const shell = { FORCE_COLOR: "1", TZ: `Etc/GMT${west < 0 ? "" : "+"}${west}` };
await using demo = atTerminal(["start", "--demo"], shell, home, columns);
await demo.shows("shows what happens.");
const banner = demo.written();
await demo.shows("plus-demo is cooling down");
const url = /Address\s+(\S+)/.exec(demo.screen())![1]!;
for (const [name, path, height] of [
  ["overview", "/admin", 1_430],
  ["requests", "/admin/requests", 1_010],
] as const) {
  const page = await browser.newPage({ viewport: { width: 1_280, height } });
  await page.goto(url + path, { waitUntil: "load" });
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await page.close();
}
await browser.close();

const scenes: [command: string, written: string][] = [["start --demo", banner]];
for (const command of ["connect claude-code --write", "status"]) {
  await using said = atTerminal(command.split(" "), shell, home, columns);
  await said.exited;
  scenes.push([command, said.written()]);
}
await Bun.write(join(folder, "first-minute.svg"), movingPicture(scenes));
rmSync(home, { recursive: true });

/** A terminal as an SVG in which the scenes follow each other for ever; who wants no motion sees the last one. */
function movingPicture(all: [command: string, written: string][]): string {
  const [width, height] = [columns * 8.45 + 32, (rows + 2) * 19 + 30];
  const whole = all.length * sceneSeconds;
  const share = (seconds: number) => `${((100 * seconds) / whole).toFixed(2)}%`;
  const shown = (name: string, from: number, to: number) =>
    `@keyframes ${name}{0%{opacity:0}${share(from)}{opacity:1}${share(to)}{opacity:0}}`;
  const styles = all.map((_, at) => {
    const from = at * sceneSeconds;
    return (
      shown(`c${at}`, from, from + sceneSeconds) +
      shown(`o${at}`, from + 1.2, from + sceneSeconds) +
      `.c${at}{animation-name:c${at}}.o${at}{animation-name:o${at}}`
    );
  });
  const last = all.length - 1;
  const groups = all.map(([command, written], at) => {
    const wide = new RegExp(`(?<=^[^\\u001b]{${columns}})(?=.)`, "g");
    const lines = written
      .replaceAll("\r", "")
      // A picture is not made again for each release.
      .replaceAll(`dragoman ${version}`, "dragoman")
      .trim()
      .split("\n")
      .flatMap((line) => line.split(wide))
      .slice(-rows);
    return `<g class="c${at}"><text x="16" y="32"><tspan class="d">$</tspan> dragoman ${command}</text></g>
<g class="o${at}">${lines.map((line, row) => `<text x="16" y="${32 + (row + 1.5) * 19}">${spans(line)}</text>`).join("\n")}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="dragoman in a terminal">
<style>
text{font:14px ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#e7e5e0;white-space:pre}
.d{fill:#a5aab2}.b{font-weight:700}.r{fill:#f19c93}.g{fill:#86cfa8}.y{fill:#e3b862}.c{fill:#86bbe0}
g{opacity:0;animation:${whole}s steps(1) infinite}
${styles.join("\n")}
@media (prefers-reduced-motion:reduce){g{animation:none}.c${last},.o${last}{opacity:1}}
</style>
<rect width="100%" height="100%" rx="10" fill="#15171b"/>
${groups.join("\n")}
</svg>
`;
}

/** A line with the colours of a terminal as parts of a text. */
function spans(line: string): string {
  const classes: Record<string, string> = { 1: "b", 2: "d", 31: "r", 32: "g", 33: "y", 34: "c", 36: "c" };
  const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const [first = "", ...parts] = line.split("\u001b[");
  return (
    escaped(first) +
    parts
      .map((part) => {
        const [, code = "", text = ""] = /^([\d;]*)[A-Za-z](.*)$/s.exec(part) ?? [];
        const known = classes[code.split(";")[0]!];
        return known && text !== "" ? `<tspan class="${known}">${escaped(text)}</tspan>` : escaped(text);
      })
      .join("")
  );
}
