/** The stores in the data folder: files and SQLite. */

import { openHistory } from "../books/history/history";
import { openMemoryPageState } from "../books/memory-page-state";
import { type LocalSentNotices, openSentNotices } from "../books/notices/sent-notices";
import type { Stores, StoresOptions } from "../books/stores";
import type { Environment } from "../config/environment";
import { inHome } from "../config/home-names";
import { openConfig } from "../config/store";
import { lazy } from "../lib/lazy";
import { createLogger } from "../lib/logger";
import { openAccountStore } from "../people/accounts/account-store";
import { openAffinity } from "../people/accounts/affinity";
import { openMemorySignIns } from "../people/accounts/sign-in-store";
import { type LedgerOptions, type LocalLedger, openLedger } from "../people/budgets/ledger";

/** What a copy reads of a data folder, and no database has. */
export interface LocalStores extends Stores {
  openLedger(options: LedgerOptions): LocalLedger;
  openSentNotices(options: Parameters<Stores["openSentNotices"]>[0]): LocalSentNotices;
}

export function openLocalStores(
  { home, configFile, accountsFolder, historyFile, adminToken }: Environment,
  { follow, write, logFormat }: StoresOptions,
): LocalStores {
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
