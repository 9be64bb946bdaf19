/**
 * Remembers which account made an item that a client may send back, which one served a conversation whose reasoning is bound to
 * it, and with `accountAffinity` a session.
 * In memory only, as hashes of the newest keys: a forgotten one costs one refused try, never an answer.
 */
import type { Awaitable } from "../../lib/awaitable";
import { BoundedMap } from "../../lib/bounded-map";
import type { Account } from "./account";

export interface Affinity {
  /** @param mark An item made by the account, a conversation, or a client's session. The last account remembered for it counts. */
  remember(mark: string, account: Account): void;
  /** The account of the first mark that is remembered, if it is one of `accounts`. */
  accountFor(marks: Iterable<string>, accounts: readonly Account[]): Awaitable<Account | undefined>;
  /** Whether each of these marks is remembered, whichever account made it. */
  knows(marks: readonly string[]): Awaitable<boolean>;
}

/** Affinity in the memory of this process, which is asked without waiting. */
interface LocalAffinity extends Affinity {
  accountFor(marks: Iterable<string>, accounts: readonly Account[]): Account | undefined;
  knows(marks: readonly string[]): boolean;
}

/** 64 bits with a sign, as databases store them. */
export const markHash = (mark: string): bigint => BigInt.asIntN(64, Bun.hash.wyhash(mark));

/** @param max How many marks are remembered. */
export function openAffinity(max = 20_000): LocalAffinity {
  const affinity = new BoundedMap<bigint, string>(max);
  return {
    remember(mark, account) {
      affinity.set(markHash(mark), account.key);
    },
    accountFor(marks, accounts) {
      if (affinity.size === 0) return undefined;
      for (const mark of marks) {
        // Compared by key: after a new sign-in the same person is another object.
        const key = affinity.get(markHash(mark));
        if (key !== undefined) return accounts.find((account) => account.key === key);
      }
      return undefined;
    },
    knows: (marks) => marks.every((mark) => affinity.has(markHash(mark))),
  };
}
