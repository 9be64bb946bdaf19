/** The house: imports run downward, and no file's imports lead back to it. */
import { expect, test } from "bun:test";
import { dirname, join, normalize, relative } from "node:path";

const source = join(import.meta.dir, "../src");

/** Floors from the ground up; a file imports from lower floors or from its own room. Brothers on one floor do not know each other. */
const floors: string[][] = [
  ["errors.ts", "logger.ts", "launch.ts"],
  ["json.ts", "host-name.ts"],
  ["config/", "net/", "clients/"],
  ["accounts/", "dialects/", "history/"],
  ["upstream/"],
  ["app.ts"],
  ["relay/"],
  ["api/", "admin/"],
  ["server.ts"],
  ["cli/"],
  ["main.ts"],
];

/** The three dialects know the hub, not each other; the scripted upstream knows none of us. */
const apart: [string, string[]][] = [
  ["dialects/chat/", ["dialects/responses/", "dialects/messages/"]],
  ["dialects/responses/", ["dialects/chat/", "dialects/messages/"]],
  ["dialects/messages/", ["dialects/chat/", "dialects/responses/"]],
  ["dialects/hub/", ["dialects/chat/", "dialects/responses/", "dialects/messages/"]],
];

const files = [...new Bun.Glob("**/*.{ts,tsx}").scanSync(source)].sort();
const arrows = new Map(await Promise.all(files.map(async (file) => [file, await importsOf(file)] as const)));

test("every file stands on a floor", () => {
  expect(files.filter((file) => placeOf(file) === undefined)).toEqual([]);
});

test("no arrow runs upward or to a brother", () => {
  const wrong = [...arrows].flatMap(([from, imports]) =>
    imports.filter((to) => !mayImport(from, to)).map((to) => `${from} → ${to}`),
  );
  expect(wrong).toEqual([]);
});

test("the dialects know the hub but not each other", () => {
  const wrong = [...arrows].flatMap(([from, imports]) =>
    apart
      .filter(([room]) => from.startsWith(room))
      .flatMap(([, others]) => imports.filter((to) => others.some((other) => to.startsWith(other))))
      .map((to) => `${from} → ${to}`),
  );
  expect(wrong).toEqual([]);
});

test("the scripted upstream shares no code with what it tests", () => {
  const wrong = [...arrows].flatMap(([from, imports]) =>
    from.startsWith("upstream/demo/") ? imports.filter((to) => !to.startsWith("upstream/demo/")) : [],
  );
  expect(wrong).toEqual([]);
});

test("the relay knows no dialect's words: members are spelt as the wire spells them in dialects/ alone", async () => {
  const spoken = /\/\*[\s\S]*?\*\/|\/\/.*|"[^"\n]*"|'[^'\n]*'|`[^`]*`/g;
  // The history's columns are spelt so too, and `exchange.ts` fills them in.
  const own = files.filter((file) => file.startsWith("relay/") && file !== "relay/exchange.ts");
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
    for (const next of arrows.get(file) ?? []) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
  expect(circles).toEqual([]);
});

/** Imports of types count too, which is why the text is read and not the transpiler asked. */
async function importsOf(file: string): Promise<string[]> {
  const text = await Bun.file(join(source, file)).text();
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map(([, specifier]) => specifier!);
  return specifiers
    .map((specifier) => relative(source, normalize(join(source, dirname(file), specifier))))
    .filter((path) => !path.startsWith(".."))
    .map((path) => files.find((each) => [path, `${path}.ts`, `${path}.tsx`].includes(each)) ?? path);
}

function placeOf(file: string): { floor: number; room: string } | undefined {
  for (const [floor, rooms] of floors.entries())
    for (const room of rooms) if (room.endsWith("/") ? file.startsWith(room) : file === room) return { floor, room };
  return undefined;
}

function mayImport(from: string, to: string): boolean {
  const [upper, lower] = [placeOf(from), placeOf(to)];
  if (!upper || !lower) return false;
  return lower.floor < upper.floor || lower.room === upper.room;
}
