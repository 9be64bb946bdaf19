/** Whether a store is whole after its program ended, or its disk failed, in the middle of a change. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CrashStore, crashStores, type Items, type Said } from "./crash-stores";
import { type Disturbance, traced } from "./disk-tracer";
import { quickest } from "./quickest";

export type StoreName = keyof typeof crashStores;
export const storeNames = Object.keys(crashStores) as StoreName[];

/** A message that says so is believed. */
const claimsNothing = /nothing was changed|was not changed|account could not be (?:saved|removed)/i;

let built: Promise<string> | undefined;
/** What makes the changes, as one file: a program that is traced loads two hundred in twice the time. */
async function build(): Promise<string> {
  const { outputs } = await Bun.build({ entrypoints: [join(import.meta.dir, "crash-stores.ts")], target: "bun" });
  return outputs[0]!.text();
}

/** @returns The changes that the store began to make on the disk, in order. @throws If the store is not as it was served. */
export async function disturb(name: StoreName, disturbance: Disturbance): Promise<string[]> {
  const home = realpathSync(mkdtempSync(join(quickest(), "dragoman-crash-")));
  const [program, folder] = [join(home, "changes.js"), join(home, "store")];
  const store: CrashStore = crashStores[name];
  try {
    built ??= build();
    writeFileSync(program, await built);
    mkdirSync(folder, { mode: 0o700 });
    store.prepare?.(folder);
    const argv = [process.execPath, "--no-env-file", program, name, folder];
    const { code, stdout, stderr, changes } = await traced(argv, folder, disturbance);
    const { at, error } = disturbance;
    const what =
      at === 0 ? "Undisturbed" : `Where ${changes[at - 1]} ${error ? `fails with ${error}` : "is not reached"}`;
    const context = `${what} (${at} of ${changes.length}), exit code ${code}\n${stdout}${stderr}`;
    const said: Said[] = stdout
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    if (at === 0 && (code !== 0 || said.some((each) => "refused" in each))) throw new Error(context);
    if (at > 0 && at <= changes.length && !error && code !== 137) throw new Error(`It should have ended. ${context}`);
    // One fault refuses one step, and at most one more that needs it.
    if (said.filter((each) => "refused" in each).length > 2) throw new Error(`It does not go on. ${context}`);
    await compare(store, folder, said, context);
    return changes;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** What may be under each name, by what the program said. */
function allowedBy(store: CrashStore, said: readonly Said[]): Map<string, unknown[]> {
  const allowed = new Map(Object.entries(store.initial ?? {}).map(([name, value]) => [name, [value]]));
  let waiting: Items = {};
  for (const [at, begun] of said.entries()) {
    if (!("begins" in begun)) continue;
    const ended = said[at + 1];
    if (ended && "refused" in ended && claimsNothing.test(ended.refused)) continue;
    const isServed = ended && "served" in ended;
    for (const [name, value] of Object.entries({ ...waiting, ...begun.begins }))
      allowed.set(name, [...(isServed ? [] : (allowed.get(name) ?? [null])), value]);
    waiting = store.catchesUp && !isServed ? { ...waiting, ...begun.begins } : {};
  }
  return allowed;
}

async function compare(store: CrashStore, folder: string, said: readonly Said[], context: string): Promise<void> {
  const allowed = allowedBy(store, said);
  const items = await Promise.try(() => store.read(folder)).catch((cause) => {
    throw new Error(`It is half there: ${cause}\n${context}`, { cause });
  });
  for (const name of new Set([...Object.keys(items), ...allowed.keys()])) {
    const [found, values] = [items[name] ?? null, allowed.get(name) ?? [null]];
    if (values.some((value) => Bun.deepEquals(value, found))) continue;
    const expected = values.map((value) => JSON.stringify(value)).join(" or ");
    throw new Error(`${name} is ${JSON.stringify(found)}, not ${expected}.\n${context}`);
  }
}
