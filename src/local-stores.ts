/** The stores in the data folder: files and SQLite. */
import { openAccountStore } from "./accounts/account-store";
import { openAffinity } from "./accounts/affinity";
import { openMemorySignIns } from "./accounts/sign-in-store";
import { openLedger } from "./budgets/ledger";
import type { Environment } from "./config/environment";
import { inHome } from "./config/home-names";
import { openConfig } from "./config/store";
import { openHistory } from "./history/history";
import { memoryEndedPageSignIns, PageSignIns } from "./keys/page-sign-ins";
import { lazy } from "./lazy";
import { createLogger } from "./logger";
import { openSentNotices } from "./notices/sent-notices";
import type { PageState, Stores, StoresOptions } from "./stores";

export function openLocalStores(
  { home, configFile, accountsFolder, historyFile, adminToken }: Environment,
  { follow, write, logFormat }: StoresOptions,
): Stores {
  const config = lazy(() => openConfig(configFile));
  const logger = createLogger(() => (follow ? config().current.logLevel : "warn"), write, logFormat);
  const accounts = lazy(() => openAccountStore(accountsFolder, logger));
  return {
    logger,
    get config() {
      return config();
    },
    get accounts() {
      return accounts();
    },
    affinity: openAffinity(),
    signIns: openMemorySignIns(),
    openHistory: (options) => openHistory(historyFile, options),
    openLedger: (options) => openLedger(inHome(home, "budgets"), options),
    openSentNotices: (options) => openSentNotices(inHome(home, "notices"), options),
    openPageState: (now) => openMemoryPageState(now, adminToken),
    isLeader: true,
    isolation: undefined,
    // Each store writes what is queued when it is closed.
    close: async () => {},
  };
}

/** What the pages of one process keep: it is gone at the next start. */
export function openMemoryPageState(now: () => number, adminToken?: string): PageState {
  const secret = crypto.getRandomValues(new Uint8Array(32));
  return {
    signIns: new PageSignIns({ secret, server: "alone", now, adminToken, ended: memoryEndedPageSignIns() }),
    changeKey: secret,
    formSecret: { secret, lifetimeMs: Number.POSITIVE_INFINITY },
  };
}
