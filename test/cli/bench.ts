/** What the tests of this room share: a scripted GitHub that a real process can be pointed at, and a home to keep accounts in. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../package.json";
import { demoEnvironments, readEnvironment } from "../../src/config/environment";
import { type Demo, type DemoOptions, startDemo } from "../../src/demo/demo";
import type { App } from "../../src/parts/app";
import { type AppOptions, openApp } from "../../src/parts/open-app";
import { openAccountStore } from "../../src/people/accounts/account-store";
import { listen } from "../../src/server";
import { keptLog, savedFrom } from "../people/accounts/bench";
import { type Command, run } from "../support/command";
import { postJson } from "../support/post-json";
import { quickest } from "../support/quickest";
import { sharedModel } from "../support/shared-model";
import { sharedTokenizer } from "../support/tokenizer";

export interface Github extends AsyncDisposable {
  demo: Demo;
  /** The person's own folder, where the data folder is made. */
  home: string;
  data: string;
  /** For a process that is to take the demo for GitHub. */
  env: Record<string, string>;
  /** Signs these accounts of the demo in, in this order. */
  signIn(...logins: string[]): void;
  /** Who is signed in now. */
  logins(): string[];
  /** `dragoman start` as a process of its own, which costs a quarter of what the demo's start does. */
  start(args?: string[], within?: string[]): Command;
  /** A server of the data folder within this process, which commands take for another process. */
  serve(options?: ServeOptions): Served;
}

interface ServeOptions extends Pick<AppOptions, "adminAuth" | "trustedProxies"> {
  /** It is the demo, beside the data folder. */
  demo?: boolean;
  env?: Record<string, string>;
}

export interface Served extends Disposable {
  app: App;
  url: string;
  port: number;
  /** The process that its note names. */
  pid: number;
  /** Every line the log got. */
  lines: string[];
}

export function scriptedGithub(options: DemoOptions = {}): Github {
  const demo = startDemo({ pace: 0, device: { interval: 1, pending: 0 }, ...options });
  const home = mkdtempSync(join(quickest(), "dragoman-"));
  const data = join(home, ".local", "share", "dragoman");
  const store = openAccountStore(join(data, "accounts"), keptLog().logger);
  const env = { HOME: home, DRAGOMAN_HOME: data, DRAGOMAN_GITHUB_URL: demo.url, DRAGOMAN_GITHUB_API_URL: demo.url };
  return {
    demo,
    home,
    data,
    env,
    signIn(...logins) {
      for (const [at, login] of logins.entries())
        store.add(savedFrom(demo.accounts.find((account) => account.login === login)!, at + 1));
    },
    logins: () => store.load().map(({ login }) => login),
    start: (args = [], within) => run(["start", "--json", "--port", "0", ...args], { env, within }),
    serve: (options) => serveBeside(demo, env, options),
    async [Symbol.asyncDispose]() {
      await demo.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

function serveBeside(github: Demo, variables: Record<string, string>, options: ServeOptions = {}): Served {
  const { demo = false, env = {}, ...more } = options;
  const own = readEnvironment({ ...variables, ...env });
  const environment = demo ? demoEnvironments(own)[0]! : own;
  const { home } = environment;
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const lines: string[] = [];
  const app = openApp({
    ...{ environment, version, ...more },
    write: (line) => void lines.push(line),
    tokenizer: sharedTokenizer(),
    demo: demo
      ? { url: github.url, accounts: github.accounts.filter(({ login }) => login === "octo-demo") }
      : undefined,
  });
  const listening = listen(app, 0);
  // A note with one's own process id is one that a killed server left.
  const pid = process.ppid;
  const note = join(home, "running.json");
  writeFileSync(note, JSON.stringify({ url: listening.url, pid }), { mode: 0o600 });
  return {
    ...{ app, lines, pid, url: listening.url, port: listening.port },
    [Symbol.dispose]() {
      rmSync(note, { force: true });
      listening.close();
      app.close();
    },
  };
}

/** A chat completion of a model that every server of these tests has. */
export const ask = (url: string, content = "Hello", more: { model?: string; stream?: boolean } = {}) =>
  postJson(`${url}/v1/chat/completions`, { model: sharedModel, messages: [{ role: "user", content }], ...more });
