/** A real client, pointed at a server by the settings that `dragoman connect` writes, and when it shows a sentence. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clientOf, freshFiles } from "../../src/clients/index";
import { type ClientModel, chooseModels } from "../../src/clients/models";
import { models } from "../../src/deploy/documents/client-settings";
import { printedFiles, type Tool, variablesOf } from "./clients";
import type { Installed } from "./install";

export interface Meeting {
  tool: Tool;
  model: keyof typeof models | ClientModel;
  url: string;
  /** Says hello by default. */
  task?: string;
  /** What is run one after the other, in place of the one command that gives it the task. */
  commands?(work: string, model: ClientModel): string[][];
  /** Asked again and again while it runs: once it says yes, the person presses Ctrl-C. */
  interrupts?(): boolean;
  /** Looks at the folder that it worked in. */
  worked?(folder: string): Promise<void>;
  /** What it is started with besides. */
  args?: string[];
  env?: Record<string, string>;
  /** Looks at its home before that is removed. */
  atHome?(home: string): Promise<void>;
  /** The models that its settings name; those of the list by default. */
  offered?: readonly ClientModel[];
  /** What is waited for, in all that the client says. */
  words: RegExp;
  /** Milliseconds after which it is ended. */
  timeoutMs: number;
}

export interface Seen {
  /** Seconds until the words were shown; undefined when they were not. */
  shown?: number;
  /** Seconds until it ended; undefined when it was still at it. */
  ended?: number;
  said: string;
}

export async function meet(meeting: Meeting, installed: Installed): Promise<Seen> {
  const { tool, model: named, url, task = "say hello", worked, atHome } = meeting;
  const home = mkdtempSync(join(tmpdir(), "dragoman-meet-"));
  try {
    const model = typeof named === "string" ? models[named] : named;
    const work = join(home, "work");
    mkdirSync(work);
    const client = clientOf(tool.id);
    const offered = meeting.offered ?? (typeof named === "string" ? Object.values(models) : [named]);
    const setup = client.setUp({ url, models: chooseModels(offered)!, model });
    for (const { name, text } of freshFiles(tool.id, setup, { home, env: {} })) await Bun.write(name, text);
    for (const { path, text } of printedFiles(setup, home)) await Bun.write(path, text);
    const commands = meeting.commands?.(work, model) ?? [tool.command(task, model)];
    const env = { PATH: process.env.PATH, HOME: home, ...variablesOf(setup), ...tool.quiet.env, ...meeting.env };
    const seen: Seen[] = [];
    for (const [program = "", ...args] of commands) {
      const options = [...(meeting.args ?? []), ...args.slice(0, -1), ...tool.quiet.args, ...args.slice(-1)];
      seen.push(await watch([installed.program(program), ...options], { cwd: work, env }, meeting));
    }
    await worked?.(work);
    await atHome?.(home);
    return { ...seen.at(-1)!, said: seen.map(({ said }) => said).join("\n") };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** One run, until it ends or its time is over. */
async function watch(
  command: string[],
  place: { cwd: string; env: Record<string, string | undefined> },
  { words, timeoutMs, interrupts }: Meeting,
): Promise<Seen> {
  const startedAt = performance.now();
  const elapsed = () => (performance.now() - startedAt) / 1000;
  const child = Bun.spawn(command, { ...place, stdin: "ignore", stdout: "pipe", stderr: "pipe", detached: true });
  let late = false;
  let said = "";
  let shown: number | undefined;
  const timer = setTimeout(() => {
    late = true;
    process.kill(-child.pid, "SIGKILL");
  }, timeoutMs);
  const looking = setInterval(() => {
    if (!interrupts?.()) return;
    clearInterval(looking);
    process.kill(-child.pid, "SIGINT");
  }, 100);
  const listen = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      said += decoder.decode(chunk, { stream: true });
      if (words.test(said)) shown ??= elapsed();
    }
  };
  await Promise.all([listen(child.stdout), listen(child.stderr), child.exited]);
  clearTimeout(timer);
  clearInterval(looking);
  return { shown, ended: late ? undefined : elapsed(), said };
}
