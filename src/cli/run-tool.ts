/** `dragoman run`: starts a tool that uses dragoman, for this one process; nothing is written into the tool's files. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ClientId, clientOf } from "../clients/index";
import { isLaunchable, launchOf, packageOf } from "../clients/launches";
import type { Environment } from "../config/environment";
import { ProxyError } from "../lib/errors";
import { isObject, parseJson } from "../lib/json";
import { clientNamed } from "./client-named";
import { keyToRun } from "./connect/key-choice";
import { modelsOf, pick } from "./connect/models";
import { installationOf } from "./installation";
import { keyStoreOf } from "./key-store";
import { demoNotice, findServer, requireServer } from "./running-server";
import { say } from "./terminal";
import { UsageError } from "./usage-error";

interface RunOptions {
  environment: Environment;
  /** The tool's name, and the arguments that it gets. */
  tool: string[];
  model?: string;
  key?: string;
  /** Start the demo if no server runs. */
  demo: boolean;
}

/** @returns The tool's own exit code. @throws UsageError, ProxyError if it cannot be started */
export async function runTool({ environment, tool: [tool, ...args], model: named, key: given, demo }: RunOptions) {
  if (tool === undefined) throw new UsageError("Name a tool: `dragoman run claude-code -- its arguments`.");
  const id = clientNamed(tool);
  if (!isLaunchable(id)) throw notLaunched(id);
  const running = findServer(environment);
  // That of another run, or of an editor, would end under this tool.
  const started = running && !running.isTied ? undefined : await startServer(running?.demo ?? demo);
  let folder: string | undefined;
  try {
    const server = requireServer(environment);
    const { choice, offered } = await modelsOf(server);
    const model = named === undefined ? undefined : pick(named, offered);
    const key = await keyToRun(id, server, keyStoreOf(environment, server), given);
    const setup = clientOf(id).setUp({ url: server.url, key, models: choice, model });
    const file = (name: string, text: string) => {
      folder ??= mkdtempSync(join(tmpdir(), "dragoman-run-"));
      const path = join(folder, name);
      writeFileSync(path, text, { mode: 0o600 });
      return path;
    };
    const launch = launchOf(id, setup, { key, file });
    if (!launch) throw notLaunched(id);
    if (server.demo) say(demoNotice);
    const [program = "", ...first] = launch.command;
    const path = Bun.which(program, { PATH: process.env.PATH ?? "" });
    if (path === null) throw notInstalled(id, program);
    return await untilEnded([path, ...first, ...args], { ...process.env, ...launch.env });
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    await started?.stop();
  }
}

const notLaunched = (id: ClientId) =>
  new UsageError(
    `${clientOf(id).name} cannot be started with other settings than its own: \`dragoman connect ${id}\` sets it up.`,
  );

function notInstalled(id: ClientId, program: string): UsageError {
  const name = packageOf(id);
  const todo = name === undefined ? "" : ` \`npm install -g ${name}\` installs it.`;
  return new UsageError(`\`${program}\` is not installed, or not on the PATH.${todo}`);
}

/** The tool has the terminal: Ctrl-C is its own. Other signals to end are passed on, so that its files go when it has ended. */
async function untilEnded(command: string[], env: Record<string, string | undefined>): Promise<number> {
  const ignore = () => {};
  process.on("SIGINT", ignore);
  try {
    const child = Bun.spawn(command, { env, stdio: ["inherit", "inherit", "inherit"] });
    for (const signal of ["SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
    return await child.exited;
  } finally {
    process.off("SIGINT", ignore);
  }
}

/** A server for as long as the tool runs; it also ends when this process is killed. */
async function startServer(demo: boolean): Promise<{ stop(): Promise<void> }> {
  const options = ["--json", "--port", "0", "--parent-pid", String(process.pid), "--no-update-notice"];
  const { command } = installationOf();
  const child = Bun.spawn([...command, "start", ...options, ...(demo ? ["--demo"] : [])], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    // Ctrl-C is for the tool.
    detached: true,
  });
  const stop = async () => {
    child.kill("SIGTERM");
    await child.exited;
  };
  let line = "";
  for await (const piece of child.stdout.pipeThrough(new TextDecoderStream())) {
    line += piece;
    if (line.includes("\n")) break;
  }
  const ready = parseJson(line);
  if (isObject(ready)) return { stop };
  const why = (await child.stderr.text()).trim().split("\n").at(-1);
  await child.exited;
  throw new ProxyError("internal", `The server could not be started. ${why ?? ""}`.trimEnd());
}
