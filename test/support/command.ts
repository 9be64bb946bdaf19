/** The program as a person or an editor starts it: a process of its own, in a folder and a home of its own. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { exampleModels } from "../../src/proxy/upstream/models/known-models";
import { quickest } from "./quickest";
import { inherited } from "./short-runs";
import { patienceMs } from "./until";

/** For a test that gives in the environment what a build has fixed. */
export const source = [process.execPath, "--no-env-file", join(import.meta.dir, "../../src/main.ts")];
/** A compiled executable in place of the source: the one that `DRAGOMAN_BINARY` names, or the one of the run. */
const variable = "DRAGOMAN_TEST_PROGRAM";
const executable = process.env.DRAGOMAN_BINARY ?? process.env[variable];
export const program = executable ? [resolve(executable)] : source;

/** Builds the program for the files of a run: an executable starts in a quarter of the time that its source takes. */
export async function buildProgram(root: string): Promise<AsyncDisposable & { env: Record<string, string> }> {
  const folder = mkdtempSync(join(tmpdir(), "dragoman-program-"));
  const file = join(folder, "dragoman");
  const build = Bun.spawn([process.execPath, join(root, "src/deploy/build.ts"), "--output", file], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  if ((await build.exited) !== 0) throw new Error("The program could not be built; the lines above say why.");
  return {
    env: { [variable]: file },
    [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true }),
  };
}

export interface Command extends AsyncDisposable {
  process: Bun.Subprocess<"pipe", "pipe", "pipe">;
  home: string;
  /** What it has said so far. */
  stdout(): string;
  stderr(): string;
  /** The parsed ready line of `--json`. */
  ready(): Promise<{ event: string; url: string; port: number; pid: number; version: string }>;
  exited: Promise<number>;
}

interface Surroundings {
  env?: Record<string, string>;
  cwd?: string;
  /** A command that is given the program's as its last words, and becomes it. */
  within?: string[];
  /** Another program than the one that is tested. */
  instead?: readonly string[];
}

export function run(args: string[], { env = {}, cwd, within = [], instead = program }: Surroundings = {}): Command {
  const home = mkdtempSync(join(quickest(), "dragoman-"));
  const child = Bun.spawn([...within, ...instead, ...args], {
    cwd: cwd ?? home,
    env: { PATH: process.env.PATH ?? "", HOME: home, DRAGOMAN_HOME: join(home, "data"), ...inherited, ...env },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = [gather(child.stdout), gather(child.stderr)];
  return {
    process: child,
    home,
    stdout: () => out.text,
    stderr: () => err.text,
    async ready() {
      const deadline = performance.now() + patienceMs;
      while (!out.text.includes("\n")) {
        if (child.exitCode !== null || performance.now() > deadline) throw new Error(`Not ready: ${err.text}`);
        await Bun.sleep(5);
      }
      return JSON.parse(out.text);
    },
    exited: child.exited.then(async (code) => {
      await Promise.all([out.over, err.over]);
      return code;
    }),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** A chat request to a process, or to any server. */
export const askChat = (
  url: string,
  content = "Hello",
  { model = exampleModels.flash, stream = false, ...init }: { model?: string; stream?: boolean } & RequestInit = {},
): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ model, stream, messages: [{ role: "user", content }] }),
    ...init,
    headers: { "content-type": "application/json", ...(init.headers as Record<string, string>) },
  });

function gather(stream: ReadableStream<Uint8Array>) {
  const gathered = { text: "", over: Promise.resolve() };
  const decoder = new TextDecoder();
  gathered.over = (async () => {
    for await (const chunk of stream) gathered.text += decoder.decode(chunk, { stream: true });
  })();
  return gathered;
}
