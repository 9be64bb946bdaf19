/** Rows: the architecture of src/, as its README describes it: which room imports which, and what a start loads. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { importGraph } from "./support/imports";

const source = join(import.meta.dir, "../src");
const graph = await importGraph(source);
const files = [...graph.keys()];

/** The rows of the table of rooms in src/README.md, from above. */
const rows = await roomRows();

test("every file of src/ belongs to a room in the table of src/README.md, and every room there has files", () => {
  expect(rows.length).toBeGreaterThan(10);
  expect(files.filter((file) => placeOf(file) === undefined)).toEqual([]);
  expect(rows.flat().filter((room) => !files.some((file) => isIn(room, file)))).toEqual([]);
});

test("a file imports only from its own room and from rooms in lower rows of that table", () => {
  expect(importsWhere((from, to) => !mayImport(from, to))).toEqual([]);
});

test("the dialects import the hub but not each other, and the hub imports none of them", () => {
  const dialects = ["chat", "responses", "messages", "gemini"].map((name) => `dialects/${name}/`);
  const homeOf = (file: string) => [...dialects, "dialects/hub/"].find((home) => file.startsWith(home));
  const crosses = (from: string, to: string) =>
    homeOf(from) !== undefined && dialects.some((home) => to.startsWith(home)) && homeOf(from) !== homeOf(to);
  expect(importsWhere(crosses)).toEqual([]);
});

test("the demo imports nothing of src, and one line of src imports the demo", () => {
  const isDemo = (file: string) => file.startsWith("demo/");
  expect(importsWhere((from, to) => isDemo(from) !== isDemo(to))).toEqual(["cli/start/start.ts → demo/demo.ts"]);
});

test("the relay and its tools name no member as the wire spells it: only dialects/ and upstream/ do", async () => {
  const spoken = /\/\*[\s\S]*?\*\/|\/\/.*|"[^"\n]*"|'[^'\n]*'|`[^`]*`/g;
  // `row.ts` fills the columns of the history, whose names are written like that too.
  const own = files.filter((file) => /^proxy\/(?:relay|server-tools)\//.test(file) && file !== "proxy/relay/row.ts");
  const wire = await Promise.all(
    own.map(async (file) => {
      const code = (await Bun.file(join(source, file)).text()).replace(spoken, "");
      return [...code.matchAll(/\b[a-z]+_[a-z_]+\b/g)].map(([name]) => `${file}: ${name}`);
    }),
  );
  expect(wire.flat()).toEqual([]);
});

test("no file's imports lead back to it", () => {
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: string[]) => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(" → "));
    if (done.has(file) || path.includes(file)) return;
    for (const next of graph.get(file) ?? []) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
  expect(circles).toEqual([]);
});

test("a start loads neither the admin API and pages nor the demo nor the sign-in, which are loaded with the first request for them", async () => {
  const { files: loaded } = await loadedBy();
  expect(loaded).toContain("server.ts");
  expect(loaded).toContain("proxy/relay/relay.ts");
  const needless =
    /^admin\/(?:api|pages|ui|access)\/|^demo\/|^cli\/sign-in\.ts$|^web\/openapi\.ts$|^books\/observe\/(?:spans|trace-export)\.ts$/;
  expect(loaded.filter((file) => needless.test(file))).toEqual([]);
});

/** `crypto` and `Bun.CryptoHasher` do without `node:crypto`, which takes 3 ms of a start, as `node:net` does. */
const quickModules = ["node:buffer", "node:fs", "node:os", "node:path", "node:timers/promises", "node:util"];

test("a start loads no module of Node's that takes long to load: it is loaded where it is needed", async () => {
  const { modules } = await loadedBy();
  expect(modules).toContain("node:fs");
  expect(modules.filter((name) => name.startsWith("node:") && !quickModules.includes(name))).toEqual([]);
});

test("a start loads only the app's framework and the package that reads the config", async () => {
  const { modules } = await loadedBy();
  expect(modules.filter((name) => !/^(?:node:|bun\b)/.test(name)).toSorted()).toEqual(["elysia", "zod"]);
});

test.each([
  ["cli/run.ts", ["cac"]],
  ["cli/statusline.ts", []],
])("somebody waits for a command: %s loads of packages %j", async (entry, packages) => {
  const { modules } = await loadedBy(entry);
  expect(modules.filter((name) => !/^(?:node:|bun\b)/.test(name))).toEqual(packages);
  expect(modules.filter((name) => name.startsWith("node:") && !quickModules.includes(name))).toEqual([]);
});

test("a file of tests says in its first line which of the four shapes it has", async () => {
  const shapeless: string[] = [];
  for (const file of new Bun.Glob("**/*.test.{ts,tsx}").scanSync(import.meta.dir))
    if (
      !/^\/\*\*\s+(?:\* )?(?:Rows|Pairs|Property|Scenario): /.test(await Bun.file(join(import.meta.dir, file)).text())
    )
      shapeless.push(file);
  expect(shapeless).toEqual([]);
});

test("fixtures/ has folders alone, which tests of recordings look through", () => {
  const files = readdirSync(join(import.meta.dir, "fixtures"), { withFileTypes: true }).filter((each) => each.isFile());
  expect(files).toEqual([]);
});

test("a row of a table of tests has a cell for each parameter of its test, which Bun would fill with `done`", () => {
  const rows = [["a", 1], ["b"]] as [string, number][];
  expect(() => test.each(rows)("of %s", (_one, _other) => {})).toThrow('Of "of %s" the row ["b"] has too few cells.');
});

test.each(["books/history/reader-worker.ts", "proxy/server-tools/match-worker.ts"])(
  "the thread %s loads no package: it starts while somebody waits for its answer",
  async (thread) => {
    const { modules } = await loadedBy(thread);
    expect(modules.filter((name) => !/^(?:node:|bun\b)/.test(name))).toEqual([]);
  },
);

/** What `dragoman start` loads before it runs, or a thread. */
async function loadedBy(entry = "cli/start/start.ts"): Promise<{ files: string[]; modules: string[] }> {
  const loaded = new Set([entry]);
  const modules = new Set<string>();
  for (const file of loaded) {
    const text = await Bun.file(join(source, file)).text();
    const values = text.matchAll(/^(?:import|export)\s+(?!type\b)[^;]*?from\s+"([^"]+)"/gm);
    for (const [, specifier = ""] of values) {
      if (specifier.startsWith(".")) loaded.add(resolved(file, specifier));
      else modules.add(specifier);
    }
  }
  return { files: [...loaded], modules: [...modules] };
}

function resolved(file: string, specifier: string): string {
  const path = relative(source, normalize(join(source, dirname(file), specifier)));
  return files.find((each) => [path, `${path}.ts`, `${path}.tsx`].includes(each)) ?? path;
}

async function roomRows(): Promise<string[][]> {
  const [, table = ""] = (await Bun.file(join(source, "README.md")).text()).split("| Room | Job |");
  const cells = table.split("\n\n")[0]!.matchAll(/^\| (`.*?) \| /gm);
  return [...cells].map(([, names]) => [...names!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!));
}

/** The imports for which this holds, as `from → to`. */
function importsWhere(holds: (from: string, to: string) => boolean): string[] {
  return [...graph].flatMap(([from, imports]) =>
    imports.filter((to) => holds(from, to)).map((to) => `${from} → ${to}`),
  );
}

function isIn(room: string, file: string): boolean {
  return room.endsWith("/") ? file.startsWith(room) : file === room;
}

function placeOf(file: string): { row: number; room: string } | undefined {
  for (const [row, rooms] of rows.entries()) for (const room of rooms) if (isIn(room, file)) return { row, room };
  return undefined;
}

function mayImport(from: string, to: string): boolean {
  const [importer, imported] = [placeOf(from), placeOf(to)];
  if (!importer || !imported) return false;
  return imported.row > importer.row || imported.room === importer.room;
}
