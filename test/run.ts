/**
 * Runs the tests and closes with one plain line: `N passed, N failed`, after what failed and why. Arguments choose files by
 * a part of their path; without one, all but the proof tier. Flags go to `bun test`. Files run side by side, one on each
 * core; those of the proof tier load the machine and measure it, so they run one after the other. The first failure makes
 * the run red: a second, lone run of its file only says whether it fails there too. `quarantine.ts` names the only tests
 * that may fail.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { quarantine } from "./quarantine";
import { buildProgram } from "./support/command";
import { proof } from "./support/proof";
import { allWorkers, runTests, type TestResult } from "./support/report";
import { serveSharedPostgres } from "./support/shared-postgres";
import { shortRuns } from "./support/short-runs";

const root = join(import.meta.dir, "..");
const proofTier = "test/proof/";
/** From so many files on that start the program, it is built once. */
const fewestForProgram = 6;
/** With more failed files than this, something is wrong, and labels only take time. */
const mostLabelled = 5;

const seed = process.env.SEED ?? String(Math.trunc(Math.random() * 2 ** 31));
const { filters, flags } = split(process.argv.slice(2));
const all = [...new Bun.Glob("test/**/*.test.{ts,tsx}").scanSync(root)].sort();
const isProof = (file: string) => file.startsWith(proofTier);
const files = all.filter((file) =>
  filters.length === 0 ? !isProof(file) : filters.some((filter) => file.includes(filter)),
);
const textOf = (file: string) => readFileSync(join(root, file), "utf8");
const sharesPostgres = (file: string) => textOf(file).includes("sharedPostgres(");

/** A file that changes what all modules see must not leave it to the files after it. */
const changesGlobals = (file: string) =>
  /process\.env[.[\w"\]]* =|globalThis\.|setSystemTime|useFakeTimers|spyOn|process\.(?:chdir|on)\(|defineProperty\(process/.test(
    textOf(file),
  );

const startsProgram = (file: string) => /support\/(?:command|teams|terminal)"|cli\/bench"/.test(textOf(file));

// Each uses one core for seconds.
const [served, built] = await Promise.all([
  files.some(sharesPostgres) ? serveSharedPostgres() : undefined,
  files.filter(startsProgram).length >= fewestForProgram ? buildProgram(root) : undefined,
]);
await using postgres = served;
await using program = built;
const env = { SEED: seed, ...postgres?.env, ...program?.env };

const startedAt = performance.now();
const common = { root, flags, env };
const short = { ...common, env: { ...env, ...shortRuns } };
const sharing = files.filter((file) => !isProof(file) && !changesGlobals(file));
const alone = files.filter((file) => !isProof(file) && changesGlobals(file));
const ofSharing = runTests(sharing, {
  ...short,
  // The others are through long before these, and would leave a core without work.
  workers: allWorkers,
  isolated: false,
});
// The times of both are written to one file.
if (flags.includes("--update-timings")) await ofSharing;
const results = [
  ...(await runTests(alone, { ...short, workers: sharing.length > 0 ? 1 : allWorkers })),
  ...(await ofSharing),
  ...(await runTests(files.filter(isProof), common)),
].filter((result) => !isLeftOut(result));
const failed = results.filter(({ outcome }) => outcome === "failed");
const isPardoned = ({ file, name }: TestResult) =>
  quarantine.some((entry) => entry.file === file && entry.name === name);
const pardoned = failed.filter(isPardoned);
const wrong = failed.filter((result) => !isPardoned(result));
const labels = await labelsOf(wrong);

for (const result of pardoned) print("failed, and is in quarantine", result);
for (const result of wrong) print(`failed${labels.get(keyOf(result)) ?? ""}`, result);
for (const [reason, count] of skipReasons()) console.log(`skipped: ${count}, because ${reason}`);
const unexpected = unexpectedSkips();
for (const { file, name } of unexpected) console.log(`\nskipped, and must not be here: ${file}\n  ${name}`);
if (wrong.length > 0)
  console.log(`\nThe same random inputs again: ${proof ? "PROOF=1 " : ""}SEED=${seed} bun test/run.ts <file>`);
if (files.length === 0) console.log(`\nNo test file has ${filters.join(" or ")} in its path.`);

const passed = results.filter(({ outcome }) => outcome === "passed").length;
const skipped = results.filter(({ outcome }) => outcome === "skipped").length - unexpected.length;
const failures = wrong.length + unexpected.length;
console.log(`\n${Math.round((performance.now() - startedAt) / 1000)} s`);
console.log(`${passed} passed, ${failures} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exitCode = failures > 0 || passed === 0 ? 1 : 0;

/** Bun reports what a name pattern leaves out as skipped. */
function isLeftOut({ outcome, name }: TestResult): boolean {
  const isFiltered = flags.some((flag) => flag.startsWith("--test-name-pattern"));
  return isFiltered && outcome === "skipped" && lackOf(name) === undefined;
}

function keyOf({ file, name }: TestResult): string {
  return `${file}\n${name}`;
}

function print(title: string, { file, name, message }: TestResult): void {
  console.log(`\n${title}: ${file}\n  ${name}\n${message.trim().replace(/^/gm, "    ")}`);
}

/** What a lone run of its file says of each failure. Nothing here makes a failure good. */
async function labelsOf(failures: readonly TestResult[]): Promise<Map<string, string>> {
  const again = [...new Set(failures.map(({ file }) => file))].filter((file) => file !== "" && !isProof(file));
  if (again.length === 0 || again.length > mostLabelled) return new Map();
  console.log(`\nOnce more, each alone, to see whether they fail there too: ${again.join(", ")}\n`);
  const second: TestResult[] = [];
  for (const file of again) second.push(...(await runTests([file], short)));
  // A whole file that fails (it crashes, say) bears another name where it runs alone.
  const isWhole = ({ name }: TestResult) => name.startsWith("(");
  const failsAlone = (result: TestResult) =>
    second.some(
      (other) =>
        other.outcome === "failed" &&
        other.file === result.file &&
        (other.name === result.name || (isWhole(other) && isWhole(result))),
    );
  return new Map(
    failures
      .filter(({ file }) => again.includes(file))
      .map((result) => [keyOf(result), failsAlone(result) ? ", and fails alone too" : ", but only beside others"]),
  );
}

/** A test that the machine does not allow has the reason in its name. */
function skipReasons(): Map<string, number> {
  const reasons = new Map<string, number>();
  for (const result of results.filter(({ outcome }) => outcome === "skipped")) {
    const reason = lackOf(result.name) ?? "they say so themselves";
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  return reasons;
}

function lackOf(name: string): string | undefined {
  return /\((this machine lacks .+)\)$/.exec(name)?.[1];
}

/** Where `MAY_LACK` is set, only tests that lack one of its words (separated by commas) may be skipped; the others are failures. */
function unexpectedSkips(): TestResult[] {
  const given = process.env.MAY_LACK;
  if (given === undefined) return [];
  const words = given.split(",").filter((word) => word !== "");
  return results.filter(
    (result) => result.outcome === "skipped" && !words.some((word) => lackOf(result.name)?.includes(word)),
  );
}

/** Files and flags. The value of `-t` is no file. */
function split(args: readonly string[]): { filters: string[]; flags: string[] } {
  const filters: string[] = [];
  const flags: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at]!;
    if (arg === "-t" || arg === "--test-name-pattern") flags.push(`--test-name-pattern=${args[++at] ?? ""}`);
    else if (arg.startsWith("-")) flags.push(arg);
    else filters.push(arg.replace(/^\.\//, ""));
  }
  return { filters, flags };
}
