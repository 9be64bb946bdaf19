/**
 * A command in the process of the test: `run` without the start of a program, which costs a hundred times what most commands do.
 * The current folder is `PWD`, where it is given. Signals, terminals, and what must not share memory with the test need `run`.
 */
import fs, { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { WriteStream } from "node:tty";
import { version } from "../../package.json";
import { runCommand } from "../../src/cli/run";
import { flushLines } from "../../src/lib/logger";
import { run } from "./command";
import { quickest } from "./quickest";
import { until } from "./until";

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** Bun or the system's library reads them by itself, most when a process starts. */
const ofTheProcess =
  /^(?:(?:HTTP|HTTPS|ALL|NO)_PROXY|NODE_EXTRA_CA_CERTS|NODE_TLS_REJECT_UNAUTHORIZED|SSL_CERT_FILE|SSL_CERT_DIR|TZ)$/i;

interface Beside {
  /** What it reads from stdin, at which a person types it where there is a terminal. */
  stdin?: string;
  /** Given everything that it has said on stderr so far, each time it says more. */
  hears?(said: string): void;
  /** Of a terminal that it prints to, an xterm; there is none without it. */
  columns?: number;
}

/** The variables and streams belong to the whole process, so one command has them at a time. */
let before: Promise<unknown> = Promise.resolve();

/**
 * Runs a command to its end, with no other variables than these, and a home of its own unless they name one. It
 * is a process of its own where a variable demands it, or where an executable is tested (`DRAGOMAN_BINARY`).
 * @throws what the command throws that is no sentence for a person
 */
export async function inProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  beside: Beside = {},
): Promise<Ended> {
  const isElsewhere = process.env.DRAGOMAN_BINARY && beside.columns === undefined;
  if (isElsewhere || Object.keys(env).some((name) => ofTheProcess.test(name))) return asProcess(args, env, beside);
  const ended = before.then(() => withHome((home) => runHere(args, { ...homeIn(home), ...env }, beside)));
  before = ended.catch(() => {});
  return ended;
}

/** The same as a process of its own. */
export async function asProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  { stdin, hears }: Beside = {},
): Promise<Ended> {
  await using command = run([...args], { env });
  if (stdin !== undefined) {
    command.process.stdin.write(stdin);
    command.process.stdin.end();
  }
  if (hears)
    await until(() => {
      hears(command.stderr());
      return command.process.exitCode !== null;
    }, "the command has ended");
  const code = await command.exited;
  return { code, stdout: command.stdout(), stderr: command.stderr() };
}

const homeIn = (home: string) => ({ PATH: process.env.PATH ?? "", HOME: home, DRAGOMAN_HOME: join(home, "data") });

async function withHome<T>(work: (home: string) => Promise<T>): Promise<T> {
  const home = mkdtempSync(join(quickest(), "dragoman-"));
  try {
    return await work(home);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

async function runHere(args: readonly string[], env: Record<string, string>, beside: Beside): Promise<Ended> {
  const { columns, hears } = beside;
  const [out, err] = [gathering(columns), gathering(columns, hears)];
  const stdin = Object.assign(Readable.from(beside.stdin === undefined ? [] : [beside.stdin]), {
    isTTY: beside.stdin !== undefined && columns !== undefined,
  });
  flushLines();
  using undo = new DisposableStack();
  const put = (target: object, name: string, value: unknown) => {
    const former = Object.getOwnPropertyDescriptor(target, name)!;
    Object.defineProperty(target, name, { value, configurable: true, writable: true, enumerable: former.enumerable });
    undo.defer(() => Object.defineProperty(target, name, former));
  };
  put(process, "env", columns === undefined ? env : { TERM: "xterm", ...env });
  if (env.PWD) put(process, "cwd", () => env.PWD);
  put(process, "stdin", stdin);
  put(process, "stdout", out.stream);
  put(process, "stderr", err.stream);
  const { writeSync } = fs;
  put(fs, "writeSync", (file: number, bytes: Buffer, ...place: number[]) => {
    if (file !== 1) return writeSync(file, bytes, ...place);
    out.stream.write(bytes);
    return bytes.length;
  });
  const mask = process.umask(0o077);
  undo.defer(() => process.umask(mask));
  undo.use(signalListeners());
  const code = await runCommand([...args], version);
  flushLines();
  return { code, stdout: out.text(), stderr: err.text() };
}

function gathering(columns: number | undefined, hears: (said: string) => void = () => {}) {
  let text = "";
  const write = (bytes: Buffer | string, _: unknown, done: () => void) => {
    text += bytes.toString();
    hears(text);
    done();
  };
  const { getColorDepth } = WriteStream.prototype;
  const terminal = columns === undefined ? { isTTY: false } : { isTTY: true, columns, getColorDepth };
  return { text: () => text, stream: Object.assign(new Writable({ write, decodeStrings: false }), terminal) };
}

/** A command that waits for Ctrl-C listens until its process ends; here that is now. */
function signalListeners(): Disposable {
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const former = signals.map((signal) => new Set(process.listeners(signal)));
  return {
    [Symbol.dispose]() {
      for (const [at, signal] of signals.entries())
        for (const listener of process.listeners(signal)) if (!former[at]!.has(listener)) process.off(signal, listener);
    },
  };
}
