/**
 * Property: the program ends, or the disk fails, in the middle of a change: at a few moments;
 * `proof/faults/crash.test.ts` tries all.
 */
import { expect } from "bun:test";
import { dirname } from "node:path";
import { disturb, type StoreName, storeNames } from "../support/crash";
import type { Disturbance } from "../support/disk-tracer";
import { drawn, openChance } from "../support/random";
import { testWith } from "../support/sandbox";

/** What each store changes when nothing disturbs it. */
const undisturbed = new Map<StoreName, Promise<string[]>>();
function changesOf(name: StoreName): Promise<string[]> {
  const known = undisturbed.get(name) ?? disturb(name, { at: 0 });
  undisturbed.set(name, known);
  return known;
}

for (const name of drawn("stores", storeNames))
  testWith(
    "tracing",
    `${name} can be opened again, with all that was served, after a crash or a fault of the disk`,
    async () => {
      const { below, pick } = openChance(name);
      const changes = await changesOf(name);
      expect(changes.length).toBeGreaterThan(4);
      for (const error of [undefined, pick("EIO" as const, "ENOSPC" as const)])
        await disturb(name, { at: 1 + below(changes.length), error });
    },
  );

/** Moments at which something was half there once: which of the changes of this form, from 1. */
const moments: [title: string, store: StoreName, change: RegExp, which: number, error?: Disturbance["error"]][] = [
  [
    "settings of a client that were being written for the second time can be undone without force",
    "a client's settings",
    /^rename .*settings\.json$/,
    2,
  ],
  [
    "a change of the config is made, and not said to have failed, if only its folder cannot be synced",
    "the config with its client keys",
    /^fsync [^.]+$/,
    2,
    "EIO",
  ],
  [
    "the undo of a client's settings is kept if only their folder cannot be synced",
    "a client's settings",
    /^fsync .*\.claude$/,
    1,
    "EIO",
  ],
  [
    "a history that a full disk kept from being opened is kept from the next request on",
    "the history",
    /^create .*-wal$/,
    1,
    "ENOSPC",
  ],
];

for (const [title, store, change, which, error] of drawn("moments", moments, 2))
  testWith("tracing", title, async () => {
    const changes = await changesOf(store);
    const matching = changes.flatMap((each, at) => (change.test(each) ? [at + 1] : []));
    expect(matching.length).toBeGreaterThanOrEqual(which);
    await disturb(store, { at: matching[which - 1]!, error });
  });

const durable: StoreName[] = [
  "the config with its client keys",
  "the accounts with their tokens",
  "a client's settings",
  "a client's settings where there were none",
];

for (const name of drawn("durable", durable, 2))
  testWith(
    "tracing",
    `${name} outlast a loss of power: nothing counts as written or removed before the disk has it`,
    async () => {
      const changes = await changesOf(name);
      const final = changes.flatMap((change, at) => {
        const [call = "", path = ""] = change.split(" ");
        const counts = /\.json$/.test(path) && ["rename", "unlink"].includes(call);
        return counts ? [{ change, before: changes[at - 1], after: changes[at + 1], call, folder: dirname(path) }] : [];
      });
      expect(final.length).toBeGreaterThan(2);
      for (const { change, before, after, call, folder } of final) {
        expect(after, `after ${change}`).toBe(`fsync ${folder}`);
        if (call === "rename") expect(before, `before ${change}`).toMatch(/^fsync .+\.tmp-/);
      }
    },
  );
