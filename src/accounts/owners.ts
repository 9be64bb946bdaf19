/**
 * Which account made what a client may send back, and, where the owner of the proxy wants it so, which one served a
 * session. In memory only, as hashes, the newest ones: whatever is forgotten costs one refused try, never an answer.
 */
import type { Account } from "./account";

export interface Owners {
  /** @param mark A proof of the account's, or a client's session. The account that is learnt last owns it. */
  learn(mark: string, account: Account): void;
  /** The one of the accounts that owns the first of the marks anybody owns. */
  ownerOf(marks: Iterable<string>, accounts: readonly Account[]): Account | undefined;
}

/** @param most Marks that are remembered. */
export function openOwners(most = 20_000): Owners {
  const owners = new Map<bigint, string>();
  return {
    learn(mark, account) {
      const hash = Bun.hash.wyhash(mark);
      owners.delete(hash);
      owners.set(hash, account.key);
      if (owners.size > most) owners.delete(owners.keys().next().value!);
    },
    ownerOf(marks, accounts) {
      if (owners.size === 0 || accounts.length < 2) return undefined;
      for (const mark of marks) {
        // By key: somebody who signs in again is another object, but the same person.
        const owner = owners.get(Bun.hash.wyhash(mark));
        if (owner !== undefined) return accounts.find(({ key }) => key === owner);
      }
      return undefined;
    },
  };
}
