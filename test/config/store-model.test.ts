/**
 * Property: two processes that share a config file follow a plain model: patches, edits by hand, revisions, a file that is
 * not valid, and client keys, which hold at once where a call sets them, and else from the next start.
 */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ConfigStore, openConfig, type Stored } from "../../src/config/store";
import { asProxyError } from "../../src/lib/errors";
import fc from "../support/random";
import { temporaryFolder } from "../support/temporary-folder";

const keys = (...apiKeys: string[]) => ({ apiKeys });
const defaults = { logLevel: "info", retentionDays: 14, neverOverage: false, auth: keys() };
const effective = (stored: Stored): typeof defaults => ({ ...defaults, ...stored });

/** What a process knows of the file. */
interface Known {
  text: string;
  stored: Stored;
  hasFault: boolean;
  /** The client keys that hold. */
  auth: typeof defaults.auth;
  /** What a call had set before the start, where the file had other keys by then. */
  past?: Model["set"];
}
interface Model {
  text: string;
  /** Undefined if the file is not valid. */
  stored: Stored | undefined;
  /** The client keys that a call set last. */
  set?: { auth: typeof defaults.auth };
  processes: Known[];
}
interface Real {
  path: string;
  stores: ConfigStore[];
}
type Command = fc.AsyncCommand<Model, Real>;

/** After each step, the file and both processes are as the model says. */
const command = (name: string, run: (model: Model, real: Real) => Promise<void> | void): Command => ({
  check: () => true,
  toString: () => name,
  async run(model, real) {
    await run(model, real);
    expect(readFileSync(real.path, "utf8"), "the file").toBe(model.text);
    for (const [at, { stored, hasFault, auth }] of model.processes.entries()) {
      const store = real.stores[at]!;
      expect(store.stored, `what process ${at} knows of the file`).toEqual(stored);
      expect(store.current, `what holds in process ${at}`).toMatchObject({ ...effective(stored), auth });
      const waiting = Bun.deepEquals(effective(stored).auth, auth) ? [] : ["auth.apiKeys"];
      expect(store.waiting, `what waits for the next start of process ${at}`).toEqual(waiting);
      expect(store.fault !== undefined, `process ${at} tells that the file is wrong`).toBe(hasFault);
    }
  },
});

/** @param isFor Whether the change is for the revision that the process has read. */
const change = (at: number, patch: Stored, isFor: boolean) =>
  command(
    `process ${at} sets ${JSON.stringify(patch)}${isFor ? " for its revision" : ""}`,
    async (model, { stores, path }) => {
      const [known, store] = [model.processes[at]!, stores[at]!];
      const given = store.change(patch, isFor ? { revision: store.revision } : {});
      const answer = await given.then(
        () => "done",
        (thrown) => asProxyError(thrown).kind,
      );
      const isOutdated = isFor && known.text !== model.text;
      const isInvalid = patch.retentionDays === -1;
      if (!model.stored || isOutdated) return expect(answer).toBe("conflict");
      if (isInvalid) return expect(answer).toBe("invalid_request");
      expect(answer).toBe("done");
      const before = model.stored;
      const next: Record<string, unknown> = { ...before };
      for (const [name, value] of Object.entries(patch) as [keyof typeof defaults, unknown][]) {
        // What holds already stays as the owner wrote it.
        if (Bun.deepEquals(effective(before)[name], value ?? defaults[name])) continue;
        if (value === null) delete next[name];
        else next[name] = value;
      }
      if (!Bun.deepEquals(next, before)) {
        model.text = readFileSync(path, "utf8");
        expect(JSON.parse(model.text), "what was written").toEqual(next);
      }
      model.stored = next;
      Object.assign(known, { text: model.text, stored: next, hasFault: false });
      if (!Object.hasOwn(patch, "auth")) return;
      known.auth = effective(next).auth;
      model.set = { auth: known.auth };
    },
  );

let edits = 0;
const edit = (stored: Stored | undefined) =>
  command(`edit the file: ${JSON.stringify(stored)}`, (model, { path }) => {
    // Two edits in the same moment differ in length.
    const text = `${stored ? JSON.stringify(stored) : "{ not JSON"}${" ".repeat(edits++ % 1_000)}`;
    writeFileSync(path, text);
    Object.assign(model, { text, stored });
  });

const putBack = command("put back what process 0 has read last", (model, { path }) => {
  const { text, stored } = model.processes[0]!;
  writeFileSync(path, text);
  Object.assign(model, { text, stored });
});

const look = (at: number) =>
  command(`process ${at} looks at the file`, async ({ text, stored, processes, set }, { stores }) => {
    await stores[at]!.reload();
    const known = processes[at]!;
    Object.assign(known, stored ? { text, stored, hasFault: false } : { hasFault: true });
    const isSet = stored && set && set !== known.past && Bun.deepEquals(set.auth, effective(stored).auth);
    if (isSet) known.auth = set.auth;
  });

const restart = (at: number) =>
  command(`process ${at} starts anew`, ({ text, stored, processes, set }, { stores, path }) => {
    if (!stored) return void expect(() => openConfig(path)).toThrow();
    stores[at] = openConfig(path);
    const { auth } = effective(stored);
    const isPast = set && !Bun.deepEquals(set.auth, auth);
    processes[at] = { text, stored, hasFault: false, auth, ...(isPast && { past: set }) };
  });

const auth = fc.constantFrom(keys("k-first-0123456789"), keys("k-second-0123456789"));
const members = {
  logLevel: fc.constantFrom("info", "debug"),
  retentionDays: fc.constantFrom(14, 7),
  neverOverage: fc.boolean(),
  auth,
};
const patches = {
  logLevel: fc.option(members.logLevel),
  retentionDays: fc.option(fc.constantFrom(14, 7, 7, 7, -1)),
  neverOverage: fc.option(fc.boolean()),
  auth: fc.option(auth),
};
const some = <T>(of: { [Name in keyof T]: fc.Arbitrary<T[Name]> }) => fc.record(of, { requiredKeys: [] });

test.each([
  [
    "a patch, an edit and a look each leave the file and both processes as a plain model says",
    some(members),
    some(patches),
  ],
  [
    "client keys that somebody edits hold from the next start, those that a call sets at once",
    some({ auth }),
    some({ auth }),
  ],
] as const)("%s", async (_, stored, patch) => {
  const folder = temporaryFolder();
  let count = 0;
  const setup = () => {
    const path = join(folder, `${count++}.json`);
    writeFileSync(path, "{}");
    const known = () => ({ text: "{}", stored: {}, hasFault: false, auth: keys() });
    return {
      model: { text: "{}", stored: {}, processes: [known(), known()] },
      real: { path, stores: [openConfig(path), openConfig(path)] },
    };
  };
  const commands = [
    fc.tuple(fc.nat(1), patch, fc.boolean()).map((given) => change(...given)),
    fc.option(stored, { nil: undefined, freq: 3 }).map(edit),
    fc.constant(putBack),
    fc.constant(putBack),
    fc.nat(1).map(look),
    fc.nat(1).map(look),
    fc.nat(1).map(restart),
  ];
  await fc.assert(
    fc.asyncProperty(fc.commands(commands, { maxCommands: 40, size: "+1" }), (steps) => fc.asyncModelRun(setup, steps)),
    { numRuns: 60 },
  );
});
