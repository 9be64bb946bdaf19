/** What dragoman keeps: each store has an implementation on this machine's files and one in Postgres. */
import type { AccountStore } from "../accounts/account-store";
import type { Affinity } from "../accounts/affinity";
import type { Ledger, LedgerOptions } from "../budgets/ledger";
import type { ConfigStore } from "../config/store";
import type { History, HistoryOptions } from "../history/history";
import type { Logger } from "../logger";

/** Opens the stores of one process, each of them once. Who opened a store closes it. */
export interface Stores {
  /** @throws ProxyError if the config cannot be used. */
  openConfig(): ConfigStore;
  openAccounts(logger: Logger): AccountStore;
  /** Never throws: what cannot be kept is reported by `warn`. */
  openHistory(options: HistoryOptions): History;
  /** @throws ProxyError, or the system's error, if the ledger cannot be used. */
  openLedger(options: LedgerOptions): Ledger;
  openAffinity(): Affinity;
  /** Writes what is still queued, as far as that is possible within a few seconds, and ends all connections. */
  close(): Promise<void>;
}
