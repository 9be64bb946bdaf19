/** The stores in the data folder: files and SQLite. */
import { join } from "node:path";
import { openAccountStore } from "./accounts/account-store";
import { openAffinity } from "./accounts/affinity";
import { openMemorySignIns } from "./accounts/sign-in-store";
import { openLedger } from "./budgets/ledger";
import type { Environment } from "./config/environment";
import { openConfig } from "./config/store";
import { openHistory } from "./history/history";
import { memoryEndedSessions, PageSessions } from "./keys/page-sessions";
import { runningHere } from "./live/running-requests";
import { openSentNotices } from "./notices/sent-notices";
import type { PageState, Stores } from "./stores";

export function openLocalStores(environment: Environment): Stores {
  const { home, configFile, accountsFolder, historyFile, adminToken } = environment;
  return {
    openConfig: () => openConfig(configFile),
    openAccounts: (logger) => openAccountStore(accountsFolder, logger),
    openHistory: (options) => openHistory(historyFile, options),
    openLedger: (options) => openLedger(join(home, "budgets.sqlite"), options),
    openAffinity: () => openAffinity(),
    openRunning: runningHere,
    openSentNotices: (options) => openSentNotices(join(home, "notices.json"), options),
    openSignIns: openMemorySignIns,
    openPageState: (now) => openMemoryPageState(now, adminToken),
    isLeader: true,
    isolation: undefined,
    // Each store writes what is queued when it is closed.
    close: async () => {},
  };
}

/** What the pages of one process keep: it is gone at the next start. */
export function openMemoryPageState(now: () => number, adminToken?: string): PageState {
  const secrets = [crypto.getRandomValues(new Uint8Array(32))];
  const current = () => secrets;
  return {
    sessions: new PageSessions({ secrets: current, now, adminToken, ended: memoryEndedSessions() }),
    changeKeys: current,
    formSecrets: { current, lifetimeMs: Number.POSITIVE_INFINITY },
  };
}
