/** What the tests of this room share: a scripted GitHub that a real process can be pointed at, and a home to keep accounts in. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Demo, type DemoOptions, startDemo } from "../../src/demo/demo";
import { openAccountStore } from "../../src/people/accounts/account-store";
import { keptLog, savedFrom } from "../people/accounts/bench";
import { quickest } from "../support/quickest";

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
    async [Symbol.asyncDispose]() {
      await demo.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}
