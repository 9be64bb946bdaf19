/** The stores in the data folder: files and SQLite. */

import { existsSync } from "node:fs";
import { openHistory } from "../books/history/history";
import { openMemoryPageState } from "../books/memory-page-state";
import { type LocalSentNotices, openSentNotices } from "../books/notices/sent-notices";
import type { Stores, StoresOptions } from "../books/stores";
import type { Environment } from "../config/environment";
import { inHome } from "../config/home-names";
import { keyInFile } from "../config/seal-key-file";
import { type ConfigStore, openConfig } from "../config/store";
import { hourMs } from "../lib/format";
import { lazy } from "../lib/lazy";
import { createLogger } from "../lib/logger";
import { Seals } from "../lib/seals";
import type { Tables } from "../lib/sql";
import { addColumns, type FileContent } from "../lib/sqlite";
import { inFile, SqliteTables } from "../lib/sqlite-tables";
import { accountKeyOf, type LocalAccountStore, openAccountStore } from "../people/accounts/account-store";
import { openAffinity } from "../people/accounts/affinity";
import { openMemorySignIns } from "../people/accounts/sign-in-store";
import { type LedgerOptions, type LocalLedger, openLedger } from "../people/budgets/ledger";
import { AccessTokens } from "../people/keys/access-tokens";
import { memberColumnTypes, memberTables, overOf } from "../people/keys/member-tables";
import { StoredLogins } from "../people/keys/stored-logins";
import { StoredMembers } from "../people/keys/stored-members";

/** What a copy reads of a data folder, and no database has. */
export interface LocalStores extends Stores {
  readonly members: StoredMembers;
  /** Those of members. */
  readonly tables: Tables;
  openLedger(options: LedgerOptions): LocalLedger;
  openSentNotices(options: Parameters<Stores["openSentNotices"]>[0]): LocalSentNotices;
}

/** The file that takes its place says that there were members, so nobody is served without a key. */
export const membersContent: FileContent = {
  name: "file of members",
  consequence: "nobody is a member any more: invite them again, or restore it",
};

export function openLocalStores(
  { home, configFile, accountsFolder, historyFile, adminToken, sealKey }: Environment,
  { follow, write, logFormat }: StoresOptions,
): LocalStores {
  let openedConfig: ConfigStore | undefined;
  const config = lazy(() => {
    openedConfig = openConfig(configFile);
    return openedConfig;
  });
  const logger = createLogger(() => (follow ? config().current.logLevel : "warn"), write, logFormat);
  const keyFile = inHome(home, "sealKey");
  // A database that the folder is copied to may have another key.
  const seals = lazy(() => new Seals(sealKey === undefined || existsSync(keyFile) ? keyInFile(keyFile) : sealKey));
  const accounts = lazy(() => openAccountStore(accountsFolder, logger, { seals }));
  const signIns = openMemorySignIns();
  const file = inHome(home, "members");
  const tables = new SqliteTables(file, {
    migrations: [(database) => database.run(inFile(memberTables))],
    prepare: (database) => addColumns(database, "members", memberColumnTypes),
    content: membersContent,
    warn: (sentence) => logger.warn(sentence),
  });
  const cleaning = setInterval(async () => {
    if (existsSync(file)) for (const statement of overOf(tables)) await tables.ask(statement).catch(() => {}); // tried again
  }, hourMs).unref();
  if (!follow) clearInterval(cleaning);
  const tokens = new AccessTokens(() => [seals().derived("access tokens")]);
  const members = new StoredMembers({
    tables,
    requests: tables,
    tokens,
    wasUsed: () => existsSync(file),
    hasTables: () => existsSync(file),
    accountsOf: async (ids) => accountsOf(accounts(), ids),
    signOut: async (_, member) => accounts().removeOf(member),
    async cancelSignIns(_, member) {
      for (const { id } of signIns.waiting(member)) await signIns.cancel(id);
    },
  });
  return {
    logger,
    get config() {
      return config();
    },
    get accounts() {
      return accounts();
    },
    affinity: openAffinity(),
    signIns,
    members,
    tables,
    logins: new StoredLogins(tables, tokens, members),
    openHistory: (options) => openHistory(historyFile, options),
    openLedger: (options) => openLedger(inHome(home, "budgets"), options),
    openSentNotices: (options) => openSentNotices(inHome(home, "notices"), options),
    openPageState: (now) => openMemoryPageState(now, adminToken, members),
    isLeader: true,
    isolation: undefined,
    // The other stores write what is queued when they are closed.
    async close() {
      clearInterval(cleaning);
      openedConfig?.close();
      tables.close();
    },
  };
}

/** A command does not know more of the states: these are in the memory of the server. */
function accountsOf(accounts: LocalAccountStore, ids: readonly string[]) {
  const own = accounts.load().filter(({ member }) => member !== undefined && ids.includes(member));
  const shown = own.map((account) => ({ member: account.member!, key: accountKeyOf(account) }));
  return new Map(
    [...Map.groupBy(shown, ({ member }) => member)].map(([member, each]) => [
      member,
      each.map(({ key }) => ({ account_key: key, state: accounts.choices?.isPaused(key) ? "paused" : null })),
    ]),
  );
}
