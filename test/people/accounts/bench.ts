/** What the tests of this room share: clocks that are set by hand, a log that is kept, and the demo seen from its accounts. */

import type { DemoAccount } from "../../../src/demo/accounts";
import type { Demo } from "../../../src/demo/demo";
import { createLogger } from "../../../src/lib/logger";
import { Account, type AccountOptions } from "../../../src/people/accounts/account";
import type { SavedAccount } from "../../../src/people/accounts/account-store";
import type { CopilotToken } from "../../../src/people/accounts/copilot-token";
import { type Hosts, hostsFor } from "../../../src/people/accounts/hosts";

export const second = 1000;
export const minute = 60 * second;
export const hour = 60 * minute;

export function handClock(start = Date.parse("2026-11-21T10:00:00Z")) {
  let wall = start;
  let monotonic = 5000;
  return {
    now: () => wall,
    monotonic: () => monotonic,
    /** Time passes while the machine runs. */
    pass(milliseconds: number) {
      wall += milliseconds;
      monotonic += milliseconds;
    },
    /** The wall clock is set, or the machine sleeps: the other clock does not move. */
    jump(milliseconds: number) {
      wall += milliseconds;
    },
  };
}

export function keptLog() {
  const lines: string[] = [];
  return {
    lines,
    logger: createLogger(
      () => "debug",
      (line) => void lines.push(line),
    ),
  };
}

export const hostsOf = (demo: Demo): Hosts => hostsFor("github.com", { githubUrl: demo.url, githubApiUrl: demo.url });

export const savedFrom = ({ login, githubToken }: DemoAccount, addedAt = 1): SavedAccount => ({
  login,
  host: "github.com",
  app: githubToken.startsWith("ghu_") ? "vscode" : "opencode",
  mode: githubToken.startsWith("ghu_") ? "exchange" : "direct",
  githubToken,
  addedAt,
});

/** An account of the demo, openDemoAccount, with a clock and a log at hand. */
export function openDemoAccount(demo: Demo, login = "octo-demo", options: Partial<AccountOptions> = {}) {
  const clock = handClock();
  const log = keptLog();
  const saved = savedFrom(demo.accounts.find((account) => account.login === login)!);
  const account: Account = new Account(saved, {
    hosts: hostsOf(demo),
    version: "1.2.3",
    logger: log.logger,
    now: clock.now,
    monotonic: clock.monotonic,
    random: () => 0.5, // no jitter
    ...options,
  });
  return { account, clock, lines: log.lines };
}

export const exchangePath = "/copilot_internal/v2/token";
export const callsTo = (demo: Demo, path: string) => demo.journal.filter((seen) => seen.path === path).length;
export const exchangesOf = (demo: Demo) => callsTo(demo, exchangePath);

/** Asks the demo's model host for the model list with this token. */
export const listModels = ({ baseUrl, bearer }: CopilotToken) =>
  fetch(`${baseUrl}/models`, {
    headers: {
      authorization: `Bearer ${bearer}`,
      "editor-version": "dragoman/1.2.3",
      "copilot-integration-id": "vscode-chat",
    },
  });
