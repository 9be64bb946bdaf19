/**
 * Rows: each extra is its files and, on each surface, one line: the compiler says so of a copy without them, and the
 * tests of all routes hold there. What is woven in stays: steps of the relay (fallbacks, waiting, Auto, server tools),
 * columns of the history, sections of the config, the rows of a dialect, and what keeps the sign-ins of tools.
 */
import { afterAll, beforeEach, expect, test } from "bun:test";
import { cpSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { temporaryFolder } from "../support/temporary-folder";

/** The line or row of a surface that goes, or what takes its place. */
type Line = [file: string, line: string | RegExp, instead?: string];

const clients = "routes/clients.ts";
const adminApi = "admin/api/plugin.ts";
const pages = "admin/pages/plugin.ts";
const commandRow = (name: string): Line => [
  "cli/commands/accounts.ts",
  new RegExp(` {4}command\\(\\{\\n {6}name: "${name}",[^]*?\\n {4}\\}\\),\\n`),
];
/** The tests need it themselves. */
const theDemo = "the demo";

/** Each with its files and folders, and its lines. */
const extras: [name: string, files: string, ...lines: Line[]][] = [
  [
    theDemo,
    "demo",
    [
      "cli/start/start.ts",
      /\{ team \}: StartOptions\): Promise<RunningDemo> \{\n.*\n.*\n/,
      '_: StartOptions): Promise<RunningDemo> {\n  throw new UsageError("This build has no demo.");\n',
    ],
  ],
  ["embeddings", "routes/embeddings.ts proxy/relay/embed.ts", [clients, ".use(embeddings)"]],
  [
    "traces",
    "books/observe/trace-export.ts books/observe/spans.ts",
    ["cli/start/traces.ts", 'return (await import("../../books/observe/trace-export")).startTraces(app, process.env);'],
  ],
  [
    "prompts",
    "admin/pages/prompts admin/api/features/prompts.ts cli/usage-by-prompt.ts",
    ...[pages, adminApi].map((surface): Line => [surface, ".use(prompts)"]),
    ["admin/pages/overview/usage.tsx", "{await dearestPrompts(app, now)}"],
    commandRow("usage prompts"),
  ],
  ["the page Try", "admin/pages/try", [pages, ".use(tryOut)"]],
  [
    "GitHub's report beside the history",
    "admin/api/features/reconcile.ts admin/api/reconcile.ts cli/reconcile.ts",
    [adminApi, ".use(reconciliation)"],
    commandRow("usage reconcile"),
  ],
  [
    "Google's paths",
    "routes/gemini",
    [clients, '.group("/v1beta", (beta) => beta.use(gemini))'],
    // Other spellings are a surface of their own.
    [clients, '.group("/v1", (v1) => v1.use(geminiMethods))'],
    ["routes/model-lists.ts", "[googleForm]", "[]"],
    // A row of the dialect, which stays.
    [
      "cli/connect/probe.ts",
      /\(server, model, settings\) =>\n\s+send\(\n\s+server,\n\s+`\$\{geminiPath\}[\s\S]*?\n {6}\),\n/,
      "() => Promise.reject(new Error(geminiPath)),\n",
    ],
  ],
  ["the socket of Responses", "routes/responses-socket", [clients, ".use(responsesSocket)"]],
  [
    "the sign-in of tools",
    "routes/tool-sign-in.ts routes/gateway.ts admin/pages/members/device.tsx admin/pages/members/device-routes.ts",
    [clients, ".use(toolSignIn)"],
    [pages, ".use(device)"],
  ],
  [
    "the report of the cache",
    "admin/pages/cache admin/api/features/cache.ts admin/api/cache.ts",
    ...[pages, adminApi].map((surface): Line => [surface, ".use(cache)"]),
  ],
  ["the paths of providers", "routes/providers.ts", [clients, ".use(providers)"]],
];

const root = join(import.meta.dir, "../..");
const copy = temporaryFolder(afterAll);
const src = join(copy, "src");
for (const name of ["package.json", "bunfig.toml", "test"])
  cpSync(join(root, name), join(copy, name), { recursive: true });
const settings = JSON.parse(readFileSync(join(root, "tsconfig.json"), "utf8"));
writeFileSync(join(copy, "tsconfig.json"), JSON.stringify({ ...settings, include: ["src"] }));
symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));

beforeEach(() => {
  rmSync(src, { recursive: true, force: true });
  cpSync(join(root, "src"), src, { recursive: true });
});

/** What the command says; nothing if it ends well. */
async function faultsOf(...command: string[]): Promise<string> {
  const { exited, stdout, stderr } = Bun.spawn([process.execPath, ...command], {
    cwd: copy,
    env: { ...process.env, NO_COLOR: "1" },
    stdout: "pipe",
    stderr: "pipe",
  });
  const said = await Promise.all([stdout.text(), stderr.text()]);
  const lines = said.join("").split("\n");
  return (await exited) === 0 ? "" : lines.filter((line) => !line.startsWith("(pass)")).join("\n");
}

/** Without the imports of files that are gone. */
function withoutDeadImports(file: string, text: string): string {
  const isGone = (specifier: string) => {
    const path = normalize(join(src, dirname(file), specifier));
    return ![path, `${path}.ts`, `${path}.tsx`].some((each) => existsSync(each));
  };
  return text.replace(/^import [^;]*? from "(\.[^"]+)";\n/gm, (line, specifier: string) =>
    isGone(specifier) ? "" : line,
  );
}

test.each(extras)(
  "without %s",
  async (extra, files, ...lines) => {
    for (const file of files.split(" ")) rmSync(join(src, file), { recursive: true });
    for (const [file, line, instead = ""] of lines) {
      const text = readFileSync(join(src, file), "utf8");
      expect(text.split(line), `${file} has one line: ${line}`).toHaveLength(2);
      const left = text.replace(line, () => instead);
      writeFileSync(join(src, file), withoutDeadImports(file, left));
    }
    expect(await faultsOf("check", "--no-script")).toBe("");
    if (extra !== theDemo) expect(await faultsOf("test", "./test/routes/traps.test.ts")).toBe("");
  },
  180_000,
);
