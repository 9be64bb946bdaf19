/** A running proxy in a temporary home, in front of the scripted upstream. Everything is real HTTP on loopback. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { LocalHistory, Row } from "../../src/books/history/history";
import { readEnvironment } from "../../src/config/environment";
import { type DemoAccount, demoAccounts } from "../../src/demo/accounts";
import { type Demo, type DemoOptions, startDemo } from "../../src/demo/demo";
import type { App } from "../../src/parts/app";
import { type AppOptions, openApp } from "../../src/parts/open-app";
import { openAccountStore, type SavedAccount } from "../../src/people/accounts/account-store";
import { handler, type ListenAddress, listen } from "../../src/server";
import { keptLog } from "../people/accounts/bench";
import { type Front, startFront } from "./front";
import { quickest } from "./quickest";
import { sharedTokenizer } from "./tokenizer";

export interface RunningProxy extends AsyncDisposable {
  url: string;
  app: App;
  demo: Demo;
  /** Present where something stands before the scripted upstream. */
  front: Front | undefined;
  home: string;
  /** Every line the log got. */
  lines: string[];
  /** A POST of JSON. */
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>;
  /** The history of the data folder. */
  history: LocalHistory;
  /** Begins to stop: no new connections, and running requests finish. */
  drain(): Promise<void>;
  /** The newest rows of the history first, once all are written: 200 unless fewer are enough. */
  rows(most?: number): Row[];
}

export interface ProxyOptions {
  demo?: DemoOptions;
  /** Logins of the demo's accounts that are signed in; `octo-demo` alone when missing. */
  accounts?: readonly string[];
  /** In place of these: accounts saved in files, with the demo as GitHub. */
  saved?(demo: Demo): SavedAccount[];
  /** The token of an account for this run alone. */
  temporaryToken?(demo: Demo): string;
  config?: object;
  env?: Record<string, string>;
  /** Where to listen: a loopback address, and a name for it. */
  binding?: ListenAddress;
  /** Told that other machines can reach it, though its socket is a loopback one; without a key nobody is served. */
  exposed?: boolean;
  openTo?: AppOptions["openTo"];
  adminAuth?: AppOptions["adminAuth"];
  trustedProxies?: AppOptions["trustedProxies"];
  logFormat?: AppOptions["logFormat"];
  /** Other clocks than this machine's. */
  clock?: AppOptions["clock"];
  /** One of its own, in place of the process'. */
  tokenizer?: AppOptions["tokenizer"];
  /** Something stands before the scripted upstream. */
  fronted?: boolean;
}

export async function startProxy(options: ProxyOptions = {}): Promise<RunningProxy> {
  const home = mkdtempSync(join(quickest(), "dragoman-"));
  if (options.config) writeFileSync(join(home, "config.json"), JSON.stringify(options.config));
  const logins = options.accounts ?? ["octo-demo"];
  const accounts: DemoAccount[] = options.demo?.accounts ?? demoAccounts();
  const demo = startDemo({ pace: 0, ...options.demo, accounts });
  const front = options.fronted ? await startFront(demo.url) : undefined;
  const url = front?.url ?? demo.url;
  const github = options.saved && { DRAGOMAN_GITHUB_URL: url, DRAGOMAN_GITHUB_API_URL: url };
  const environment = readEnvironment({ HOME: home, DRAGOMAN_HOME: home, ...github, ...options.env });
  const store = openAccountStore(environment.accountsFolder, keptLog().logger);
  for (const account of options.saved?.(demo) ?? []) store.add(account);
  const lines: string[] = [];
  const app = openApp({
    environment,
    version: "0.0.0-test",
    demo: options.saved
      ? undefined
      : { url, accounts: accounts.filter(({ login }) => options.demo?.accounts || logins.includes(login)) },
    temporary: options.temporaryToken && { temporary: true, githubToken: options.temporaryToken(demo) },
    write: (line) => void lines.push(line),
    clock: options.clock,
    adminAuth: options.adminAuth,
    openTo: options.openTo ?? (options.exposed ? "nobody" : "this machine"),
    trustedProxies: options.trustedProxies,
    logFormat: options.logFormat,
    tokenizer: options.tokenizer ?? sharedTokenizer(),
  });
  const history = app.history as LocalHistory;
  const listening = options.exposed ? listenAsExposed(app) : listen(app, 0, options.binding);
  return {
    url: listening.url,
    app,
    demo,
    front,
    home,
    lines,
    post: (path, body, init = {}) =>
      fetch(listening.url + path, {
        method: "POST",
        body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body),
        ...init,
        headers: { "content-type": "application/json", ...(init.headers as Record<string, string>) },
      }),
    history,
    drain: () => listening.drain(),
    rows(most = 200) {
      history.flush();
      // The id of a row is at least its place.
      const before = Math.max(0, history.count() - most);
      return history.after(before, Number.MAX_SAFE_INTEGER).toReversed().slice(0, most);
    },
    async [Symbol.asyncDispose]() {
      listening.close();
      app.close();
      await front?.[Symbol.asyncDispose]();
      await demo.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

function listenAsExposed(app: App) {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: handler(app, true) });
  return { url: server.url.origin, drain: () => server.stop(), close: () => void server.stop(true) };
}
