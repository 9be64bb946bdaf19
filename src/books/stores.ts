/** What dragoman keeps: each store has an implementation on this machine's files and one in Postgres. */

import type { ConfigStore } from "../config/store";
import type { ProxyError } from "../lib/errors";
import type { LogFormat, Logger } from "../lib/logger";
import type { AccountStore } from "../people/accounts/account-store";
import type { AccountSync } from "../people/accounts/account-sync";
import type { Affinity } from "../people/accounts/affinity";
import type { SignInStore } from "../people/accounts/sign-in-store";
import type { Ledger, LedgerOptions } from "../people/budgets/ledger";
import type { Logins } from "../people/keys/logins";
import type { Members } from "../people/keys/members";
import type { PageSignIns } from "../people/keys/page-sign-ins";
import type { Team } from "../people/keys/team";
import type { History, HistoryOptions } from "./history/history";
import type { SentNotices } from "./notices/sent-notices";

/** What the admin pages keep between two requests of a browser. */
export interface PageState {
  signIns: PageSignIns;
  /** The keys that seal config changes, of 32 bytes each: the first one seals, each of them opens. */
  changeKey: Uint8Array;
  formSecret: FormSecret;
}

/** What the tokens of forms are made with. */
export interface FormSecret {
  secret: Uint8Array;
  /** Milliseconds for which a token is accepted. */
  lifetimeMs: number;
}

export interface StoresOptions {
  /** This is a server, which follows what others change. A command that ends at once does not. */
  follow: boolean;
  /** Where log lines go, instead of stderr. */
  write?: (line: string) => void;
  /** `text` by default. */
  logFormat?: LogFormat;
}

/** The stores of one process. A file is read when its store is first asked for: a command needs few of them. */
export interface Stores {
  /** A server's has the level that the config says, a command's `warn`. */
  readonly logger: Logger;
  /** @throws ProxyError if the config cannot be used. */
  readonly config: ConfigStore;
  readonly accounts: AccountStore;
  readonly affinity: Affinity;
  readonly signIns: SignInStore;
  // These need the clock of the server, or what runs there. Who opened one closes it.
  /** Never throws: what cannot be kept is reported by `warn`. */
  openHistory(options: HistoryOptions): History;
  /** @throws ProxyError, or the system's error, if the ledger cannot be used. */
  openLedger(options: LedgerOptions): Ledger;
  openSentNotices(options: { now(): number; warn(sentence: string, cause: unknown): void }): SentNotices;
  /** @param now Wall clock, ms. */
  openPageState(now: () => number): PageState;
  /** Missing where one person has everything. */
  members?: Members;
  /** Missing where one person has everything, and for a command that ends at once. */
  logins?: Logins;
  /** Missing where this is the only server. */
  team?: Team;
  /** Missing where no other server has the same accounts. */
  accountSync?: AccountSync;
  /**
   * The error for every request while what others have changed has not been known for too long: keys may have been revoked.
   * Read at each use.
   */
  readonly isolation: ProxyError | undefined;
  /** Whether this server does what only one of them has to do. Read at each use. */
  readonly isLeader: boolean;
  /** After each store was closed: writes what is still queued, as far as a few seconds allow, and ends all connections. */
  close(): Promise<void>;
}
