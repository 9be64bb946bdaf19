/**
 * Which account made what a client may send back, and, where the owner of the proxy wants it so, which one served a
 * session. In memory only, as hashes, the newest ones: whatever is forgotten costs one refused try, never an answer.
 */
import type { Account } from "./account";

export interface Affinity {
  /** @param mark A proof of the account's, or a client's session. The account that is learnt last owns it. */
  remember(mark: string, account: Account): void;
  /** The one of the accounts that owns the first of the marks anybody owns. */
  accountFor(marks: Iterable<string>, accounts: readonly Account[]): Account | undefined;
}

/** @param max Marks that are remembered. */
export function openAffinity(max = 20_000): Affinity {
  const affinity = new Map<bigint, string>();
  return {
    remember(mark, account) {
      const hash = Bun.hash.wyhash(mark);
      affinity.delete(hash);
      affinity.set(hash, account.key);
      if (affinity.size > max) affinity.delete(affinity.keys().next().value!);
    },
    accountFor(marks, accounts) {
      if (affinity.size === 0 || accounts.length < 2) return undefined;
      for (const mark of marks) {
        // By key: somebody who signs in again is another object, but the same person.
        const owner = affinity.get(Bun.hash.wyhash(mark));
        if (owner !== undefined) return accounts.find(({ key }) => key === owner);
      }
      return undefined;
    },
  };
}
