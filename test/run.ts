/**
 * Runs every test and closes with one plain line: `N passed, N failed`, after what was printed of each failure. Arguments go
 * to `bun test`. Without arguments, files run side by side, one on each core; then, one after the other, those of attacks and
 * faults, which load the machine themselves and measure what happens. A file that failed runs once more, alone: what is wrong
 * fails again, and what only the busy machine failed is printed as that.
 */
import { join } from "node:path";
import { limitMs } from "./support/limit";

const root = join(import.meta.dir, "..");
const alone = ["test/attacks", "test/faults"];
/** With more failed files than this, something is wrong, and running them again only takes time. */
const mostAgain = 5;

interface Outcome {
  /** Numbers of tests by `pass`, `fail`, `skip` and `todo`. */
  counts: Record<string, number>;
  isGood: boolean;
  /** What was printed of each file in which something failed, by its path. */
  failures: Map<string, string>;
  /** The names of tests that passed. */
  passed: Set<string>;
}

async function run(args: string[]): Promise<Outcome> {
  const child = Bun.spawn([process.execPath, "test", "--isolate", `--timeout=${limitMs}`, ...args], {
    cwd: root,
    stdout: "inherit",
    stderr: "pipe",
    env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: "4096" },
  });
  const decoder = new TextDecoder();
  let printed = "";
  for await (const chunk of child.stderr) {
    process.stderr.write(chunk);
    printed += decoder.decode(chunk, { stream: true });
  }
  const counts: Record<string, number> = {};
  for (const [, count, word] of printed.slice(-2000).matchAll(/^ ?(\d+) (pass|fail|skip|todo)$/gm))
    counts[word!] = Number(count);
  const isGood = (await child.exited) === 0 && (counts.pass ?? 0) > 0;
  // A run that ended badly without a failing test (a crash, no test at all) must not look well.
  if (!isGood && !counts.fail) counts.fail = 1;
  return { counts, isGood, failures: failuresIn(printed), passed: new Set(namesOf("pass", printed)) };
}

const failed = /^\(fail\) |^# Unhandled error between tests/m;

function failuresIn(printed: string): Map<string, string> {
  const bodies = new Map<string, string>();
  let file: string | undefined;
  for (const line of printed.split("\n")) {
    // A file that takes long is named again behind those that ended in the meantime. The last one is followed by the numbers,
    // and in a long run by the names of all failures before them.
    const named = /^(test\/\S+\.test\.tsx?):$/.exec(line);
    if (named) file = named[1];
    else if (/^ +\d+ pass$|^\d+ tests failed:$/.test(line)) file = undefined;
    else if (file !== undefined) bodies.set(file, `${bodies.get(file) ?? ""}${line}\n`);
  }
  return new Map([...bodies].filter(([, body]) => failed.test(body)));
}

function namesOf(result: "pass" | "fail", text: string): string[] {
  return [...text.matchAll(new RegExp(`^\\(${result}\\) (.*?)(?: \\[[\\d.]+ms\\])?$`, "gm"))].map(([, name]) => name!);
}

/** Runs the files in which something failed once more, alone. @returns The outcome with theirs in place of the first. */
async function again(first: Outcome): Promise<Outcome> {
  const bodies = [...first.failures.values()];
  const names = bodies.flatMap((body) => namesOf("fail", body));
  // An error between tests may be printed with another file than its own, so it is final.
  if (first.isGood || bodies.length > mostAgain || names.length !== first.counts.fail) return first;
  console.log(`\nOnce more, alone: ${[...first.failures.keys()].join(", ")}\n`);
  const second = await run([...first.failures.keys()]);
  if (second.isGood && !names.every((name) => second.passed.has(name))) return first;
  const before = bodies.reduce((total, body) => total + namesOf("pass", body).length, 0);
  const pass = (first.counts.pass ?? 0) - before + (second.counts.pass ?? 0);
  return { ...second, counts: { ...first.counts, pass, fail: second.counts.fail ?? 0 } };
}

function report(title: string, failures: Map<string, string>): void {
  for (const [file, body] of failures) {
    const lines = body.split("\n").filter((line) => !/^\((pass|skip|todo)\) /.test(line));
    console.log(`\n${title}: ${file}\n${lines.join("\n").trim()}`);
  }
}

const given = process.argv.slice(2);
const outcomes: Outcome[] = [];
if (given.length > 0) outcomes.push(await run(given));
else {
  const ignored = alone.map((folder) => `--path-ignore-patterns=${folder}/**`);
  const unsteady: Outcome["failures"][] = [];
  for (const args of [["--parallel", ...ignored], alone]) {
    const first = await run(args);
    const outcome = await again(first);
    outcomes.push(outcome);
    unsteady.push(new Map([...first.failures].filter(([file]) => !outcome.failures.has(file))));
  }
  for (const failures of unsteady) report("failed, and passed alone", failures);
  for (const { failures } of outcomes) report("failed", failures);
}

const sum = (word: string) => outcomes.reduce((total, { counts }) => total + (counts[word] ?? 0), 0);
const skipped = sum("skip");
console.log(`${sum("pass")} passed, ${sum("fail")} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exitCode = outcomes.every(({ isGood }) => isGood) ? 0 : 1;
