/**
 * `bun run check:quick [commit]`: types, lint, and the tests of what was changed since a commit (HEAD, or the one before it
 * if nothing is uncommitted): those that import it, those of its room, and those that hold tables and documents together.
 */
import { join } from "node:path";
import { importGraph } from "./support/imports";

const root = join(import.meta.dir, "..");

/** Nearly everything is reached through these, so a way through them says nothing. */
const hubs = new Set([
  ...[
    "src/parts/app.ts",
    "src/parts/open-app.ts",
    "src/server.ts",
    "src/proxy/relay/relay.ts",
    "src/routes/clients.ts",
  ],
  ...["src/dialects/codecs.ts", "src/cli/commands.ts", "src/parts/local-stores.ts", "src/parts/open-stores.ts"],
  ...["src/admin/api/plugin.ts", "src/admin/pages/plugin.ts", "src/demo/demo.ts"],
]);
/** They read tables or documents that every room adds to. */
const always = [
  ...["test/house.test.ts", "test/docs.test.ts", "test/routes/openapi.test.ts", "test/admin/twins.test.ts"],
  "test/attacks/headers.test.ts",
];
/** They load the machine, or take minutes: a whole run has them. */
const slow = /^test\/(?:attacks|faults|proof|bench|clients)\//;

const changed = changedFiles(process.argv[2]);
const tests = await testsOf(changed);
console.log(`${changed.length} changed files, ${tests.length} files of tests.`);
for (const command of [
  ["bun", "check", "--no-script"],
  ["node_modules/.bin/biome", "check", "--error-on-warnings", "."],
  ["bun", "test/run.ts", ...tests],
]) {
  const argv = command[0] === "bun" ? [process.execPath, ...command.slice(1)] : command;
  const { exitCode } = Bun.spawnSync(argv, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
  if (exitCode !== 0) process.exit(exitCode);
}

function changedFiles(commit: string | undefined): string[] {
  const uncommitted = [...git("diff", "--name-only", commit ?? "HEAD"), ...git("ls-files", "-o", "--exclude-standard")];
  return uncommitted.length > 0 || commit ? uncommitted : git("diff", "--name-only", "HEAD~1");
}

function git(...args: string[]): string[] {
  const { stdout } = Bun.spawnSync(["git", ...args], { cwd: root });
  return stdout.toString().split("\n").filter(Boolean);
}

/** The files of tests that a change may break, in the order of their paths. */
async function testsOf(files: readonly string[]): Promise<string[]> {
  const graph = await importGraph(root, "{src,test}/**/*.{ts,tsx}");
  const reached = new Set(files);
  for (const file of reached) {
    if (hubs.has(file) && !files.includes(file)) continue;
    for (const [importer, imports] of graph) if (imports.includes(file)) reached.add(importer);
  }
  const rooms = new Set(files.filter((file) => file.startsWith("src/")).map((file) => file.split("/")[1]));
  const isOfRoom = (test: string) => rooms.has(test.split("/")[1]);
  return [...graph.keys()].filter(
    (file) =>
      file.endsWith(".test.ts") &&
      (files.includes(file) ||
        always.includes(file) ||
        (!slow.test(file) && (isOfRoom(file) || (reached.has(file) && file.startsWith("test/"))))),
  );
}
