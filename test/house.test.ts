/** The house: imports run downward, and no file's imports lead back to it. */
import { expect, test } from "bun:test";
import { basename, dirname, join, normalize, relative } from "node:path";
import { codecs } from "../src/dialects/codecs";
import { importGraph } from "./support/imports";

const source = join(import.meta.dir, "../src");

/** Floors from the ground up; a file imports from lower floors or from its own room. Brothers on one floor do not know each other. */
const floors: string[][] = [
  ["awaitable.ts", "beginning.ts", "lazy.ts"],
  ["errors.ts", "format.ts", "logger.ts", "launch.ts"],
  ["bounded-map.ts", "json.ts", "host-name.ts", "api-paths.ts"],
  ["json-shape.ts"],
  ["config/", "net/"],
  ["accounts/", "clients/", "dialects/", "history/", "keys/"],
  ["budgets/", "upstream/"],
  ["notices/", "observe/"],
  ["stores.ts"],
  ["local-stores.ts"],
  ["team/"],
  ["open-stores.ts"],
  ["app.ts"],
  ["open-app.ts"],
  ["relay/"],
  ["endpoint.ts"],
  ["openapi.ts"],
  ["api/", "admin/"],
  ["server.ts", "demo/"],
  ["cli/"],
  ["main.ts"],
];

/** The dialects know the hub, not each other; the scripted upstream knows none of us. */
const rooms = ["chat", "responses", "messages", "gemini"].map((dialect) => `dialects/${dialect}/`);
const apart: [string, string[]][] = [...rooms, "dialects/hub/"].map((room) => [
  room,
  rooms.filter((other) => other !== room),
]);

const arrows = await importGraph(source);
const files = [...arrows.keys()];

test("every file stands on a floor", () => {
  expect(files.filter((file) => placeOf(file) === undefined)).toEqual([]);
});

test("src/README.md lists the floors from above, each with its rooms", async () => {
  const [, table = ""] = (await Bun.file(join(source, "README.md")).text()).split("| Room | Job |");
  const rows = table.split("\n\n")[0]!.matchAll(/^\| (`.*?) \| /gm);
  const listed = [...rows].map(([, names]) => [...names!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!).sort());
  expect(listed).toEqual(floors.toReversed().map((rooms) => rooms.toSorted()));
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

test("the demo imports nothing of src, and one line of src imports the demo", () => {
  const across = [...arrows].flatMap(([from, imports]) =>
    imports.filter((to) => from.startsWith("demo/") !== to.startsWith("demo/")).map((to) => [from, to]),
  );
  expect(across).toEqual([["cli/start/start.ts", "demo/demo.ts"]]);
});

test("the relay knows no dialect's words: members are spelt as the wire spells them in dialects/ alone", async () => {
  const spoken = /\/\*[\s\S]*?\*\/|\/\/.*|"[^"\n]*"|'[^'\n]*'|`[^`]*`/g;
  // `request-log.ts` fills the columns of the history, whose names are written like that too.
  const own = files.filter((file) => file.startsWith("relay/") && file !== "relay/request-log.ts");
  const wire = await Promise.all(
    own.map(async (file) => {
      const code = (await Bun.file(join(source, file)).text()).replace(spoken, "");
      return [...code.matchAll(/\b[a-z]+_[a-z_]+\b/g)].map(([name]) => `${file}: ${name}`);
    }),
  );
  expect(wire.flat()).toEqual([]);
});

test("the top level holds what it should, and nothing that was left there", async () => {
  const listed = await Bun.$`git ls-files`.cwd(join(source, "..")).text();
  const top = new Set(
    listed
      .trim()
      .split("\n")
      .map((path) => path.split("/")[0]),
  );
  expect([...top].sort()).toEqual(
    [
      ".ci",
      ".github",
      ".gitignore",
      "LICENSE",
      "README.md",
      "biome.json",
      "bun.lockb",
      "bunfig.toml",
      "package.json",
      "src",
      "test",
      "tsconfig.json",
    ].sort(),
  );
});

test("an exported name means one thing in the whole of src", async () => {
  const declared = new Map<string, string[]>();
  for (const file of files.filter((each) => !/^demo\/|\/jsx\//.test(each))) {
    const text = await Bun.file(join(source, file)).text();
    const exported = /^export (?:async )?(?:function\*?|const|interface|type|class) (\w+)/gm;
    for (const [, name] of text.matchAll(exported)) declared.set(name!, [...(declared.get(name!) ?? []), file]);
  }
  const several = [...declared].filter(([name, places]) => places.length > 1 && !isContract(name, places));
  expect(several.map(([name, places]) => `${name}: ${places.join(", ")}`)).toEqual([]);
});

/** What each dialect gives under the same name: a member of `Codec`, or its part in a file of the same name. */
const isContract = (name: string, places: string[]) =>
  places.every((place) => place.startsWith("dialects/")) &&
  (Object.hasOwn(codecs.chat, name) ||
    Object.hasOwn(codecs.messages, name) ||
    new Set(places.map((place) => basename(place))).size === 1);

/** What was once called by a word of our own. */
const retired = new Set(
  "attention bag brain company desktop door ending errands feed figures frames holder hops immaterial journal kits large marks mend mends once opaque outlook owner owners pending raw refusals registry repeats roster slow soundness standing tally told trust unharmed unreachable visit walk welcome when words-apart".split(
    " ",
  ),
);

test("no file bears a retired name, and none is longer than it should be", async () => {
  const tests = [...new Bun.Glob("**/*.ts").scanSync(import.meta.dir)].filter((file) => !file.startsWith("fixtures/"));
  const bare = (file: string) => basename(file).replace(/(?:\.test)?\.tsx?$/, "");
  expect([...files, ...tests].filter((file) => retired.has(bare(file)))).toEqual([]);

  const lines = await Promise.all(
    files.map(async (file) => (await Bun.file(join(source, file)).text()).split("\n").length),
  );
  expect(files.filter((_, at) => lines[at]! > 400)).toEqual([]);
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

test("a start loads neither the admin wing nor the demo nor the sign-in: they are loaded where they are asked for", async () => {
  const { files: loaded } = await loadedAtStart();
  expect(loaded).toContain("server.ts");
  expect(loaded).toContain("relay/relay.ts");
  const needless =
    /^admin\/(?:api|pages|ui|access)\/|^demo\/|^cli\/sign-in\.ts$|^openapi\.ts$|^observe\/(?:genai-metrics|otel-data|prometheus|samplers|spans|telemetry)\.ts$/;
  expect(loaded.filter((file) => needless.test(file))).toEqual([]);
});

/** `crypto` and `Bun.CryptoHasher` do without `node:crypto`, which takes 3 ms of a start, as `node:net` does. */
const quickModules = ["node:buffer", "node:fs", "node:os", "node:path", "node:timers/promises", "node:util"];

test("a start loads no module of Node's that takes long to load: it is loaded where it is needed", async () => {
  const { modules } = await loadedAtStart();
  expect(modules).toContain("node:fs");
  expect(modules.filter((name) => name.startsWith("node:") && !quickModules.includes(name))).toEqual([]);
});

/** What `dragoman start` loads before it runs. */
async function loadedAtStart(): Promise<{ files: string[]; modules: string[] }> {
  const loaded = new Set(["cli/start/start.ts"]);
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
