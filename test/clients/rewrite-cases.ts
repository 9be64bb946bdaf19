/**
 * Real clients write their own settings file after `connect` has: `--undo` gives back what was there. Claude Code does so by
 * `/model` on its screen, which has to list the models of all vendors by their names.
 * `bun test/clients/rewrite-cases.ts [client …]` runs these alone.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clientOf, filesOf } from "../../src/clients/index";
import { chooseModels } from "../../src/clients/models";
import { undoSettings } from "../../src/clients/settings-file/undo";
import { writeSettings } from "../../src/clients/settings-file/write";
import { startProxy } from "../support/proxy";
import { runAlone } from "./alone";
import { offeredBy, type Tool, tools } from "./clients";
import type { Installed } from "./install";
import type { Strength } from "./strength-cases";

/** Milliseconds. */
const within = 60_000;

interface Place {
  work: string;
  env: Record<string, string | undefined>;
}

export async function* rewrites(installed: Installed, isWanted: (tool: Tool) => boolean): AsyncGenerator<Strength> {
  for (const tool of Object.values(tools).filter(isWanted)) {
    if (tool.rewrites) yield await restores(tool, (place) => byCommands(tool, place, installed));
    if (tool.id === "claude-code") yield await restores(tool, (place) => byScreen(place, installed));
  }
}

/** @param rewrite Has the client write its file; returns what is wrong, and what it said. */
async function restores(
  tool: Tool,
  rewrite: (place: Place) => Promise<{ faults: string[]; said: string }>,
): Promise<Strength> {
  await using proxy = await startProxy({ demo: { generation: "C" } });
  const home = mkdtempSync(join(tmpdir(), "dragoman-rewrite-"));
  try {
    const work = join(home, "work");
    mkdirSync(work);
    const setup = clientOf(tool.id).setUp({ url: proxy.url, models: chooseModels(await offeredBy(proxy.url))! });
    const files = filesOf(tool.id, setup.edits, { home, env: {} }).filter(({ edits }) => edits.length > 0);
    const path = files[0]!.path;
    await Bun.write(path, tool.settings!);
    const placeOf = (file: (typeof files)[number]) => ({
      ...file,
      client: tool.id,
      home: join(home, "data"),
      undoneBy: "",
      warn() {},
    });
    await writeSettings(files.map((file) => [placeOf(file), { edits: file.edits }] as const));
    const written = await Bun.file(path).text();
    const env = { PATH: process.env.PATH, HOME: home, TERM: "xterm-256color", ...tool.quiet.env };
    const { faults, said } = await rewrite({ work, env });
    const rewritten = await Bun.file(path).text();
    if (rewritten === written) faults.push("it did not write its file");
    await undoSettings(files.map(placeOf), false);
    const after = await Bun.file(path).text();
    // What the client itself has added stays.
    const isBack = rewritten.includes("otter") ? !after.includes(proxy.url) : after === tool.settings;
    if (!isBack) faults.push(`the way back ended with ${JSON.stringify(after)}`);
    return { tool, model: "", name: "written anew by the client", feature: "undo", faults, said };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

async function byCommands({ rewrites: commands = [] }: Tool, { work, env }: Place, installed: Installed) {
  const faults: string[] = [];
  let said = "";
  for (const [program = "", ...args] of commands) {
    const child = Bun.spawn([installed.program(program), ...args], {
      ...{ cwd: work, env, stdin: "ignore", stdout: "pipe", stderr: "pipe", timeout: within },
    });
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    said += out + err;
    if (code !== 0) faults.push(`${args.join(" ")} ended with ${code}`);
  }
  return { faults, said };
}

/** Chooses another model on the screen. */
async function byScreen({ work, env }: Place, installed: Installed) {
  const state = { hasCompletedOnboarding: true, theme: "dark", projects: { [work]: { hasTrustDialogAccepted: true } } };
  await Bun.write(join(env.HOME!, ".claude.json"), JSON.stringify(state));
  let written = "";
  const decoder = new TextDecoder();
  const child = Bun.spawn([installed.program("claude")], {
    cwd: work,
    env,
    terminal: {
      cols: 120,
      rows: 80,
      data(_terminal, bytes) {
        written += decoder.decode(bytes, { stream: true });
      },
    },
  });
  // Cursor movements stand where spaces were.
  const screen = () => Bun.stripANSI(written).replace(/\s+/g, "");
  const shows = async (words: RegExp) => {
    for (const endsAt = performance.now() + within; !words.test(screen()); await Bun.sleep(100))
      if (performance.now() > endsAt) return [`it never showed ${words}`];
    return [];
  };
  const press = async (keys: string) => {
    child.terminal!.write(keys);
    await Bun.sleep(1_000);
  };
  const faults: string[] = [];
  try {
    faults.push(...(await shows(/forshortcuts|automodeon|❯/)));
    await press("/model");
    await press("\r");
    faults.push(...(await shows(/Selectmodel/)));
    // It shows ten rows, writes only what changes, and writes everything anew for a window of another size.
    for (let presses = 1; presses <= 40; presses++) {
      child.terminal!.write("\u001b[B");
      await Bun.sleep(150);
      if (presses % 5 !== 0) continue;
      child.terminal!.resize(presses % 10 === 0 ? 120 : 121, 80);
      await Bun.sleep(500);
    }
    for (const name of ["ClaudeOpus5.5", "GPT-6Sol", "GPT-5.4", "Gemini3.8Flash"])
      faults.push(...(await shows(new RegExp(name.replaceAll(".", "\\."), "i"))));
    await press("\u001b[A");
    await press("\r");
    faults.push(...(await shows(/savedasyourdefault/)));
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
  return { faults, said: Bun.stripANSI(written).slice(-3_000) };
}

if (import.meta.main) {
  const all = Object.values(tools).filter((tool) => tool.rewrites || tool.id === "claude-code");
  await runAlone(all, rewrites, ({ name }) => name);
}
