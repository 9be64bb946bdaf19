/**
 * `MUTATION_SECONDS=600 bun run test:mutations [part of <path>:<line> …]`: changes one operator or constant at a time in a copy of
 * the tree (without words, some of every wing), runs the tests that guard the changed file, and names each change that no test noticed. `mutants/unnoticed.txt` has the
 * changes that may go unnoticed, with the reason. `SEED=…` draws the same changes in the same order.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { changesOf, type Mutant } from "./mutants/changes";
import { Guard } from "./mutants/guard";
import { unnoticed } from "./mutants/unnoticed";
import { importGraph } from "./support/imports";
import { limitMs } from "./support/limit";
import { openChance, seed } from "./support/random";
import { serveSharedPostgres } from "./support/shared-postgres";

interface Room {
  name: string;
  files: RegExp;
  /** The tests that are to notice a change. */
  tests: RegExp;
  /** The least share of its changes that is noticed, of those that are not named. */
  least: number;
  /** Changes that are drawn, unless the room is chosen; all when missing. */
  most?: number;
}

/** They count what is spent, and decide who may ask and what follows a failure: every change is noticed, or named. */
const strictRooms: Omit<Room, "least">[] = [
  {
    name: "budgets",
    files: /^src\/people\/budgets\//,
    tests: /^test\/(?:people\/(?:budgets\/(?!model)|books\.)|team\/(?:contract|settlements)\.)/,
  },
  {
    name: "keys",
    files: /^src\/people\/keys\//,
    tests:
      /^test\/(?:people\/(?:keys\/|books\.)|cli\/sessions\.|team\/(?:contract|logins|members|member-keys|page-state)\.)/,
  },
  {
    name: "guard",
    files: /^src\/(?:web\/guard|lib\/net\/in\/caller)\.ts$/,
    tests:
      /^test\/(?:lib\/net\/(?:caller|trusted-proxies)|access\/[\w-]+|routes\/(?:base-url|methods)|proxy\/relay\/projects)\./,
  },
  {
    name: "pool",
    files: /^src\/people\/accounts\/pool/,
    tests: /^test\/(?:people\/accounts\/pool|proxy\/relay\/accounts)/,
  },
  {
    name: "after",
    files: /^src\/proxy\/relay\/after\.ts$/,
    tests: /^test\/proxy\/relay\/(?:after|auto|fallbacks|waiting)\./,
  },
  { name: "rules", files: /^src\/dialects\/\w+\/rules\.ts$/, tests: /^test\/dialects\// },
];

/** By the wing the folders of its tests. */
const testsOfWings: Record<string, string> = {
  lib: "lib|attacks|proxy",
  config: "config|cli",
  clients: "clients|cli",
  dialects: "dialects|proxy",
  people: "people|admin|proxy",
  books: "books|admin|proxy",
  proxy: "proxy|routes",
  parts: "admin|cli|routes",
  team: "team",
  web: "routes|access|admin|attacks",
  routes: "routes|access|attacks",
  admin: "admin|access",
  cli: "cli",
  demo: "demo|proxy",
  deploy: "deploy|cli",
};

/** Two codecs, of which the other wings' tests see but little. */
const codecRooms: Room[] = ["chat", "responses"].map((name) => ({
  name,
  files: new RegExp(`^src/dialects/${name}/`),
  tests: /^test\/dialects\//,
  least: 0.9,
  most: 40,
}));

const rooms: Room[] = [
  ...strictRooms.map((room) => ({ ...room, least: 1 })),
  ...codecRooms,
  ...Object.entries(testsOfWings).map(([name, folders]) => ({
    name,
    files: new RegExp(`^src/${name}/`),
    tests: new RegExp(`^test/(?:${folders})/`),
    least: 0.85,
    most: 40,
  })),
];
const roomOf = (file: string): Room | undefined => rooms.find(({ files }) => files.test(file));

const startsProcesses = /support\/(?:command|in-process|teams|terminal|systemd)"/;

type Outcome = "noticed" | "unnoticed" | "named";

const root = join(import.meta.dir, "..");
const seconds = Number(process.env.MUTATION_SECONDS ?? 600);
const chosen = process.argv.slice(2);

const graph = await importGraph(root, "{src,test}/**/*.{ts,tsx}");
for (const { name, files, tests } of rooms)
  for (const each of [files, tests])
    if (![...graph.keys()].some((file) => each.test(file))) throw new Error(`No file of the room ${name} is ${each}.`);
/** What a thread loads runs there too, which no report of lines tells. */
const ofThreads = new Set([...graph.keys()].filter((file) => file.startsWith("src/") && file.endsWith("-worker.ts")));
for (const file of ofThreads) for (const imported of graph.get(file) ?? []) ofThreads.add(imported);
const mutants = await sampled();
await using postgres = await serveSharedPostgres();
const env = { ...process.env, ...postgres.env, SEED: String(seed) };

const folder = mkdtempSync(join(tmpdir(), "dragoman-mutants-"));
const outcomes = new Map<Mutant, Outcome>();
const started = performance.now();
try {
  const copies = Array.from({ length: Math.min(availableParallelism(), mutants.length) }, (_, at) => copyOfTree(at));
  const guards = await greenGuards(copies);
  const endsAt = performance.now() + seconds * 1000;
  const waiting = mutants.values();
  await Promise.all(
    copies.map(async (copy) => {
      for (const mutant of waiting) {
        if (performance.now() > endsAt) return;
        outcomes.set(mutant, await outcomeOf(mutant, copy, guards));
      }
    }),
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
printTable();

/** The mutants of the chosen files, in a random order that takes turns between the files: of a wing as many as are drawn. */
async function sampled(): Promise<Mutant[]> {
  const { next } = openChance("mutations");
  const drawn: { mutant: Mutant; turn: number }[] = [];
  for (const file of [...graph.keys()].filter((each) => roomOf(each) !== undefined)) {
    const changes = changesOf(file, await Bun.file(join(root, file)).text()).filter(isChosen);
    const shuffled = changes.map((mutant) => ({ mutant, at: next() })).sort((one, other) => one.at - other.at);
    drawn.push(...shuffled.map(({ mutant }, turn) => ({ mutant, turn: turn + next() })));
  }
  if (drawn.length === 0) throw new Error(`No file that is guarded has ${chosen.join(" or ")} in its path.`);
  const inOrder = drawn.sort((one, other) => one.turn - other.turn).map(({ mutant }) => mutant);
  if (chosen.length > 0) return inOrder;
  const taken = Object.groupBy(inOrder, ({ file }) => roomOf(file)!.name);
  return rooms
    .flatMap(({ name, most }) => (taken[name] ?? []).slice(0, most).map((mutant, turn) => ({ mutant, turn })))
    .sort((one, other) => one.turn - other.turn)
    .map(({ mutant }) => mutant);
}

function isChosen({ file, line }: Mutant): boolean {
  return chosen.length === 0 || chosen.some((part) => `${file}:${line}:`.includes(part));
}

function copyOfTree(at: number): string {
  const copy = join(folder, String(at));
  mkdirSync(copy);
  for (const each of ["src", "test", "package.json", "tsconfig.json", "bunfig.toml", "README.md", ".github"])
    cpSync(join(root, each), join(copy, each), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

/** Without the tests that fail without a change: they would notice every one. */
async function greenGuards(copies: readonly string[]): Promise<Guard[]> {
  const asked = new Set(mutants.map(({ file }) => roomOf(file)!));
  const tests = [...graph.keys()].filter(
    (each) => each.endsWith(".test.ts") && [...asked].some((room) => room.tests.test(each)),
  );
  const guards: Guard[] = [];
  const waiting = tests.values();
  await Promise.all(
    copies.map(async (copy) => {
      for (const test of waiting) {
        const began = performance.now();
        const reports = ["--coverage", "--coverage-reporter=lcov", `--coverage-dir=${copy}/coverage`];
        if (!(await passes(copy, test, ...reports))) {
          console.log(`${test} fails without any change, so it is not asked; mend it.`);
          process.exitCode = 1;
          continue;
        }
        const lcov = await Bun.file(join(copy, "coverage", "lcov.info")).text();
        const text = await Bun.file(join(root, test)).text();
        guards.push(new Guard(test, lcov, performance.now() - began, startsProcesses.test(text)));
      }
    }),
  );
  return guards;
}

async function outcomeOf(mutant: Mutant, copy: string, guards: readonly Guard[]): Promise<Outcome> {
  const { file, line, change } = mutant;
  if (unnoticed.some((each) => each.file === file && each.change === change)) return "named";
  const { tests } = roomOf(file)!;
  const asked = guards
    .filter(({ test }) => tests.test(test))
    .filter((guard) => ofThreads.has(file) || guard.mayRun(file, line));
  const path = join(copy, file);
  const original = await Bun.file(path).text();
  await Bun.write(path, mutant.text);
  const inOrder = asked.sort((one, other) => other.worth(file) - one.worth(file));
  try {
    for (const guard of inOrder) {
      const hasNoticed = !(await passes(copy, guard.test)) && (await isGreen(copy, guard, path, original));
      if (!hasNoticed) await Bun.write(path, mutant.text);
      guard.answered(file, hasNoticed);
      if (hasNoticed) return "noticed";
    }
  } finally {
    await Bun.write(path, original);
  }
  console.log(`\nNo test noticed: ${file}:${line}\n  ${change}`);
  return "unnoticed";
}

/** Whether the test still passes without the change: on a busy machine one may fail by itself. It puts the original back. */
async function isGreen(copy: string, { test }: Guard, path: string, original: string): Promise<boolean> {
  await Bun.write(path, original);
  if (await passes(copy, test)) return true;
  console.log(`${test} failed with a change and without it, so it noticed nothing.`);
  return false;
}

/** A mutant that never ends counts as noticed: its tests are ended after the time that one test may take. */
async function passes(copy: string, test: string, ...flags: string[]): Promise<boolean> {
  const argv = [process.execPath, "test", "--isolate", "--bail", `--timeout=${limitMs}`, ...flags, `./${test}`];
  const child = Bun.spawn(argv, {
    cwd: copy,
    env,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
    timeout: 3 * limitMs,
  });
  return (await child.exited) === 0;
}

function printTable(): void {
  console.log(`\nSEED=${seed}, ${Math.round((performance.now() - started) / 1000)} s\n`);
  console.log("room       changes    tried  noticed    named  unnoticed  noticed %  at least");
  for (const room of rooms) {
    const all = mutants.filter(({ file }) => roomOf(file) === room).length;
    const tried = [...outcomes].filter(([{ file }]) => roomOf(file) === room).map(([, outcome]) => outcome);
    if (tried.length === 0) continue;
    const count = (outcome: Outcome) => tried.filter((each) => each === outcome).length;
    const [noticed, named, left] = [count("noticed"), count("named"), count("unnoticed")];
    const share = noticed + left === 0 ? 1 : noticed / (noticed + left);
    const cells = [all, tried.length, noticed, named].map((cell) => String(cell).padStart(8));
    const shares = [share, room.least].map((each) => (100 * each).toFixed(1).padStart(10));
    console.log(`${room.name.padEnd(9)}${cells.join(" ")} ${String(left).padStart(10)} ${shares.join("")}`);
    if (share < room.least) process.exitCode = 1;
  }
}
