/**
 * Runs every test that bears the name of a row, and prints the table: `bun run test:attacks`, `bun run test:faults`.
 * Ends with 1 when a row failed, or was not run. What the machine does not allow is skipped, and counted as that.
 */
import { join } from "node:path";
import { runTests } from "../support/report";
import { attacks, faults, notHere, shownByPages } from "./cases";
import { idsOf, namesInTests, placeOf } from "./read";

const which = process.argv[2] === "faults" ? "faults" : "attacks";
const rows = which === "faults" ? faults : attacks;
const wanted = new Set(rows.map(({ id }) => id));
const root = join(import.meta.dir, "../..");
const files = new Set(
  (await namesInTests())
    .filter(({ name }) => idsOf(name).some((id) => wanted.has(id)))
    .map(({ file }) => `test/${file}`),
);

const elsewhere = rows.flatMap(({ id }) => (shownByPages[id] ? [{ id, ...placeOf(shownByPages[id]) }] : []));
for (const { file } of elsewhere) files.add(`test/${file}`);

const words = elsewhere.map(({ name }) => name.replace(/[^\w ]/g, "."));
const pattern = `\\b(?:${[...wanted].join("|")})\\b|${words.join("|") || "$^"}`;
const results = await runTests([...files], { root, parallel: false, flags: [`--test-name-pattern=${pattern}`] });

const outcomes = new Map<string, { passed: number; failed: string[]; skipped: string[] }>();
for (const { name, outcome: result } of results) {
  // The id may stand in the name of the group.
  const ids = name.split(" > ").flatMap(idsOf);
  for (const { id, name: words } of elsewhere) if (name.includes(words)) ids.push(id);
  // What the pattern left out is skipped too, but has no reason in its name.
  const lacking = /\(this machine lacks (.+)\)$/.exec(name)?.[1];
  if (result === "skipped" && !lacking) continue;
  for (const id of new Set(ids)) {
    const outcome = outcomes.get(id) ?? { passed: 0, failed: [], skipped: [] };
    outcomes.set(id, outcome);
    if (lacking) outcome.skipped.push(lacking);
    else if (result === "failed") outcome.failed.push(name);
    else outcome.passed++;
  }
}

type Verdict = "passed" | "failed" | "skipped" | "not here";
const counts: Record<Verdict, number> = { passed: 0, failed: 0, skipped: 0, "not here": 0 };
for (const { id, title } of rows) {
  const [verdict, detail] = verdictOf(id);
  counts[verdict]++;
  console.log(`${id.padEnd(5)}| ${title.padEnd(88)}| ${verdict}${detail}`);
}
console.log(
  `\n${which}: ${rows.length}${Object.entries(counts)
    .map(([verdict, count]) => ` · ${verdict} ${count}`)
    .join("")}`,
);
process.exitCode = counts.failed > 0 ? 1 : 0;

function verdictOf(id: string): [Verdict, string] {
  const outcome = outcomes.get(id);
  if (!outcome) return notHere[id] ? ["not here", `: ${notHere[id]}`] : ["failed", ": it was not run"];
  if (outcome.failed.length > 0) return ["failed", `: ${outcome.failed.join("; ")}`];
  const skipped = outcome.skipped.length > 0 ? `: this machine lacks ${outcome.skipped.join(", ")}` : "";
  return outcome.passed > 0 ? ["passed", ` (${outcome.passed})${skipped && `; but${skipped}`}`] : ["skipped", skipped];
}
