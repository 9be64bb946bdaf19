/**
 * `FUZZ_SECONDS=600 bun run test:fuzz [file …]`: every test with random inputs, with new seeds until the time is over (60
 * seconds without the variable). What fails is kept in `fixtures/found/`, one file each, with the seed that shows it again;
 * the mended property gets the input as one of its `examples`, and the file goes. A file of which a test
 * needed too long is asked once more, alone.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { allWorkers, runTests } from "./support/report";

const root = join(import.meta.dir, "..");
const seconds = Number(process.env.FUZZ_SECONDS ?? 60);
const found = join(root, "test/fixtures/found");

const given = process.argv.slice(2);
const files: string[] = [];
for (const file of [...new Bun.Glob("test/**/*.test.ts").scanSync(root)].sort()) {
  const isChosen = given.length === 0 || given.some((part) => file.includes(part));
  if (isChosen && /support\/(?:random|requests)"|describeWithMembers/.test(await Bun.file(join(root, file)).text()))
    files.push(file);
}

const endsAt = performance.now() + seconds * 1000;
const kept = new Set<string>();
let [rounds, passed] = [0, 0];
do {
  const seed = Math.trunc(Math.random() * 2 ** 31);
  rounds += 1;
  const env = { SEED: String(seed), PROOF: "1" };
  const beside = await runTests(files, { root, workers: allWorkers, env });
  // What only needed too long beside others does not alone.
  const slow = new Set(beside.filter(({ message }) => message.includes("timed out")).map(({ file }) => file));
  const alone = await runTests([...slow], { root, env });
  for (const { file, name, outcome, message } of [...beside.filter((each) => !slow.has(each.file)), ...alone]) {
    if (outcome === "passed") passed += 1;
    if (outcome !== "failed" || kept.has(`${file}\n${name}`)) continue;
    kept.add(`${file}\n${name}`);
    mkdirSync(found, { recursive: true });
    const path = join(found, `${file.replace(/^test\/|\.test\.ts$/g, "").replaceAll("/", "-")}-${seed}.json`);
    await Bun.write(path, `${JSON.stringify({ file, name, seed, message }, null, 2)}\n`);
    console.log(`\nfound: ${file}\n  ${name}\n${message}\nPROOF=1 SEED=${seed} bun test/run.ts ${file}`);
  }
} while (performance.now() < endsAt);

console.log(`\n${rounds} rounds over ${files.length} files`);
console.log(`${passed} passed, ${kept.size} failed`);
process.exitCode = kept.size > 0 ? 1 : 0;
