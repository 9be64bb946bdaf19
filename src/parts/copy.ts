/** Copies everything from the data folder to a database. It may be run again: what is there already is not added twice. */

import type { Stores } from "../books/stores";
import { ProxyError } from "../lib/errors";
import { accountKeyOf } from "../people/accounts/account-store";
import { copyMembers } from "../people/keys/member-tables";
import type { PostgresStores } from "../team/stores";
import { openWholeHistory } from "./copy-plan";
import type { LocalStores } from "./local-stores";

/** How much was copied. */
export interface CopyReport {
  /** `kept`: the target has a config of its own, which stays. */
  config: "copied" | "same" | "kept";
  members: number;
  accounts: number;
  /** Why accounts were not: one that belongs to somebody else in the target, or to this machine alone. */
  skipped: string[];
  periods: number;
  requests: number;
}

interface CopyOptions {
  warn(sentence: string): void;
  /** Called now and then with the number of requests that were copied so far. */
  progress(requests: number): void;
}

const rowsAtOnce = 500;

/** @throws ProxyError if one of the stores cannot be read or written. */
export async function copyStores(from: LocalStores, to: PostgresStores, options: CopyOptions): Promise<CopyReport> {
  const config = await copyConfig(from, to);
  const members = from.members.needKeys ? await copyMembers(from.tables, to.tables) : 0;
  const accounts = await copyAccounts(from, to);
  const periods = await copyLedger(from, to, options);
  await copySentNotices(from, to, options);
  const requests = await copyHistory(from, to, options);
  return { config, members, ...accounts, periods, requests };
}

async function copyConfig({ config: source }: Stores, { config: target }: Stores): Promise<CopyReport["config"]> {
  await Promise.all([source.reload(), target.reload()]);
  if (source.fault !== undefined) throw new ProxyError("conflict", source.fault);
  if (Bun.deepEquals(source.stored, target.stored)) return "same";
  if (Object.keys(target.stored).length > 0) return "kept";
  await target.change(source.stored, { revision: target.revision });
  return "copied";
}

async function copyAccounts(from: Stores, to: Stores): Promise<Pick<CopyReport, "accounts" | "skipped">> {
  const skipped: string[] = [];
  let accounts = 0;
  for (const account of from.accounts.load())
    try {
      await to.accounts.add(account);
      accounts += 1;
    } catch (thrown) {
      const why = thrown instanceof ProxyError ? thrown.details.code : undefined;
      if (why !== "account_taken" && why !== "account_of_machine") throw thrown;
      skipped.push((thrown as ProxyError).message);
    }
  await copyChoices(from, to);
  return { accounts, skipped };
}

/** What members have decided about their accounts. */
async function copyChoices({ accounts: from }: Stores, { accounts: to }: Stores): Promise<void> {
  const own = from
    .load()
    .flatMap((account) => (account.member ? [{ member: account.member, key: accountKeyOf(account) }] : []));
  const placeOf = ({ key }: { key: string }) => from.choices?.placeOf(key);
  for (const [member, accounts] of Map.groupBy(own, (each) => each.member)) {
    const placed = accounts.filter((each) => placeOf(each) !== undefined);
    placed.sort((one, other) => placeOf(one)! - placeOf(other)!);
    await to.choices?.arrange(
      member,
      placed.map(({ key }) => key),
    );
    for (const { key } of accounts) if (from.choices?.isPaused(key)) await to.choices?.pause(member, key, true);
  }
}

async function copyLedger(from: LocalStores, to: PostgresStores, { warn }: CopyOptions): Promise<number> {
  const source = from.openLedger({ now: Date.now, warn });
  const target = to.openLedger({ now: Date.now, warn });
  try {
    const periods = source.periods();
    if (periods.length > 0) await target.takeOver(periods);
    return periods.length;
  } finally {
    source.close();
    target.close();
  }
}

async function copySentNotices(from: LocalStores, to: PostgresStores, { warn }: CopyOptions): Promise<void> {
  await to.openSentNotices().takeOver(from.openSentNotices({ now: Date.now, warn }).all());
}

async function copyHistory(from: Stores, to: Stores, { warn, progress }: CopyOptions): Promise<number> {
  const [source, target] = [openWholeHistory(from, warn), openWholeHistory(to, warn)];
  try {
    let copied = 0;
    for (let after = 0; ; ) {
      const rows = await source.after(after, rowsAtOnce);
      if (rows.length === 0) return copied;
      for (const { id: _, ...entry } of rows) target.add(entry);
      if (!(await target.flush())) throw notWritten();
      after = rows.at(-1)!.id;
      copied += rows.length;
      progress(copied);
    }
  } finally {
    source.close();
    target.close();
  }
}

const notWritten = () =>
  new ProxyError(
    "internal",
    "The history could not be written to its target; the warning before this says why. Run the command again, and it goes on.",
  );
