/** Runs every test and closes with one plain line: `N passed, N failed`. */
import { join } from "node:path";

const root = join(import.meta.dir, "..");
const child = Bun.spawn([process.execPath, "test", "--isolate", ...process.argv.slice(2)], {
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

const code = await child.exited;
const { pass = 0, fail = 0, skip = 0 } = counts;
// A run that ended badly without a failing test (a crash, no test at all) must not look well.
const failed = fail === 0 && code !== 0 ? 1 : fail;
console.log(`${pass} passed, ${failed} failed${skip > 0 ? `, ${skip} skipped` : ""}`);
process.exitCode = code === 0 && pass > 0 ? 0 : 1;
