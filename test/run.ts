/**
 * Runs every test and closes with one plain line: `N passed, N failed`. Without arguments, files run side by side, one on each
 * core; then, one after the other, those of attacks and faults, which load the machine themselves and measure what happens.
 * Arguments go to `bun test`.
 */
import { join } from "node:path";

const root = join(import.meta.dir, "..");
const alone = ["test/attacks", "test/faults"];

interface Outcome {
  /** Numbers of tests by `pass`, `fail`, `skip` and `todo`. */
  counts: Record<string, number>;
  isGood: boolean;
}

async function run(args: string[]): Promise<Outcome> {
  const child = Bun.spawn([process.execPath, "test", "--isolate", ...args], {
    cwd: root,
    stdout: "inherit",
    stderr: "pipe",
    env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: "4096" },
  });
  const counts: Record<string, number> = {};
  let tail = "";
  for await (const chunk of child.stderr) {
    process.stderr.write(chunk);
    tail = (tail + new TextDecoder().decode(chunk)).slice(-2000);
  }
  for (const [, count, word] of tail.matchAll(/^ ?(\d+) (pass|fail|skip|todo)$/gm)) counts[word!] = Number(count);
  const isGood = (await child.exited) === 0 && (counts.pass ?? 0) > 0;
  // A run that ended badly without a failing test (a crash, no test at all) must not look well.
  if (!isGood && !counts.fail) counts.fail = 1;
  return { counts, isGood };
}

const given = process.argv.slice(2);
const outcomes: Outcome[] = [];
if (given.length > 0) outcomes.push(await run(given));
else {
  const ignored = alone.map((folder) => `--path-ignore-patterns=${folder}/**`);
  outcomes.push(await run(["--parallel", ...ignored]), await run(alone));
}

const sum = (word: string) => outcomes.reduce((total, { counts }) => total + (counts[word] ?? 0), 0);
const skipped = sum("skip");
console.log(`${sum("pass")} passed, ${sum("fail")} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exitCode = outcomes.every(({ isGood }) => isGood) ? 0 : 1;
