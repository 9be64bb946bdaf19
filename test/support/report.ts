/** Runs `bun test` over some files, and reads its JUnit report. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative } from "node:path";
import { DOMParser, type Element } from "@xmldom/xmldom";
import { settingsOf } from "../../src/lib/launch";
import { limitMs } from "./limit";

export interface TestResult {
  /** Relative to the root, such as `test/lib/net/sse.test.ts`. */
  file: string;
  /** Its groups and its title, joined by ` > `. */
  name: string;
  outcome: "passed" | "failed" | "skipped";
  /** What the failure said; empty if it said nothing. */
  message: string;
}

interface RunOptions {
  /** Below which the files are; the current folder of the run. */
  root: string;
  /** So many files run side by side; otherwise one after the other. */
  workers?: number;
  /** Each file has a global object and modules of its own, which costs a third of a second; true when missing. */
  isolated?: boolean;
  /** Further arguments of `bun test`. */
  flags?: string[];
  env?: Record<string, string>;
}

/** As many files side by side as wait for processes, servers and timers for half of their time. */
export const allWorkers = 2 * availableParallelism();

/** What a file did that has no test to tell it by: it could not be loaded, or has no test. */
const asFile = "(the file)";
/** What failed outside of every test. */
const asRun = "(outside of all tests)";

/**
 * @param files Paths relative to `options.root`.
 * @returns One result a test. A file of which nothing is reported is a failure, and so is an exit code that no result explains.
 */
export async function runTests(files: readonly string[], options: RunOptions): Promise<TestResult[]> {
  if (files.length === 0) return [];
  const folder = mkdtempSync(join(tmpdir(), "dragoman-report-"));
  try {
    const reportPath = join(folder, "report.xml");
    const flags = options.flags ?? [];
    const timings = join(options.root, "test/timings.json");
    const child = Bun.spawn(
      [
        ...[process.execPath, "test", `--timeout=${limitMs}`],
        ...(options.workers === undefined ? [] : [`--parallel=${options.workers}`]),
        options.isolated === false ? "--no-isolate" : "--isolate",
        // The slowest start first, so that no core is left with one at the end.
        ...(options.workers !== undefined && existsSync(timings) ? [`--timings=${timings}`] : []),
        ...["--reporter=junit", `--reporter-outfile=${reportPath}`, "--only-failures", ...flags],
        ...files.map((file) => `./${file}`),
      ],
      {
        cwd: options.root,
        stdin: "ignore",
        stdout: "inherit",
        stderr: "inherit",
        // As the program itself runs. The compiler's last tier costs a test more than it gains.
        env: { ...process.env, ...settingsOf(Bun.version), ...options.env },
      },
    );
    const code = await child.exited;
    const report = Bun.file(reportPath);
    const results = (await report.exists()) ? readReport(await report.text(), options.root) : [];
    const reported = new Set(results.map(({ file }) => file));
    const isFiltered = flags.some((flag) => /^(?:-t|--test-name-pattern)/.test(flag));
    const silent = isFiltered ? [] : files.filter((file) => !reported.has(file));
    results.push(...silent.map((file) => failure(file, asFile, "It could not be loaded, or has no test.")));
    if (code !== 0 && !results.some(({ outcome }) => outcome === "failed"))
      results.push(failure("", asRun, `bun test ended with ${code}; what it printed above says why.`));
    return results;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const failure = (file: string, name: string, message: string): TestResult => ({
  file,
  name,
  outcome: "failed",
  message,
});

/** @param xml A JUnit report of Bun, whose groups are suites within suites. */
function readReport(xml: string, root: string): TestResult[] {
  const results: TestResult[] = [];
  const visit = (element: Element, groups: string[]) => {
    for (const child of [...element.childNodes] as Element[]) {
      const name = child.nodeName === "#text" ? undefined : child.getAttribute?.("name");
      if (child.nodeName === "testsuite") visit(child, child.getAttribute("line") ? [...groups, name ?? ""] : groups);
      if (child.nodeName !== "testcase") continue;
      const told = (tag: string) => child.getElementsByTagName(tag).item(0);
      const failed = told("failure") ?? told("error");
      results.push({
        file: relative(root, join(root, child.getAttribute("file") ?? "")),
        name: [...groups, name ?? ""].join(" > "),
        outcome: failed ? "failed" : told("skipped") ? "skipped" : "passed",
        message: (failed?.textContent || failed?.getAttribute("message")) ?? "",
      });
    }
  };
  const document = new DOMParser().parseFromString(xml, "text/xml");
  if (document.documentElement) visit(document.documentElement, []);
  return results;
}
